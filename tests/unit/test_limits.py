"""Limits of columns: no cell above its level, whatever method; every promise kept; what cannot be kept is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.cells import read
from shoal.core.errors import PromiseError, UsageError
from shoal.core.schema import Column, Schema
from shoal.core.table import code
from shoal.release.limits import limits_kept

METHODS = ["local", "topdown", "mondrian", "forest", "microaggregation"]
QUASI = {"zip": {"use": "prefix", "length": 3}, "sex": "suppress", "age": {"use": "range", "min": 0, "max": 80}}


def _people(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "zip": [
                f"{z}" for z in rng.choice([101, 102, 110, 201, 202, 333], rows, p=[0.3, 0.2, 0.2, 0.2, 0.08, 0.02])
            ],
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.integers(0, 80, rows),
            "diag": rng.choice(["a", "b", "c"], rows),
            "who": rng.integers(0, rows, rows),
        }
    )


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    method=st.sampled_from(METHODS),
    zips=st.integers(0, 3),
    sexes=st.integers(0, 1),
    asked=st.sampled_from([{}, {"l": 2}, {"t": 0.4}, {"subject": "who"}, {"subject": "who", "l": 2}]),
)
def test_no_cell_is_above_its_level(seed: int, method: str, zips: int, sexes: int, asked: dict[str, Any]) -> None:
    frame = _people(60, seed)
    release = shoal.anonymize(
        frame,
        quasi=QUASI,
        sensitive=["diag"],
        k=3,
        method=method,
        seed=seed,
        at_most={"zip": zips, "sex": sexes},
        **asked,
    )
    for text in release.data["zip"]:
        assert len(text) - len(text.rstrip("*")) <= zips or (zips == 3 and text == "*")
    if sexes == 0:
        assert "*" not in release.data["sex"].to_list()
    told = [f.promise for f in release.report.findings]
    assert ("column 'sex' at most at level 0" in told) == (sexes == 0)
    # the same rows without limits lose no more: a limit only forbids groups
    assert release.data.height + sum(release.withheld.values()) == frame.height


def test_numbers_stay_in_one_interval_of_their_level() -> None:
    levels = code(_people(60, 1), Schema.build(quasi={"age": shoal.Range(min=0, max=80)})).levels[0]
    limit = levels.depth - 3
    release = shoal.anonymize(_people(200, 1), quasi=QUASI, k=3, method="topdown", seed=1, at_most={"age": limit})
    whole = code(_people(200, 1), Schema.build(quasi={"age": shoal.Range(min=0, max=80)})).levels[0]
    place = {v: c for c, v in enumerate(whole.values.to_list())}
    for text in release.data["age"].unique():
        cell = read(text)
        ends = (cell.low, cell.high) if cell.kind == "interval" else (float(text), float(text))
        a, b = (whole.codes[place[int(end)], limit] for end in ends)
        assert a == b


def test_rows_that_no_group_can_hold_are_withheld_and_counted() -> None:
    frame = pl.DataFrame({"sex": ["f"] * 5 + ["m"], "age": [20, 21, 22, 23, 24, 25]})
    release = shoal.anonymize(frame, quasi=["sex", "age"], k=2, at_most={"sex": 0}, seed=1)
    assert release.data["sex"].to_list() == ["f"] * 5
    assert sum(release.withheld.values()) == 1
    with pytest.raises(PromiseError, match="within the limits"):
        shoal.anonymize(frame, quasi=["sex", "age"], k=2, at_most={"age": 0}, seed=1)


def test_t_is_judged_by_the_rows_that_are_left() -> None:
    frame = pl.DataFrame({"sex": ["f"] * 8 + ["m"] * 8 + ["x"], "age": list(range(17)), "diag": ["a", "b"] * 8 + ["c"]})
    release = shoal.anonymize(
        frame, quasi=["sex", "age"], sensitive=["diag"], k=2, t=0.2, at_most={"sex": 0}, method="topdown", seed=1
    )
    assert release.data.height == 16
    assert shoal.verify(release.data, quasi=["sex", "age"], sensitive=["diag"], k=2, t=0.2)


@pytest.mark.parametrize(
    ("cells", "kept"),
    [(["101", "10*"], True), (["1**"], False), (["*"], False), (["elsewhere"], False), ([None], True)],
)
def test_the_judge_reads_texts(cells: list[str | None], kept: bool) -> None:
    schema = Schema({"zip": Column("quasi", hierarchy=shoal.Prefix(3), at_most=1)})
    table = code(pl.DataFrame({"zip": ["101", "102", "210"]}), schema)
    assert [f.kept for f in limits_kept(pl.DataFrame({"zip": cells}, schema={"zip": pl.String}), table)] == [kept]


def test_a_comparison_says_which_methods_keep_no_limits() -> None:
    found = shoal.compare(_people(40, 3), quasi=QUASI, k=[2], at_most={"sex": 0})
    assert {row.method for row in found.rows if row.gcp is None} == {"datafly", "lattice"}
    with pytest.raises(UsageError, match="whole columns one level"):
        shoal.compare(_people(40, 3), quasi=QUASI, k=[2], at_most={"sex": 0}, methods=["lattice"])


def test_what_cannot_be_kept_is_refused() -> None:
    frame = _people(40, 3)
    for method in ("datafly", "lattice"):
        with pytest.raises(UsageError, match="whole columns one level"):
            shoal.anonymize(frame, quasi=QUASI, k=2, method=method, at_most={"sex": 0})
    with pytest.raises(UsageError, match="above the highest level"):
        shoal.anonymize(frame, quasi=QUASI, k=2, at_most={"sex": 2})
    with pytest.raises(UsageError, match="not quasi"):
        shoal.anonymize(frame, quasi=QUASI, sensitive=["diag"], k=2, at_most={"diag": 0})
    with pytest.raises(UsageError, match="level of a quasi column"):
        Column("sensitive", at_most=1)
    with pytest.raises(UsageError, match="levels from 0 on"):
        shoal.anonymize(frame, quasi=QUASI, k=2, at_most={"sex": -1})
    with pytest.raises(UsageError, match="cannot be kept beside trajectory-anonymity"):
        shoal.anonymize(frame, quasi=QUASI, subject="who", promises=[shoal.TrajectoryAnonymity(2)], at_most={"sex": 0})
    for role, more in (("z-anonymity", {"z": 2, "window": "1h"}), ("k-anonymity", {"k": 2})):
        from shoal.promises import PROMISES
        from shoal.streams import STREAM_METHODS

        promise = PROMISES.decode({"use": role, **more})
        method = STREAM_METHODS.decode("z-anonymity" if role == "z-anonymity" else {"use": "batches", "delay": 10})
        schema = Schema({"who": Column("subject"), "sex": Column("quasi", at_most=0), "t": Column("time")})
        with pytest.raises(UsageError, match="`at_most` cannot be kept"):
            method.start(schema, [promise], key=bytes(32))
