"""The example plug-ins, installed as another package would be: policies name them, and they keep the laws."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin"
LAWS = """
from shoal.core.hierarchy import HIERARCHIES
from shoal.masks import MASKS
from shoal.promises import PROMISES
from shoal.series import SERIES_METHODS
from shoal.streams import STREAM_METHODS
from shoal.tables import TABLE_METHODS
from shoal.testing import *

check_hierarchy(HIERARCHIES.decode("weekday"))
check_mask(MASKS.decode("initials"))
check_promise(PROMISES.decode({"use": "spread", "least": 4, "column": "pay"}), range(9))
check_table_method(TABLE_METHODS.decode("runs"))
check_stream_method(STREAM_METHODS.decode({"use": "burst", "size": 20}))
check_series_method(SERIES_METHODS.decode("heights"))
"""
COMMANDS = """
import sys
from shoal.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as end:
        if end.code:
            sys.exit(f"{line}: {end.code}")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> str:
    """``PYTHONPATH`` with the installed example first."""
    target = tmp_path_factory.mktemp("site")
    words = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    made = subprocess.run(
        [sys.executable, "-m", "pip", "install", *words, "--target", str(target), str(EXAMPLE)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return os.pathsep.join([str(target), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture
def folder(tmp_path) -> Path:
    """The folder of the README, with its data and policies."""
    for file in (*EXAMPLE.glob("*.csv"), *EXAMPLE.glob("*.yaml")):
        shutil.copy(file, tmp_path)
    return tmp_path


def test_the_laws_hold_for_the_example_plugins(installed):
    with_plugins = {**os.environ, "PYTHONPATH": installed}
    done = subprocess.run([sys.executable, "-c", LAWS], env=with_plugins, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_the_readme_says_runs(installed, folder):
    """Policies that name the plug-ins are released and accepted by the verifier."""
    lines = re.findall(r"^shoal (.+)$", (EXAMPLE / "README.md").read_text(), re.M)
    assert {line.split()[0] for line in lines} == {"anonymize", "verify", "stream"}
    # one process for all: what is asked is that it finds the package, and each would load everything anew
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *lines],
        cwd=folder, env={**os.environ, "PYTHONPATH": installed}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    visits = pl.read_csv(folder / "visits.csv")
    table = pl.read_csv(folder / "released.csv")
    assert table.height == visits.height
    assert set(table["doctor"]) == {"A. L.", "M. S."}
    assert set(table["day"]) <= {*visits["day"], "workday", "weekend", "*"}
    groups = table.group_by("day", "age").agg(pl.len(), width=pl.col("pay").max() - pl.col("pay").min())
    assert groups["len"].min() >= 3
    assert groups["width"].min() >= 20
    stream = pl.read_ndjson(folder / "released.ndjson")
    assert stream.columns == ["day", "age", "doctor"]
    assert stream.height == visits.height
    assert stream.group_by("day", "age").len()["len"].min() >= 3
    assert pl.read_csv(folder / "envelopes.csv").group_by("group").len()["len"].min() >= 5


def test_a_foreign_promise_is_judged_by_its_definition(shoal_process, installed, folder):
    pl.read_csv(folder / "visits.csv").drop("who").with_columns(day=pl.lit("*"), age=pl.lit("*"), pay=7).write_csv(
        folder / "flat.csv"
    )
    done = shoal_process("verify", "flat.csv", "--policy", "policy.yaml", "--view", "table", PYTHONPATH=installed)
    assert done.returncode == 1
    assert "spread: broken in 1 of 1 groups; asked 20, reached 0" in done.stdout + done.stderr


def test_without_the_package_its_names_are_unknown(shoal_process, folder):
    done = shoal_process("anonymize", "visits.csv", "--policy", "policy.yaml", "--view", "table", "-o", "out.csv")
    assert done.returncode == 2
    assert "there is no hierarchy called 'weekday'" in done.stderr
    assert not (folder / "out.csv").exists()
