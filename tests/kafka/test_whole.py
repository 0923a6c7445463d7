"""The one test that shows it all: broker, apply, generate, serve; every role reads its view and nothing else; verified.

SHOAL_WHOLE_RECORDS=200000 is the whole; a tenth runs by default.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import msgspec
import polars as pl
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from stage import SECRET
from test_provision import read, refusal

from shoal.policy.load import load
from shoal.verifier import verify

pytestmark = [pytest.mark.system, pytest.mark.slow]
RECORDS = int(os.environ.get("SHOAL_WHOLE_RECORDS", "20000"))
ROLES = ("doctor", "nurse", "administration", "billing", "research")

POLICY = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  pid:    {role: subject, type: int}
  name:   {role: identifier, type: str}
  zip:    {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  sex:    {role: quasi, type: str, hierarchy: suppress}
  age:    {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  ins_co: {role: quasi, type: str, hierarchy: suppress}
  ins_no: {role: identifier, type: str}
  diag:   {role: sensitive, type: str}
  gluc:   {role: plain, type: float}
  hba1c:  {role: plain, type: float}
  med:    {role: plain, type: str}
views:
  doctor:
    users: [doctor-N]
    show: everything
  nurse:
    users: [nurse-N]
    show: [name, sex, age, ins_co, diag, gluc, med]
  administration:
    users: [administration-N]
    show: [ins_co, ins_no, diag, med]
  billing:
    users: [billing-N]
    show: [ins_co, ins_no, diag, med]
    masks: {ins_no: {use: tokenize}}
  research:
    users: [research-N]
    show: [zip, sex, age, ins_co, diag, gluc, hba1c, med]
    promises:
      - {use: k-anonymity, k: 3}
      - {use: l-diversity, l: 2, column: diag}
    method: {use: batches, delay: 200, reuse: 2000}
"""


def shoal(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shoal", *words],
        env={**os.environ, "SHOAL_KEY": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def denied(here, role: str, login: dict[str, str]) -> None:
    """Source, sibling view, foreign group, writing and granting: a role is refused everywhere but at its own view."""
    sibling = next(r for r in ROLES if r != role)
    own, source = f"{here.topic}.{role}", here.topic
    assert refusal(lambda: read(login, source, f"{role}.s")) == "TOPIC_AUTHORIZATION_FAILED"
    assert refusal(lambda: read(login, f"{source}.{sibling}", f"{role}.v")) == "TOPIC_AUTHORIZATION_FAILED"
    assert refusal(lambda: read(login, f"{source}.shoal.changelog", f"{role}.c")) == "TOPIC_AUTHORIZATION_FAILED"
    assert refusal(lambda: read(login, own, f"{sibling}.g")) == "GROUP_AUTHORIZATION_FAILED"
    failed: list = []
    intruder = Producer({**login, "log_level": 0})
    for topic in (own, f"{source}.shoal.control"):
        intruder.produce(topic, b"forged", on_delivery=lambda error, _: failed.append(error.name()))
    intruder.flush(20)
    assert failed == ["TOPIC_AUTHORIZATION_FAILED"] * 2
    wish = AclBinding(
        ResourceType.TOPIC,
        source,
        ResourcePatternType.LITERAL,
        f"User:{login['sasl.username']}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    asking = AdminClient({**login, "log_level": 0})
    assert refusal(lambda: [f.result(20) for f in asking.create_acls([wish]).values()]) == (
        "CLUSTER_AUTHORIZATION_FAILED"
    )


def test_it_all(stage, monkeypatch):
    mark = str(time.time_ns())
    users = {role: f"{role}-{mark}" for role in ROLES}
    for user in users.values():
        monkeypatch.setenv("SHOAL_PASSWORD_" + user.upper().replace("-", "_"), "secret")
    here = stage(POLICY.replace("-N]", f"-{mark}]"), 2)
    shoal("serve", "apply", str(here.file))
    here.start()
    properties = str(here.folder / "admin.properties")
    shoal("generate", "hospital", "--rows", str(RECORDS), "--topic", here.topic, "--properties", properties)
    here.start("--protocol", "classic")
    here.until(lambda: here.committed() >= RECORDS)
    here.stop()
    rows = {role: [msgspec.json.decode(m.value()) for m in here.drain(f"{here.topic}.{role}")] for role in ROLES}
    for role in ("doctor", "nurse", "administration", "billing"):
        assert len(rows[role]) == RECORDS
    assert {r["pid"] for r in rows["nurse"]} == {"*"}
    assert len({r["ins_no"] for r in rows["billing"]} & {r["ins_no"] for r in rows["administration"]}) == 0
    policy = load(here.file)
    seen = pl.DataFrame(rows["research"])
    verdict = verify(seen, policy.schema.quasi, policy.views["research"].promises)
    assert verdict.kept, str(verdict)
    assert seen.height > 0.95 * RECORDS
    assert set(seen["pid"]) == set(seen["name"]) == {"*"}
    for role, user in users.items():
        login = here.cluster.login(user, "secret")
        assert len(read(login, f"{here.topic}.{role}", f"{role}.own")) > 0
        denied(here, role, login)
