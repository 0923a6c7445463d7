"""The law of the one gate: what a role may not see is nowhere.

Every hidden, masked, withheld or undeclared field holds a mark, unique in the world. No mark may occur in any byte that
a command leaves behind: outputs, reports, standard output and error, state, file metadata, buffers of frames.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from pathlib import Path

import msgspec
import polars as pl
import pytest

import shoal
from shoal.cli import main
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.policy.load import load, parse
from shoal.release.roles import view as role_view
from shoal.runtime.kafka.provision.served import Served
from shoal.runtime.kafka.serve import stateful
from shoal.runtime.kafka.serve.masking import Masking
from shoal.runtime.kafka.serve.output import Record
from shoal.runtime.kafka.serve.shards import Shard
from shoal.views.frames import FrameGate
from shoal.views.role_view import RoleView

MARK = re.compile(rb"qzx[0-9]+w|98765[0-9]{4}", re.IGNORECASE)
KEY = {"SHOAL_KEY": "ab" * 32}
KEYS = KeyRing({"default": {1: bytes(range(32))}})


class Marks:
    """Texts and numbers that occur once."""

    def __init__(self) -> None:
        self.number = 0

    def text(self) -> str:
        self.number += 1
        return f"Qzx{self.number}w and a text that is longer than a polars view holds"

    def whole(self) -> int:
        self.number += 1
        return 987_650_000 + self.number


POLICY = """
dataset: patients
columns:
  pid: {role: subject, type: str}
  name: {role: identifier, type: str}
  card: {role: identifier, type: str}
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  age: {role: quasi, type: int, missing: suppress, hierarchy: {use: range, min: 0, max: 120}}
  diag: {role: sensitive, type: str}
  pay: {role: plain, type: int}
  iban: {role: plain, type: str}
  ward: {role: plain, type: str}
  time: {role: time, type: int}
views:
  desk:
    show: [zip, age, pay, iban, card, ward]
    masks: {pay: {use: bucket, width: 1000000000}, iban: pseudonym, card: tokenize}
  house:
    show: [zip, age, diag, pay, card, ward]
    masks: {pay: {use: aggregate, function: count, k: 2}, card: suppress}
    hidden: drop
  research:
    show: [zip, age, diag, ward]
    promises: [{use: k-anonymity, k: 3}]
    method: mondrian
  market:
    show: [time, zip, diag]
    promises: [{use: z-anonymity, z: 2, window: 1h}]
    method: {use: z-anonymity}
  held:
    show: [zip, age, diag]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 20}
"""


def rows(marks: Marks) -> list[dict]:
    out = []
    for i in range(30):
        gone = i == 7  # this row is withheld where promises are made: it has no age
        out.append(
            {
                "pid": marks.text(),
                "name": marks.text(),
                "card": marks.text(),
                "zip": marks.text() if gone else f"101{i % 3}0",
                "age": None if gone else 20 + i % 5,
                "diag": marks.text() if gone else ["E10", "E11", "J45"][i % 3],
                "pay": marks.whole(),
                "iban": marks.text(),
                "ward": marks.text() if gone else f"ward {i % 4} with a name that is long enough",
                "time": 1_700_000_000 + i,
                "undeclared": marks.text(),
            }
        )
    return out


def clear(row: dict) -> dict:
    """What the row that is withheld says is seen by roles without a promise."""
    return row if row["age"] is not None else {**row, "zip": "10100", "diag": "E10", "ward": "ward 1", "age": 21}


@pytest.fixture
def run(tmp_path: Path, monkeypatch, capfdbinary):
    """A command of the command line, in this process; then a look at everything it said and left."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "inputs").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, value in KEY.items():
        monkeypatch.setenv(name, value)

    def go(*words: str, code: int | None = 0) -> None:
        with pytest.raises(SystemExit) as ended:
            main(words)
        said = capfdbinary.readouterr()
        assert code is None or (ended.value.code or 0) == code, said.err.decode()
        clean({"stdout": said.out, "stderr": said.err, **left(tmp_path)}, words)

    return go


def left(folder: Path) -> dict[str, bytes]:
    """Every file but the inputs, unpacked where it is compressed."""
    out = {}
    for file in folder.rglob("*"):
        if file.is_file() and "inputs" not in file.parts:
            out[str(file.relative_to(folder))] = file.read_bytes()
            if file.suffix == ".parquet":
                out[f"{file.name} uncompressed"] = uncompressed(pl.read_parquet(file))
    return out


def uncompressed(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_ipc(out, compression="uncompressed")
    return out.getvalue() + repr(frame.schema).encode()


def clean(files: dict[str, bytes], what: object) -> None:
    for name, data in files.items():
        found = MARK.search(data)
        assert found is None, f"{what}: {name} holds a mark"


def inputs(folder: Path, table: list[dict]) -> None:
    frame = pl.DataFrame(table, infer_schema_length=None)
    frame.write_csv(folder / "inputs" / "in.csv")
    categories = pl.Enum(frame["ward"].unique().sort())
    frame.with_columns(pl.col("ward").cast(categories), pl.col("diag").cast(pl.Categorical)).write_parquet(
        folder / "inputs" / "in.parquet"
    )
    (folder / "inputs" / "in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in table))


@pytest.mark.parametrize("source", ["csv", "parquet", "ndjson"])
def test_a_table_and_its_reports(run, tmp_path, source):
    inputs(tmp_path, rows(Marks()))
    data = f"inputs/in.{source}"
    for report in ("r.html", "r.json", "r.txt"):
        words = ("anonymize", data, "--policy", "policy.yaml", "--view", "research", "--report", report)
        run(*words, "-o", "out.parquet" if report == "r.html" else "out.csv")
    quasi = ("--quasi", "zip,age", "--sensitive", "diag", "--plain", "ward", "--hierarchy", "zip=prefix:5")
    inputs(tmp_path, [clear(row) for row in rows(Marks())])
    run("anonymize", data, *quasi, "--k", "3", "--set", "suppress=0.1", "-o", "out.ndjson", "--json", code=None)


@pytest.mark.parametrize("role", ["desk", "house"])
@pytest.mark.parametrize("source", ["csv", "parquet", "ndjson"])
def test_a_view_without_promises(run, tmp_path, role, source):
    inputs(tmp_path, [clear(row) for row in rows(Marks())])
    for out in ("out.csv", "out.parquet", "out.ndjson"):
        run("view", "policy.yaml", f"inputs/in.{source}", "--role", role, "-o", out)
    run("view", "policy.yaml", f"inputs/in.{source}", "--role", role)


def test_a_growing_table_and_its_state(run, tmp_path):
    table = rows(Marks())
    inputs(tmp_path, [row for row in table if row["age"] is not None])
    columns = ("--quasi", "zip,age", "--hierarchy", "zip=prefix:5", "--hierarchy", "age=range:0:120")
    words = (*columns, "--k", "3", "--append", "s.state", "-o", "out.csv")
    run("anonymize", "inputs/in.csv", *words)
    run("anonymize", "inputs/in.csv", *words)


@pytest.mark.parametrize("view", ["market", "held"])
@pytest.mark.parametrize("source", ["csv", "ndjson"])
def test_a_stream_and_its_snapshot(run, tmp_path, view, source):
    inputs(tmp_path, rows(Marks()))
    words = ("stream", f"inputs/in.{source}", "--policy", "policy.yaml", "--view", view, "--snapshot", "s.snap")
    run(*words, "-o", "out.ndjson", "--json", "--seed", "1")


def test_curves(run, tmp_path):
    marks = Marks()
    wide = [{"id": marks.text(), **{f"t{i}": (n % 3) + i for i in range(6)}} for n in range(12)]
    pl.DataFrame(wide).write_csv(tmp_path / "inputs" / "wide.csv")
    names = ",".join(f"t{i}" for i in range(6))
    words = ("anonymize", "inputs/wide.csv", "--series", "--id", "id", "--quasi", names, "--k", "4", "--p", "2")
    run(*words, "-o", "out.csv", "--report", "r.html")
    run(*words, "-o", "out.parquet", "--report", "r.json")


def test_commands_that_only_talk(run, tmp_path):
    inputs(tmp_path, rows(Marks()))
    run("check", "policy.yaml", code=None)
    run("check", "policy.yaml", "inputs/in.csv", "--json", code=None)
    run("check", "policy.yaml", "inputs/in.csv", code=None)
    run("explain", "policy.yaml", "--attacks")
    run("measure", "inputs/in.csv", "--quasi", "zip,age", "--sensitive", "diag", "--subject", "pid", "--json")
    run("measure", "inputs/in.csv", "--stream", "--subject", "pid", "--value", "zip", "--out", "profile", code=None)
    run("compare", "inputs/in.csv", "--quasi", "age", "--methods", "mondrian", "--k", "2", "--report", "c.html")
    run("verify", "inputs/in.csv", "--quasi", "zip,age", "--sensitive", "diag", "--k", "3", "--l", "2", code=1)
    run("attack", "inputs/in.csv", "inputs/in.csv", "--on", "zip,age")
    run("init", "inputs/in.csv", "-o", "draft.yaml")


BROKEN = {
    "no header": lambda text: text.split("\n", 1)[1],
    "the same name twice": lambda text: text.replace("name,card", "Qzx0w,Qzx0w", 1),
    "a word for a number": lambda text: re.sub(r",9876500\d\d,", ",Qzx1w,", text),
    "a row too long": lambda text: text + "Qzx1w," * 20 + "\n",
    "a quote that never ends": lambda text: text + '"Qzx1w,\n',
}


@pytest.mark.parametrize("case", BROKEN)
def test_files_that_are_broken(run, tmp_path, case):
    table = [clear(row) for row in rows(Marks())]
    inputs(tmp_path, table)
    file = tmp_path / "inputs" / "in.csv"
    file.write_text(BROKEN[case](file.read_text()))
    columns = ("--quasi", "zip,age", "--sensitive", "diag")
    for words in (
        ("view", "policy.yaml", "inputs/in.csv", "--role", "desk", "-o", "out.csv"),
        ("anonymize", "inputs/in.csv", "--policy", "policy.yaml", "--view", "research", "-o", "out.csv"),
        ("anonymize", "inputs/in.csv", *columns, "--k", "3", "-o", "out.csv"),
        ("stream", "inputs/in.csv", "--policy", "policy.yaml", "--view", "market"),
        ("check", "policy.yaml", "inputs/in.csv"),
        ("measure", "inputs/in.csv", *columns),
        ("compare", "inputs/in.csv", "--quasi", "age", "--methods", "mondrian", "--k", "2"),
        ("verify", "inputs/in.csv", *columns, "--k", "2"),
        ("attack", "inputs/in.csv", "inputs/in.csv", "--on", "zip,age"),
    ):
        run(*words, code=None)


def test_frames_in_memory(tmp_path):
    """What is pickled, or handed on as Arrow, has no byte of rows that were withheld."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    frame = pl.DataFrame(rows(Marks()), infer_schema_length=None)
    frame = frame.with_columns(pl.col("ward").cast(pl.Enum(frame["ward"].unique().sort())))
    policy = load(tmp_path / "policy.yaml")
    released = role_view(frame, policy, "research", keys=KEYS).data
    seen = role_view(frame.filter(pl.col("age").is_not_null()), policy, "house", keys=KEYS).data
    more = shoal.anonymize(
        frame.filter(pl.col("age").is_not_null()), quasi=["zip", "age"], sensitive=["diag"], plain=["ward"], k=3
    )
    for data in (released, seen, more.data):
        clean({"pickle": pickle.dumps(data), "ipc": uncompressed(data), "arrow": pickle.dumps(data.to_arrow())}, "data")
    clean({"report": pickle.dumps(more.report), "json": more.report.json().encode()}, "report")


def test_windows_withhold_their_texts():
    marks = Marks()
    people = [(f"p{i}", marks.text() if i < 1 else "a text that is long enough to have a buffer") for i in range(1000)]
    frame = pl.DataFrame(people, schema=["pid", "ward"], orient="row").with_columns(pl.int_range(1000).alias("pay"))
    schema = Schema({"pid": Column("subject"), "ward": Column("plain"), "pay": Column("plain", type="int")})
    from shoal.masks import MASKS

    window = {"use": "tumbling", "size": 999}
    mask = MASKS.decode({"use": "aggregate", "function": "mean", "k": 3, "window": window})
    viewed = FrameGate(RoleView.resolve("r", schema, ["ward", "pay"], {"pay": mask}), frame.schema, KEYS).apply(
        frame.reverse()
    )
    assert viewed.withheld == 1
    clean({"pickle": pickle.dumps(viewed.data)}, "windows")


SERVICE = POLICY.replace(
    "dataset: patients", "dataset: patients\nsource: {use: kafka, topic: patients, brokers: nowhere}"
)


def test_the_records_of_a_service():
    """Records, dead letters, metrics and state of a worker, without a broker."""
    policy = parse(SERVICE)
    roles = ["desk", "market", "held"]
    served = {role: Served(f"patients.{role}", f"patients.{role}", "") for role in roles}
    masking = Masking(policy, KEYS, served, None)
    masking.open("patients", {one.topic: 1 for one in served.values()})
    shards = [
        Shard(role, role, 0, stateful.start(policy, role, 0, KEYS, masking.disguises[role], None), None)
        for role in roles[1:]
    ]
    marks = Marks()
    values = [json.dumps(clear(row)).encode() for row in rows(marks)]
    row = clear(rows(marks)[0])
    poison = [
        b"no json " + marks.text().encode(),
        *(json.dumps({**row, "age": odd}).encode() for odd in ({"name": marks.text()}, [marks.text()], marks.text())),
        *(json.dumps({**row, "ward": odd, "diag": odd}).encode() for odd in ({marks.text(): 1}, [[marks.text()]])),
        json.dumps({**row, "zip": [marks.text()]}).encode(),
    ]
    records = [Record(0, at, None, value, 1) for at, value in enumerate([*values, *poison])]
    masking.take(records, {0: shards})
    out = {role: b"\n".join(r.value or b"" for r in masking.mixed(role, b"1")) for role in roles}
    assert out["desk"].count(b"\n") == 29
    assert len(masking.dead) == len(poison)
    clean(out, "records")
    clean({"letters": b"".join(letter for _, letter in masking.letters("patients"))}, "letters")


def test_every_document_of_the_policy():
    from shoal.views.explain import explain

    clean({"explained": msgspec.json.encode(explain(parse(POLICY)))}, "explain")
