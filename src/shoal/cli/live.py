"""How a stream goes, on one line of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shoal.release.stream import LocalRunner
    from shoal.web.live import LivePage


def goal_said(decision: Any) -> str:
    """What share of people was hidden in the last window, as measured; whether that was asked, and what can be reached.

    >>> from shoal.streams.tuning import Decision
    >>> made = Decision(time=0, effect=1, z=9, p=0.77, reached=False, people=50, rows=90, evaluations=3, expected=0.9)
    >>> goal_said(made)
    'p 0.77 (goal not reached)'
    """
    said = f"p {decision.p:.2f}"
    if not decision.reachable:
        return f"{said} (goal not reachable, at best {decision.expected:.2f})"
    if not decision.near:
        below = "" if decision.lower is None else f"{decision.lower:.2f} or "
        nearest = f"{below}{decision.expected:.2f} to come, swings by {decision.swing:.2f}"
        return f"{said} (within .02 of the goal not reachable: {nearest})"
    return said if decision.reached else f"{said} (goal not reached)"


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
        self._page: LivePage | None = None

    def watch(self, title: str, unreadable: Callable[[], int]) -> None:
        """Also show it on a page in the browser."""
        from shoal.web.board import Board, Hidden, Sample, of_stream
        from shoal.web.live import LivePage

        runner, seen = self._runner, [0]
        tuned = getattr(getattr(runner.job.method, "tune", None), "goal", None)
        goal = None if tuned is None else tuned.probability
        engine = getattr(runner.method, "engine", None)
        hidden = None if tuned is not None or not hasattr(engine, "watch") else Hidden(engine)

        def sample() -> Sample:
            if unreadable() > seen[0]:
                seen[0] = unreadable()
                page.board.failed(f"{seen[0]:,} lines cannot be read so far")
            if hidden is not None:
                hidden.look()
            p_k = hidden.p_k if hidden is not None else None
            return of_stream(runner.method.counters, runner.method.figures(), goal, p_k)

        page = self._page = LivePage(Board(title, sample), say)

    def __iter__(self) -> Any:
        board = None if self._page is None else self._page.board
        try:
            for frame in self._source:
                yield frame
                self.line()
                if board is not None:
                    board.look()
        except StoppedError:
            return
        except GeneratorExit:
            raise  # whoever feeds the stream failed, and tells why
        except BaseException as error:
            self.failed(error)
            raise

    def failed(self, error: BaseException) -> None:
        """Show on the page what ended the run."""
        if self._page is not None:
            self._page.board.broke(error)
            self.close()

    def close(self) -> None:
        """Close the page."""
        if self._page is not None:
            self._page.close()

    def line(self, end: bool = False) -> None:
        """Say how it goes, once a second and at the end."""
        import sys

        now = self._clock()
        if end:
            self.close()
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
            *([goal_said(decision)] if decision else []),
        ]
        sys.stderr.write(("\r\x1b[K" if sys.stderr.isatty() else "") + ", ".join(words) + ("\n" if end else ""))
        sys.stderr.flush()
