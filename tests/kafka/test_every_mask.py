"""Every mask of the registry, on every type it takes: a view's topic has, byte for byte, what a file of it has."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import polars as pl
import pytest
from stage import KEYS

import shoal
from shoal.connect.ndjson import as_json
from shoal.masks import MASKS
from shoal.masks.base import dtype_of
from shoal.policy.load import load
from shoal.testing.masks import SAMPLES
from tests.laws.test_mask_laws import HIERARCHY, VALUE_MASKS, WINDOW_MASKS
from tests.laws.test_masks_on_a_topic import PREFIX, text

pytestmark = pytest.mark.system

WINDOW = {"use": "tumbling", "size": 4}
ROWS = 12  # three windows, of which the last is still open on a topic, which never ends
# the key of this broker's tests; a vault draws its tokens by chance, so two runs of it never agree
VALUES = [
    (name, {k: v for k, v in parameters.items() if k not in ("key", "check")}, kind)
    for name, parameters, kinds in VALUE_MASKS
    if "vault" not in parameters
    for kind in kinds
]
WINDOWS = [(name, {**parameters, "window": WINDOW}, "float") for name, parameters in WINDOW_MASKS]
BESIDE = {
    "pid": {"role": "subject", "type": "int"},
    "day": {"role": "plain", "type": "str"},
    "time": {"role": "time", "type": "int"},
}


def column_of(kind: str) -> dict[str, Any]:
    hierarchy = msgspec.to_builtins(HIERARCHY[kind]) if kind in HIERARCHY else PREFIX
    return {"role": "quasi", "type": kind, "hierarchy": {"use": "calendar"} if "date" in kind else hierarchy}


def policy_of(views: dict[str, dict[str, tuple[str, dict[str, Any], str]]]) -> str:
    """Each mask has a column of its own, and each view all columns of its masks."""
    columns = {c: column_of(kind) for masks in views.values() for c, (_, _, kind) in masks.items()}
    shown = {
        role: {
            "show": list(masks),
            "hidden": "drop",
            "masks": {c: {"use": name, **parameters} for c, (name, parameters, _) in masks.items()},
        }
        for role, masks in views.items()
    }
    source = {"use": "kafka", "topic": "{topic}", "properties": "admin.properties"}
    return msgspec.json.encode(
        {"dataset": "masks", "source": source, "columns": BESIDE | columns, "views": shown}
    ).decode()


def test_every_mask_gives_on_a_broker_what_it_gives_in_a_file(stage):
    views = {
        "values": {f"v{at}": mask for at, mask in enumerate(VALUES)},
        "windows": {f"w{at}": mask for at, mask in enumerate(WINDOWS)},
    }
    assert {name for masks in views.values() for name, *_ in masks.values()} == set(MASKS.names())
    kinds = {c: kind for masks in views.values() for c, (_, _, kind) in masks.items()}
    rows = [
        {"pid": at % 5, "day": f"d{at % 3}", "time": 60 * at}
        | {c: [*SAMPLES[kind], None][at % (len(SAMPLES[kind]) + 1)] for c, kind in kinds.items()}
        for at in range(ROWS)
    ]
    here = stage(policy_of(views), partitions=1)
    here.send((msgspec.json.encode({c: text(v) for c, v in row.items()}), None, 0) for row in rows)
    here.serve(batch=5)
    frame = pl.DataFrame(rows, schema_overrides={c: dtype_of(kind) for c, kind in kinds.items()})
    for role, masks in views.items():
        made = shoal.view(frame, load(here.file), role, keys=KEYS, seed=0).data
        found = [message.value() for message in here.drain(f"{here.topic}.{role}")]
        expected = as_json(made).write_ndjson().encode().splitlines()
        waiting = WINDOW["size"] if role == "windows" else 0
        assert (len(expected), len(found)) == (ROWS, ROWS - waiting)
        for column, said in masks.items():  # one by one first: a message that names the mask
            assert cells(found, column) <= cells(expected, column), said
        assert Counter(found) <= Counter(expected)


def cells(lines: list[bytes], column: str) -> Counter[bytes]:
    return Counter(msgspec.json.encode(msgspec.json.decode(line)[column]) for line in lines)
