"""Work that takes long: in a thread of its own, with progress that can be watched, and a cancel that is obeyed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from shoal.core.errors import ShoalError
from shoal.kernels.talk import ONCE, listening

State = Literal["running", "done", "failed", "cancelled"]
Tell = Callable[[float, str], None]
MOST_MARKS = 400  # points of a falling loss that are kept


class CancelledError(Exception):
    """The person no longer wants it."""


class Progress(msgspec.Struct, frozen=True):
    """How far it is: what a page shows."""

    state: State
    share: float
    word: str
    seconds: float
    losses: list[tuple[float, float]]  # seconds, loss in per cent
    message: str = ""
    hint: str = ""
    where: str = ""


class Task:
    """One piece of work. ``result`` is there when ``state`` is done; an error is kept for the page to tell.

    >>> task = Task("count", lambda tell: 2 + 2)
    >>> task.wait().result
    4
    """

    def __init__(self, name: str, work: Callable[[Tell], Any], then: Callable[[Any], None] | None = None) -> None:
        self.name = name
        self.state: State = "running"
        self.result: Any = None
        self.error: ShoalError | None = None
        self.changed = 0  # grows with every step, so that a reader knows whether there is something new
        self._began, self._ended = time.monotonic(), 0.0
        self._share, self._word = 0.0, "starting"
        self._losses: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work, then), daemon=True, name=f"shoal-{name}")
        self._thread.start()

    def cancel(self) -> None:
        """Ask it to end at its next step."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> Task:
        """Until it has ended."""
        self._thread.join(seconds)
        return self

    def progress(self) -> Progress:
        """How it stands."""
        seconds = (self._ended or time.monotonic()) - self._began
        word = "stopping" if self._stop.is_set() and self.state == "running" else self._word
        told = (
            ("", "", "") if self.error is None else (self.error.message, self.error.hint or "", self.error.where or "")
        )
        return Progress(self.state, self._share, word, round(seconds, 1), list(self._losses), *told)

    def _tell(self, share: float, word: str) -> None:
        if self._stop.is_set():
            raise CancelledError
        self._share, self._word = share, word
        if word.startswith("loss "):
            self._losses.append((round(time.monotonic() - self._began, 2), float(word.split()[1])))
            if len(self._losses) > MOST_MARKS:
                self._losses = self._losses[::2]
        self.changed += 1

    def _waits(self, share: float, words: str) -> None:
        """The first run of a method waits for the compiler, which cannot be cancelled."""
        self._word = f"{ONCE}: {words}" if words else self._word
        self.changed += 1

    def _run(self, work: Callable[[Tell], Any], then: Callable[[Any], None] | None) -> None:
        state: State = "done"
        try:
            with listening(self._waits):
                result = work(self._tell)
            if self._stop.is_set():
                raise CancelledError
            if then is not None:
                then(result)
            self.result, self._share = result, 1.0
        except CancelledError:
            state = "cancelled"
        except ShoalError as error:
            self.error, state = error, "failed"
        except MemoryError:
            self.error, state = (
                ShoalError("there is not enough memory", hint="close other programs, or take a part"),
                "failed",
            )
        except Exception as error:  # its own message could quote a person
            self.error, state = (
                ShoalError(f"an unexpected {type(error).__name__}: this is a defect, please report it"),
                "failed",
            )
        self._ended = time.monotonic()
        self.state = state
        self.changed += 1
