"""``shoal compare``: every method on one table, verified, with the frontier marked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from shoal.cli import main
from shoal.core.errors import UsageError
from shoal.core.hierarchy.range import Range
from shoal.core.schema import Schema
from shoal.promises.l_diversity import LDiversity
from shoal.release.compare import compare
from shoal.tables import TABLE_METHODS, Grouping, TableMethod
from shoal.tables.mondrian import Mondrian


def people(n: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "sex": random.choice(["F", "M"], n),
            "ill": random.choice(["flu", "cold", "gout"], n),
        }
    )


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return int(end.value.code or 0)


def test_columns_add_up_to_the_loss_and_are_pictured():
    found = compare(people(), Schema.build(quasi={"age": None, "sex": None}), methods=["local", "mondrian"], ks=[3])
    for row in found.rows:
        assert list(row.columns) == ["age", "sex"]
        assert sum(row.columns.values()) / 2 == pytest.approx(row.gcp)
    assert found.by_column().values == [list(row.columns.values()) for row in found.rows]
    page = found.page("t")
    assert "Loss against risk" in page
    assert "Loss by column" in page


def test_every_method_is_compared_and_the_frontier_is_not_beaten():
    table = people()
    schema = Schema.build(quasi={"age": Range(), "sex": None}, sensitive=["ill"])
    told = []
    found = compare(table, schema, ks=[2, 6], promises=[LDiversity(2, "ill")], progress=lambda s, w: told.append(s))
    assert {r.method for r in found.rows} == set(TABLE_METHODS.names())
    assert told[0] == 0
    assert told[-1] == 1
    assert found.people == 60
    assert all(0 <= r.gcp <= 1 and r.worst <= 1 / r.k for r in found.rows)
    best = [r for r in found.rows if r.frontier]
    assert best
    for row in best:
        assert not [r for r in found.rows if r.gcp < row.gcp and r.risk < row.risk]


def test_an_unreachable_k_is_a_row_with_a_reason():
    schema = Schema.build(quasi={"age": Range()})
    (row,) = compare(people(5), schema, methods=["mondrian"], ks=[9]).rows
    assert row.gcp is None
    assert "cannot be reached" in row.note


def test_the_command_prints_a_table_and_draws(tmp_path: Path, capsys):
    file, page, picture = tmp_path / "people.csv", tmp_path / "out.html", tmp_path / "out.svg"
    people().write_csv(file)
    words = ["compare", str(file), "--quasi", "age,sex", "--methods", "mondrian,datafly", "--k", "2,5"]
    assert run(*words, "--report", str(page)) == 0
    out = capsys.readouterr().out
    assert out.count("mondrian") == 2
    assert "datafly" in out
    assert "<svg" in page.read_text()
    assert run(*words, "--report", str(picture), "--json") == 0
    assert picture.read_text().startswith("<svg")
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["k"] for r in rows] == [2, 5, 2, 5]
    drawn = re.findall(r'<g [^>]*data-chart="(\w+)"', picture.read_text())
    assert drawn == ["frontier", "columns"]
    weighed = people().with_columns(w=pl.lit(3.0))
    weighed.write_csv(file)
    assert run(*words, "--sampling-weight", "w", "--report", str(picture)) == 0
    assert re.findall(r'<g [^>]*data-chart="(\w+)"', picture.read_text()) == [*drawn, "population"]


@pytest.mark.parametrize(
    "words",
    [["--k", "two"], ["--methods", "guess"], ["--report", "out.pdf"], ["--k", "0"]],
)
def test_wrong_words_are_usage_errors(tmp_path: Path, words, capsys):
    file = tmp_path / "people.csv"
    people().write_csv(file)
    assert run("compare", str(file), "--quasi", "age", *words) == 2
    assert "hint" in capsys.readouterr().err or words[0] == "--report"


def test_a_method_with_a_parameter_without_default_is_skipped_with_a_note(monkeypatch):
    class Needy(TableMethod, frozen=True, tag="needy"):
        size: int

        def form(self, table, promises, *, seed=0, progress=None):
            return Grouping(np.zeros(table.size, np.int32))

    plugin = SimpleNamespace(name="needy", load=lambda: Needy)
    monkeypatch.setattr(TABLE_METHODS, "_plugins", [plugin])
    schema = Schema.build(quasi={"age": Range()})
    found = compare(people(20), schema, ks=[2])
    assert [r.note for r in found.rows if r.method == "needy"] == [
        "skipped: it needs `size`, so name it with its parameters"
    ]
    assert all(r.gcp is not None for r in found.rows if r.method != "needy")
    named = compare(people(20), schema, methods=[Needy(size=3), Mondrian(tries=3)], ks=[2])
    assert [r.method for r in named.rows] == ["needy size=3", "mondrian tries=3"]


def test_further_promises_a_register_and_the_population_are_compared(tmp_path, capsys):
    """--promise and --register hold for every release; --sampling-weight shows the risk among all people."""
    table = people(80).with_columns(w=pl.Series([5] * 80))
    table.write_csv(tmp_path / "p.csv")
    others = [people(80).select("age", "sex"), people(400).select("age", "sex")]
    pl.concat(others).write_csv(tmp_path / "register.csv")
    words = ["compare", str(tmp_path / "p.csv"), "--quasi", "age,sex", "--sensitive", "ill", "--k", "3"]
    words += ["--methods", "local,mondrian", "--report", str(tmp_path / "c.html"), "--json"]
    words += ["--promise", "k-map:k=40", "--promise", "beta-likeness:beta=3:column=ill"]
    assert run(*words, "--register", str(tmp_path / "register.csv"), "--sampling-weight", "w") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["method"] for r in rows] == ["local", "mondrian"]
    assert all(0 < r["outside"] < r["risk"] for r in rows)  # five times as many people hide everybody better
    assert "Loss against risk in the population" in (tmp_path / "c.html").read_text()
    assert run(*words) == 2  # k-map without a register


def test_a_sampling_weight_is_one_of_a_person():
    table = people().with_columns(w=pl.lit(2), who=pl.int_range(60) // 2)
    schema = Schema.build(quasi={"age": None}, subject="who")
    with pytest.raises(UsageError, match="one of a person"):
        compare(table, schema, methods=["mondrian"], ks=[3], weight="w")
    found = compare(table, Schema.build(quasi={"age": None}), methods=["mondrian"], ks=[3], weight="w")
    kept = found.rows[0]
    assert kept.outside is not None
    assert "outside" in found.text()
    assert found.population().name == "population"
