"""A file that is read is never written onto, by whatever name."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from shoal.connect import files
from shoal.connect.events import Events
from shoal.connect.sink import Sink
from shoal.core.errors import UsageError
from shoal.core.originals import guarded, keep_apart

TEXT = "a,b\n1,2\n"


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_text(TEXT)
    return path


def other_names(path: Path) -> list[Path]:
    link, hard = path.with_name("link.csv"), path.with_name("hard.csv")
    link.symlink_to(path.name)
    hard.hardlink_to(path)
    (path.parent / "sub").mkdir()
    return [path, link, hard, path.parent / "sub" / ".." / path.name, Path(os.path.relpath(path))]


def test_no_writer_replaces_what_was_read(original):
    for name in other_names(original):
        with guarded():
            frame = files.read(str(original))
            for write in (
                lambda n=name, f=frame: files.write(f, str(n)),
                lambda n=name: files.write_text("x", str(n)),
                lambda n=name: Sink(str(n)),
            ):
                with pytest.raises(UsageError, match="would replace a file that is read"):
                    write()
        assert original.read_text() == TEXT


def test_a_stream_does_not_empty_its_own_input(original):
    with guarded():
        Events(str(original), ["a"])
        with pytest.raises(UsageError, match="would replace"):
            Sink(str(original))
    assert original.read_text() == TEXT


def test_outside_a_command_a_file_may_be_read_and_written_again(original):
    frame = files.read(str(original))
    files.write(frame, str(original))
    with guarded():
        files.read(str(original))
    files.write(frame, str(original))


def test_outputs_have_names_of_their_own(tmp_path):
    out = str(tmp_path / "x.html")
    with pytest.raises(UsageError, match="two outputs"):
        keep_apart([out, str(tmp_path / "." / "x.html")], [])
    with pytest.raises(UsageError, match="two outputs are standard output"):
        keep_apart([out, "-", None, "-"], [])
    keep_apart([out, None, "-"], ["-", None])


def test_a_failed_disk_leaves_no_release(tmp_path, monkeypatch):
    def lies(frame, out, kind, separator):
        out.write(b"a\n1\n")

    monkeypatch.setattr(files, "_write", lies)
    target = tmp_path / "out.csv"
    target.write_text("the old one")
    with pytest.raises(files.OutputError, match="read back"):
        files.write(pl.DataFrame({"a": [1, 2]}), str(target))
    assert target.read_text() == "the old one"
