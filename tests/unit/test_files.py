"""Bad input: each an error with its place and a hint, never a cell, and never half a file."""

from __future__ import annotations

import gzip
import io
import sys

import polars as pl
import pytest

from shoal.connect import files
from shoal.core.errors import InputError, OutputError, UsageError

SECRET = "Ahl-Brook-1977"
GOOD = f"name,age\n{SECRET},34\nother,35\n"


def _write(path, content: bytes):
    path.write_bytes(content)
    return str(path)


def _parquet() -> bytes:
    out = io.BytesIO()
    pl.DataFrame({"name": [SECRET] * 100}).write_parquet(out)
    return out.getvalue()


BAD = {
    "empty.csv": (b"", "empty"),
    "blank.csv": (b" \n\n", "empty"),
    "semicolons.csv": (f"name;age\n{SECRET};3\n".encode(), "separator"),
    "twice.csv": (f"age,age\n{SECRET},3\n".encode(), "columns 1 and 2 have the same name"),
    "latin.csv": (f"name\n{SECRET}\nJürgen\n".encode("latin-1"), "not UTF-8"),
    "ragged.csv": (f"name,age\n{SECRET},1,2,3\n".encode(), "line 2: expected 2 cells"),
    "cut.parquet": (_parquet()[:-20], "cannot be read as parquet"),
    "text.parquet": (GOOD.encode(), "cannot be read as parquet"),
    "damaged.csv.gz": (gzip.compress(GOOD.encode())[:-10], "damaged"),
    "flipped.csv.gz": (b"\x1f\x8b" + b"nonsense" * 4, "damaged"),
    "broken.ndjson": (f'{{"name": "{SECRET}"}}\n{{"name": \n'.encode(), "cannot be read as ndjson"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_named_with_a_hint_and_never_quoted(tmp_path, name):
    content, words = BAD[name]
    path = _write(tmp_path / name, content)
    with pytest.raises(InputError, match=words) as caught:
        files.read(path)
    text = str(caught.value)
    assert name in text
    assert "hint:" in text
    assert SECRET not in text
    assert caught.value.exit_code == 3
    assert len(text.splitlines()) < 10
    assert caught.value.__cause__ is None
    hidden = caught.value.__suppress_context__ or caught.value.__context__ is None
    assert hidden, "a traceback must not print what the reader said"


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        files.read(str(tmp_path / "nowhere.csv"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match="there is no file to read"):
        files.read(str(tmp_path / "folder.csv"))


def test_a_name_without_a_known_ending():
    with pytest.raises(UsageError, match="cannot tell the format"):
        files.read("data.doc")


def test_the_line_of_a_wrong_byte_is_told(tmp_path):
    with pytest.raises(InputError, match="line 3"):
        files.read(_write(tmp_path / "x.csv", b"name\nok\nJ\xfcrgen\n"))


def test_leading_zeros_of_a_postcode_survive(tmp_path):
    frame = files.read(_write(tmp_path / "x.csv", b"zip,age,share\n01067,34,0.5\n10115,35,0\n"))
    assert frame["zip"].to_list() == ["01067", "10115"]
    assert frame["age"].dtype == pl.Int64
    assert frame["share"].dtype == pl.Float64


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    assert files.read(_write(tmp_path / "x.csv", b"\xef\xbb\xbfname\nx\n")).columns == ["name"]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.ndjson", "x.tsv"])
def test_what_is_written_is_read_again(tmp_path, name):
    frame = pl.DataFrame({"name": ["a", None, 'ü, "q"\n'], "age": [1, 2, None], "x": [0.5, 1e-9, 2.0]})
    path = str(tmp_path / name)
    separator = "\t" if name.endswith("tsv") else ","
    files.write(frame, path, separator=separator)
    assert files.read(path).equals(frame)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("kind", ["int", "float", "bool", "date", "datetime"])
def test_a_value_of_another_type_is_counted_and_placed(tmp_path, kind):
    path = _write(tmp_path / "x.csv", f"name,when\n{SECRET},2020-01-01\nx,{SECRET}\n".encode())
    with pytest.raises(InputError, match=r"'when': .* not of type") as caught:
        files.read(path, types={"when": kind})
    assert SECRET not in str(caught.value)


def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch):
    target = tmp_path / "out.csv"
    target.write_text("the old one")

    def fails(frame, out, kind, separator):
        out.write(b"half")
        raise RuntimeError("interrupted")

    monkeypatch.setattr(files, "_write", fails)
    with pytest.raises(RuntimeError):
        files.write(pl.DataFrame({"a": [1]}), str(target))
    assert target.read_text() == "the old one"
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        files.write(pl.DataFrame({"a": [1]}), str(tmp_path / "nowhere" / "out.csv"))


def test_standard_input_and_output(monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    frame = files.read("-")
    files.write(frame, "-")
    assert capsysbinary.readouterr().out == b"a,b\n1,2\n"


@pytest.mark.parametrize("kind", [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64])
@pytest.mark.parametrize("suffix", ["csv", "ndjson", "parquet"])
def test_whole_numbers_of_every_width_are_written_and_read_back(tmp_path, kind, suffix):
    frame = pl.DataFrame({"a": pl.Series([1, None, 3], dtype=kind), "b": ["x", "y", None]})
    files.write(frame, str(tmp_path / f"out.{suffix}"))
    assert files.read(str(tmp_path / f"out.{suffix}"))["a"].cast(kind).to_list() == [1, None, 3]
