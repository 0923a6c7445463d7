"""Files as records: continued anywhere, they are the same records."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from shoal.connect import events, rows
from shoal.connect.rows import files_of, head_of, records
from shoal.core.errors import InputError, UsageError

FRAME = pl.DataFrame({"n": range(12_000), "zip": ["01067"] * 12_000})


def write(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".parquet"):
        FRAME.write_parquet(path)
    elif name.endswith(".csv"):
        FRAME.write_csv(path)
    else:
        text = FRAME.write_ndjson().encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz", "a.csv", "a.parquet"])
@pytest.mark.parametrize("start", [0, 1, 5_000, 11_999, 12_000])
def test_records_from_any_number(tmp_path, name, start):
    path = write(tmp_path, name)
    found = [r for batch in records(path, start) for r in batch]
    assert found == FRAME.slice(start).write_ndjson().encode().splitlines()


def test_a_line_that_is_no_json_is_handed_on_for_the_worker_to_withhold(tmp_path):
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"n": 1}\r\nnot json\n{"n": 2}')
    assert list(records(path)) == [[b'{"n": 1}', b"not json", b'{"n": 2}']]


def test_a_folder_is_read_by_name_and_only_what_is_known(tmp_path):
    for name in ("b.csv", "a.ndjson.gz", ".c.csv", "readme.txt", "d.parquet"):
        (tmp_path / name).write_bytes(b"")
    assert [p.name for p in files_of(tmp_path)] == ["a.ndjson.gz", "b.csv", "d.parquet"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no file"):
        files_of(tmp_path / "empty")
    with pytest.raises(InputError, match="no such"):
        files_of(tmp_path / "nothing.csv")


def test_a_file_that_grows_keeps_its_name_and_one_that_is_replaced_does_not(tmp_path):
    path = tmp_path / "a.ndjson"
    path.write_text('{"n": 1}\n')
    before = head_of(path)
    path.write_text('{"n": 1}\n{"n": 2}\n')
    assert head_of(path) == before
    path.write_text('{"n": 3}\n{"n": 2}\n')
    assert head_of(path) != before


@pytest.mark.parametrize("reading", ["records", "events"])
def test_a_line_that_does_not_end_cannot_fill_the_memory(tmp_path, monkeypatch, reading):
    for module in (rows, events):
        monkeypatch.setattr(module, "LONGEST", 1000)
    path = tmp_path / "bomb.ndjson.gz"
    path.write_bytes(gzip.compress(b'{"n": 1}\n' + b" " * 100_000))
    source = records(path) if reading == "records" else events.Events(str(path), ["n"], chunk=500)
    with pytest.raises(InputError, match="longer than"):
        list(source)
