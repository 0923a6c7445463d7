"""What a policy asks of a cluster, without one."""

from __future__ import annotations

import pytest

from shoal.core.errors import PolicyError, ShoalError
from shoal.policy.load import parse
from shoal.runtime.kafka.provision.layout import Right, layout
from shoal.runtime.kafka.provision.served import definition
from shoal.runtime.provision.passwords import refuse_shared_variables
from shoal.runtime.provision.widening import seen_by_role, widened

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


def test_views_are_cleaned_by_time_and_never_by_key():
    """By key, a pseudonym that comes again would delete records that were published; by time, nothing is told."""
    for more in ("", "retention: 7d"):
        assert layout(parse(POLICY % ("", more)), 2).topics["patients.ward"].configs["cleanup.policy"] == "delete"


def test_a_retention_nobody_can_read_is_located():
    with pytest.raises(ShoalError, match="duration") as told:
        layout(parse(POLICY % ("", "retention: soon")), 2)
    assert "views.ward.service.retention" in str(told.value)


SEEN = """
dataset: patients
source: {use: kafka, topic: patients, brokers: nowhere}
columns:
  pid: {role: subject}
  zip: {role: quasi, hierarchy: {use: prefix, length: 5}}
  ward: {role: quasi, hierarchy: {use: tree, file: wards.csv}}
  diag: {role: sensitive}
  address.city: {role: plain}
  address.street: {role: plain}
  note: {role: plain}
views:
  research:
    show: [zip, ward, diag, address]
    masks: {address.street: [{use: blur}, {use: suppress}]}
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 50, reuse: 100}
    service: {key: drop}
"""


@pytest.mark.parametrize(
    ("was", "is_now", "why"),
    [
        ("zip: {role: quasi, hierarchy: {use: prefix, length: 5}}", "zip: {role: plain}", "declared otherwise: zip"),
        ("length: 5", "length: 7", "declared otherwise: zip"),
        ("pid: {role: subject}", "pid: {role: plain}", "declared otherwise: pid"),
        ("  pid: {role: subject}\n", "", "declared otherwise: pid"),
        ("note:", "address.phone:", "would see address.phone"),
        ("    masks: {address.street: [{use: blur}, {use: suppress}]}\n", "", "other masks on address.street"),
        ("[{use: blur}, {use: suppress}]", "{use: blur}", "other masks on address.street"),
        ("reuse: 100", "reuse: forever", "another method"),
        ("key: drop", "key: pseudonym", "other keys"),
        ("k: 3", "k: 2", "a promise is dropped"),
    ],
)
def test_every_way_to_see_more_needs_a_word(tmp_path, was, is_now, why):
    (tmp_path / "wards.csv").write_text("a;north;*\nb;north;*\n")
    before, after = parse(SEEN, folder=tmp_path), parse(SEEN.replace(was, is_now), folder=tmp_path)
    assert SEEN.replace(was, is_now) != SEEN
    (found,) = widened(seen_by_role(before), seen_by_role(after))
    assert why in found
    assert widened(seen_by_role(before), seen_by_role(before)) == []


def test_hiding_more_needs_none(tmp_path):
    (tmp_path / "wards.csv").write_text("a;north;*\nb;north;*\n")
    before = seen_by_role(parse(SEEN, folder=tmp_path))
    for was, is_now in [
        ("zip, ward, diag, address", "zip, ward, diag, address.street"),
        ("  note: {role: plain}\n", ""),
    ]:
        after = parse(SEEN.replace(was, is_now), folder=tmp_path)
        assert widened(before, seen_by_role(after)) == []


def test_another_tree_in_the_same_file_is_another_view(tmp_path):
    (tmp_path / "wards.csv").write_text("a;north;*\nb;north;*\n")
    first = parse(SEEN, folder=tmp_path)
    seen, said = seen_by_role(first), definition(first, "research")
    (tmp_path / "wards.csv").write_text("a;north;*\nb;south;*\n")
    assert definition(first, "research") != said  # the worker refuses it until it is applied
    assert widened(seen, seen_by_role(first)) == ["research: declared otherwise: ward"]


def test_no_two_users_share_a_password(monkeypatch):
    refuse_shared_variables(["ward-1", "ward_1"])  # from files
    monkeypatch.setenv("SHOAL_PASSWORD_WARD_1", "secret")
    with pytest.raises(PolicyError, match="share the password") as told:
        refuse_shared_variables(["ward-1", "ward2", "ward_1"])
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("was", "is_now", "why"),
    [
        ("views: {ward:", "views: {ward.night: {show: [number]}, ward:", "would cover those of 'ward.night'"),
        ("worker: shoal", "worker: shoal, group: ward.workers", "would cover those of 'ward.workers'"),
        ("users: [nurse]", "users: ['*']", "one user"),
    ],
)
def test_a_role_reaches_nobody_elses_groups_and_a_user_is_one(was, is_now, why):
    text = POLICY % ("", "")
    layout(parse(text), 2)
    with pytest.raises(PolicyError, match=why):
        layout(parse(text.replace(was, is_now)), 2)
