"""A folder, a pattern or a sheet of a workbook as one table."""

from __future__ import annotations

import builtins
import zipfile
from datetime import date, datetime
from pathlib import Path
from xml.sax.saxutils import escape

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.cli import main
from shoal.connect import files
from shoal.connect.excel import as_shown
from shoal.connect.formats import parts_of
from shoal.core.errors import InputError, UsageError
from shoal.core.originals import keep_apart

SECRET = "Meier-Secret-1977"


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return int(stop.value.code or 0)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["7", "007", "1.50", "2020-01-31", "NA", "x", ""]), min_size=2, max_size=9), st.data())
def test_a_folder_reads_as_the_file_it_was_cut_from_and_exact_columns_come_out_byte_for_byte(
    tmp_path_factory, cells, data
):
    place = tmp_path_factory.mktemp("folder")
    lines = [f"{cell},{at}\n" for at, cell in enumerate(cells)]
    cut = data.draw(st.integers(1, len(lines) - 1))
    (place / "whole").mkdir()
    (place / "parts").mkdir()
    (place / "whole" / "t.csv").write_text("c,n\n" + "".join(lines))
    for name, part in (("a", lines[:cut]), ("b", lines[cut:])):
        (place / "parts" / f"{name}.csv").write_text("c,n\n" + "".join(part))
    whole = files.read(str(place / "whole" / "t.csv"))
    assert files.read(str(place / "parts")).equals(whole)
    assert files.read(str(place / "parts" / "*.csv")).equals(whole)
    files.write(files.read(str(place / "parts"), exact=["c", "n"]), str(place / "out.csv"))
    files.write(files.read(str(place / "whole" / "t.csv"), exact=["c", "n"]), str(place / "out2.csv"))
    assert (place / "out.csv").read_bytes() == (place / "out2.csv").read_bytes()


def test_columns_in_another_order_are_the_same_columns(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n")
    (tmp_path / "2.csv").write_text("b,a\ny,2\n")
    assert files.read(str(tmp_path)).rows() == [(1, "x"), (2, "y")]


PARTS = {
    "another header": (
        {"1.csv": "a,b\n1,2\n", "2.csv": f"a,{SECRET}\n1,2\n"},
        InputError,
        "1 are missing, 1 are other",
    ),
    "no header": ({"1.csv": "a,b\n1,2\n", "2.csv": f"{SECRET},7\n"}, InputError, "2 are missing, 2 are others"),
    "another kind": ({"1.csv": "a\n1\n", "2.ndjson": '{"a": 1}\n'}, UsageError, "files of one format"),
    "another type": ({"1.ndjson": '{"a": 1}\n', "2.ndjson": '{"a": "x"}\n'}, InputError, "column 1 to hold Int64"),
    "nothing": ({"readme.txt": ""}, UsageError, "no file to read"),
    "empty part": ({"1.csv": "a\n1\n", "2.csv": ""}, InputError, "2.csv: the file is empty"),
    "a value of another type": ({"1.csv": "a\n1\n", "2.csv": "a\n1\nx\n"}, InputError, "2.csv: column 'a': 1 values"),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_that_do_not_fit_are_named_and_not_quoted(tmp_path, case):
    parts, error, words = PARTS[case]
    for name, text in parts.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(error, match=words) as caught:
        files.read(str(tmp_path), types={"a": "int"} if "value" in case else None)
    assert "hint:" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_pattern_that_fits_no_name_and_a_name_that_looks_like_a_pattern(tmp_path):
    with pytest.raises(InputError, match="no name fits"):
        parts_of(str(tmp_path / "*.csv"))
    (tmp_path / "t[1].csv").write_text("a\n1\n")
    assert files.read(str(tmp_path / "t[1].csv")).height == 1


def test_a_release_is_not_put_among_the_files_it_was_made_of(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.csv").write_text("age\n30\n31\n")
    words = ("anonymize", str(tmp_path / "in"), "--quasi", "age", "--k", "2", "-o")
    assert run(*words, str(tmp_path / "in" / "out.csv")) == 2
    assert "among the files that are read" in capsys.readouterr().err
    assert sorted(p.name for p in (tmp_path / "in").iterdir()) == ["a.csv", "b.csv"]
    assert run(*words, str(tmp_path / "out.csv")) == 0
    assert pl.read_csv(tmp_path / "out.csv").height == 4
    keep_apart([str(tmp_path / "other.csv")], [str(tmp_path / "in")])


# workbooks: the smallest files that a reader takes for one
def book(path: Path, sheets: dict[str, list[list[str | float | None]]]) -> str:
    """A workbook with these rows; texts are written into their cells."""
    main_ns = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{at}" r:id="r{at}"/>' for at, name in enumerate(sheets, 1))
    targets = "".join(
        f'<Relationship Id="r{at}" Type="{relation}/worksheet" Target="worksheets/{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"/>')
        out.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="b" Type="{relation}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        out.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main_ns}" xmlns:r="{relation}"><sheets>{listed}</sheets></workbook>'
        )
        out.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{package}/relationships">{targets}</Relationships>'
        )
        for at, rows in enumerate(sheets.values(), 1):
            text = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
            out.writestr(
                f"xl/worksheets/{at}.xml", f'<worksheet xmlns="{main_ns}"><sheetData>{text}</sheetData></worksheet>'
            )
    return str(path)


def _cell(value: str | float | None) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f"<c><v>{value}</v></c>"


ROWS: list[list[str | float | None]] = [
    ["name", "age", "born", "zip"],
    ["x", 34, "31.12.1990", "01067"],
    ["y", 51, "01.02.1970", "10115"],
]


@pytest.fixture
def excel():
    return pytest.importorskip("fastexcel", reason="the extra `excel` is not installed")


def test_a_sheet_is_read_like_the_csv_of_it(tmp_path, excel):
    path = book(tmp_path / "b.xlsx", {"people": ROWS, "empty": []})
    found = files.read(path)
    assert found.rows() == files.read(f"{path}#people").rows()
    (tmp_path / "b.csv").write_text("\n".join(",".join(map(str, row)) for row in ROWS) + "\n")
    assert found.rows() == files.read(str(tmp_path / "b.csv")).rows()
    declared = files.read(path, types={"born": "str", "age": "float"})
    assert declared["born"].to_list() == ["31.12.1990", "01.02.1970"]
    assert declared["age"].dtype == pl.Float64


def test_cells_are_read_as_the_workbook_shows_them(tmp_path, excel):
    rows = [["n", "long", "share"], [4000000000001, 1.234567890123456e18, 0.5], [5, None, 2]]
    told = []
    found = files.read(book(tmp_path / "b.xlsx", {"a": rows}), tell=lambda *words: told.append(words))
    assert found.rows() == [(4000000000001, 1234567890123456000, 0.5), (5, None, 2.0)]
    assert [name for name, _ in told] == ["long"]
    assert "1 whole numbers of more than 15 digits" in told[0][1]


def test_days_of_a_workbook_are_dates_and_times_stay_times():
    days = pl.Series([datetime(1980, 12, 31), None, datetime(1990, 1, 1)])
    assert as_shown(days).to_list() == [date(1980, 12, 31), None, date(1990, 1, 1)]
    times = pl.Series([datetime(1980, 12, 31), datetime(1990, 1, 1, 7, 30)])
    assert as_shown(times).to_list() == times.to_list()
    huge = pl.Series([1e30, 2.0])
    assert as_shown(huge).to_list() == huge.to_list()
    assert as_shown(pl.Series([None, float("nan")], dtype=pl.Float64)).dtype == pl.Float64


SHEETS = {
    "two sheets": ({"a": ROWS, "b": ROWS}, "", UsageError, "the workbook has 2 sheets"),
    "no such sheet": ({"a": ROWS}, "#c", UsageError, "no sheet 'c'"),
    "nothing": ({"a": []}, "", InputError, "the file is empty"),
    "a header only": ({"a": ROWS[:1]}, "", InputError, "has no rows"),
    "a column without a name": ({"a": [["name", None, "x"], [SECRET, 1, 2]]}, "", InputError, "column 2 has no name"),
    "a name twice": ({"a": [["name", "name"], [SECRET, 1]]}, "", InputError, "columns 1 and 2 have the same name"),
    "a wrong type": ({"a": [["name", "age"], [SECRET, "old"]]}, "", InputError, "column 'age': 1 values"),
}


@pytest.mark.parametrize("case", SHEETS)
def test_wrong_workbooks_are_located_and_not_quoted(tmp_path, excel, case):
    sheets, name, error, words = SHEETS[case]
    path = book(tmp_path / "b.xlsx", sheets)
    with pytest.raises(error, match=words) as caught:
        files.read(path + name, types={"age": "int"} if "type" in case else None)
    assert "b.xlsx" in str(caught.value)
    assert "hint:" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_what_is_no_workbook_is_told(tmp_path, excel):
    (tmp_path / "b.xlsx").write_text(f"name\n{SECRET}\n")
    with pytest.raises(InputError, match="cannot be read as a workbook"):
        files.read(str(tmp_path / "b.xlsx"))


def test_without_the_extra_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *more, **words):
        if name == "fastexcel":
            raise ImportError
        return real(name, *more, **words)

    monkeypatch.setattr(builtins, "__import__", without)
    (tmp_path / "b.xlsx").write_text("x")
    with pytest.raises(UsageError, match="extra package") as caught:
        files.read(str(tmp_path / "b.xlsx"))
    assert "shoal[excel]" in str(caught.value)


def test_a_workbook_is_not_written_nor_replaced(tmp_path):
    with pytest.raises(UsageError, match="read, not written"):
        files.write(pl.DataFrame({"a": [1]}), str(tmp_path / "out.xlsx"))
