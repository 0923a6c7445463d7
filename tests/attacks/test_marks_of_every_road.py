"""The law of marks over every command and every option that makes one say or leave something.

A new command, or a new option of one, fails here until it is listed: as a line that is run with a mark in every field
that its reader may not see, as a parameter that only changes what is computed, or with the name of the test that looks.
"""

from __future__ import annotations

import io
import shlex
import sys
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from shoal.cli import COMMANDS, build
from tests.attacks.test_marks import Marks, clean, clear, inputs, rows, run
from tests.attacks.test_marks_of_commands import CURVES as STREAM_OF_CURVES

__all__ = ["run"]  # a fixture
TESTS = Path(__file__).parents[1]
AGES = "--hierarchy age=range:0:120"
MARKET = "stream inputs/in.ndjson --policy policy.yaml --view market -o out.ndjson"
SITES = "inputs/in.ndjson --z 2 --window 1h --subject pid --value zip"
REFUSING = "view policy.yaml inputs/in.csv --role research"  # options that `anonymize` has an effect for
RESEARCH = "inputs/in.csv --policy policy.yaml --view research"
CURVES = "inputs/wide.csv --series --id id --quasi t0,t1,t2,t3,t4,t5 --k 6 --p 3"
MAPPED = "--promise k-map:k=3 --register inputs/clear.csv"
PEOPLE = "--quasi zip,age --sensitive diag --hierarchy zip=prefix:5"

# lines that run one after the other in one folder; in.* has a row that every promise withholds, clear.* has not
ROADS: dict[str, list[str]] = {
    "tables to files": [
        f"anonymize {RESEARCH} -o out.csv --report r.html --certificate c.json --json",
        "verify out.csv --policy policy.yaml --view research --certificate c.json --json",
        f"verify out.csv {PEOPLE} --k 3 --certificate c.json --public-key {'ab' * 32}",
        f"anonymize {RESEARCH} -o out.parquet --report r.json --cells struct --dry-run",
        f"anonymize {RESEARCH} -o kept.ndjson --report r.txt --keep-order",
    ],
    "tables to databases": [
        f"anonymize {RESEARCH} --into sqlite:out.db --table people",
        f"anonymize {RESEARCH} --into sqlite:out.db --table people --replace",
        f"anonymize {RESEARCH} --into duckdb:out.duckdb --table people",
    ],
    "a growing table": [
        f"anonymize inputs/clear.csv {PEOPLE} {AGES} --k 3 --append s.state --publish new -o new.csv",
        f"anonymize inputs/clear.csv {PEOPLE} {AGES} --k 3 --append s.state --publish new -o new.csv",
    ],
    "curves": [
        f"anonymize {CURVES} -o out.csv --representatives means.csv --report r.html",
        "attack out.csv inputs/wide.csv --representatives means.csv --json",
        f"anonymize {CURVES} -o out.ndjson --compact --sensitive s --l 2 --perturb --report r.json",
    ],
    "later rows": [
        f"anonymize {RESEARCH} -o out.csv --save-model m.model",
        "anonymize inputs/in.ndjson --model m.model -o new.csv --json",
    ],
    "earlier releases": [
        f"anonymize {RESEARCH} -o first.csv --k 6",
        f"anonymize {RESEARCH} -o out.csv --previous first.csv --waive earlier-release --report r.html",
        f"verify out.csv {PEOPLE} --k 3 --previous inputs/clear.parquet --json",
        "view policy.yaml inputs/in.csv --role research -o out.csv --previous first.csv --waive earlier-release",
    ],
    "a register": [
        f"anonymize inputs/clear.csv {PEOPLE} {MAPPED} -o out.csv",
        f"verify out.csv {PEOPLE} {MAPPED}",
        f"compare inputs/clear.csv {PEOPLE} {MAPPED} --k 2 --methods mondrian --sampling-weight pay --report c.html",
    ],
    "regions": [f"anonymize {RESEARCH} --memory 400MB -o out.csv --report r.html"],
    "views": [
        "view policy.yaml inputs/clear.csv --role desk",
        "view policy.yaml inputs/clear.csv --role desk -o out.csv --keep-order --dry-run",
        "view policy.yaml inputs/clear.csv --role house -o out.parquet",
        "view policy.yaml inputs/clear.csv --role desk --into sqlite:out.db --table desk",
        "view policy.yaml inputs/clear.csv --role desk --into sqlite:out.db --table desk --replace",
        "view policy.yaml inputs/in.csv --role research -o out.parquet --report r.html --cells struct --json",
        "view policy.yaml inputs/in.ndjson --role market -o out.ndjson",
        f"{REFUSING} --memory 400MB -o out.csv",
        f"{REFUSING} --engine spark -o out.csv",
        f"{REFUSING} --register inputs/clear.csv -o out.csv",
    ],
    "streams": [
        f"{MARKET} --also held=h.ndjson --verify 1 --withheld w.ndjson --report r.html --json",
        f"{MARKET} --snapshot s.snap --checkpoint 1s",
        "stream inputs/in.csv --policy policy.yaml --view held -o out.csv --report r.txt --verify .5",
        "verify out.ndjson --original inputs/in.ndjson --quasi zip --subject pid --time time --z 2 --window 1h",
    ],
    "pages and figures of a stream": [
        f"{MARKET} --metrics :0 --watch --figures figures --figures-every 1m",
        "stream inputs/curves.csv --policy curves.yaml -o out.csv --metrics :0 --watch --report c.html --trust-times",
    ],
    "streams without a policy": [
        f"stream {SITES} --hierarchy path --noise .5 --synthetic s.txt --report r.json -o out.ndjson",
        f"stream {SITES} --goal-k 2 --goal-p .5 --every 1m --output-format csv -o out.csv",
        f"stream {SITES} --strict",
    ],
    "what is measured": [
        "measure inputs/in.csv --quasi zip,age --sensitive diag --subject pid --special 2 --json",
        "measure inputs/in.csv --quasi zip,age --sampling-weight pay",
        "measure inputs/in.csv --quasi zip,age --register inputs/clear.csv",
        "measure inputs/in.csv --stream --subject pid --value zip --out profile --json",
        "attack inputs/in.csv inputs/clear.csv --on zip,age --json",
        "attack inputs/in.csv inputs/clear.csv --on zip,age --policy policy.yaml",
        f"verify inputs/in.csv {PEOPLE} --k 3 --l 2",
        "compare inputs/in.csv --quasi age --methods mondrian --k 2 --learn diag --report c.html --json",
    ],
    "what is tuned and planned": [
        "tune policy.yaml inputs/in.csv --view research --methods mondrian --k 3,4 --report t.html --json",
        "tune policy.yaml inputs/in.csv --view market --z 2,3 --window 1h --report t.svg",
        "plan --exposed inputs/shares.csv --column p --users 100 --samples 50 --json",
    ],
    "policies": [
        "init inputs/in.csv",
        "init inputs/in.csv --ask -o asked.yaml",
        "check policy.yaml inputs/in.csv --json",
        "check policy.yaml inputs/clear.csv --together 3",
        "explain policy.yaml --attacks",
        "explain policy.yaml --json",
    ],
    "keys and tokens": [
        "keys new default --ring ring.json",
        "keys forget-person default --vault v.db --ring ring.json",
        "keys list --ring ring.json",
        "reveal policy.yaml --role desk --column card --audit audit.ndjson",
    ],
}
# options that only say how something is read or computed: they open no file, page or line to write on
PARAMETERS = """
    --policy --view --quasi --hierarchy --sensitive --plain --subject --weight --loss --k --l --t --p --promise --id
    --series --time --value --every --missing --method --effort --set --seed --type --separator --z --window --unit
    --late --tuner --z0 --exact --format --keys --flush --again --trust-times --follow --methods --max-loss --max-risk
    --max-delay --delay --rows --together --threshold --on --attributes --rate --exponent --classes --windows --goal
    --epoch --role --column --ring --users --samples --at-most
"""
# roads that need more than a line: the test that looks for marks there
ELSEWHERE = {
    "anonymize --engine": "spark/test_spark_marks.py::test_a_table_and_a_stream_on_spark",
    "serve plan": "sql/test_marks_in_databases.py::test_roles_of_a_database",
    "serve apply": "sql/test_marks_in_databases.py::test_roles_of_a_database",
    "serve status": "sql/test_marks_in_databases.py::test_roles_of_a_database",
    "serve destroy": "sql/test_marks_in_databases.py::test_roles_of_a_database",
    "serve run": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "serve pause": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "serve resume": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "serve reload": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "connect load": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "connect save": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "consume": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "replay": "kafka/test_marks_on_a_broker.py::test_a_service_from_its_source_to_its_consumers",
    "studio": "web/test_studio_gate.py::test_what_is_taken_away_holds_no_hidden_value",
}
NO_RECORDS = {
    "policy": "writes the schema of policies",
    "generate": "invents its people",
    "experiment": "computes on invented or public data",
    "demo": "invents its people",
    "warm": "compiles",
}


@cache
def options(command: str) -> set[str]:
    found = build()[command].assemble_argument_collection()
    named = {n for a in found if a.parse and a.field_info.is_keyword_only for n in a.names if n.startswith("--")}
    return named - {"--help", "--version"}


def commands() -> Iterator[str]:
    """Every command, those of a group one by one."""
    for name, (place, _) in COMMANDS.items():
        if place.endswith(":app"):
            yield from (f"{name} {part}" for part in build()[name] if not part.startswith("-"))
        else:
            yield name


def said(command: str) -> set[str]:
    """The words of all lines of a command."""
    lines = [shlex.split(line) for road in ROADS.values() for line in road]
    return {"--output" if word == "-o" else word for words in lines if words[0] == command for word in words[1:]}


def test_every_command_is_under_the_law():
    run_here = {line.partition(" ")[0] for road in ROADS.values() for line in road}
    named = {road for road in ELSEWHERE if "--" not in road}
    assert sorted([*run_here, *named, *NO_RECORDS]) == sorted(commands())
    for place in ELSEWHERE.values():
        file, _, test = place.partition("::")
        assert f"def {test}(" in (TESTS / file).read_text(), place


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(NO_RECORDS) - {"serve", "connect", "studio"}))
def test_every_option_is_under_the_law(command):
    elsewhere = {road.partition(" ")[2] for road in ELSEWHERE if road.startswith(f"{command} ")}
    if command not in ELSEWHERE:
        assert not options(command) - said(command) - {*PARAMETERS.split()} - elsewhere, (
            "does it write or say something? list it"
        )


@pytest.fixture
def pages(monkeypatch) -> dict[str, bytes]:
    """What the pages beside a run said at its end."""
    from shoal.runtime.kafka.serve.metrics import Page
    from shoal.web.live import LivePage, Told, live

    seen: dict[str, bytes] = {}
    close_page, close_live = Page.close, LivePage.close

    def last_metrics(page: Page) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics", timeout=30) as answer:
            seen["metrics"] = answer.read()
        close_page(page)

    def last_page(page: LivePage) -> None:
        told = Told(page.board)
        told.look()
        seen["live"] = live(page.board).encode() + told.words
        close_live(page)

    monkeypatch.setattr(Page, "close", last_metrics)
    monkeypatch.setattr(LivePage, "close", last_page)
    return seen


def curves(marks: Marks) -> pl.DataFrame:
    return pl.DataFrame(
        [{"id": marks.text(), "s": 10 * n, **{f"t{i}": (n % 3) + i for i in range(6)}} for n in range(12)]
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """Inputs with marks, and more of them on standard input."""
    marks = Marks()
    (tmp_path / "inputs").mkdir(exist_ok=True)
    inputs(tmp_path, [clear(row) for row in rows(marks)])
    for file in list((tmp_path / "inputs").iterdir()):
        file.rename(file.with_stem("clear"))
    inputs(tmp_path, rows(marks))
    curves(marks).write_csv(tmp_path / "inputs" / "wide.csv")
    (tmp_path / "curves.yaml").write_text(STREAM_OF_CURVES)
    people = [(marks.text(), marks.text()) for _ in range(12)]
    events = [
        {"at": 3600 * hour, "who": who, "kwh": float(number % 3 + hour % 2), "diag": "ab"[number % 2], "note": note}
        for hour in range(9)
        for number, (who, note) in enumerate(people)
    ]
    pl.DataFrame(events).write_csv(tmp_path / "inputs" / "curves.csv")
    shares = pl.DataFrame({"p": [0.5, 0.1, 0.2], "site": [marks.text() for _ in range(3)]})
    shares.write_csv(tmp_path / "inputs" / "shares.csv")
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{marks.text()}\n" for _ in range(20))))
    monkeypatch.setenv("SHOAL_KEY_CERTIFICATE", "cd" * 32)
    return tmp_path


# these may be refused: then the law is about what is said
REFUSED = (
    "verify",
    "check",
    "attack",
    "reveal",
    "init",
    "keys forget-person",
    f"stream {SITES} --strict",
    f"{REFUSING} --",
)


@pytest.mark.parametrize("road", ROADS)
def test_no_mark_is_said_or_left(road, run, folder, pages, monkeypatch):
    monkeypatch.setattr("shoal.release.regional.choose.PER_ROW", 20_000_000)
    monkeypatch.setattr("shoal.release.regional.plan.FEWEST", 6)
    for line in ROADS[road]:
        run(*shlex.split(line), code=None if line.startswith(REFUSED) else 0)
        assert ("--metrics" in line, "--watch" in line) == ("metrics" in pages, "live" in pages)
        clean(pages, line)
        pages.clear()


def test_the_law_can_fail(run, folder):
    """A mark where a reader may see it is found: in clear, packed, and said."""
    (folder / "open.yaml").write_text("columns: {name: {role: plain, type: str}}\nviews: {all: {show: everything}}\n")
    for name in ("out.csv", "out.parquet", "out.ndjson"):
        with pytest.raises(AssertionError, match=f"{name}.* holds a mark"):
            run("view", "open.yaml", "inputs/clear.csv", "--role", "all", "-o", name)
        (folder / name).unlink()
    with pytest.raises(AssertionError, match="stdout holds a mark"):
        run("view", "open.yaml", "inputs/clear.csv", "--role", "all")
