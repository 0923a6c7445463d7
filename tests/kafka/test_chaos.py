"""A bounded share of the chaos run; the whole by ``make chaos``."""

from __future__ import annotations

import os

import pytest
from chaos import PARTITIONS, POLICY, Chaos
from stage import Stage

from scripts.kafka.broker import Cluster

pytestmark = [pytest.mark.system, pytest.mark.slow]
RECORDS = int(os.environ.get("SHOAL_CHAOS_RECORDS", "6000"))
KILLS = int(os.environ.get("SHOAL_CHAOS_KILLS", "2"))
SEED = int(os.environ.get("SHOAL_CHAOS_SEED", "7"))


def test_killed_workers_and_a_lost_broker_change_nothing_that_is_published(cluster, tmp_path):
    """``cluster`` says whether brokers can run here; these three are the test's own."""
    three = Cluster(tmp_path / "three", 3)
    try:
        three.start()
        stage = Stage(three, tmp_path, POLICY, PARTITIONS)
        run = Chaos(stage, RECORDS, KILLS, SEED, lose_brokers=True)
        wrong = run.run()
        assert not wrong, f"seed {SEED}: {wrong}"
        assert run.blows["kill"] == KILLS
        assert run.blows["broker"] >= 1
        stage.stop()
    finally:
        three.stop()
