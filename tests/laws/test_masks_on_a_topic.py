"""Every mask of single values and tuples, on every type it takes, says on a topic what it says in a file."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import polars as pl
import pytest

import shoal
from shoal.connect.ndjson import as_json
from shoal.masks.base import dtype_of
from shoal.policy.load import parse
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.output import Record
from shoal.testing.masks import SAMPLES
from tests.laws.test_mask_laws import ALL, HIERARCHY, RING, VALUE_MASKS

PREFIX = {"use": "prefix", "length": 4}


def policy_of(kind: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A view per mask that takes the type; and what each does, for a message."""
    hierarchy = msgspec.to_builtins(HIERARCHY[kind]) if kind in HIERARCHY else PREFIX
    columns = {
        "pid": {"role": "subject", "type": "int"},
        "day": {"role": "plain", "type": "str"},
        "time": {"role": "time", "type": "int"},
        "value": {"role": "quasi", "type": kind, "hierarchy": {"use": "calendar"} if "date" in kind else hierarchy},
    }
    views, said = {}, {}
    for name, parameters, kinds in VALUE_MASKS:
        if kind not in kinds or "vault" in parameters:  # a vault draws its tokens by chance
            continue
        role = f"r{len(views)}"
        views[role] = {"show": ["value"], "hidden": "drop", "masks": {"value": {"use": name, **parameters}}}
        said[role] = f"{name} {parameters}"
    source = {"use": "kafka", "topic": "t", "brokers": "nowhere"}
    return {"dataset": "d", "source": source, "columns": columns, "views": views}, said


def text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else value


@pytest.mark.parametrize("kind", ALL)
def test_a_mask_gives_on_a_topic_what_it_gives_in_a_file(kind):
    document, said = policy_of(kind)
    policy = parse(msgspec.json.encode(document).decode())
    chosen = [*SAMPLES[kind], None]
    rows = [{"pid": at % 5, "day": f"d{at % 3}", "time": 60 * at, "value": v} for at, v in enumerate(chosen)]
    frame = pl.DataFrame(rows, schema_overrides={"value": dtype_of(kind)})
    records = [
        Record(0, at, None, msgspec.json.encode(row | {"value": text(row["value"])}), 1) for at, row in enumerate(rows)
    ]
    masking = Masking(policy, RING, {role: Served(role, role, "") for role in said}, None)
    masking.open("t", dict.fromkeys(said, 3))
    masking.take(records, {})
    assert not masking.dead
    for role, what in said.items():
        found = [o.value for o in masking.mixed(role, b"1")]
        made = shoal.view(frame, policy, role, keys=RING, seed=0).data
        assert sorted(found) == sorted(as_json(made).write_ndjson().encode().splitlines()), what
