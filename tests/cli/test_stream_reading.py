"""What `shoal stream` reads, writes and says at its end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from shoal.cli import main
from shoal.connect.events import Events, Sink


def test_the_first_lines_do_not_decide_a_declared_type(tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    rows = [{"zip": 10115} for _ in range(300)] + [{"zip": "D-10115"} for _ in range(100)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    declared = pl.concat(list(Events(str(file), ["zip"], types={"zip": "str"})))
    assert declared["zip"].null_count() == 0


def test_a_compressed_output_is_compressed_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "out.ndjson.gz"
    for append in (False, True):
        sink = Sink(str(file), append=append)
        sink.write(pl.DataFrame({"a": [1]}))
        sink.close()
    assert gzip.decompress(file.read_bytes()) == b'{"a":1}\n{"a":1}\n'


def run(*words: str) -> int:
    try:
        return int(main(list(words)) or 0)
    except SystemExit as stop:
        return int(stop.code or 0)


def test_reasons_are_spelled_out_and_an_absent_column_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.ndjson"
    rows = [{"time": t, "subject": f"p{t}", "value": "x" if t < 4 else None} for t in range(6)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("stream", str(file), "--z", "2", "--window", "1h", "-o", "/dev/null") == 0
    said = capfd.readouterr().err
    assert "1 shown by too few people" in said
    assert "2 unreadable" in said
    words = ("--z", "2", "--window", "1h", "--value", "domain", "-o", "/dev/null")
    assert run("stream", str(file), *words) != 0
    said = capfd.readouterr().err
    assert "'domain'" in said
    assert "hint:" in said
