"""Two stages in one process: they start and end together, also when one fails, and one that hangs holds up nobody."""

from __future__ import annotations

import threading
import time

import pytest

from shoal.connect.kafka import KafkaError
from shoal.runtime.kafka.regions import stages
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.service import HOPELESS
from shoal.runtime.kafka.serve.transactions import LostError

GUARD = 60.0  # seconds after which a test that hangs is given up: no measure of speed


class Stage:
    """A worker that serves until it is asked to stop, fails at once, or cannot be stopped."""

    def __init__(self, fails: KafkaError | None = None, hangs: threading.Event | None = None) -> None:
        self.counters, self._fails, self._hangs = Counters(), fails, hangs
        self.ended = False

    def run(self, stop=lambda: False) -> Counters:
        if self._fails is not None:
            raise self._fails
        end = time.monotonic() + GUARD
        while not stop() and time.monotonic() < end:
            time.sleep(0.001)
        if self._hangs is not None:
            self._hangs.wait(GUARD)
        self.ended = True
        return self.counters


@pytest.mark.parametrize("first_fails", [True, False])
def test_what_ends_one_stage_ends_the_other_and_is_told(first_fails):
    lost = LostError("the partitions were taken away", where="kafka")
    well, ill = Stage(), Stage(fails=lost)
    staged = stages.Staged(ill, well) if first_fails else stages.Staged(well, ill)  # type: ignore[arg-type]
    with pytest.raises(LostError, match="taken away"):
        staged.run()
    assert well.ended


@pytest.mark.parametrize("fails", [None, LostError("the partitions were taken away", where="kafka")])
def test_a_stage_that_does_not_end_is_not_waited_for_for_ever(fails, monkeypatch):
    monkeypatch.setattr(stages, "ENDING", 0.05)
    released = threading.Event()
    try:
        with pytest.raises(stages.StuckError, match="does not end") as told:
            stages.Staged(Stage(fails=fails), Stage(hangs=released)).run(lambda: True)  # type: ignore[arg-type]
        assert told.value.__cause__ is fails  # what came first is still said
        assert told.value.name in HOPELESS  # a new start in this process would share its fate
    finally:
        released.set()
