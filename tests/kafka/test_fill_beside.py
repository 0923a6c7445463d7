"""A changed view is filled beside the workers, who stand still for the last of it and the switch alone."""

from __future__ import annotations

import pytest
from stage import KEYS
from test_interrupted_apply import CHANGED, POLICY, numbers, patients
from test_service import Background

from shoal.policy.load import load
from shoal.runtime.kafka.provision import carry_out
from shoal.runtime.kafka.provision.backfill import backfill_group
from shoal.runtime.kafka.provision.control import order_now
from shoal.runtime.kafka.provision.provision import Provisioner

pytestmark = pytest.mark.system


def test_other_views_go_on_while_a_changed_one_is_filled(stage, monkeypatch):
    here = stage(POLICY, 1)
    here.send(patients(60))
    service = Background(here)
    paused: list[bool] = []
    filled = carry_out.backfill

    def watched(*given, **named):
        paused.append(order_now(here.cluster.login(), here.topic).paused)
        count = filled(*given, **named)
        if len(paused) == 1:  # what comes meanwhile is published by the workers, and filled in afterwards
            here.send(patients(40, 60))
            here.until(lambda: here.committed() == 100)
            assert numbers(here, f"{here.topic}.ward") == list(range(100))
            assert numbers(here, f"{here.topic}.office.v2") == list(range(60))
        return count

    monkeypatch.setattr(carry_out, "backfill", watched)
    try:
        here.until(lambda: here.committed() == 60)
        here.write_policy(CHANGED)
        here.apply(allow_wider=True, keys=KEYS)
        assert paused == [False, True]
        here.send(patients(20, 100))
        here.until(lambda: bool(service.failed) or here.committed() == 120)
    finally:
        service.stop()
    assert not service.failed
    for view in ("ward", "office.v2"):
        assert numbers(here, f"{here.topic}.{view}") == list(range(120))
    assert not Provisioner(load(here.file)).cluster.groups(backfill_group(here.topic, ""))
