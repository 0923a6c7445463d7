"""How a service waits between two starts; no broker needed."""

from __future__ import annotations

import pytest

from shoal.connect.kafka import KafkaError
from shoal.runtime.kafka.serve import service as module
from shoal.runtime.kafka.serve.service import Service


def fails_at(service: Service, moments: list[float], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let every start fail after so many seconds of work; answers how long it waited after each."""
    clock, waited = [0.0], []
    left = list(moments)

    def serve(stop) -> None:
        clock[0] += left.pop(0)
        raise KafkaError("the commit failed", where="kafka")

    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(service, "_serve", serve)
    monkeypatch.setattr(service, "_rest", lambda seconds, stop: waited.append(seconds))
    service.run(lambda: not left)
    return waited


def test_it_waits_longer_each_time_and_says_how_long(monkeypatch):
    said: list[str] = []
    failed: list[str] = []
    service = Service("policy.yaml", lambda policy: None, say=said.append, failed=failed.append)
    waited = fails_at(service, [1.0] * 7, monkeypatch)
    assert failed == said  # a live page shows them, too
    assert waited == [1, 2, 4, 8, 16, 30, 30]
    assert [text.rpartition("; ")[2] for text in said] == [f"a new start in {int(s)} s" for s in waited]


def test_after_a_while_of_good_work_earlier_losses_are_forgotten(monkeypatch):
    service = Service("policy.yaml", lambda policy: None)
    assert fails_at(service, [1.0, 1.0, 61.0, 1.0], monkeypatch) == [1, 2, 1, 2]
