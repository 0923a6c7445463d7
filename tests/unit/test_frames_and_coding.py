"""Frames of other libraries, columns of every type, and what cannot be coded."""

from __future__ import annotations

import datetime
import decimal
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.core.errors import InputError, PromiseError, UsageError
from shoal.core.frames import from_any, require
from shoal.core.schema import Column, Schema
from shoal.core.table import code

SECRET = "Ahl-Brook-1977"
COLUMNS = {
    "all null": pl.Series([None] * 4, dtype=pl.Null),
    "all null numbers": pl.Series([None] * 4, dtype=pl.Float64),
    "constant": pl.Series(["x"] * 4),
    "numbers with gaps": pl.Series([1, None, 3, 3]),
    "not a number": pl.Series([1.5, float("nan"), None, 2.5]),
    "categories": pl.Series(["b", "a", None, "a"], dtype=pl.Categorical),
    "ordered categories": pl.Series(["b", "a", None, "a"], dtype=pl.Enum(["b", "a"])),
    "truth": pl.Series([True, None, False, False]),
    "decimals": pl.Series([decimal.Decimal("1.10"), None, decimal.Decimal("2.20"), decimal.Decimal("2.20")]),
    "small numbers": pl.Series([1, 2, 250, 250], dtype=pl.UInt8),
    "dates": pl.Series([datetime.date(2020, 1, 2), None, datetime.date(2021, 1, 2), datetime.date(2021, 1, 3)]),
    "times": pl.Series([datetime.datetime(2020, 1, 2, 3), None, datetime.datetime(2021, 1, 2), None]),
    "zoned": pl.Series([datetime.datetime(2020, 1, 2, 3)] * 4).dt.replace_time_zone("Europe/Berlin"),
    "time of day": pl.Series([datetime.time(3), None, datetime.time(4), datetime.time(4)]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_every_type_is_released(name):
    frame = pl.DataFrame({"q": COLUMNS[name], "note": [1, 2, 3, 4]})
    made = shoal.anonymize(frame, quasi=["q"], plain=["note"], k=2, method="mondrian")
    assert made.data.height == 4
    assert made.report.verified
    if name.startswith("all null"):
        assert made.data["q"].null_count() == 4


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (pl.Series([[1], [2]]), "List"),
        (pl.Series([{"a": 1}, {"a": 2}]), "Struct"),
        (pl.Series([b"\xff", b"\xfe"]), "Binary"),
        (pl.Series([datetime.timedelta(1), datetime.timedelta(2)]), "Duration"),
    ],
)
def test_what_is_no_plain_value_is_refused(series, words):
    with pytest.raises(InputError, match=words):
        shoal.anonymize(pl.DataFrame({"q": series}), quasi=["q"], k=2)


def test_missing_values_may_suppress_their_rows():
    frame = pl.DataFrame({"q": [1, 1, None, 2, 2]})
    table = code(frame, Schema({"q": Column("quasi", missing="suppress")}))
    assert table.withheld == {"missing q": 1}
    assert table.size == 4


def test_mixed_columns_of_pandas_are_named_and_not_quoted():
    with pytest.raises(InputError, match="different kinds") as caught:
        from_any(pd.DataFrame({"fine": [1, 2], "mixed": pd.Series([1, SECRET], dtype=object)}))
    assert "'mixed'" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_two_columns_of_one_name_and_things_that_are_no_tables():
    with pytest.raises(InputError, match="same name"):
        from_any(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    with pytest.raises(InputError, match="same name"):
        from_any(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(UsageError, match="found list"):
        from_any([1, 2])


def test_a_lazy_frame_is_collected():
    assert shoal.measure(pl.LazyFrame({"q": [1, 1]}), quasi=["q"]).k == 2


def test_calls_without_a_promise_a_column_or_enough_people():
    frame = pl.DataFrame({"q": [1, 2, 3], "who": [1, 1, 2]})
    with pytest.raises(UsageError, match="no promise"):
        shoal.anonymize(frame, quasi=["q"])
    with pytest.raises(UsageError, match="no quasi column"):
        shoal.anonymize(frame, k=2)
    with pytest.raises(UsageError, match="no column 'age'"):
        shoal.anonymize(frame, quasi=["age"], k=2)
    with pytest.raises(UsageError, match="declared twice"):
        shoal.anonymize(frame, quasi=["q"], plain=["q"], k=2)
    with pytest.raises(UsageError, match="text or struct"):
        shoal.anonymize(frame, quasi=["q"], k=2, cells="json")
    with pytest.raises(PromiseError, match=r"reaches 2 \(people counted"):
        shoal.anonymize(frame, quasi=["q"], subject="who", k=3)
    with pytest.raises(UsageError, match="one entry per released row"):
        shoal.verify(frame, quasi=["q"], people=[1], k=2)
    with pytest.raises(UsageError, match="no column 'whose'"):
        shoal.verify(frame, quasi="q", subject="whose", k=2)


def test_weights_and_roles_are_checked():
    with pytest.raises(UsageError, match="positive and finite"):
        Column("quasi", weight=0)
    with pytest.raises(UsageError, match="more than one"):
        Schema({"a": Column("subject"), "b": Column("subject")})
    with pytest.raises(UsageError, match="not quasi: b"):
        Schema.build(quasi={"a": None}, weights={"b": 2})


def test_a_sensitive_hierarchy_that_cuts_its_values_does_not_hide_a_difference():
    """Codes E10 and E11 are one prefix, but they are published whole: two values."""
    frame = pl.DataFrame({"q": [1, 1], "s": ["E10", "E11"]})
    schema = Schema({"q": Column("quasi"), "s": Column("sensitive", hierarchy=shoal.Prefix(2))})
    table = code(frame, schema)
    assert table.sensitive["s"].values.to_list() == ["E10", "E11"]
    assert np.unique(table.sensitive["s"].codes).tolist() == [0, 1]
    assert shoal.anonymize(frame, schema=schema, l=2, method="mondrian").report.findings[0].reached == 2


def test_nothing_undeclared_comes_back_with_a_frame():
    """Neither an index that names people nor categories that only withheld rows have."""
    values, towns = [21, 22, 51, 52, 53], ["x", "x", "y", "y", "Atlantis"]
    frame = pd.DataFrame({"age": values, "diag": pd.Categorical(towns)}, index=pd.Index([*"abcd", SECRET], name=SECRET))
    tree = shoal.anonymize(
        frame,
        quasi={"age": {"use": "tree", "nodes": {"young": ["21", "22"], "old": ["51", "52"]}}},
        plain=["diag"],
        k=2,
    )
    assert tree.data["diag"].cat.categories.tolist() == ["x", "y"]
    assert SECRET not in tree.data.reset_index().to_csv()
    table = pa.table({"age": values, "diag": pa.array(towns).dictionary_encode()})
    made = shoal.anonymize(table, schema=tree.schema, k=2).data["diag"]
    assert made.type == table["diag"].type
    assert "Atlantis" not in made.combine_chunks().dictionary.to_pylist()


@pytest.mark.parametrize("kind", ["text", "bytes", "list"])
def test_a_release_carries_no_byte_of_withheld_rows(kind):
    """Buffers of long texts are shared: what a withheld row says must not be pickled along."""
    texts = [f"a note that is rather long, of number {n}" for n in range(500)]
    texts[250] = f"a note that is rather long, of {SECRET}"
    notes = {"text": texts, "bytes": [t.encode() for t in texts], "list": [[t] for t in texts]}[kind]
    frame = pl.DataFrame({"town": ["a"] * 250 + ["unknown"] + ["b"] * 249, "note": notes})
    tree = {"use": "tree", "nodes": {"north": ["a", "b"]}}
    how = {"plain": ["note"], "k": 2, "waive": "unique-plain"}
    release = shoal.anonymize(frame, quasi={"town": tree}, **how)
    assert release.data.height == 499
    assert SECRET.encode() in pickle.dumps(frame)
    assert SECRET.encode() not in pickle.dumps(release.data)
    assert release.data["note"].to_list() == [notes[at] for at in release.positions]
    assert sorted(release.positions) == [at for at in range(500) if at != 250]
    assert SECRET.encode() not in pickle.dumps(release)
    again, _ = release.model.apply(frame)
    assert SECRET.encode() not in pickle.dumps(again)
    if kind == "text":
        fewer = frame.filter(pl.col("town") != "unknown")
        assert SECRET.encode() in pickle.dumps(fewer)  # so it is with polars
        assert SECRET.encode() not in pickle.dumps(shoal.anonymize(fewer, quasi=["town"], **how).data)


def test_a_column_that_is_not_there_is_told_without_what_stands_in_its_place():
    headless = pl.DataFrame({"F. Ott": ["G. Roth"], "34": [35]})
    with pytest.raises(UsageError, match="there is no column 'age' among 2") as told:
        require(headless, ["age"], "table")
    assert told.value.hint == "does the file have a header line with the names?"
    with pytest.raises(UsageError) as near:
        require(pl.DataFrame({"age": [1], "sex": ["f"]}), ["ages"], "table")
    assert near.value.hint == "did you mean 'age'?"
