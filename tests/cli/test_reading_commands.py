"""What the commands read and write on a person's disk: nothing is changed without a word, and no original is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROWS = 60


@pytest.fixture
def people(tmp_path: Path) -> Path:
    draw = random.Random(5)
    lines = ["id,age,birth,born,price,note"]
    for _ in range(ROWS):
        age = draw.randint(20, 29)
        day, month = draw.randint(1, 28), draw.randint(1, 12)
        price = f"{draw.randint(1, 9)}.{draw.choice(['5', '50', '00'])}"
        words = [
            draw.randint(10**19, 10**20),
            age,
            f"{1990 + age % 2}-{month:02}-{day:02}",
            f"{day:02}.{month:02}.1990",
        ]
        lines.append(",".join(map(str, [*words, price, draw.choice(["NA", "-", "x", " y"])])))
    file = tmp_path / "people.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def column(file: Path, name: str) -> list[str]:
    return sorted(str(v) for v in pl.read_csv(file, infer_schema=False)[name])


def test_plain_columns_come_out_byte_for_byte(shoal, people, tmp_path):
    done = shoal(
        "anonymize",
        "people.csv",
        "--quasi",
        "age",
        "--plain",
        "id,price,note,birth",
        "--k",
        "3",
        "-o",
        "out.csv",
        "--waive",
        "unique-plain",
        "--keep-order",
    )
    assert done.returncode == 0, done.stderr
    for name in ("id", "price", "note", "birth"):
        assert column(tmp_path / "out.csv", name) == column(people, name)


def test_plain_columns_of_a_policy_come_out_byte_for_byte(shoal, people, tmp_path):
    (tmp_path / "p.yaml").write_text(
        "columns: {age: {role: quasi}, id: plain, price: plain, note: plain}\n"
        "views: {r: {show: [age, id, price, note], promises: [{use: k-anonymity, k: 3}]}}\n"
    )
    words = (
        "anonymize",
        "people.csv",
        "--policy",
        "p.yaml",
        "-o",
        "out.csv",
        "--waive",
        "unique-plain",
        "--keep-order",
    )
    done = shoal(*words)
    assert done.returncode == 0, done.stderr
    for name in ("id", "price", "note"):
        assert column(tmp_path / "out.csv", name) == column(people, name)


def test_a_view_without_promises_shows_columns_byte_for_byte(shoal, people, tmp_path):
    (tmp_path / "p.yaml").write_text(
        "columns: {age: quasi, price: sensitive, note: plain, born: quasi}\n"
        "views: {r: {show: [age, price, note, born], masks: {age: {use: bucket, width: 5}}}}\n"
    )
    done = shoal("view", "p.yaml", "people.csv", "--role", "r", "-o", "out.csv", "--keep-order")
    assert done.returncode == 0, done.stderr
    for name in ("price", "note", "born"):
        assert column(tmp_path / "out.csv", name) == column(people, name)


def test_long_numbers_have_a_pseudonym_each(shoal, people, tmp_path):
    (tmp_path / "p.yaml").write_text(
        "columns: {age: {role: quasi}, id: identifier}\nviews: {r: {show: [age, id], masks: {id: pseudonym}}}\n"
    )
    done = shoal("view", "p.yaml", "people.csv", "--role", "r", "-o", "out.csv", SHOAL_KEY="ab" * 32)
    assert done.returncode == 0, done.stderr
    assert len(set(column(tmp_path / "out.csv", "id"))) == ROWS


@pytest.mark.parametrize("words", [
    ("anonymize", "people.csv", "--quasi", "age", "--k", "2", "-o", "people.csv"),
    ("anonymize", "people.csv", "--quasi", "age", "--k", "2", "-o", "./link.csv"),
    ("anonymize", "people.csv", "--quasi", "age", "--k", "2", "-o", "out.csv", "--report", "hard.html"),
    ("anonymize", "people.csv", "--policy", "p.yaml", "-o", "p.yaml"),
    ("view", "p.yaml", "people.csv", "--role", "r", "-o", "people.csv"),
    ("init", "people.csv", "-o", "people.csv"),
    ("compare", "people.csv", "--quasi", "age", "--k", "2", "--methods", "datafly", "--report", "hard.html"),
    ("stream", "events.ndjson", "--z", "2", "--window", "1h", "-o", "events.ndjson"),
], ids=lambda words: f"{words[0]} {words[-1]}")  # fmt: skip
def test_no_command_writes_onto_what_it_reads(shoal, people, tmp_path, words):
    (tmp_path / "link.csv").symlink_to("people.csv")
    (tmp_path / "hard.html").hardlink_to(people)
    (tmp_path / "p.yaml").write_text("columns: {age: plain}\nviews: {r: {show: [age]}}\n")
    (tmp_path / "events.ndjson").write_text('{"time": 1, "subject": "a", "value": "x"}\n')
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    done = shoal(*words)
    assert done.returncode == 2, done.stderr
    assert "the output would replace a file that is read" in done.stderr
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_report_of_another_kind_is_refused_before_any_work(shoal, people, tmp_path):
    done = shoal("anonymize", "people.csv", "--quasi", "age", "--k", "2", "-o", "out.csv", "--report", "rep.pdf")
    assert done.returncode == 2
    assert ".html, .json or .txt" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "rep.pdf").exists()


def _run(folder: Path, words: list[str], **more: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "shoal", *words], cwd=folder, stderr=subprocess.PIPE, **more)  # type: ignore[call-overload,no-any-return]


ANSWERS = {
    "data": ["anonymize", "people.csv", "--quasi", "age", "--k", "2", "--plain", "id", "--waive", "unique-plain"],
    "answer": ["measure", "people.csv", "--quasi", "age"],
    "draft": ["init", "people.csv"],
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_full_disk_is_told(people, tmp_path, kind):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        process = _run(tmp_path, ANSWERS[kind], stdout=full)
        said = process.communicate()[1].decode()
    assert process.returncode == 3, said
    assert "cannot be written (No space left on device)" in said
    assert "defect" not in said
    assert "Exception ignored" not in said


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_reader_that_has_gone_is_no_error(people, tmp_path, kind):
    read, write = os.pipe()
    os.close(read)
    process = _run(tmp_path, ANSWERS[kind], stdout=write)
    os.close(write)
    said = process.communicate()[1].decode()
    assert process.returncode == 0, said
    assert "error" not in said.lower()
    assert "Exception ignored" not in said


def test_dates_are_dates_and_said_so(shoal, people):
    done = shoal("anonymize", "people.csv", "--quasi", "birth,born", "--k", "3")
    assert done.returncode == 0, done.stderr
    assert "column 'birth': read as dates" in done.stderr
    assert "column 'born': read as dates of the form %d.%m.%Y" in done.stderr
    cells = [line.split(",") for line in done.stdout.splitlines()[1:]]
    assert any(row[0].startswith("199") for row in cells)  # a year, not *


def test_types_are_declared_on_the_command_line(shoal, tmp_path):
    (tmp_path / "x.csv").write_text("born,n\n" + "01/02/1990,007\n03/04/1990,007\n" * 3)
    done = shoal(
        "anonymize",
        "x.csv",
        "--quasi",
        "born,n",
        "--type",
        "born=date:%d/%m/%Y",
        "n=int",
        "--hierarchy",
        "born=calendar",
        "--k",
        "3",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(set(done.stdout.split())) == ["1990-02-01,7", "1990-04-03,7", "born,n"]
    bad = shoal("anonymize", "x.csv", "--quasi", "born", "--type", "born=date:%m/%d/%y", "--k", "3")
    assert bad.returncode == 3
    assert "6 values are not of type date (%m/%d/%y); first: row 1, 2, 3, 4, 5" in bad.stderr


def test_types_are_declared_in_the_policy(shoal, tmp_path):
    (tmp_path / "x.csv").write_text("born\n" + "01/02/1990\n03/04/1990\n" * 3)
    (tmp_path / "p.yaml").write_text(
        'columns: {born: {role: quasi, type: date, format: "%d/%m/%Y"}}\n'
        "views: {r: {show: [born], promises: [{use: k-anonymity, k: 3}]}}\n"
    )
    done = shoal("anonymize", "x.csv", "--policy", "p.yaml")
    assert done.returncode == 0, done.stderr
    assert sorted(set(done.stdout.split())) == ["1990-02-01", "1990-04-03", "born"]
