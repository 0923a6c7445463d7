"""The writing end of a worker, with a client that never answers."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from shoal.runtime.kafka.serve import transactions
from shoal.runtime.kafka.serve.transactions import LostError, Transactions


class Silent:
    """A producer of which one call never comes back."""

    def __init__(self, stuck: str) -> None:
        self.stuck, self.asked, self.free = stuck, [], threading.Event()

    def list_topics(self, timeout: float):
        return SimpleNamespace(topics={})

    def __getattr__(self, name: str):
        def call(*_: object) -> None:
            self.asked.append(name)
            if name == self.stuck:
                self.free.wait(60)

        return call


@pytest.fixture
def begun(monkeypatch):
    """Begins transactions with a client that never answers one question."""
    made: list[Silent] = []

    def begin(stuck: str) -> tuple[Silent, Transactions]:
        made.append(Silent(stuck))
        client = SimpleNamespace(Producer=lambda _: made[-1], KafkaException=OSError, TopicPartition=lambda *a: a)
        monkeypatch.setattr(transactions, "library", lambda: client)
        monkeypatch.setattr(transactions, "OPEN", 0.05)
        return made[-1], Transactions({}, "patients", "shoal-patients-a")

    yield begin
    for one in made:
        one.free.set()


def commit(out: Transactions, wrong: Exception | None = None) -> None:
    with out.transaction(SimpleNamespace(consumer_group_metadata=lambda: None), {0: 1}, {}):
        if wrong is not None:
            raise wrong


@pytest.mark.parametrize("stuck", ["send_offsets_to_transaction", "commit_transaction"])
def test_a_call_that_never_comes_back_is_a_loss(begun, stuck):
    producer, out = begun(stuck)
    with pytest.raises(LostError, match="does not answer"):
        commit(out)
    assert producer.asked[-2:] == [stuck, "abort_transaction"]


def test_what_went_wrong_is_told_though_the_abort_never_comes_back(begun):
    producer, out = begun("abort_transaction")
    with pytest.raises(ValueError, match="why"):
        commit(out, ValueError("why"))
    assert "commit_transaction" not in producer.asked
