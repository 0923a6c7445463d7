"""What a policy asks of a cluster, without one."""

from __future__ import annotations

import pytest

from shoal.core.errors import ShoalError
from shoal.policy.load import parse
from shoal.runtime.kafka.layout import Right, layout

POLICY = """
dataset: patients
source: {use: kafka, topic: patients, brokers: nowhere, worker: shoal%s}
columns: {number: {role: plain}, name: {role: identifier}}
views: {ward: {show: [number], users: [nurse], service: {%s}}}
"""


@pytest.mark.parametrize(("more", "group"), [("", "shoal-patients"), (", group: clinic", "clinic")])
def test_the_worker_may_read_as_the_group_the_policy_names(more, group):
    rights = layout(parse(POLICY % (more, "")), 2).rights
    assert Right("User:shoal", "READ", "GROUP", group) in rights
    assert Right("User:nurse", "READ", "GROUP", group) not in rights


@pytest.mark.parametrize(("text", "asked"), [("7d", 604_800_000), ("1h30m", 5_400_000), ("250", 250)])
def test_retention_is_a_duration_or_milliseconds(text, asked):
    topic = layout(parse(POLICY % ("", f"retention: {text}")), 2).topics["patients.ward"]
    assert topic.configs["retention.ms"] == str(asked)


def test_a_retention_nobody_can_read_is_located():
    with pytest.raises(ShoalError, match="duration") as told:
        layout(parse(POLICY % ("", "retention: soon")), 2)
    assert "views.ward.service.retention" in str(told.value)
