"""A column that two options name is refused by every command: the second role would replace the first unsaid, and
whoever is a subject for one of them would leave in clear as a value of the other."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

from tests.cli.in_process import call

LONG, TABLE = "long.ndjson", "table.csv"
# a command line, and its options that name columns, each with one of its own
COMMANDS: dict[str, tuple[str, dict[str, str]]] = {
    "stream": (f"stream {LONG} --z 2 --window 1h", {"--time": "at", "--subject": "who", "--value": "site"}),
    "table": (
        f"anonymize {TABLE} --k 2",
        {"--quasi": "age", "--sensitive": "diag", "--plain": "note", "--subject": "who"},
    ),
    "growing": (f"anonymize {TABLE} --k 2 --append state", {"--quasi": "age", "--plain": "note", "--subject": "who"}),
    "wide curves": (
        f"anonymize {TABLE} --series --k 2 --p 2",
        {"--id": "who", "--quasi": "age", "--sensitive": "diag"},
    ),
    "long curves": (
        f"anonymize {LONG} --series --k 2 --p 2",
        {"--id": "who", "--time": "at", "--value": "watt", "--sensitive": "diag"},
    ),
    "lists": (
        "anonymize lists.parquet --series --k 2 --p 2",
        {"--id": "who", "--value": "watt", "--sensitive": "diag"},
    ),
    "measure": (f"measure {TABLE}", {"--quasi": "age", "--sensitive": "diag", "--subject": "who"}),
    "weights": (f"measure {TABLE}", {"--quasi": "age", "--sensitive": "diag", "--sampling-weight": "weight"}),
    "profile": (f"measure {LONG} --stream", {"--time": "at", "--subject": "who", "--value": "site"}),
    "verify": (f"verify {TABLE} --k 2 --l 2", {"--quasi": "age", "--sensitive": "diag", "--subject": "who"}),
    "verify curves": ("verify curves.csv --k 2 --p 2", {"--quasi": "age", "--sensitive": "diag"}),
    "verify stream": (
        f"verify {LONG} --original {LONG} --z 2 --window 1h",
        {"--quasi": "site", "--subject": "who", "--time": "at"},
    ),
    "compare": (
        f"compare {TABLE} --k 2 --methods mondrian",
        {"--quasi": "age", "--sensitive": "diag", "--subject": "who"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    at = tmp_path_factory.mktemp("roles")
    people = {"who": [f"SECRET{i % 8}" for i in range(40)], "diag": [f"d{i % 8}" for i in range(40)]}
    long = {**people, "at": range(40), "site": ["x", "y"] * 20, "watt": range(40)}
    pl.DataFrame(long).write_ndjson(at / LONG)
    table = pl.DataFrame({**people, "age": range(40), "note": ["n"] * 40, "weight": [2] * 40})
    table.write_csv(at / TABLE)
    pl.DataFrame({"who": range(9), "diag": ["d"] * 9, "watt": [[1, 2]] * 9}).write_parquet(at / "lists.parquet")
    curves = {"age": ["[1, 2]"] * 4, "diag": ["a", "b"] * 2, "group": [0] * 4, "pattern": ["a"] * 4}
    pl.DataFrame(curves).write_csv(at / "curves.csv")
    return at


CASES = [(name, *pair) for name, (_, roles) in COMMANDS.items() for pair in combinations(roles, 2)]


@pytest.mark.parametrize(("name", "one", "other"), CASES, ids=lambda word: word)
def test_a_column_with_two_roles_is_refused(name, one, other, folder, monkeypatch):
    monkeypatch.chdir(folder)
    line, roles = COMMANDS[name]
    shared = {**roles, other: roles[one]}
    before = {file.name for file in folder.iterdir()}
    done = call([*line.split(), *(word for pair in shared.items() for word in pair)], Path.cwd())
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"column {roles[one]!r} is declared twice" in done.stderr
    assert "hint: " in done.stderr
    assert not done.stdout
    assert {file.name for file in folder.iterdir()} == before
