"""Every family against its slow checkers, with fresh random cases until the time is up.

    make fuzz SECONDS=3600 SEED=5

The laws of ``tests/laws`` compare each family with slow, obvious twins. `make test` runs them with the same cases every
time; here Hypothesis draws new ones, round after round, each from a seed of its own. A failure prints the seed and the
command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAWS = "tests/laws"
FAMILIES = {
    "state": ("test_sealed_state.py", "test_continuous_laws.py"),
    "tables": ("test_table_methods.py", "test_local_laws.py", "test_anonymize.py", "test_promises.py"),
    "z": ("test_z_oracle.py", "test_z_tuning.py"),
    "groups": ("test_stream_groups.py",),
    "windows": ("test_window_laws.py",),
    "views": ("test_view_laws.py", "test_mask_laws.py"),
    "policies": ("test_widening_laws.py",),
    "files": ("test_reading_laws.py", "test_hierarchies.py"),
    "curves": ("test_series_laws.py",),
}


def main() -> int:
    """Run rounds; 1 at the first failure."""
    asked = argparse.ArgumentParser(description="Fuzz every family for a time.")
    asked.add_argument("--seconds", type=float, default=600)
    asked.add_argument("--seed", type=int, default=None, help="the first seed; random if not given")
    asked.add_argument("--family", choices=sorted(FAMILIES), default=None)
    given = asked.parse_args()
    seed = int.from_bytes(os.urandom(4), "big") if given.seed is None else given.seed
    end, rounds = time.monotonic() + given.seconds, 0
    names = [given.family] if given.family else list(FAMILIES)
    print(f"fuzzing {', '.join(names)} for {given.seconds:,.0f} s from seed {seed}", flush=True)
    while time.monotonic() < end:
        name = names[rounds % len(names)]
        if not _round(name, seed + rounds, end):
            return 1
        rounds += 1
    print(f"{rounds:,} rounds, nothing found")
    return 0


def _round(name: str, seed: int, end: float) -> bool:
    """One family with one seed; what is not done when the time is up is no failure."""
    files = [f"{LAWS}/{file}" for file in FAMILIES[name] if (ROOT / LAWS / file).exists()]
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", *files]
    began = time.monotonic()
    run = subprocess.Popen(
        words, cwd=ROOT, env={**os.environ, "SHOAL_FUZZ": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        said, _ = run.communicate(timeout=max(1.0, end - began))
    except subprocess.TimeoutExpired:
        run.kill()
        run.communicate()
        print(f"{name}, seed {seed}: time is up", flush=True)
        return True
    if run.returncode:
        print(said.decode(errors="replace"))
        print(f"{name} failed. To repeat it: SHOAL_FUZZ=1 {' '.join(words[1:])}", flush=True)
        return False
    print(f"{name}, seed {seed}: {time.monotonic() - began:,.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
