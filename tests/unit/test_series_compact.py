"""The compact form: a row per group; it reads back as the wide release, and the verifier judges the file."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.cli import main
from shoal.core.errors import InputError
from shoal.datasets.series import sales_curves
from shoal.promises.compact import compact, expand
from shoal.promises.kp_anonymity import KPAnonymity, judge_curves
from shoal.series.queries import read_released
from shoal.series.release import anonymize_series


@settings(max_examples=20)
@given(st.integers(8, 40), st.integers(0, 9), st.booleans(), st.booleans())
def test_it_reads_back_as_the_wide_release(n, seed, beside, as_file):
    rng = np.random.default_rng(seed)
    curves = rng.integers(0, 40, (n, 5))
    sensitive = {"s": (rng.integers(0, 3, n)).tolist(), "c": [None if i % 5 == 0 else f"x{i % 2}" for i in range(n)]}
    release = anonymize_series(curves, k=6, p=2, sensitive=sensitive if beside else {})
    wide = release.frame()
    small = compact(wide, release.instants)
    assert small.height == len(np.unique(release.data.group))
    if as_file:
        small = pl.read_csv(io.StringIO(small.write_csv()))
    again = expand(small).with_columns(pl.col("group").cast(pl.Int32), pl.col("level").cast(pl.Int16))
    order = ["group", "pattern", "level", *(["s", "c"] if beside else [])]
    assert again.sort(order, nulls_last=True).equals(wide.sort(order, nulls_last=True))
    ours, theirs = (judge_curves(f, KPAnonymity(6, 2), sensitive=["s", "c"] if beside else []) for f in (small, wide))
    assert ours[1] == theirs[1]
    assert [f.reached for f in ours[0]] == [f.reached for f in theirs[0]]
    read, mine = read_released(small, release.instants, release.pattern), release.released()
    assert read.count(5, 20, [0, 2]) == mine.count(5, 20, [0, 2])


def test_a_file_that_was_tampered_with_is_refused_or_broken():
    release = anonymize_series(np.random.default_rng(0).normal(size=(30, 4)), k=10, p=5)
    small = compact(release.frame(), release.instants)
    cell = small["members"][0]
    for members, size in (
        ("{}", 10),
        ("no json", 10),
        (cell, 11),
        (cell.replace('"count":', '"count":-'), 10),
        (None, 3),
    ):
        with pytest.raises(InputError, match="found something else in row 1"):
            expand(small[:1].with_columns(members=pl.lit(members, pl.String), size=pl.lit(size)))
    few = '{"subgroups":[{"pattern":"a","level":1,"count":9}]}'
    alone = small[:1].with_columns(members=pl.lit(few), size=pl.lit(9))
    assert not all(f.kept for f in judge_curves(alone, KPAnonymity(10, 5))[0])


def test_commands_write_it_smaller_than_the_input_and_verify_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sales_curves(300, 26).write_csv("sales.csv")
    words = ["--sensitive", "W25", "--k", "16", "--p", "6", "--l", "2"]
    for line in (
        ["anonymize", "sales.csv", "--series", "--id", "Product_Code", *words, "--compact", "-o", "small.csv"],
        ["verify", "small.csv", *words],
    ):
        with pytest.raises(SystemExit) as done:
            main(line)
        assert not done.value.code
    assert (tmp_path / "small.csv").stat().st_size < (tmp_path / "sales.csv").stat().st_size
    with pytest.raises(SystemExit) as done:
        main(["verify", "small.csv", "--sensitive", "W25", "--k", "99", "--p", "6"])
    assert done.value.code == 1
    assert shoal.verify(pl.read_csv("small.csv"), sensitive=["W25"], k=16, p=6)
