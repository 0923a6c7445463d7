"""``shoal anonymize`` on tables that do not fit in memory: it chooses by itself, and leaves nothing behind."""

from __future__ import annotations

import gzip
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from shoal.datasets.hospital import hospital
from tests.small_disk import fill, small_disk

ASKED = ("--quasi", "zip,sex,age", "--hierarchy", "zip=prefix:5", "--sensitive", "diag", "--k", "4", "--seed", "3")


@pytest.fixture
def table(tmp_path) -> pl.DataFrame:
    frame = hospital(2500, seed=6)
    frame.write_csv(tmp_path / "t.csv")
    return frame


@pytest.fixture
def little_memory(monkeypatch):
    """A row is said to need so much that 300 MB hold a few hundred of them."""
    monkeypatch.setattr("shoal.release.regional.choose.PER_ROW", 120_000)
    monkeypatch.setattr("shoal.release.regional.choose.PER_CELL", 0)
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 40)
    monkeypatch.setattr("shoal.connect.scan.PIECE", 1 << 15)
    monkeypatch.setattr("shoal.connect.scan.LOOK", 1 << 15)


def test_a_table_that_does_not_fit_is_released_in_regions_and_verifies(shoal, tmp_path, table, little_memory):
    done = shoal("anonymize", "t.csv", *ASKED, "--effort", "low", "--memory", "300MB", "-o", "r.csv")
    assert done.returncode == 0, done.stderr
    assert "do not fit in 0.3 GB: released in regions" in done.stderr
    assert "VERIFIED" in done.stderr
    assert shoal("verify", "r.csv", "--quasi", "zip,sex,age", "--k", "4").returncode == 0
    assert pl.read_csv(tmp_path / "r.csv").height == table.height
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv", "r.csv"}


def test_where_it_fits_memory_changes_nothing(shoal, tmp_path, table):
    for name, more in (("a.csv", []), ("b.csv", ["--memory", "2GB"])):
        assert shoal("anonymize", "t.csv", *ASKED, "--effort", "low", *more, "-o", name).returncode == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_files_of_a_folder_compressed_or_not_are_one_table_in_every_format(shoal, tmp_path, table, little_memory):
    """The same rows, however they lie on the disk, give the same release."""
    found = {}
    low = ("--effort", "low", "--memory", "300MB")
    for kind in ("csv", "parquet", "ndjson", "gz"):
        folder = tmp_path / kind
        folder.mkdir()
        for number, part in enumerate((table[:1000], table[1000:])):
            place = folder / f"{number}.{'csv.gz' if kind == 'gz' else kind}"
            if kind == "gz":
                place.write_bytes(gzip.compress(part.write_csv().encode()))
            else:
                getattr(part, f"write_{kind}")(place)
        words = ("--type", "zip=str") if kind != "parquet" else ()
        done = shoal("anonymize", kind, *ASKED, *low, *words, "-o", f"{kind}.csv")
        assert done.returncode == 0, done.stderr
        assert "released in regions" in done.stderr
        found[kind] = (tmp_path / f"{kind}.csv").read_bytes()
    assert len(set(found.values())) == 1


def test_a_table_of_twelve_combinations_keeps_to_its_memory(shoal, tmp_path, little_memory, monkeypatch):
    """Of each combination there are more rows than a region should have, and the sample has a few of each."""
    monkeypatch.setattr("shoal.release.regional.sample.SAMPLE", 100)
    rows = pl.DataFrame({"age": [30 + i % 4 for i in range(6000)], "sex": ["fmx"[i % 3] for i in range(6000)]})
    rows.write_csv(tmp_path / "t.csv")
    words = ("anonymize", "t.csv", "--quasi", "age,sex", "--k", "4", "--memory", "300MB", "-o", "r.csv")
    done = shoal(*words)
    assert done.returncode == 0, done.stderr
    assert "released in 12 regions" in done.stderr
    assert pl.read_csv(tmp_path / "r.csv").sort("age", "sex").equals(rows.sort("age", "sex"))
    pl.concat([rows[:1]] * 6000).write_csv(tmp_path / "t.csv")
    (tmp_path / "r.csv").unlink()
    done = shoal(*words)
    assert done.returncode == 1, done.stderr
    assert "6,000 rows have the same quasi values, which do not fit in memory" in done.stderr
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv"}


def test_standard_output_compressed_files_and_dry_runs(shoal, tmp_path, table, little_memory):
    low = ("--effort", "low", "--memory", "300MB")
    assert shoal("anonymize", "t.csv", *ASKED, *low, "-o", "r.csv").returncode == 0
    assert shoal("anonymize", "t.csv", *ASKED, *low).stdout == (tmp_path / "r.csv").read_text()
    assert shoal("anonymize", "t.csv", *ASKED, *low, "-o", "r.csv.gz").returncode == 0
    assert gzip.decompress((tmp_path / "r.csv.gz").read_bytes()) == (tmp_path / "r.csv").read_bytes()
    before = {f.name for f in tmp_path.iterdir()}
    dry = shoal("anonymize", "t.csv", *ASKED, *low, "-o", "no.csv", "--dry-run")
    assert dry.returncode == 0
    assert {f.name for f in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["--memory", "10MB"], "--memory"),
        (["--memory", "much"], "--memory"),
        (["--memory", "300MB", "--keep-order"], "--keep-order"),
        (["--memory", "300MB", "--method", "datafly"], "--method"),
        (["--memory", "300MB", "-o", "sqlite:r.db#r"], "--output"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(words, where, shoal, tmp_path, table, little_memory):
    done = shoal("anonymize", "t.csv", *ASKED, *words)
    assert done.returncode == 2
    assert where in done.stderr
    assert "hint:" in done.stderr
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv"}


def test_a_wrong_line_is_named_by_its_number_in_the_file(shoal, tmp_path, table, little_memory):
    lines = (tmp_path / "t.csv").read_text().splitlines()
    lines[1800] += ",one too many"
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    done = shoal("anonymize", "t.csv", *ASKED, "--memory", "300MB", "-o", "r.csv")
    assert done.returncode == 3
    assert "line 1,801" in done.stderr
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv"}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_that_changes_while_it_is_read_is_not_released(
    kind, shoal, tmp_path, table, little_memory, monkeypatch
):
    from shoal.connect import scan

    place = tmp_path / f"t.{kind}"
    table.write_parquet(tmp_path / "t.parquet")
    original, looks = scan._stamp, []

    def changed(path: str) -> tuple[int, int, int]:
        looks.append(path)
        if len(looks) == 4:  # between the first look and the last
            with place.open("ab") as file:
                file.write(b"\n")
        return original(path)

    monkeypatch.setattr(scan, "_stamp", changed)
    done = shoal("anonymize", place.name, *ASKED, "--memory", "300MB", "-o", "r.csv")
    assert done.returncode == 3, done.stderr
    assert "changed while it was read" in done.stderr
    assert "hint:" in done.stderr
    assert not (tmp_path / "r.csv").exists()
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv", "t.parquet"}


ENDINGS = ("csv", "csv.gz", "ndjson", "parquet")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("how", ["regions", "memory"])
def test_a_disk_that_is_full_at_the_last_step_leaves_nothing_behind(
    how, ending, shoal, tmp_path, table, request, monkeypatch
):
    """The disk takes the rows of the regions and is full when the release is written."""
    from shoal.connect import files, pieces

    replacing = files.replacing

    @contextmanager
    def then_full(path: Path) -> Iterator[Path]:
        with replacing(path) as out:
            fill(path.parent)
            yield out

    if how == "regions":
        request.getfixturevalue("little_memory")
    monkeypatch.setattr(pieces if how == "regions" else files, "replacing", then_full)
    memory = ("--memory", "300MB") if how == "regions" else ()
    with small_disk(tmp_path / "small", "4m") as small:
        done = shoal("anonymize", "t.csv", *ASKED, "--effort", "low", *memory, "-o", f"small/r.{ending}")
        assert done.returncode == 3, done.stderr
        assert f"small/r.{ending}: there is no room left on the disk" in done.stderr
        assert "hint: make room; nothing was written" in done.stderr
        assert [file.name for file in small.iterdir()] == ["ballast"]


def test_a_disk_that_is_full_on_the_way_leaves_nothing_behind(shoal, tmp_path, table, little_memory):
    """Before the release is written there is one error, too, no release and no file."""
    with small_disk(tmp_path / "small", "96k") as small:
        done = shoal("anonymize", "t.csv", *ASKED, "--effort", "low", "--memory", "300MB", "-o", "small/r.csv")
        assert done.returncode == 3, done.stderr
        assert "no room left" in done.stderr
        assert "hint:" in done.stderr
        assert not list(small.iterdir())


def test_the_private_folder_is_private(shoal, tmp_path, table, little_memory, monkeypatch):
    modes = []
    from shoal.release.regional import files

    solve = files.solve
    monkeypatch.setattr(
        files,
        "solve",
        lambda *a, **k: (modes.append([f.stat().st_mode & 0o777 for f in tmp_path.glob(".shoal-*")]), solve(*a, **k))[
            1
        ],
    )
    assert shoal("anonymize", "t.csv", *ASKED, "--effort", "low", "--memory", "300MB", "-o", "r.csv").returncode == 0
    assert modes
    assert all(mode == [0o700] for mode in modes)


def test_a_folder_that_a_killed_run_left_is_named_and_stays(shoal, tmp_path, table, little_memory):
    low = ("--effort", "low", "--memory", "300MB")
    assert "other runs" not in shoal("anonymize", "t.csv", *ASKED, *low, "-o", "r.csv").stderr
    before = (tmp_path / "r.csv").read_bytes()
    for number in range(5):
        (tmp_path / f".shoal-{number}").mkdir()
    done = shoal("anonymize", "t.csv", *ASKED, *low, "-o", "r.csv")
    assert done.returncode == 0, done.stderr
    assert "note: original rows of other runs lie in .shoal-0, .shoal-1, .shoal-2 and 2 more;" in done.stderr
    assert len(list(tmp_path.glob(".shoal-*"))) == 5
    assert (tmp_path / "r.csv").read_bytes() == before


def test_where_nobody_looks_a_line_now_and_then_says_how_far_it_is(shoal, tmp_path, table, little_memory, monkeypatch):
    low = ("--effort", "low", "--memory", "300MB", "-o", "r.csv")
    assert "anonymizing:" not in shoal("anonymize", "t.csv", *ASKED, *low).stderr
    monkeypatch.setattr("shoal.cli.terminal.BETWEEN", 0.0)
    said = shoal("anonymize", "t.csv", *ASKED, *low).stderr
    for words in ("coding 2,500 of 2,500 rows", "region 2 of", "verifying part"):
        assert any(line.startswith("anonymizing: ") and words in line for line in said.splitlines()), words


def test_python_refuses_memory_for_a_frame(table):
    import shoal

    with pytest.raises(shoal.UsageError, match="memory: has no effect on a table that is in memory"):
        shoal.anonymize(table, quasi=["age"], k=3, memory="2GB")  # type: ignore[call-arg]


def test_a_report_and_a_certificate_are_written_as_of_any_table(shoal, tmp_path, table, little_memory):
    done = shoal(
        "anonymize", "t.csv", *ASKED, "--effort", "low", "--memory", "300MB", "-o", "r.csv", "--report", "r.html",
        "--certificate", "c.json", SHOAL_KEY_CERTIFICATE="ab" * 32,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {f.name for f in tmp_path.iterdir()} == {"t.csv", "r.csv", "r.html", "c.json"}
    assert Path(tmp_path / "r.html").read_text().count("<html") == 1


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_who_asks_it_to_end_finds_no_rows_left_on_the_disk(
    shoal, tmp_path, table, little_memory, monkeypatch, sign, request
):
    # what `nohup` starts ignores SIGHUP, and a command leaves that as it is
    request.addfinalizer(partial(signal.signal, sign, signal.signal(sign, signal.SIG_DFL)))

    def ended(self, plan, rows, parts):
        scattered = [file for file in tmp_path.rglob("*.parquet") if file.stat().st_size]
        assert scattered, "the rows lie on the disk now"
        assert signal.getsignal(sign) is not signal.SIG_DFL
        os.kill(os.getpid(), sign)
        time.sleep(5)

    monkeypatch.setattr("shoal.release.regional.files.Run._solved", ended)
    done = shoal("anonymize", "t.csv", *ASKED, "--memory", "300MB", "-o", "r.csv")
    assert done.returncode == 128 + sign
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
    assert signal.getsignal(sign) is signal.SIG_DFL
