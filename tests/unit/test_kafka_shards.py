"""When a shard writes its state down."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from shoal.runtime.kafka.serve import shards
from shoal.runtime.kafka.serve.output import Record
from shoal.runtime.kafka.serve.shards import EVERY, LIGHT, OFTEN, TICKS, Shard
from shoal.runtime.kafka.state.changelog import Tick


@pytest.fixture
def shard(monkeypatch):
    now = SimpleNamespace(at=1000.0)
    monkeypatch.setattr(shards.time, "monotonic", lambda: now.at)
    work = SimpleNamespace(push=lambda records: ([], []), tick=lambda moment: [], snapshot=lambda: bytes(made.size))
    seal = SimpleNamespace(close=lambda record, key, partition: record)
    made = Shard("market", "t.market", 0, work, seal)
    made.now = now
    return made


def read(shard: Shard, count: int) -> None:
    shard.push([Record(0, shard.next + n, None, b"{}", 0) for n in range(count)])


@pytest.mark.parametrize("heavy", [0, 1, 9])
def test_a_large_state_is_written_more_seldom_by_records_and_by_time(shard, heavy):
    assert shard.wants_snapshot()  # there is none yet
    shard.size = heavy * LIGHT
    shard.snapshot()
    shard.since = 0
    assert shard.size == heavy * LIGHT
    read(shard, EVERY * (1 + heavy) - 1)
    assert not shard.wants_snapshot()
    read(shard, 1)
    assert shard.wants_snapshot()
    shard.snapshot()
    read(shard, 1)
    shard.now.at += OFTEN * (1 + heavy)
    assert not shard.wants_snapshot()
    shard.now.at += 1
    assert shard.wants_snapshot()


def test_no_tick_is_written_over_before_the_next_snapshot(shard):
    shard.size = 100 * LIGHT
    shard.snapshot()
    shard.since = 0
    keys = set()
    for number in range(1, TICKS + 1):
        assert not shard.wants_snapshot()
        tick = Tick(number, 0, number)
        keys.add(shard.logged(tick)[0])
        shard.tick(tick)
    assert shard.wants_snapshot()
    assert len(keys) == TICKS
