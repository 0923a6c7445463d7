"""An apply that is killed between any two steps: said by status, and mended by the next apply. On a real broker."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from stage import GUARD, KEYS, SECRET, WARD
from test_service import Background

from shoal.connect.kafka import KafkaError
from shoal.policy.load import load
from shoal.runtime.kafka.provision import backfill as filling
from shoal.runtime.kafka.provision import carry_out, turn
from shoal.runtime.kafka.provision.audit import History, Steps
from shoal.runtime.kafka.provision.control import order_now, send
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.provision.status import status
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.metrics import Health
from shoal.runtime.kafka.serve.service import Service

pytestmark = pytest.mark.system

POLICY = WARD + "  office: {show: [number]}\n"
CHANGED = POLICY.replace("office: {show: [number]}", "office: {show: [number, diag]}")


class KilledError(BaseException):
    """As SIGKILL: no clean-up runs after it."""


def patients(count: int, start: int = 0):
    return [
        (msgspec.json.encode({"number": n, "name": f"P{n}", "diag": "E10"}), None) for n in range(start, start + count)
    ]


def numbers(here, topic: str) -> list[int]:
    return sorted(msgspec.json.decode(m.value())["number"] for m in here.drain(topic))


STEPS = ["paused", "switched", "ended"] + (["begun", "filled"] if os.environ.get("SHOAL_LONG") == "1" else [])


@pytest.mark.parametrize("after", STEPS)
def test_the_next_apply_mends_one_that_was_killed_after_any_step(stage, monkeypatch, after):
    here = stage(POLICY, 1)
    here.send(patients(60))
    service = Background(here)
    try:
        here.until(lambda: here.committed() == 60)
        here.write_policy(CHANGED)
        written = Steps._write

        def killed(self, step, **more):
            if step == after == "ended":  # killed before the last word
                raise KilledError
            written(self, step, **more)
            if step == after:
                raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(Steps, "_write", killed)
            patch.setattr(filling.Rest, "__exit__", lambda *_: None)  # nobody lets the workers go on
            with pytest.raises(KilledError):
                here.apply(allow_wider=True, keys=KEYS)
        here.send(patients(40, 60))
        found = status(Provisioner(load(here.file)))
        assert found.left is not None
        assert not found.well
        assert "did not end" in str(found)
        assert found.paused == (after != "begun")
        if found.paused:
            assert "40 records unread" in str(found)
        here.apply(allow_wider=True, keys=KEYS)
        assert not order_now(here.cluster.login(), here.topic).paused
        found = status(Provisioner(load(here.file)))
        assert found.left is None
        here.until(lambda: status(Provisioner(load(here.file))).well)  # once workers that begin anew are back
        if service.failed:  # between two policies a worker stops; the next one goes on
            service = Background(here)
        here.until(lambda: here.committed() == 100)
    finally:
        service.stop()
    assert numbers(here, f"{here.topic}.ward") == list(range(100))
    assert numbers(here, f"{here.topic}.office.v2") == list(range(100))


def test_destroy_takes_away_what_an_apply_that_was_killed_has_made(stage, monkeypatch):
    monkeypatch.setenv("SHOAL_PASSWORD_SERVED", "served-secret")
    first, changed = (
        text.replace("admin.properties}", "admin.properties, worker: served}") for text in (POLICY, CHANGED)
    )
    here = stage(first, 1)
    here.send(patients(5))
    here.serve()
    here.write_policy(changed)
    written = Steps._write

    def killed(self, step, **more):
        written(self, step, **more)
        if step == "made":
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Steps, "_write", killed)
        with pytest.raises(KilledError):
            here.apply(allow_wider=True, keys=KEYS)
    service = Provisioner(load(here.file))
    assert f"{here.topic}.office.v2" in here.admin.list_topics(timeout=30).topics
    service.destroy()
    ours = [name for name in here.admin.list_topics(timeout=30).topics if name.startswith(here.topic)]
    assert sorted(ours) == [here.topic, f"{here.topic}.shoal.audit"]
    assert not [right for right in service.cluster.rights() if right.principal == "User:served"]
    assert not service.cluster.users(["served"])
    assert service.history() == History()
    assert status(Provisioner(load(here.file))).left is None


def test_a_paused_worker_is_not_ready_and_counts_what_is_unread(stage):
    here = stage(POLICY, 1)
    here.send(patients(30))
    counters = Counters.of(["ward", "office"])
    counters.restoring = False
    health, looks = Health(counters), []
    send(here.cluster.login(), here.topic, "pause")

    def stop() -> bool:
        looks.append((counters.paused, health.ready, sum(counters.lag.values())))
        return (True, False, 30) in looks or len(looks) > 600

    Service(here.file, lambda policy: pytest.fail("it must not work"), counters=counters).run(stop)
    assert (True, False, 30) in looks


def test_status_says_all_that_plan_refuses(stage):
    here = stage(POLICY, 1)
    assert status(Provisioner(load(here.file))).well
    rights = {
        "restype": ResourceType.TOPIC,
        "name": here.topic[:5],
        "resource_pattern_type": ResourcePatternType.PREFIXED,
        "principal": "User:*",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
    }
    for future in here.admin.create_acls([AclBinding(**rights)]).values():
        future.result(30)
    try:
        here.until(lambda: bool(Provisioner(load(here.file)).plan().refusals))
        found = status(Provisioner(load(here.file)))
        assert found.refusals == Provisioner(load(here.file)).plan().refusals
        assert not found.well
        assert "User:* has a path to" in str(found)
    finally:
        for future in here.admin.delete_acls([AclBindingFilter(**rights)]).values():
            future.result(30)
        here.until(lambda: not Provisioner(load(here.file)).plan().refusals)


def test_two_applies_take_turns(stage, monkeypatch):
    """The second took the first for one that had died, deleted the topic it was filling, and both published."""
    monkeypatch.setattr(turn, "PATIENCE", 1.0)
    here = stage(POLICY, 1)
    here.send(patients(60))
    here.serve()
    here.write_policy(CHANGED)
    filled, said = carry_out.backfill, []

    def meanwhile(*args, **how):
        if not said:
            said.append(str(status(Provisioner(load(here.file)))))
            for late in (lambda: here.apply(allow_wider=True, keys=KEYS), Provisioner(load(here.file)).destroy):
                with pytest.raises(KafkaError, match="another apply or destroy is at work"):
                    late()
        return filled(*args, **how)

    monkeypatch.setattr(carry_out, "backfill", meanwhile)
    planned = Provisioner(load(here.file))
    plan = planned.plan()
    here.apply(allow_wider=True, keys=KEYS)
    assert "an apply or destroy is at work" in said[0]
    assert "did not end" not in said[0]
    with pytest.raises(KafkaError, match="someone else has applied meanwhile"):  # what it planned is no longer so
        planned.apply(plan, allow_wider=True, keys=KEYS)
    here.serve()
    assert numbers(here, f"{here.topic}.office.v2") == list(range(60))
    assert not status(planned).applying


def test_an_apply_that_is_killed_as_a_process_is_mended_by_the_next_one(stage):
    """Nothing of it cleans up: its turn ends with its session, its topics and its groups are taken back."""
    here = stage(POLICY, 1)
    here.send(patients(60))
    here.serve()
    here.write_policy(CHANGED)
    words = [sys.executable, "-m", "shoal", "serve", "apply", str(here.file), "--allow-wider"]
    process = subprocess.Popen(words, env={**os.environ, "SHOAL_KEY": SECRET}, stderr=subprocess.DEVNULL)
    service = Provisioner(load(here.file))
    here.until(lambda: service.history().left is not None or process.poll() is not None)
    process.kill()
    process.wait(GUARD)
    assert service.history().left is not None, "it was faster than the question: nothing was tried"
    here.apply(allow_wider=True, keys=KEYS)
    found = status(Provisioner(load(here.file)))
    assert found.left is None
    assert not found.paused
    assert not service.cluster.groups(filling.backfill_group(here.topic, ""))
    here.serve()
    assert numbers(here, f"{here.topic}.office.v2") == list(range(60))
