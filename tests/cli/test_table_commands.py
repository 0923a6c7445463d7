"""init, anonymize, verify, measure, attack, demo: the whole job of a data steward, and every way it can go wrong."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from shoal.datasets.hospital import hospital

QUASI = ("--quasi", "zip,sex,age", "--hierarchy", "zip=prefix:5")


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    file = tmp_path / "patients.csv"
    hospital(400, seed=3).write_csv(file)
    return file


def test_a_csv_becomes_a_verified_release_and_a_report(shoal, patients, tmp_path):
    done = shoal(
        "anonymize",
        "patients.csv",
        *QUASI,
        "--sensitive",
        "diag",
        "--k",
        "4",
        "--l",
        "2",
        "-o",
        "out.csv",
        "--report",
        "r.html",
    )
    assert done.returncode == 0, done.stderr
    assert "VERIFIED" in done.stderr
    assert done.stdout == ""
    released = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    assert released.columns == ["zip", "sex", "age", "diag"]
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    checked = shoal("verify", "out.csv", "--quasi", "zip", "sex", "age", "--sensitive", "diag", "--k", "4", "--l", "2")
    assert checked.returncode == 0, checked.stderr
    assert "4-anonymity: kept" in checked.stdout


def test_verify_fails_with_exit_code_1_when_the_promise_is_broken(shoal, patients):
    broken = shoal("verify", "patients.csv", *QUASI[:2], "--k", "2")
    assert broken.returncode == 1
    assert "broken in" in broken.stdout


def test_a_policy_is_drafted_and_used(shoal, patients, tmp_path):
    drafted = shoal("init", "patients.csv", "-o", "policy.yaml")
    assert drafted.returncode == 0, drafted.stderr
    assert "alone" in drafted.stderr
    done = shoal("anonymize", "patients.csv", "--policy", "policy.yaml", "-o", "out.parquet", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] is True
    checked = shoal("verify", "out.parquet", "--policy", "policy.yaml", "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["kept"] is True


def test_data_go_through_standard_input_and_output(shoal, patients):
    done = shoal("anonymize", "-", *QUASI, "--k", "3", stdin=patients.read_text())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "zip,sex,age"
    assert len(done.stdout.splitlines()) == 401


def test_compressed_files_and_parquet_and_ndjson_give_the_same_release(shoal, patients, tmp_path):
    frame = pl.read_csv(patients, schema_overrides={"zip": pl.String})
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(patients.read_bytes()))
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_ndjson(tmp_path / "a.ndjson")
    outputs = [
        shoal("anonymize", name, "--quasi", "sex,age", "--k", "3", "--seed", "1").stdout
        for name in ("patients.csv", "a.csv.gz", "a.parquet", "a.ndjson")
    ]
    assert len(set(outputs)) == 1
    assert outputs[0]


def test_a_dry_run_writes_nothing(shoal, patients, tmp_path):
    before = sorted(tmp_path.iterdir())
    done = shoal("anonymize", "patients.csv", *QUASI, "--k", "3", "-o", "out.csv", "--report", "r.html", "--dry-run")
    assert done.returncode == 0
    assert sorted(tmp_path.iterdir()) == before


def test_measure_and_attack_say_what_is_at_risk(shoal, patients):
    raw = shoal("measure", "patients.csv", *QUASI[:2], "--sensitive", "diag", "--json")
    assert raw.returncode == 0, raw.stderr
    shoal("anonymize", "patients.csv", *QUASI, "--k", "5", "-o", "out.csv")
    before = json.loads(shoal("attack", "patients.csv", "patients.csv", "--on", "zip,sex,age", "--json").stdout)
    after = json.loads(shoal("attack", "out.csv", "patients.csv", "--on", "zip,sex,age", "--json").stdout)
    assert before["unique"] > 300
    assert after["unique"] == 0
    assert after["smallest"] >= 5


def test_two_releases_of_the_same_people_are_intersected(shoal, tmp_path):
    people = pl.DataFrame({"p": [1, 2, 3, 4], "age": ["a", "a", "b", "b"]})
    people.write_csv(tmp_path / "one.csv")
    people.with_columns(age=pl.Series(["a", "b", "b", "a"])).write_csv(tmp_path / "two.csv")
    done = shoal("verify", "two.csv", "--quasi", "age", "--k", "2", "--previous", "one.csv", "--subject", "p")
    assert done.returncode == 0, done.stderr
    assert "4 are alone" in done.stdout


def test_a_release_that_an_earlier_one_undoes_is_refused(shoal, tmp_path):
    people = pl.DataFrame({"age": [20, 21, 22, 23], "diag": ["flu", "cold", "flu", "asthma"]})
    people.write_csv(tmp_path / "t.csv")
    pl.DataFrame({"age": ["20", "20", "[21, 23]"], "diag": ["flu", "gout", "cold"]}).write_csv(tmp_path / "one.csv")
    asked = ("anonymize", "t.csv", "--quasi", "age", "--sensitive", "diag", "--k", "4", "--previous", "one.csv")
    done = shoal(*asked, "-o", "out.csv")
    assert done.returncode == 1
    assert "beside one.csv, by diag reaches" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    waived = shoal(*asked, "-o", "out.csv", "--waive", "earlier-release")
    assert waived.returncode == 0, waived.stderr
    assert "waived" in waived.stderr


def test_demo_shows_the_main_job_and_says_where_the_report_is(shoal, tmp_path):
    done = shoal("demo", "--rows", "500")
    assert done.returncode == 0, done.stderr
    assert "VERIFIED" in done.stdout
    assert (tmp_path / "out" / "report.html").is_file()


BAD = {
    "missing file": (("anonymize", "nowhere.csv", "--quasi", "a", "--k", "2"), 3, "no such file"),
    "unknown column": (("anonymize", "patients.csv", "--quasi", "zipp", "--k", "2"), 2, "no column 'zipp'"),
    "k above the crowd": (("anonymize", "patients.csv", "--quasi", "age", "--k", "4000"), 1, "cannot be reached"),
    "k of zero": (("anonymize", "patients.csv", "--quasi", "age", "--k", "0"), 2, "at least 1"),
    "no promise": (("anonymize", "patients.csv", "--quasi", "age"), 2, "no promise"),
    "wrong option": (("anonymize", "patients.csv", "--quais", "age"), 2, "--quais"),
    "wrong type": (("anonymize", "patients.csv", "--quasi", "age", "--k", "many"), 2, "k"),
    "wrong delimiter": (("anonymize", "semicolon.csv", "--quasi", "a", "--k", "2"), 3, "separator"),
    "duplicate names": (("anonymize", "twice.csv", "--quasi", "a", "--k", "2"), 3, "have the same name"),
    "not UTF-8": (("anonymize", "latin.csv", "--quasi", "a", "--k", "2"), 3, "line 2"),
    "empty file": (("anonymize", "empty.csv", "--quasi", "a", "--k", "2"), 3, "empty"),
    "truncated Parquet": (("anonymize", "cut.parquet", "--quasi", "age", "--k", "2"), 3, "parquet"),
    "unknown method": (("anonymize", "patients.csv", "--quasi", "age", "--k", "2", "--method", "magic"), 2, "magic"),
    "no such policy": (("anonymize", "patients.csv", "--policy", "none.yaml"), 3, "policy"),
    "bad policy": (("anonymize", "patients.csv", "--policy", "bad.yaml"), 2, "bad.yaml, line 3"),
    "policy with an unknown column": (
        ("anonymize", "patients.csv", "--policy", "unknown.yaml"),
        2,
        "haight",
    ),
    "output folder missing": (
        ("anonymize", "patients.csv", "--quasi", "age", "--k", "2", "-o", "no/where.csv"),
        3,
        "cannot be written",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_screen_with_place_and_hint_and_writes_nothing(shoal, patients, tmp_path, case):
    (tmp_path / "semicolon.csv").write_text("a;b\n1;2\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "latin.csv").write_bytes(b"a,b\nM\xfcller,2\n")
    (tmp_path / "empty.csv").write_text("")
    pl.read_csv(patients).write_parquet(tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:2000])
    (tmp_path / "bad.yaml").write_text("dataset: x\ncolumns:\n  age: {role: quazi}\n")
    (tmp_path / "unknown.yaml").write_text(
        "columns: {haight: {role: quasi}}\nviews: {v: {show: [haight], promises: [{use: k-anonymity, k: 2}]}}\n"
    )
    words, code, expected = BAD[case]
    before = sorted(tmp_path.iterdir())
    done = shoal(*words, *(() if "-o" in words else ("-o", "out.csv")))
    assert done.returncode == code, done.stderr
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) < 25
    assert sorted(tmp_path.iterdir()) == before


def test_an_all_null_column_is_released_as_missing(shoal, tmp_path):
    (tmp_path / "null.csv").write_text("a,b\n" + "1,\n" * 4)
    done = shoal("anonymize", "null.csv", "--quasi", "a,b", "--k", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a,b\n" + "1,\n" * 4


def test_an_unforeseen_error_quotes_no_value(shoal, tmp_path):
    (tmp_path / "broken.py").write_text(
        "import shoal.release.table\n"
        "def no(*a, **k): raise KeyError('Mrs Secret')\n"
        "shoal.release.table.TableJob.run = no\n"
        "from shoal.cli import main\n"
        "main()\n"
    )
    (tmp_path / "a.csv").write_text("a\n1\n1\n")
    done = subprocess.run(
        [sys.executable, "broken.py", "anonymize", "a.csv", "--quasi", "a", "--k", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "Secret" not in done.stderr
    assert "KeyError" in done.stderr


def test_interrupting_leaves_no_half_file(tmp_path):
    hospital(200_000, seed=1).write_csv(tmp_path / "big.csv")
    words = ["anonymize", "big.csv", "--quasi", "zip,sex,age,ins_co", "--k", "2", "-o", "out.csv"]
    with subprocess.Popen(
        [sys.executable, "-m", "shoal", *words], cwd=tmp_path, stderr=subprocess.DEVNULL, env=os.environ
    ) as child:
        time.sleep(2.0)
        child.send_signal(signal.SIGINT)
        child.wait(timeout=600)
    names = {p.name for p in tmp_path.iterdir()}
    assert names <= {"big.csv", "out.csv"}
    if "out.csv" in names:  # it was faster than the signal: then the file is whole
        assert pl.read_csv(tmp_path / "out.csv", infer_schema=False).height == 200_000


def test_help_teaches_and_every_command_has_one(shoal):
    from shoal.cli import COMMANDS

    top = shoal("--help")
    assert top.returncode == 0
    for name in COMMANDS:
        assert name in top.stdout
        page = shoal(name, "--help")
        assert page.returncode == 0, name
        assert "Usage: shoal " + name in page.stdout


@pytest.mark.parametrize("left", ["best", "nothing"])
def test_ctrl_c_leaves_the_best_groups_or_nothing_by_choice(shoal, patients, tmp_path, left):
    reader, terminal = os.openpty()  # the bar says when all rows have a group
    words = ["--k", "4", "--effort", "100000000", "--set", f"interrupted={left}", "-o", "released.csv"]
    with subprocess.Popen(
        [sys.executable, "-m", "shoal", "anonymize", "patients.csv", *QUASI, *words], cwd=tmp_path, stderr=terminal
    ) as process:
        seen = b""
        while b"loss" not in seen:
            seen += os.read(reader, 4096)
        process.send_signal(signal.SIGINT)
        code = process.wait(600)
    os.close(terminal)
    os.close(reader)
    assert (tmp_path / "released.csv").exists() == (left == "best")
    assert code == (0 if left == "best" else 130)
    if left == "best":
        assert shoal("verify", "released.csv", "--quasi", "zip,sex,age", "--k", "4").returncode == 0


def test_a_parameter_of_the_method_is_set_by_name(shoal, patients):
    done = shoal("anonymize", "patients.csv", *QUASI, "--k", "4", "--method", "mondrian", "--set", "supress=0.1")
    assert done.returncode == 2
    assert "supress" in done.stderr
    assert shoal("anonymize", "patients.csv", *QUASI, "--k", "4", "--set", "suppress=2").returncode == 2
