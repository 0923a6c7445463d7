"""Curves in and out: wide, long, matrix; missing instants; bad input is refused with its place and a hint."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from shoal.core.errors import InputError, PromiseError, ShoalError, UsageError
from shoal.measures.series import certainty_penalty, series_loss
from shoal.promises.kp_anonymity import KPAnonymity
from shoal.series import SERIES_METHODS
from shoal.series.pattern import Encoded, Pattern
from shoal.series.perturb import Perturb
from shoal.series.queries import query_errors, read_released
from shoal.series.release import anonymize_series

SECRET = 73519  # a person's value that no message may show


def wide(n=12, instants=4):
    values = (np.arange(n)[:, None] * 3 + np.arange(instants) * np.where(np.arange(n) % 2, 1, -1)[:, None]).tolist()
    frame = pl.DataFrame({"id": [f"p{i:02}" for i in range(n)]})
    columns = [pl.Series(f"W{j}", [row[j] for row in values]) for j in range(instants)]
    return frame.with_columns(columns).with_columns(pl.Series("s", [i % 4 for i in range(n)]))


def melt(frame):
    instants = [c for c in frame.columns if c.startswith("W")]
    long = frame.unpivot(instants, index=["id", "s"], variable_name="t", value_name="v")
    return long.with_columns(pl.col("t").str.slice(1).cast(pl.Int64)).sample(fraction=1, shuffle=True, seed=1)


def test_wide_release_shows_envelopes_patterns_and_sensitive_values_only():
    release = anonymize_series(wide(), k=4, p=2, id="id", sensitive=["s"])
    assert release.data.columns == ["group", "W0", "W1", "W2", "W3", "pattern", "level", "s"]
    assert release.curves.left_out == ("id",)
    assert release.data["W0"].str.contains(r"^(\[-?\d+, -?\d+\]|-?\d+)$").all()
    typed = release.frame(typed=True)
    assert typed.schema["W0"] == pl.Struct({"low": pl.Int64, "high": pl.Int64})
    assert KPAnonymity(4, 2).judge_frame(typed, release.instants)[0].kept


def test_typed_release_survives_parquet_and_text_survives_csv(tmp_path):
    release = anonymize_series(wide(), k=4, p=2, id="id", sensitive=["s"])
    release.frame(typed=True).write_parquet(tmp_path / "r.parquet")
    release.frame().write_csv(tmp_path / "r.csv")
    one = read_released(pl.read_parquet(tmp_path / "r.parquet"), release.instants, release.pattern)
    two = read_released(pl.read_csv(tmp_path / "r.csv"), release.instants, release.pattern)
    assert np.array_equal(one.low, two.low)
    assert np.array_equal(one.high, two.high)
    assert np.array_equal(one.shapes[one.which], two.shapes[two.which])


def test_long_wide_pandas_and_matrix_agree():
    frame = wide()
    first = anonymize_series(frame, k=4, p=2, id="id", sensitive=["s"])
    second = anonymize_series(melt(frame), k=4, p=2, id="id", time="t", value="v", sensitive=["s"])
    third = anonymize_series(frame.to_pandas().set_index("id"), k=4, p=2, sensitive=["s"])
    matrix = frame.select("^W.*$").to_numpy()
    fourth = anonymize_series(matrix, k=4, p=2, sensitive={"s": frame["s"].to_numpy()})
    assert isinstance(third.data, pd.DataFrame)
    assert third.data.index.tolist() == list(range(12))  # the index of the input names people
    assert third.frame().equals(first.frame())
    assert np.array_equal(fourth.data.low, first.published.arrays().low)
    assert second.data.columns == ["series", "group", "t", "v_low", "v_high", "pattern", "level", "s"]
    back = second.data.pivot("t", index=["series", "group", "pattern", "level", "s"], values="v_low")
    assert sorted(back.select("0", "1", "2", "3").rows()) == sorted(map(tuple, fourth.data.low.astype(int).tolist()))


def test_resampling_makes_regular_instants():
    start = dt.datetime(2026, 1, 1)
    rows = [
        {"id": i, "at": start + dt.timedelta(minutes=20 * j), "v": float(i + j // 3)}
        for i in range(6)
        for j in range(12)
    ]
    release = anonymize_series(pl.DataFrame(rows), k=3, p=3, id="id", time="at", value="v", every="1h")
    assert release.curves.instants == [start + dt.timedelta(hours=h) for h in range(4)]
    assert release.curves.values[2].tolist() == [2, 3, 4, 5]
    summed = anonymize_series(pl.DataFrame(rows), k=3, p=3, id="id", time="at", value="v", every="2h", aggregate="sum")
    assert summed.curves.values[0].tolist() == [3.0, 15.0]


def test_resampling_numbers_keeps_empty_instants():
    frame = pl.DataFrame({"id": ["a", "a", "b", "b"], "t": [0, 9, 1, 8], "v": [1.0, 2, 3, 4]})
    how = {"k": 1, "p": 1, "id": "id", "time": "t", "value": "v", "every": 3}
    release = anonymize_series(frame, missing="interpolate", **how)
    assert release.curves.instants == [0, 3, 6, 9]
    assert release.curves.values[0].tolist() == pytest.approx([1, 4 / 3, 5 / 3, 2])
    with pytest.raises(InputError, match="instants are missing in 2 of 2"):
        anonymize_series(frame, **how)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("zero", [0, 2, 0, 4]), ("previous", [2, 2, 2, 4]), ("interpolate", [2, 2, 3, 4])],
)
def test_missing_instants_are_filled_by_the_declared_rule(rule, expected):
    curves = np.array([[np.nan, 2, np.nan, 4], [1, 2, 3, 4]])
    release = anonymize_series(curves, k=1, p=1, missing=rule)
    assert release.curves.values[0].tolist() == expected


def test_missing_instants_drop_the_series_and_are_counted():
    curves = np.array([[np.nan, 2.0], [1, 2], [2, 3], [np.nan, np.nan]])
    release = anonymize_series(curves, k=2, p=2, missing="drop")
    assert release.withheld == {"missing instants": 2}
    assert sorted(release.rows.tolist()) == [1, 2]
    filled = anonymize_series(curves, k=2, p=2, missing="zero")
    assert filled.withheld == {"missing instants": 1}


BAD = {
    "ragged": ({"data": [[1, 2, 3], [1, 2]]}, "expected 3 instants in every row, found 2 in row 2"),
    "text in a list": ({"data": [[1, 2], [1, "x"]]}, "number at instant 1 of row 2, found str"),
    "text in a column": (
        {"data": wide().with_columns(W1=pl.lit("many")), "id": "id", "sensitive": ["s"]},
        "'W1', found text",
    ),
    "missing": (
        {"data": wide().with_columns(W1=pl.lit(None, pl.Int64)), "id": "id", "sensitive": ["s"]},
        "12 instants are mi",
    ),
    "infinite": ({"data": np.array([[np.inf, 1.0]] * 4)}, "expected a finite number"),
    "twice": ({"data": pl.concat([wide(), wide()]), "id": "id", "sensitive": ["s"]}, "24 rows share their id"),
    "no id": (
        {"data": wide().with_columns(id=pl.lit(None, pl.String)), "id": "id", "sensitive": ["s"]},
        "12 rows have no id",
    ),
    "unknown column": ({"data": wide(), "id": "who"}, "there is no column 'who'"),
    "long without id": ({"data": melt(wide()), "time": "t", "value": "v"}, "three columns"),
    "two values at once": (
        {"data": pl.concat([melt(wide())] * 2), "id": "id", "time": "t", "value": "v"},
        "two values at one point in time",
    ),
    "sensitive changes": (
        {"data": melt(wide()).with_columns(s=pl.col("t")), "id": "id", "time": "t", "value": "v", "sensitive": ["s"]},
        "12 subjects have more than one value",
    ),
    "one dimension": ({"data": np.arange(5)}, "two dimensions"),
    "wrong length": ({"data": np.zeros((4, 2)), "sensitive": {"s": [1]}}, "expected 4 sensitive values, found 1"),
    "name taken": ({"data": wide().rename({"s": "level"}), "id": "id", "sensitive": ["level"]}, "columns of its own"),
    "l without sensitive": ({"data": np.zeros((4, 2)), "l": 2}, "l needs a sensitive column"),
    "every without time": (
        {"data": wide(), "id": "id", "sensitive": ["s"], "every": "1h"},
        "`every` needs a long table",
    ),
    "bad every": (
        {"data": melt(wide()), "id": "id", "time": "t", "value": "v", "sensitive": ["s"], "every": "x"},
        "does not fit",
    ),
    "no such rule": ({"data": np.array([[np.nan, 1], [1, 2]]), "missing": "guess"}, "no rule 'guess'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_place(name):
    call, message = BAD[name]
    with pytest.raises(ShoalError, match=message.replace("(", r"\(")) as caught:
        anonymize_series(**{"k": 1, "p": 1, **call})
    assert caught.value.where


def test_no_message_shows_a_value():
    for column in (pl.Series("W1", [str(SECRET) + "x"] * 12), pl.Series("W1", [float(SECRET) * 1e200] * 12)):
        with pytest.raises(InputError) as caught:
            anonymize_series(wide().with_columns(column), k=1, p=1, id="id", sensitive=["s"])
        assert str(SECRET) not in str(caught.value)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="k must be at least p, found k=2 and p=3"):
        anonymize_series(wide(), k=2, p=3, id="id", sensitive=["s"])
    with pytest.raises(UsageError, match="k must be at least p"):
        KPAnonymity(2, 3)
    with pytest.raises(UsageError, match="p must be at least 1"):
        KPAnonymity(2, 0)
    with pytest.raises(PromiseError, match="k=13 cannot be reached: there are 12 series"):
        anonymize_series(wide(), k=13, p=3, id="id", sensitive=["s"])


def test_diversity_that_cannot_be_is_refused():
    one = {"s": np.ones(8, np.int64)}
    curves = np.random.default_rng(0).normal(size=(8, 5))
    with pytest.raises(PromiseError, match="2-diversity of s cannot be reached"):
        anonymize_series(curves, k=2, p=2, sensitive=one, l=2)
    with pytest.raises(PromiseError, match="no free value"):
        anonymize_series(curves, k=2, p=2, sensitive=one, l=2, perturb=Perturb(step=1, most=2))
    with pytest.raises(UsageError, match="expected numbers without gaps"):
        anonymize_series(curves, k=2, p=2, sensitive={"s": list("abababab")}, l=2, perturb=Perturb())
    with pytest.raises(PromiseError, match="cannot hold 3 different values"):
        anonymize_series(curves, k=2, p=2, sensitive={"s": np.arange(8)}, l=3, perturb=Perturb())


def test_weights_and_suppressed_records_in_the_losses():
    low, high, width = np.zeros((1, 2)), np.array([[5.0, 10.0]]), np.array([10.0, 10.0])
    assert certainty_penalty(low, high, width, np.array([3.0, 1.0])).tolist() == [0.625]
    assert certainty_penalty(low, high, np.array([10.0, 0.0])).tolist() == [0.25]
    with pytest.raises(UsageError, match="expected 2 weights"):
        certainty_penalty(low, high, width, np.array([1.0]))
    values = np.array([[0.0, 0.0], [6.0, 8.0], [3.0, 4.0]])
    group = np.array([-1, 0, 0], np.int32)
    shapes = np.array([[0.0, 1.0]])
    loss = series_loss(
        values,
        values,
        (values[1:].min(0)[None], values[1:].max(0)[None]),
        group,
        (shapes, shapes),
        np.zeros(3, np.int64),
    )
    assert loss.value_total == pytest.approx(np.sqrt(50.0) + 2 * np.sqrt((9 + 16) / 2))  # full widths: 6 and 8
    assert loss.ncp_total == pytest.approx(1 + 2 * (3 / 6 + 4 / 8) / 2)
    assert loss.pattern_total == pytest.approx(1.0)
    assert loss.figures()["value"] == loss.value_total / 3


def test_the_promise_judges_curves_only_and_wants_patterns_and_levels():
    frame = pl.DataFrame({"W0": ["1"] * 3, "pattern": ["a", "a", None], "level": [1, 1, 1]})
    parts = KPAnonymity(2, 1).judge_frame(frame, ["W0"])[1]
    assert not parts.kept
    assert "1 rows show no pattern" in parts.note
    with pytest.raises(UsageError, match="no column 'W1'"):
        KPAnonymity(2, 1).judge_frame(frame, ["W1"])
    empty = KPAnonymity(2, 1).judge_frame(frame.clear(), ["W0"])[0]
    assert (empty.kept, empty.note) == (True, "nothing was released")
    # a group number that is published tells rows apart like an envelope does
    split = frame.with_columns(pattern=pl.lit("a"), group=pl.Series([0, 1, 1]))
    assert not KPAnonymity(2, 1).judge_frame(split, ["W0"])[0].kept


def test_queries_find_shapes_better_than_chance():
    rng = np.random.default_rng(3)
    kinds = np.array(
        [np.linspace(0, 1, 24), np.linspace(1, 0, 24), np.sin(np.arange(24) / 3), np.cos(np.arange(24) / 2)]
    )
    curves = kinds[np.arange(80) % 4] * rng.uniform(5, 20, (80, 1)) + rng.normal(size=(80, 24)) / 10
    release = anonymize_series(curves, k=8, p=4)
    errors = query_errors(read_released(release.frame(), release.instants, release.pattern), curves, release.records)
    assert errors["similarity"] < errors["similarity_chance"] - 0.2
    assert 0 <= errors["range"] < 1
    # the operator's shortcut asks the same release
    mine = release.query_errors(queries=200)
    assert mine == pytest.approx(errors)
    assert release.figures()["query_similarity_chance"] == errors["similarity_chance"]


class Ends(Pattern, frozen=True, tag="ends"):
    """Another pattern through the same seam: whether a curve ends above where it began."""

    def encode(self, values):
        up = (values[:, -1] > values[:, 0]).astype(np.int32)
        codes = np.stack([np.zeros(len(values), np.int32), 1 + up])
        texts = np.array(["any", "down", "up"])
        return Encoded(
            (1, 2),
            codes,
            np.ascontiguousarray(values[:, [0, -1]]),
            np.array([0, 1, 1], np.int16),
            lambda words: texts[words].tolist(),
            lambda words: np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[words],
        )

    def rebuild(self, level, words):
        return np.array([{"any": [0.0, 0.0], "down": [1.0, 0.0], "up": [0.0, 1.0]}[w] for w in words])

    def stretch(self, features, instants):
        return features[:, :1] + (features[:, 1:] - features[:, :1]) * np.linspace(0, 1, instants)


@pytest.mark.parametrize("method", SERIES_METHODS.names())
def test_another_pattern_needs_nothing_but_the_seam(method):
    curves = np.random.default_rng(8).normal(size=(60, 12)).cumsum(axis=1)
    release = anonymize_series(curves, k=10, p=5, pattern=Ends(), method=method)
    assert all(f.kept for f in KPAnonymity(10, 5).judge_frame(release.frame(), release.instants))
    assert set(release.data.pattern) <= {"any", "down", "up"}
    if method == "kapra":
        rose = curves[release.rows, -1] > curves[release.rows, 0]
        assert (release.data.pattern == np.where(rose, "up", "down")).all()
        assert release.loss.pattern == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (["2026-01-09", "2026-01-10"], pl.Date),
        (["2026-01-09T05:00:00", "2026-01-10T05:00:00.25"], pl.Datetime("us")),
        (["2026-01-09 05:00", "2026-01-10 05:00"], pl.Datetime("us")),
        (["9", "10"], pl.Int64),
        (["9.5", "10"], pl.Float64),
        (["monday", "tuesday"], pl.String),
    ],
)
def test_times_written_as_text_are_read_as_what_they_are(written, kind):
    frame = pl.DataFrame({"who": ["a", "a", "b", "b"], "at": written * 2, "v": [1, 2, 3, 4]})
    release = anonymize_series(frame, k=2, p=1, id="who", time="at", value="v")
    assert release.data.schema["at"] == kind
    assert release.curves.values.tolist() == [[1, 2], [3, 4]]  # 9 before 10: not by the alphabet
