"""The command ``shoal``, also as ``python -m shoal``."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command that the arguments of the process name."""
    # nearly all that a command loads stays until it ends: to look for garbage among it takes a tenth of a small command
    gc.set_threshold(50_000, 20, 20)
    from shoal.cli import main as run

    try:
        run()
    finally:
        gc.freeze()  # the process ends: its memory goes back as a whole


if __name__ == "__main__":
    main()
