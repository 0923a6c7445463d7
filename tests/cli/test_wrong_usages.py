"""What people do wrong, as a table: files, options, policies, streams and Python arguments.

Each gets its exit code, the place, a hint, and nothing is written; no value of a person is in the message.
"""
# ruff: noqa: E501 - a table is read by its lines

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli import main
from shoal.core.errors import ShoalError

SECRET = "Meier-Secret"
PEOPLE = "name,age,zip,diag\n" + "".join(f"{SECRET}-{n},{20 + n},1011{n % 4},{'fg'[n % 2]}\n" for n in range(24))
EVENTS = "".join(f'{{"time": {1577836800 + n}, "subject": "{SECRET}-{n % 3}", "value": "a.b"}}\n' for n in range(9))
POLICY = """
columns:
  name: identifier
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  diag: sensitive
views:
  research:
    show: [age, zip, diag]
    promises: [{use: k-anonymity, k: 2}]
  ward:
    show: [name, diag]
"""
VISITS = """
columns: {time: {role: time, unit: s}, subject: subject, value: {role: quasi, hierarchy: path}}
views:
  market:
    show: [time, value]
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: z-anonymity
"""
FILES: dict[str, str | bytes] = {
    "people.csv": PEOPLE,
    "events.ndjson": EVENTS,
    "p.yaml": POLICY,
    "visits.yaml": VISITS,
    "empty.csv": "",
    "header.csv": "name,age\n",
    "ragged.csv": f"name,age\n{SECRET},30\n{SECRET},31,7\n",
    "short.csv": f"name,age\n{SECRET},30\n{SECRET}\n",
    "quote.csv": f'name,age\n{SECRET} "x,30\n{SECRET},31\n',
    "open.csv": f'name,age\n"{SECRET},30\n{SECRET},31\n',
    "twice.csv": f"age,age\n{SECRET},31\n",
    "semicolon.csv": f"name;age\n{SECRET};30\n",
    "latin.csv": f"name,age\n{SECRET}\xe9,30\n".encode("latin-1"),
    "binary.csv": bytes(range(256)) * 4,
    "no.parquet": "PAR1 nothing",
    "no.csv.gz": b"\x1f\x8b\x08broken",
    "broken.ndjson": f'{{"name": "{SECRET}"}}\n{{"name": \n',
    "mixed.ndjson": f'{{"a": "{SECRET}"}}\n{{"a": {{"b": "{SECRET}"}}}}\n',
    "notes.txt": "nothing",
    "tree.csv": "leaf,top\na,A\nb,A\n",
    "release.csv": "age,zip,diag\n[20 29],1011*,f\n[20 29],1011*,g\n",
    "blocked/x": "",
}
POLICIES = {
    "no columns": "views: {r: {show: [age]}}\n",
    "no such role": "columns: {age: quasy}\nviews: {r: {show: [age]}}\n",
    "no such hierarchy": "columns: {age: {role: quasi, hierarchy: rnage}}\nviews: {r: {show: [age]}}\n",
    "no such field": "columns: {age: {role: quasi, tipe: int}}\nviews: {r: {show: [age]}}\n",
    "no such type": "columns: {age: {role: quasi, type: number}}\nviews: {r: {show: [age]}}\n",
    "a form without a type": "columns: {age: {role: quasi, format: '%d'}}\nviews: {r: {show: [age]}}\n",
    "a column nobody declared": "columns: {age: quasi}\nviews: {r: {show: [agee]}}\n",
    "no such mask": "columns: {age: quasi}\nviews: {r: {show: [age], masks: {age: blurr}}}\n",
    "a mask of a hidden column": "columns: {age: quasi, zip: quasi}\nviews: {r: {show: [age], masks: {zip: suppress}}}\n",
    "no such promise": "columns: {age: quasi}\nviews: {r: {show: [age], promises: [{use: k-anonimity, k: 2}]}}\n",
    "a promise without its number": "columns: {age: quasi}\nviews: {r: {show: [age], promises: [{use: k-anonymity}]}}\n",
    "k of nothing": "columns: {age: quasi}\nviews: {r: {show: [age], promises: [{use: k-anonymity, k: 0}]}}\n",
    "k as a text": "columns: {age: quasi}\nviews: {r: {show: [age], promises: [{use: k-anonymity, k: five}]}}\n",
    "l about a column nobody has": "columns: {age: quasi}\nviews: {r: {show: [age], promises: [{use: l-diversity, l: 2, column: diag}]}}\n",
    "no such method": "columns: {age: quasi}\nviews: {r: {show: [age], promises: [{use: k-anonymity, k: 2}], method: modrian}}\n",
    "nothing is shown": "columns: {age: quasi}\nviews: {r: {show: [], promises: [{use: k-anonymity, k: 2}]}}\n",
    "two subjects": "columns: {a: subject, b: subject, age: quasi}\nviews: {r: {show: [age]}}\n",
    "a tab": "columns:\n\tage: quasi\n",
    "not closed": "columns: {age: quasi\nviews: {}\n",
    "a list": "- age\n- zip\n",
    "nothing": "",
    "a key twice": "columns: {age: quasi, age: plain}\nviews: {r: {show: [age]}}\n",
    "a missing tree": "columns: {age: {role: quasi, hierarchy: {use: tree, file: nowhere.csv}}}\nviews: {r: {show: [age], promises: [{use: k-anonymity, k: 2}]}}\n",
    "a range upside down": "columns: {age: {role: quasi, hierarchy: {use: range, min: 9, max: 1}}}\nviews: {r: {show: [age]}}\n",
    "no such waiver": "columns: {age: quasi}\nviews: {r: {show: [age], waive: [everything], promises: [{use: k-anonymity, k: 2}]}}\n",
    "a wrong duration": "columns: {t: {role: time, late: soon}, s: subject, v: quasi}\nviews: {r: {show: [v]}}\n",
}  # fmt: skip


class Wrong(NamedTuple):
    """A command line, its exit code, and words that the message must have: the place, or what was expected."""

    line: str
    code: int
    words: str
    stdin: str = ""


K = "--quasi age --k 2 -o out.csv"
TABLES = [
    # files
    Wrong(f"anonymize nowhere.csv {K}", 3, "nowhere.csv: there is no such file"),
    Wrong(f"anonymize empty.csv {K}", 3, "empty.csv: the file is empty"),
    Wrong(f"anonymize ragged.csv {K}", 3, "ragged.csv, line 3"),
    Wrong(f"anonymize short.csv {K}", 3, "short.csv, line 3"),
    Wrong(f"anonymize quote.csv {K}", 3, "quote.csv, line 2"),
    Wrong(f"anonymize open.csv {K}", 3, "open.csv, line 2"),
    Wrong(f"anonymize twice.csv {K}", 3, "twice.csv, line 1: columns 1 and 2"),
    Wrong(f"anonymize semicolon.csv {K}", 3, "semicolon.csv, line 1"),
    Wrong(f"anonymize latin.csv {K}", 3, "latin.csv, line 2: not UTF-8"),
    Wrong(f"anonymize binary.csv {K}", 3, "binary.csv, line 2: not UTF-8"),
    Wrong(f"anonymize no.parquet {K}", 3, "no.parquet: cannot be read as parquet"),
    Wrong(f"anonymize no.csv.gz {K}", 3, "no.csv.gz: the compressed file is damaged"),
    Wrong(f"anonymize broken.ndjson {K}", 3, "broken.ndjson: cannot be read"),
    Wrong("anonymize mixed.ndjson --quasi a --k 2 -o out.csv", 3, "mixed.ndjson, record 2"),
    Wrong(f"anonymize notes.txt {K}", 2, "notes.txt: cannot tell the format"),
    Wrong(f"anonymize blocked {K}", 2, "blocked: there is no file to read"),
    Wrong(f"anonymize *.tsv {K}", 3, "*.tsv: there is no such file"),
    Wrong(f"anonymize *.* {K}", 2, "cannot tell the format"),
    Wrong(f"anonymize - {K}", 3, "-: the file is empty"),
    Wrong(f"anonymize - {K}", 3, "-, line 2", stdin="age,zip\n1\n"),
    Wrong("anonymize people.csv --quasi age --k 2 -o people.csv", 2, "people.csv: the output would replace"),
    Wrong("anonymize people.csv --quasi age --k 2 -o ./people.csv", 2, "the output would replace"),
    Wrong("anonymize people.csv --quasi age --k 2 -o nowhere/out.csv", 3, "nowhere/out.csv: cannot be written"),
    Wrong("anonymize people.csv --quasi age --k 2 -o out.pdf", 2, "out.pdf: cannot tell the format"),
    Wrong("anonymize people.csv --quasi age --k 2 -o out.xlsx", 2, "out.xlsx: workbooks are read"),
    Wrong("anonymize people.csv --quasi age --k 2 -o blocked", 2, "blocked: cannot tell the format"),
    Wrong(f"anonymize people.csv {K} --report r.pdf", 2, "r.pdf"),
    Wrong(f"anonymize people.csv {K} --report out.csv", 2, "out.csv: a report is a page, figures or a text"),
    Wrong("anonymize people.csv --quasi age --hierarchy age=range:0:120 --k 2 -o out.csv --append out.csv", 2, "two outputs have the same name"),
    Wrong("anonymize events.ndjson --quasi value --k 2 --separator ; -o out.csv", 2, "--separator: ndjson has no"),
    # options
    Wrong("anonymize people.csv --k 2 -o out.csv", 2, "--quasi: no quasi columns"),
    Wrong("anonymize people.csv --quasi age -o out.csv", 2, "no promise was asked for"),
    Wrong("anonymize people.csv --quasi agee --k 2 -o out.csv", 2, "there is no column 'agee'"),
    Wrong("anonymize people.csv --quasi age --k 0 -o out.csv", 2, "--k: k must be at least 1"),
    Wrong("anonymize people.csv --quasi age --k -3 -o out.csv", 2, "--k: k must be at least 1"),
    Wrong("anonymize people.csv --quasi age --k 5.5 -o out.csv", 2, "--k"),
    Wrong("anonymize people.csv --quasi age --k five -o out.csv", 2, "--k"),
    Wrong("anonymize people.csv --quasi age --k 1000 -o out.csv", 1, "1000-anonymity"),
    Wrong("anonymize people.csv --quasi age --l 2 -o out.csv", 2, "--l"),
    Wrong("anonymize people.csv --quasi age --sensitive age --k 2 -o out.csv", 2, "'age' is declared twice"),
    Wrong("anonymize people.csv --quasi age --sensitive diag --k 2 --l 9 -o out.csv", 1, "9"),
    Wrong("anonymize people.csv --quasi age --sensitive diag --k 2 --t 7 -o out.csv", 2, "t"),
    Wrong("anonymize people.csv --quasi age --hierarchy zip=prefix:5 --k 2 -o out.csv", 2, "'zip' is not in --quasi"),
    Wrong("anonymize people.csv --quasi age --hierarchy age=rnage --k 2 -o out.csv", 2, "rnage"),
    Wrong("anonymize people.csv --quasi age --hierarchy age --k 2 -o out.csv", 2, "--hierarchy: expected name=value"),
    Wrong("anonymize people.csv --quasi age --hierarchy age=range:a:b --k 2 -o out.csv", 2, "--hierarchy: expected a number"),
    Wrong("anonymize people.csv --quasi age --hierarchy age=range:9:1 --k 2 -o out.csv", 2, "min"),
    Wrong("anonymize people.csv --quasi zip --hierarchy zip=nowhere.csv --k 2 -o out.csv", 3, "nowhere.csv"),
    Wrong("anonymize people.csv --quasi zip --hierarchy zip=tree.csv --k 2 -o out.csv", 2, "knows none of 24 values"),
    Wrong("anonymize people.csv --quasi diag --hierarchy diag=calendar --k 2 -o out.csv", 2, "column 'diag': expected dates"),
    Wrong(f"anonymize people.csv {K} --method modrian", 2, "modrian"),
    Wrong(f"anonymize people.csv {K} --effort much", 2, "effort"),
    Wrong(f"anonymize people.csv {K} --effort much", 2, "found another word"),
    Wrong(f"anonymize people.csv {K} --loss age=much", 2, "for column 'age', found another word"),
    Wrong(f"anonymize people.csv {K} --weight age=0", 2, "column 'age': `weight` must be positive"),
    Wrong(f"anonymize people.csv {K} --at-most diag=1", 2, "only quasi columns are generalized"),
    Wrong("anonymize people.csv --model m --hierarchy zip=prefix:5", 2, "the model says which columns there are"),
    Wrong(f"anonymize people.csv {K} --set nothing=1", 2, "nothing"),
    Wrong(f"anonymize people.csv {K} --set nothing", 2, "--set: expected name=value"),
    Wrong(f"anonymize people.csv {K} --weight age=much", 2, "--weight: expected a number"),
    Wrong(f"anonymize people.csv {K} --weight zip=2", 2, "zip"),
    Wrong(f"anonymize people.csv {K} --weight age=-1", 2, "weight"),
    Wrong(f"anonymize people.csv {K} --waive everything", 2, "--waive: there is no risk"),
    Wrong(f"anonymize people.csv {K} --type age", 2, "--type: expected column=type"),
    Wrong(f"anonymize people.csv {K} --type age=number", 2, "type of column 'age'"),
    Wrong(f"anonymize people.csv {K} --type age=date:%Q", 2, "type of column 'age'"),
    Wrong(f"anonymize people.csv {K} --type zipp=int", 2, "--type: there is no column 'zipp'"),
    Wrong(f"anonymize people.csv {K} --type name=int", 3, "people.csv: column 'name': 24 values"),
    Wrong(f"anonymize people.csv {K} --separator ;", 2, "there is no column 'age'"),
    Wrong(f"anonymize people.csv {K} --separator ;;", 2, "--separator"),
    Wrong(f"anonymize people.csv {K} --cells struct", 2, "--cells: CSV has no typed cells"),
    Wrong(f"anonymize people.csv {K} --cells boxes", 2, "--cells"),
    Wrong(f"anonymize people.csv {K} --publish new", 2, "--publish"),
    Wrong(f"anonymize people.csv {K} --p 2", 2, "--p"),
    Wrong(f"anonymize people.csv {K} --seed -1", 2, "--seed"),
    Wrong(f"anonymize people.csv {K} --view research", 2, "--view: views are defined in a policy"),
    Wrong(f"anonymize people.csv {K} --plain name", 1, "'name'"),
    Wrong(f"anonymize people.csv {K} --certificate c.json", 2, "certificate"),
    Wrong(f"anonymize people.csv {K} --qausi zip", 2, "--qausi"),
    Wrong("anonymise people.csv", 2, "anonymise"),
    Wrong("anonymize", 2, "--data"),
    Wrong("anonymize people.csv --series --k 2 --p 2 -o out.csv", 3, "name"),
    Wrong("anonymize people.csv --series --k 2 -o out.csv", 2, "--series: curves need k and p"),
    Wrong("anonymize people.csv --policy p.yaml --quasi age -o out.csv", 2, "--quasi"),
    Wrong("anonymize people.csv --policy p.yaml --k 1 -o out.csv", 2, "--k"),
    Wrong("anonymize people.csv --policy p.yaml --view nobody -o out.csv", 2, "there is no view 'nobody'"),
    Wrong("anonymize people.csv --policy p.yaml --view ward -o out.csv", 2, "promises nothing"),
    Wrong("anonymize people.csv --policy p.yaml --type age=str -o out.csv", 2, "--type: the policy declares"),
    Wrong("anonymize people.csv --policy nowhere.yaml -o out.csv", 3, "nowhere.yaml"),
    Wrong("anonymize people.csv --policy people.csv -o out.csv", 2, "people.csv"),
    Wrong("anonymize header.csv --policy p.yaml -o out.csv", 2, "column"),
    # other commands
    Wrong("view p.yaml people.csv --role nobody -o out.csv", 2, "there is no view 'nobody'"),
    Wrong("view p.yaml nowhere.csv --role ward -o out.csv", 3, "nowhere.csv"),
    Wrong("verify release.csv --quasi age,zip -o out.csv", 2, "-o"),
    Wrong("verify release.csv --quasi age,zip", 2, "no promise to judge"),
    Wrong("verify release.csv --k 2", 2, "--quasi"),
    Wrong("verify release.csv --quasi height --k 2", 2, "there is no column 'height'"),
    Wrong("verify release.csv --quasi age --k 2 --original events.ndjson", 2, "--original"),
    Wrong("verify release.csv --quasi age --k 2 --previous people.csv", 2, "--previous"),
    Wrong("verify release.csv --quasi age --k 2 --type age=int", 2, "--type: has no effect on column 'age'"),
    Wrong("verify release.csv --quasi age --k 2 --certificate nowhere.json", 3, "nowhere.json"),
    Wrong("measure people.csv", 2, "--quasi: no quasi columns"),
    Wrong("measure people.csv --quasi height", 2, "there is no column 'height'"),
    Wrong("measure people.csv --quasi age --window 1h", 2, "--window: has no effect without --stream"),
    Wrong("measure people.csv --stream", 3, "there is no column 'time'"),
    Wrong("attack release.csv people.csv", 2, "--on: no columns to join on"),
    Wrong("attack release.csv people.csv --on name", 2, "there is no column 'name'"),
    Wrong("attack release.csv people.csv --on zip --policy visits.yaml", 2, "--policy: has no effect"),
    Wrong("compare people.csv --k 2", 2, "--quasi: no quasi columns"),
    Wrong("compare people.csv --quasi age --k two", 2, "--k: expected whole numbers"),
    Wrong("compare people.csv --quasi age --methods modrian", 2, "modrian"),
    Wrong("compare people.csv --quasi age --report out.pdf", 2, "--report: expected a name that ends"),
    Wrong("compare people.csv --quasi age --plain zip", 2, "--plain"),
    Wrong("init people.csv -o people.csv", 2, "people.csv: the output would replace"),
    Wrong("init nowhere.csv -o out.yaml", 3, "nowhere.csv"),
    Wrong("init people.csv --k 0 -o out.yaml", 2, "--k"),
    Wrong("init header.csv -o out.yaml", 3, "header: the table has no rows"),
    Wrong("check nowhere.yaml", 3, "nowhere.yaml"),
    Wrong("check p.yaml --rows 5", 2, "--rows: has no effect without data"),
    Wrong("check p.yaml nowhere.csv", 3, "nowhere.csv"),
    Wrong("check p.yaml people.csv --together 0", 2, "together must be at least 1"),
    Wrong("check p.yaml people.csv --threshold 7", 2, "--threshold"),
    Wrong("check p.yaml people.csv --rows -5", 2, "--rows"),
    Wrong("explain nowhere.yaml", 3, "nowhere.yaml"),
    Wrong("plan --z 0", 2, "z"),
    Wrong("plan --goal 7", 2, "goal"),
    Wrong("plan --users -1", 2, "users"),
    Wrong("plan --exposed nowhere.csv", 3, "nowhere.csv"),
    Wrong("plan --exposed people.csv", 2, "there is no column 'p'"),
    Wrong("generate nobody", 2, "nobody"),
    Wrong("demo --rows 1", 1, "5-anonymity cannot be reached"),
    # streams
    Wrong("stream events.ndjson -o out.ndjson", 2, "stream: nothing is promised"),
    Wrong("stream events.ndjson --z 2 -o out.ndjson", 2, "stream: nothing is promised"),
    Wrong("stream events.ndjson --z 2 --window soon -o out.ndjson", 2, "window"),
    Wrong("stream events.ndjson --z 0 --window 1h -o out.ndjson", 2, "--z"),
    Wrong("stream events.ndjson --z 2 --window -1h -o out.ndjson", 2, "window"),
    Wrong("stream events.ndjson --z 2 --window 1h --unit h -o out.ndjson", 2, "--unit"),
    Wrong("stream events.ndjson --z 2 --window 1h --late never -o out.ndjson", 2, "late"),
    Wrong("stream events.ndjson --z 2 --window 1h --value domain -o out.ndjson", 3, "'domain'"),
    Wrong("stream people.csv --z 2 --window 1h -o out.ndjson", 3, "there is no column 'time'"),
    Wrong("stream nowhere.ndjson --z 2 --window 1h -o out.ndjson", 3, "nowhere.ndjson"),
    Wrong("stream events.ndjson --z 2 --window 1h -o events.ndjson", 2, "would replace"),
    Wrong("stream events.ndjson --z 2 --window 1h -o out.parquet", 2, "out.parquet: a stream is written"),
    Wrong("stream events.ndjson --z 2 --window 1h --goal-p 0.5 -o out.ndjson", 2, "--goal-p: has no effect"),
    Wrong("stream events.ndjson --z 2 --window 1h --figures-every 1h -o out.ndjson", 2, "--figures-every"),
    Wrong("stream events.ndjson --z 2 --window 1h --hierarchy tre -o out.ndjson", 2, "tre"),
    Wrong("stream events.ndjson --policy p.yaml --view research -o out.ndjson", 2, "names no stream method"),
    Wrong("stream events.ndjson --policy visits.yaml --window 2h -o out.ndjson", 2, "--window"),
    Wrong("stream events.ndjson --policy visits.yaml --z 1 -o out.ndjson", 2, "--z"),
    Wrong("stream broken.ndjson --z 2 --window 1h --strict -o out.ndjson", 3, "broken.ndjson"),
    Wrong("stream events.ndjson --z 2 --window 1h --unit ms -o out.ndjson", 3, "--unit: nothing was released"),
    Wrong("stream events.ndjson --z 2 --window 1h -o nowhere/out.ndjson", 3, "nowhere/out.ndjson: cannot be written"),
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def judged(code: int, said: str, expected: int, words: str) -> None:
    """One screen: the exit code, the place, a hint; no traceback, and nobody's value."""
    assert code == expected, said
    assert words in said
    assert "hint: " in said, said
    assert SECRET not in said
    assert "defect" not in said, said
    assert "Traceback" not in said
    assert len(said.splitlines()) < 12, said


@pytest.mark.parametrize("wrong", TABLES, ids=lambda w: w.line)
def test_a_wrong_command_is_told_where_and_how_and_writes_nothing(wrong, place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    before = content(place)
    read, write = os.pipe()
    os.write(write, wrong.stdin.encode())
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(SystemExit) as stop:
            main(wrong.line.split(" "))
    said = capfd.readouterr()
    judged(int(stop.value.code or 0), said.err, wrong.code, wrong.words)
    assert said.out == ""
    assert content(place) == before


@pytest.mark.parametrize("case", POLICIES)
def test_a_wrong_policy_is_located(case, place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    (place / "wrong.yaml").write_text(POLICIES[case])
    before = content(place)
    for line in ("check wrong.yaml", "anonymize people.csv --policy wrong.yaml -o out.csv"):
        with pytest.raises(SystemExit) as stop:
            main(line.split())
        said = capfd.readouterr().err
        judged(int(stop.value.code or 0), said, 3 if case == "a missing tree" else 2, "")
        assert "wrong.yaml" in said or "nowhere.csv" in said, said
        assert content(place) == before


FRAME = pl.DataFrame(
    {"age": [30, 31, 30, 31], "name": [f"{SECRET}-{n}" for n in range(4)], "diag": ["f", "g", "f", "g"]}
)
ARGUMENTS: dict[str, tuple[Callable[[], object], str]] = {
    "k is a float": (lambda: shoal.anonymize(FRAME, quasi=["age"], k=5.0), "k: expected a whole number"),
    "k is a text": (lambda: shoal.anonymize(FRAME, quasi=["age"], k="5"), "k: expected a whole number"),
    "k is true": (lambda: shoal.anonymize(FRAME, quasi=["age"], k=True), "k: expected a whole number"),
    "k is negative": (lambda: shoal.anonymize(FRAME, quasi=["age"], k=-2), "k: k must be at least 1"),
    "l is a text": (lambda: shoal.anonymize(FRAME, quasi=["age"], k=2, l="2"), "l: expected a number"),
    "t is not a number": (lambda: shoal.anonymize(FRAME, quasi=["age"], k=2, t=float("nan")), "t: expected a number"),
    "no promise": (lambda: shoal.anonymize(FRAME, quasi=["age"]), "no promise"),
    "no quasi": (lambda: shoal.anonymize(FRAME, k=2), "no quasi column"),
    "no such column": (lambda: shoal.anonymize(FRAME, quasi=["agee"], k=2), "there is no column 'agee'"),
    "sensitive by letters": (lambda: shoal.anonymize(FRAME, quasi="age", sensitive="salary-class", k=2), "there is no column 'salary-class'"),
    "quasi is a number": (lambda: shoal.anonymize(FRAME, quasi=7, k=2), "quasi: expected names of columns"),
    "quasi holds a number": (lambda: shoal.anonymize(FRAME, quasi=[7], k=2), "quasi: expected names of columns"),
    "sensitive is a number": (lambda: shoal.anonymize(FRAME, quasi="age", sensitive=7, k=2), "sensitive: expected names"),
    "plain holds none": (lambda: shoal.anonymize(FRAME, quasi="age", plain=[None], k=2), "plain: expected names"),
    "subject is a list": (lambda: shoal.anonymize(FRAME, quasi="age", subject=["name"], k=2), "subject: expected the name of a column"),
    "a misspelt argument": (lambda: shoal.anonymize(FRAME, qausi=["age"], k=2), "there is no option qausi"),
    "a hierarchy nobody knows": (lambda: shoal.anonymize(FRAME, quasi={"age": "rnage"}, k=2), "rnage"),
    "a hierarchy that is a number": (lambda: shoal.anonymize(FRAME, quasi={"age": 7}, k=2), "age"),
    "method is a number": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, method=7), "method"),
    "effort is a list": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, effort=[1]), "effort"),
    "seed is a text": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, seed="x"), "seed: expected a whole number"),
    "compare nothing": (lambda: shoal.compare(FRAME), "quasi: no quasi column"),
    "compare with k as a text": (lambda: shoal.compare(FRAME, quasi="age", k=["2"]), "k: expected a whole number"),
    "compare with a method nobody knows": (lambda: shoal.compare(FRAME, quasi="age", methods="modrian"), "modrian"),
    "check a number": (lambda: shoal.check(7), "policy: expected the path"),
    "check together as a float": (lambda: shoal.check("nowhere.yaml", together=2.0), "nowhere.yaml"),
    "a stream of rows": (lambda: shoal.stream(FRAME, quasi="age", k=2), "stream: this is no stream"),
    "plan z of nothing": (lambda: shoal.plan(z=0), "z: z must be at least 1"),
    "plan a goal beyond 1": (lambda: shoal.plan(goal=7), "goal: expected a probability"),
    "plan with a misspelt argument": (lambda: shoal.plan(user=7), "there is no option user"),
    "plan nobody": (lambda: shoal.plan(users=0), "model: expected users"),
    "cells nobody knows": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, cells="box"), "cells: expected text"),
    "weights are a list": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, weights=[1]), "weights: expected"),
    "promises are a text": (lambda: shoal.anonymize(FRAME, quasi="age", promises="k-anonymity"), "promises: expected"),
    "promises hold a text": (lambda: shoal.anonymize(FRAME, quasi="age", promises=["k-anonymity"]), "promises: expected"),
    "schema is a dict": (lambda: shoal.anonymize(FRAME, schema={"age": "quasi"}, k=2), "schema: expected"),
    "keep_order is a text": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, keep_order="yes"), "keep_order: expected true"),
    "waive nobody knows": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, waive="all"), "waive: there is no risk"),
    "keys are a text": (lambda: shoal.anonymize(FRAME, quasi="age", k=2, keys="secret"), "keys: expected"),
    "the table is a list": (lambda: shoal.anonymize([1, 2], quasi="age", k=2), "data: expected a polars, pandas or pyarrow table"),
    "the table is a path": (lambda: shoal.anonymize("people.csv", quasi="age", k=2), "data: expected a polars, pandas or pyarrow table"),
    "the table is nothing": (lambda: shoal.anonymize(None, quasi="age", k=2), "data: expected a polars, pandas or pyarrow table"),
    "a policy that is not there": (lambda: shoal.anonymize(FRAME, policy="nowhere.yaml"), "nowhere.yaml"),
    "a policy that is a number": (lambda: shoal.anonymize(FRAME, policy=7), "policy: expected"),
    "verify nothing": (lambda: shoal.verify(FRAME, quasi="age"), "no promise to judge"),
    "verify no column": (lambda: shoal.verify(FRAME, quasi="height", k=2), "there is no column 'height'"),
    "verify k as a text": (lambda: shoal.verify(FRAME, quasi="age", k="2"), "k: expected a whole number"),
    "verify people of other length": (lambda: shoal.verify(FRAME, quasi="age", k=2, people=[1]), "people: expected"),
    "verify z without the events": (lambda: shoal.verify(FRAME, quasi="age", subject="name", z=2, window="1h"), "cannot be verified from a release alone"),
    "measure no column": (lambda: shoal.measure(FRAME, quasi=["height"]), "there is no column 'height'"),
    "measure a number": (lambda: shoal.measure(FRAME, quasi=7), "quasi: expected names of columns"),
    "measure nothing": (lambda: shoal.measure(FRAME, quasi=[]), "quasi"),
    "attack on nothing": (lambda: shoal.attack(FRAME, FRAME, on=[]), "on"),
    "attack a number": (lambda: shoal.attack(FRAME, FRAME, on=7), "on: expected names of columns"),
    "attack no column": (lambda: shoal.attack(FRAME, FRAME, on="height"), "there is no column 'height'"),
    "view nobody": (lambda: shoal.view(FRAME, "nowhere.yaml", "ward"), "nowhere.yaml"),
    "curves of texts": (lambda: shoal.anonymize_series(FRAME, k=2, p=2), "name"),
    "curves with p over k": (lambda: shoal.anonymize_series(np.zeros((9, 3)), k=2, p=3), "p"),
    "curves with k as a float": (lambda: shoal.anonymize_series(np.zeros((9, 3)), k=2.0, p=2), "k: expected a whole"),
    "a stream with z of nothing": (lambda: shoal.z_anonymity(z=0, window="1h"), "z"),
    "a stream with z as a text": (lambda: shoal.z_anonymity(z="2", window="1h"), "z"),
    "a stream with a wrong window": (lambda: shoal.z_anonymity(z=2, window="soon"), "window"),
    "a stream with a wrong hierarchy": (lambda: shoal.z_anonymity(z=2, window="1h", hierarchy="tre"), "tre"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARGUMENTS)
def test_a_wrong_argument_is_told_in_the_same_words(case):
    call, words = ARGUMENTS[case]
    with pytest.raises(ShoalError) as caught:
        call()
    assert words in str(caught.value)
    assert caught.value.hint, str(caught.value)
    assert SECRET not in str(caught.value)


def test_there_are_more_than_a_hundred():
    assert len(TABLES) + len(POLICIES) + len(ARGUMENTS) >= 100
