"""How a stream goes, on one line of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.release.stream import LocalRunner


def _goal(decision: Any) -> str:
    """What share of people was hidden in the last window, as measured; and whether that was asked."""
    missed = " (goal not reached)" if decision.reachable else " (goal not reachable)"
    return f"p {decision.p:.2f}{'' if decision.reached else missed}"


def _why(counters: Mapping[str, int]) -> str:
    """Why events were withheld, in words."""
    from shoal.report.stream_page import reasons

    parts = [f"{count:,} {words}" for words, count in reasons(counters)]
    return f" ({'; '.join(parts)})" if parts else ""


def _delayed(found: Mapping[str, Any]) -> list[str]:
    """What a method with delay says of itself."""
    seconds = f", {found['wait_most']:,.1f} s" if "wait_most" in found else ""
    return [
        f"loss {found['loss']:.3f}",
        f"smallest group {found['smallest_group']:,}",
        f"delay {found['delay_mean']:,.0f} (most {found['delay_most']:,}{seconds})",
        f"{found['held']:,} held",
        f"{found['withheld_share']:.1%} withheld",
    ]


class StoppedError(Exception):
    """Asked to stop while waiting for input: everything that arrived has been decided."""


class Live:
    """Passes frames on and keeps one line on stderr: rate, released, withheld, z and p."""

    def __init__(self, runner: LocalRunner, source: Any) -> None:
        import time

        self._runner, self._source = runner, source
        self._clock = time.monotonic
        self._start = self._last = self._clock()

    def __iter__(self) -> Any:
        try:
            for frame in self._source:
                yield frame
                self.line()
        except StoppedError:
            return

    def line(self, end: bool = False) -> None:
        """Say how it goes, once a second and at the end."""
        import sys

        now = self._clock()
        if not end and (now - self._last < 1 or not sys.stderr.isatty()):
            return
        self._last = now
        counters, found = self._runner.method.counters, self._runner.method.figures()
        decision = found.get("decision")
        words = [
            f"{counters['events']:,} events",
            f"{counters['events'] / max(now - self._start, 1e-9):,.0f}/s",
            f"{counters['released']:,} released",
            f"{counters['withheld']:,} withheld{_why(counters) if end else ''}",
            *[f"{name.replace('_', ' ')}: {count:,}" for name, count in counters.items() if name.startswith("level_")],
            *([f"z {found['z']}"] if "z" in found else []),
            *(_delayed(found) if "loss" in found else []),
            *([_goal(decision)] if decision else []),
        ]
        sys.stderr.write(("\r\x1b[K" if sys.stderr.isatty() else "") + ", ".join(words) + ("\n" if end else ""))
        sys.stderr.flush()
