"""Reading loses nothing: every digit, every leading zero, every text comes out as it stood."""

from __future__ import annotations

import gzip
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.connect import files
from shoal.connect.csv_shape import shape
from shoal.connect.events import Events
from shoal.connect.propose import infer, propose
from shoal.connect.types import Declared, cast, declared
from shoal.core.errors import InputError, UsageError

DIGITS = st.integers(-(10**25), 10**25).map(str)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False).map(str)
CODES = st.from_regex(r"[0-9]{1,6}", fullmatch=True)
DATES = st.dates().map(str) | st.datetimes().map(str) | st.dates().map(lambda d: f"{d:%d.%m.%Y}")
MARKED = st.sampled_from(
    ["NA", "?", "unknown", "-", "", " 7", "7 ", "1,5", "+5", "-0", "1e3", ".5", "5.", "True", "NaN"]
)
CELLS = st.sampled_from([DIGITS, DECIMALS, CODES, DATES, MARKED, st.text(st.characters(codec="utf-8"), max_size=5)])
COLUMN = CELLS.flatmap(lambda kind: st.lists(kind | st.none(), min_size=1, max_size=12)) | st.lists(
    DIGITS | DECIMALS | CODES | MARKED | st.none(), min_size=1, max_size=12
)


def texts(cells: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"c": pl.Series(cells, dtype=pl.String), "other": pl.Series(["x"] * len(cells))})


@given(COLUMN)
def test_what_is_exact_comes_out_byte_for_byte(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("csv")
    first, second = folder / "in.csv", folder / "out.csv"
    texts(cells).write_csv(first)
    files.write(files.read(str(first), exact=["c", "other"]), str(second))
    assert second.read_bytes() == first.read_bytes()


NAMES = st.lists(st.text(st.sampled_from("ab \",;\n'#é"), min_size=1, max_size=6), min_size=1, max_size=4, unique=True)


@given(NAMES, st.sampled_from([",", ";", "\t"]))
def test_names_of_columns_come_out_byte_for_byte(tmp_path_factory, names, separator):
    """Quotes, separators and line ends inside a name of a column are part of the name, as they are inside a cell."""
    folder = tmp_path_factory.mktemp("csv")
    first, second = folder / "in.csv", folder / "out.csv"
    pl.DataFrame({name: ["x", "y"] for name in [*names, "last"]}).write_csv(first, separator=separator)
    frame = files.read(str(first), exact=names, separator=separator)
    assert frame.columns == [*names, "last"]
    files.write(frame, str(second))
    assert files.read(str(second)).columns == frame.columns
    if separator == ",":
        assert second.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("spoilt", ["", "1\n"])
def test_a_stream_reads_quotes_inside_names(tmp_path, spoilt):
    """On the fast road and on the slow one, which a line that is no row asks for."""
    file = tmp_path / "events.csv"
    file.write_text(f'time,"so ""old""",v\n1,u,a\n{spoilt}2,w,b\n')
    events = Events(str(file), ["time", 'so "old"'])
    frame = pl.concat(list(events))
    assert frame['so "old"'].drop_nulls().to_list() == ["u", "w"]


def test_a_time_that_must_stay_exact_is_written_as_it_stood(tmp_path):
    """A file gets times with a T: those with a space between day and hour stay text."""
    for text in ("2000-01-01 00:00:00.000001", "2000-01-01T00:00:00.000001", "2000-01-01 00:00:00", "2000-01-01"):
        (tmp_path / "in.csv").write_text(f"c,other\n{text},x\n")
        files.write(files.read(str(tmp_path / "in.csv"), exact=["c", "other"]), str(tmp_path / "out.csv"))
        assert (tmp_path / "out.csv").read_text() == f"c,other\n{text},x\n"


@given(COLUMN)
def test_no_column_loses_a_digit_by_being_read(cells):
    known = [c for c in cells if c is not None]
    found = infer(texts(cells))["c"]
    if found.dtype.is_integer():
        values = [int(c) for c in known if _is_number(c)]
        assert found.drop_nulls().to_list() == values
    elif found.dtype.is_float():
        plain = [c.replace(".", "").replace(",", ".") if "," in c else c for c in known if _is_number(c)]
        for value, text in zip(found.drop_nulls().to_list(), plain, strict=True):
            exact = Decimal(text)
            assert Decimal(repr(value)) == exact or abs(Decimal(repr(value)) - exact) <= abs(exact) * Decimal("1e-15")
            assert len(exact.as_tuple().digits) <= 15 or Decimal(repr(value)) == exact
    elif found.dtype == pl.String:
        assert found.to_list() == cells


def _is_number(text: str) -> bool:
    try:
        return Decimal(text.replace(".", "").replace(",", ".") if "," in text else text).is_finite()
    except ArithmeticError:
        return False


@given(st.lists(st.integers(10**18, 10**30).map(str), min_size=1, max_size=20, unique=True))
def test_long_numbers_stay_as_many_as_they_are(ids):
    found = infer(texts([*ids]))["c"]
    assert found.cast(pl.String).to_list() == ids


@given(st.lists(st.integers(10**18, 10**24), min_size=1, max_size=9), st.sampled_from(["csv", "ndjson"]))
def test_long_numbers_of_files_come_back_whole(tmp_path_factory, numbers, kind):
    path = tmp_path_factory.mktemp("ids") / f"ids.{kind}"
    rows = [f'{{"id": {n}}}' if kind == "ndjson" else str(n) for n in numbers]
    path.write_text("\n".join([*([] if kind == "ndjson" else ["id"]), *rows]) + "\n")
    assert [int(v) for v in files.read(str(path))["id"].to_list()] == numbers


# what is proposed, and what is said
PROPOSED = {
    "iso dates": (["2020-01-31", None], pl.Date, "dates"),
    "iso times": (["2020-01-31T10:00:00Z", "2020-01-31 10:00"], pl.Datetime("us"), "times"),
    "day first": (["31.12.2020", "01.02.2020"], pl.Date, "%d.%m.%Y"),
    "day first by slashes": (["31/12/2020", "01/02/2020"], pl.Date, "%d/%m/%Y"),
    "month first": (["12/31/2020", "01/02/2020"], pl.Date, "%m/%d/%Y"),
    "day or month": (["01/02/2020", "03/04/2020"], pl.String, "may be first"),
    "marks": (["34", "unknown", "51", "28"], pl.Int64, "1 cells are marks"),
    "marks among dates": (["2020-01-31", "?", "2020-02-01"], pl.Date, "marks"),
    "decimal comma": (["1,5", "2,25"], pl.Float64, "decimal comma"),
    "comma of thousands or not": (["1,500", "2,250"], pl.String, "may be decimal"),
    "plain numbers": (["1", "2"], pl.Int64, None),
    "decimals": (["1.50", "2.5"], pl.Float64, None),
    "codes": (["007", "12"], pl.String, None),
    "codes with marks": (["007", "?", "12"], pl.String, None),
    "mostly marks": (["?", "?", "12"], pl.String, None),
    "words": (["unknown", "flu"], pl.String, None),
    "long": (["1234567890123456789012", "1"], pl.String, None),
    "long among decimals": (["12345678901234567", "1.5"], pl.String, None),
    "no such day": (["2020-02-31"], pl.String, None),
}


@pytest.mark.parametrize("case", PROPOSED)
def test_types_are_proposed_and_said(case):
    cells, dtype, words = PROPOSED[case]
    found, said = propose(pl.Series(cells, dtype=pl.String))
    assert found.dtype == dtype
    assert (said is None) if words is None else (said is not None and words in said)


def test_four_unknown_ages_leave_a_column_of_numbers(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("age\n" + "\n".join(["34", "unknown"] * 2 + ["51"] * 96) + "\n")
    told = []
    frame = files.read(str(path), tell=lambda column, words: told.append((column, words)))
    assert frame["age"].dtype == pl.Int64
    assert frame["age"].null_count() == 2
    assert told[0][0] == "age"
    assert "2 cells" in told[0][1]


# what is declared
DECLARED = {
    "date:%d.%m.%Y": (["31.12.2020", None], ["2020-12-31", None]),
    "date:%d/%m/%Y": (["01/02/2020"], ["2020-02-01"]),
    "date": (["2020-12-31", "NA"], ["2020-12-31", None]),
    "datetime": (["2020-12-31 10:00", "2020-12-31T11:00:00+01:00"], ["2020-12-31 10:00:00.000000"] * 2),
    "datetime:ms": (["1577836800000"], ["2020-01-01 00:00:00.000000"]),
    "datetime:s": (["1577836800"], ["2020-01-01 00:00:00.000000"]),
    "datetime:ns": (["1577836800000000000"], ["2020-01-01 00:00:00.000000"]),
    "float:,": (["1.234,5", "7"], ["1234.5", "7.0"]),
    "bool": (["yes", "No", "1", "F"], ["true", "false", "true", "false"]),
    "int": (["-7", "?"], ["-7", None]),
    "str": (["007", "?"], ["007", "?"]),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_declared_types_are_read_in_their_form(kind):
    cells, expected = DECLARED[kind]
    frame = cast(texts(cells).select("c"), {"c": declared(kind)}, "x.csv")
    assert frame["c"].cast(pl.String).to_list() == expected


@pytest.mark.parametrize(
    "kind", ["date", "date:%d.%m.%Y", "datetime", "datetime:ms", "int", "float", "float:,", "bool"]
)
def test_what_is_not_as_declared_is_counted_and_located(kind):
    secret = "Ahl-Brook-1977"
    good = {"date": "2020-01-01", "date:%d.%m.%Y": "01.01.2020", "datetime": "2020-01-01"}.get(kind, "1")
    cells = [good, secret, good, None, secret]
    with pytest.raises(InputError, match=r"column 'c': 2 values are not of type .*; first: row 2, 5") as caught:
        cast(texts(cells), {"c": declared(kind)}, "x.csv")
    assert secret not in str(caught.value)


@pytest.mark.parametrize("text", ["dat", "date:", "date:dd.mm", "int:%d", "str:x", "datetime:min", "float:;"])
def test_a_type_that_is_none(text):
    with pytest.raises(UsageError, match=r"type|form"):
        declared(text)


@pytest.mark.parametrize(("column", "kind"), [([1.5, 2.0], "int"), ([2**53 + 1], "float")])
def test_a_declared_number_loses_no_digit(column, kind):
    with pytest.raises(InputError, match="1 values are not of type"):
        cast(pl.DataFrame({"c": column}), {"c": Declared(kind)}, "x.parquet")


# the shape of a CSV
CELL = st.text(st.sampled_from('ab,"\n\r;'), max_size=4)


def quoted(cell: str, always: bool) -> str:
    return '"' + cell.replace('"', '""') + '"' if always or any(c in cell for c in ',"\n\r') else cell


@given(st.lists(st.lists(CELL, min_size=2, max_size=4), min_size=1, max_size=6), st.booleans(), st.booleans())
def test_the_first_line_of_another_width_is_found(rows, always, ended):
    lines = ["x,y,z", *[",".join(quoted(cell, always) for cell in row) for row in rows]]
    raw = ("\n".join(lines) + "\n" * ended).encode()
    wrong = next((at for at, row in enumerate(rows, 1) if len(row) != 3), None)
    if wrong is None:
        assert shape(raw, ",", 3, "x").rows == len(rows)
    else:
        line = "\n".join([*lines[:wrong], ""]).count("\n") + 1
        with pytest.raises(InputError, match=f"line {line}: expected 3 cells"):
            shape(raw, ",", 3, "x")


QUOTES = {
    'a,b\n1,2\n3,"x\n': (3, "never closed"),
    'a,b\n1,2\n3,x"y\n': (3, "middle of a cell"),
    'a,b\n1,"x"y\n3,4\n': (2, "middle of a cell"),
    'a,b\n"1\n2",3\n4,5,6\n': (4, "expected 2 cells as in the header, found 3"),
    "a,b\n1\n2,3\n": (2, "found 1"),
}


@pytest.mark.parametrize("text", QUOTES)
def test_ragged_lines_and_bad_quotes_have_a_line(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    line, words = QUOTES[text]
    with pytest.raises(InputError, match=words) as caught:
        files.read(str(tmp_path / "x.csv"))
    assert f"x.csv, line {line}" in str(caught.value)


def test_empty_lines_are_no_rows(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"a,b\r\n1,2\r\n\r\n3,4\r\n\r\n")
    assert files.read(str(tmp_path / "x.csv")).rows() == [(1, 2), (3, 4)]
    (tmp_path / "y.csv").write_text("a\n1\n\n2\n")
    assert files.read(str(tmp_path / "y.csv"))["a"].to_list() == [1, None, 2]


def test_a_compressed_file_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROOM", 1000)
    monkeypatch.setattr(files, "EXPANSION", 2)
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 100_000))
    with pytest.raises(InputError, match="grows beyond"):
        files.read(str(path))
    rng = np.random.default_rng(1)
    path.write_bytes(gzip.compress(("a\n" + "\n".join(map(str, rng.integers(0, 10**12, 500))) + "\n").encode()))
    monkeypatch.setattr(files, "EXPANSION", 200)
    assert files.read(str(path)).height == 500
