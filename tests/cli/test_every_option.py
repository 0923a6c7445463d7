"""Every option of every command has an effect, or is refused by its name: with a policy and without, for tables,
curves, streams, growing tables and role views. An option that is not in the table of samples fails the test."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.cli import COMMANDS, build, main
from shoal.datasets.hospital import hospital

TABLE = """
dataset: hospital
columns:
  pid: subject
  name: identifier
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  sex: quasi
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  diag: sensitive
views:
  research:
    show: [zip, sex, age, diag]
    promises: [{use: k-anonymity, k: 3}]
  delayed:
    show: [zip, sex, age, diag]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 50}
  ward:
    show: [pid, zip, sex, age, diag]
    masks: {pid: suppress}
"""
CURVES = """
dataset: curves
columns:
  who: subject
  W0: quasi
  W1: quasi
  W2: quasi
  W3: quasi
  s: sensitive
views:
  shapes:
    show: [W0, W1, W2, W3, s]
    promises: [{use: kP-anonymity, k: 6, p: 3}]
"""
VISITS = """
dataset: visits
columns:
  time: {role: time, unit: s}
  client: subject
  site: {role: quasi, hierarchy: path}
views:
  market:
    show: [time, client, site]
    masks: {client: suppress}
    promises: [{use: z-anonymity, z: 3, window: 20s}]
    method: z-anonymity
"""

TIMED = """
dataset: visits
columns:
  time: {role: time, unit: s}
  client: subject
  site: {role: quasi, hierarchy: {use: path, depth: 2}}
views:
  delayed:
    show: [time, site]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: batches, delay: 50}
  second:
    show: [site]
    promises: [{use: k-anonymity, k: 2}]
    method: {use: batches, delay: 20}
"""
WATTS = """
dataset: meters
columns:
  at: {role: time, unit: s}
  meter: subject
  watt: {role: quasi, type: int}
views:
  shapes:
    show: [at, watt]
    promises: [{use: kP-anonymity, k: 6, p: 3}]
    method: {use: curves, window: 100s, every: 10s}
"""

# what is run without the option under test
BASES: dict[str, list[str]] = {
    "anonymize/table": ["anonymize", "t.csv", "--quasi", "zip,sex,age", "--sensitive", "diag", "--k", "3"],
    "anonymize/policy": ["anonymize", "t.csv", "--policy", "table.yaml", "--view", "research"],
    "anonymize/delayed": ["anonymize", "t.csv", "--policy", "table.yaml", "--view", "delayed"],
    "anonymize/curves": ["anonymize", "c.csv", "--series", "--id", "who", "--sensitive", "s", "--k", "6", "--p", "3"],
    "anonymize/curve-policy": ["anonymize", "c.csv", "--policy", "curves.yaml"],
    "anonymize/append": ["anonymize", "t.csv", "--quasi", "sex,age", "--hierarchy", "age=range:0:120", "--k", "3",
                         "--append", "state"],
    "view/masks": ["view", "table.yaml", "t.csv", "--role", "ward"],
    "view/table": ["view", "table.yaml", "t.csv", "--role", "research"],
    "view/stream": ["view", "visits.yaml", "e.ndjson", "--role", "market"],
    "view/curves": ["view", "curves.yaml", "c.csv", "--role", "shapes"],
    "verify/table": ["verify", "r.csv", "--quasi", "zip,sex,age", "--sensitive", "diag", "--k", "3"],
    "verify/policy": ["verify", "r.csv", "--policy", "table.yaml", "--view", "research"],
    "verify/curves": ["verify", "rc.csv", "--sensitive", "s", "--k", "6", "--p", "3"],
    "verify/stream": ["verify", "re.ndjson", "--original", "e.ndjson", "--quasi", "site", "--hierarchy", "site=path",
                      "--subject", "client", "--z", "3", "--window", "20s"],
    "stream/options": ["stream", "e.ndjson", "--z", "3", "--window", "20s", "--subject", "client", "--value", "site",
                       "-o", "out.ndjson"],
    "stream/policy": ["stream", "e.ndjson", "--policy", "visits.yaml", "-o", "out.ndjson"],
    "stream/delayed": ["stream", "e.ndjson", "--policy", "timed.yaml", "--view", "delayed", "-o", "out.ndjson"],
    "stream/curves": ["stream", "w.ndjson", "--policy", "watts.yaml", "-o", "out.ndjson"],
    "compare": ["compare", "t.csv", "--quasi", "sex,age", "--methods", "mondrian", "--k", "3"],
    "tune/table": ["tune", "table.yaml", "t.csv", "--view", "research", "--methods", "mondrian", "--k", "3"],
    "tune/delayed": ["tune", "table.yaml", "t.csv", "--view", "delayed", "--methods", "fads", "--k", "3"],
    "tune/stream": ["tune", "visits.yaml", "e.ndjson", "--z", "3", "--window", "20s"],
    "measure/table": ["measure", "t.csv", "--quasi", "sex,age"],
    "measure/stream": ["measure", "e.ndjson", "--stream", "--subject", "client", "--value", "site"],
    "attack": ["attack", "r.csv", "t.csv", "--on", "sex,age"],
    "check": ["check", "table.yaml"],
    "check/data": ["check", "table.yaml", "t.csv"],
    "explain": ["explain", "table.yaml"],
    "init": ["init", "t.csv"],
    "plan": ["plan", "--users", "2000", "--attributes", "50", "--samples", "200"],
    "generate": ["generate", "hospital"],
    "demo": ["demo", "--rows", "60"],
    "warm": ["warm", "no-such-method"],  # it has no options; what it does is in test_warm_command.py
}  # fmt: skip
# in test_every_service_option.py and test_studio_command.py
ELSEWHERE = {"serve", "connect", "consume", "replay", "experiment", "policy", "keys", "reveal", "studio"}

# a value for each option, other than what the bases have
SAMPLES: dict[str, list[str]] = {
    "--output": ["out2.csv"], "--into": ["out3.csv"], "--table": ["people"], "--replace": [],
    "--report": ["r.json"], "--cells": ["struct"], "--dry-run": [], "--json": [], "--learn": ["diag"],
    "--policy": ["visits.yaml"], "--view": ["ward"], "--quasi": ["sex"], "--hierarchy": ["zip=prefix:5"],
    "--sensitive": ["sex"], "--plain": ["med"], "--subject": ["pid"], "--weight": ["age=9"], "--loss": ["age=rank"],
    "--at-most": ["age=0"], "--k": ["7"], "--sampling-weight": ["age"], "--special": ["1"],
    "--promise": ["alpha-k-anonymity:alpha=.9:k=4:column=diag"], "--register": ["t.csv"],
    "--save-model": ["kept.model"], "--model": ["no.model"],
    "--l": ["2"], "--t": ["0.9"], "--p": ["2"], "--series": [], "--id": ["W0"], "--time": ["when"],
    "--value": ["name"], "--every": ["5"], "--missing": ["drop"], "--perturb": [], "--append": ["other"],
    "--publish": ["new"], "--method": ["mondrian"], "--effort": ["low"], "--set": ["effort=low"], "--seed": ["5"],
    "--keep-order": [], "--waive": ["linked-rows"], "--separator": [";"], "--role": ["delayed"], "--keys": ["no.json"],
    "--z": ["2"], "--window": ["1s"], "--unit": ["ms"], "--original": ["other.ndjson"], "--previous": ["t.csv"],
    "--late": ["1h"], "--goal-k": ["2"], "--goal-p": ["0.5"], "--snapshot": ["snap"], "--synthetic": ["side"],
    "--figures": ["figures"], "--figures-every": ["10m"], "--strict": [], "--methods": ["topdown"], "--out": ["folder"],
    "--stream": [], "--on": ["age"], "--together": ["3"], "--threshold": ["0"], "--rows": ["50"], "--users": ["3000"],
    "--attributes": ["60"], "--rate": ["0.2"], "--exponent": ["2"], "--windows": ["2"], "--goal": ["0.5"],
    "--samples": ["300"], "--exposed": ["exposed.csv"], "--column": ["q"], "--classes": ["classes.csv"],
    "--topic": ["events"], "--properties": ["no.properties"], "--brokers": ["localhost:1"], "--scale": ["0.5"],
    "--visits": ["4"], "--sent": ["at"], "--clock": [], "--type": ["age=str"], "--forever": [],
    "--tuner": ["incremental"], "--z0": ["9"], "--exact": [], "--noise": ["0.5"], "--trust-times": [], "--ask": [],
    "--attacks": [], "--no-attacks": [], "--certificate": ["certificate.json"],
    "--representatives": ["means.csv"], "--compact": [],
    "--public-key": ["ab" * 32], "--verify": ["0.5"], "--watch": [], "--max-loss": ["0.1"], "--max-risk": ["0.05"],
    "--max-delay": ["20"], "--delay": ["30"],
    "--checkpoint": ["5s"], "--flush": [], "--again": [], "--withheld": ["why.ndjson"], "--format": ["csv"],
    "--output-format": ["csv"], "--follow": [], "--also": ["ward=ward.ndjson"], "--memory": ["1KB"],
    "--engine": ["elsewhere"],
    "--metrics": [":0"],
}  # fmt: skip
# these change nothing on the data here, and have tests of their own
SILENT = {
    ("anonymize/curves", "--missing"): "no curve lacks an instant (tests/unit/test_series_forms.py)",
    ("anonymize/curve-policy", "--missing"): "no curve lacks an instant (tests/unit/test_series_forms.py)",
    ("view/curves", "--missing"): "no curve lacks an instant (tests/unit/test_series_forms.py)",
    ("stream/options", "--strict"): "every event can be used (tests/cli/test_visits_policy.py)",
    ("stream/policy", "--strict"): "every event can be used (tests/cli/test_visits_policy.py)",
    ("stream/options", "--trust-times"): "nobody doubts these times (tests/unit/test_plausibility.py)",
    ("stream/policy", "--trust-times"): "nobody doubts these times (tests/unit/test_plausibility.py)",
    ("stream/delayed", "--strict"): "every event can be used (tests/cli/test_visits_policy.py)",
    ("stream/curves", "--strict"): "every event can be used (tests/cli/test_visits_policy.py)",
    ("stream/delayed", "--trust-times"): "nobody doubts these times (tests/unit/test_plausibility.py)",
    ("stream/curves", "--trust-times"): "nobody doubts these times (tests/unit/test_plausibility.py)",
    ("stream/delayed", "--follow"): "it has no end (tests/cli/test_stream_reading.py)",
    ("stream/curves", "--follow"): "it has no end (tests/cli/test_stream_reading.py)",
    ("stream/options", "--late"): "no event is late (tests/laws/test_z_oracle.py)",
    ("stream/options", "--follow"): "it has no end (tests/cli/test_stream_reading.py)",
    ("stream/policy", "--follow"): "it has no end (tests/cli/test_stream_reading.py)",
    ("compare", "--seed"): "mondrian draws nothing where k alone is asked (tests/cli/test_compare_command.py)",
    ("verify/stream", "--unit"): "shorter times only add supporters (tests/cli/test_verify_stream.py)",
    ("measure/table", "--type"): "ages are told apart as texts, too (tests/cli/test_types_everywhere.py)",
    ("init", "--ask"): "answers come from standard input (tests/unit/test_suggest.py)",
    ("generate", "--forever"): "it has no end",
    ("generate", "--rate"): "it takes its time (tests/unit/test_pace.py)",
    ("generate", "--topic"): "it needs a broker (tests/kafka/test_tools.py)",
}
SAMPLES |= {"--max-loss": ["0.1"], "--max-risk": ["0.05"], "--max-delay": ["20"], "--delay": ["30"]}
SECONDS = re.compile(
    r'"(seconds|cpu_seconds|longest_pause)": [0-9.e-]+|[0-9.,]+/s|[0-9.,]+ (s|ms)\b|"[a-z_]*rate[a-z_]*": [0-9.e+-]+'
)


commands = cache(build)


@cache  # the command line of a command is assembled once, not for each of its options
def options(command: str) -> list[str]:
    """The long names of a command's options, positional parameters left out."""
    found = commands()[command].assemble_argument_collection()
    named = [n for a in found if a.parse and a.field_info.is_keyword_only for n in a.names if n.startswith("--")]
    return [n for n in named if n not in ("--help", "--version")]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    hospital(80, seed=3, visits=1.5).write_csv(folder / "t.csv")
    rng = np.random.default_rng(1)
    curves = pl.DataFrame({f"W{i}": rng.integers(0, 9, 60) for i in range(4)})
    curves.with_columns(who=pl.Series(range(60)), s=pl.Series(["a", "b", "c"] * 20)).write_csv(folder / "c.csv")
    times = np.arange(0, 600, 2)
    sites = [f"shop.{'abc'[i % 3]}" for i in range(300)]
    events = pl.DataFrame({"time": times, "client": [f"u{i % 30}" for i in range(300)], "site": sites})
    events.write_ndjson(folder / "e.ndjson")
    watts = {"at": np.repeat(np.arange(0, 200, 10), 30), "meter": [f"m{i}" for i in range(30)] * 20}
    pl.DataFrame({**watts, "watt": rng.integers(0, 9, 600)}).write_ndjson(folder / "w.ndjson")
    for name, text in (("table", TABLE), ("curves", CURVES), ("visits", VISITS), ("timed", TIMED), ("watts", WATTS)):
        (folder / f"{name}.yaml").write_text(text)
    pl.DataFrame({"p": [0.5, 0.1], "q": [0.2, 0.1]}).write_csv(folder / "exposed.csv")
    pl.DataFrame({"users": [100, 200], "rate": [0.1, 0.2]}).write_csv(folder / "classes.csv")
    return folder


@pytest.fixture(scope="module")
def released(files) -> Path:
    words = [
        (*BASES["anonymize/table"], "-o", "r.csv"),
        (*BASES["anonymize/curves"], "-o", "rc.csv"),
        (*BASES["stream/options"][:-1], "re.ndjson", "--hierarchy", "path"),
    ]
    with pytest.MonkeyPatch.context() as here:
        here.chdir(files)
        for line in words:
            with pytest.raises(SystemExit) as done:
                main(list(line))
            assert not done.value.code
    return files


def outcome(line: list[str], folder: Path, at: Path, capfd, monkeypatch) -> tuple[int, str, dict[str, bytes]]:
    """Exit code, what was said, and the files it left."""
    for file in folder.iterdir():
        if file.is_file():
            (at / file.name).write_bytes(file.read_bytes())
    before = {f.name for f in at.rglob("*")}
    monkeypatch.chdir(at)
    with pytest.raises(SystemExit) as done:
        main(line)
    said = capfd.readouterr()
    left = {f.name: contents(f) for f in at.rglob("*") if f.is_file() and f.name not in before}
    return int(done.value.code or 0), SECONDS.sub("", said.out + said.err), left


def contents(file: Path) -> bytes:
    """What a file says; of a sealed state, that it is there: its bytes hang on where it is kept."""
    raw = file.read_bytes()
    if raw[1:].startswith(b"\xabshoal-state"):
        return b"state"
    return SECONDS.sub("", raw.decode()).encode() if file.suffix in (".html", ".json", ".csv") else raw


@pytest.fixture(scope="module")
def without(tmp_path_factory) -> Callable[..., tuple[int, str, dict[str, bytes]]]:
    """What a command does without the option under test: run once for all options that share it."""
    seen: dict[tuple[str, ...], tuple[int, str, dict[str, bytes]]] = {}

    def run(line: list[str], folder: Path, capfd, monkeypatch) -> tuple[int, str, dict[str, bytes]]:
        if tuple(line) not in seen:
            seen[tuple(line)] = outcome(line, folder, tmp_path_factory.mktemp("without"), capfd, monkeypatch)
        return seen[tuple(line)]

    return run


CASES = [(b, option) for b in BASES for option in options(BASES[b][0]) if (b, option) not in SILENT]


def test_every_command_and_every_option_is_tried():
    assert set(COMMANDS) == {words[0] for words in BASES.values()} | ELSEWHERE
    lacking = sorted({option for _, option in CASES} - set(SAMPLES))
    assert not lacking, "give these options a sample value"


@pytest.mark.parametrize("base", BASES)
def test_without_an_option_nothing_changes(base, released, without, tmp_path, capfd, monkeypatch):
    """Otherwise the comparisons below would find an effect in what differs anyway."""
    monkeypatch.setenv("SHOAL_KEY", "ab" * 32)
    words = [*BASES[base], *asked_alike(base)]
    assert without(words, released, capfd, monkeypatch) == outcome(words, released, tmp_path, capfd, monkeypatch)


def asked_alike(base: str, option: str = "") -> list[str]:
    """What makes two runs comparable: a seed, and figures to the last digit."""
    known = options(BASES[base][0])
    seeded = ["--seed", "1"] if "--seed" in known and base != "demo" else []
    return [*seeded, *(["--json"] if "--json" in known and option != "--json" else [])]


@pytest.mark.parametrize(("base", "option"), CASES, ids=lambda word: word)
def test_an_option_has_an_effect_or_is_refused(base, option, released, without, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("SHOAL_KEY", "ab" * 32)
    words = list(BASES[base])
    alike = asked_alike(base, option)
    if option in words:
        at = words.index(option)
        stop = next((i for i in range(at + 1, len(words)) if words[i].startswith("-")), len(words))
        words = words[:at] + words[stop:] if SAMPLES[option] == [] else words
        changed = words if SAMPLES[option] == [] else [*words[:at], option, *SAMPLES[option], *words[stop:]]
        words = BASES[base]
    else:
        changed = [*words, option, *SAMPLES[option]]
    if (base, option) == ("stream/policy", "--policy"):
        changed[changed.index("visits.yaml")] = "table.yaml"
    if option == "--seed":
        alike = ["--seed", "1", *(word for word in alike if word == "--json")]
        other = [w if w != "1" else SAMPLES["--seed"][0] for w in [*words, *alike]]
    else:
        other = [*changed, *alike]
    plain = without([*words, *alike], released, capfd, monkeypatch)
    with_it = outcome(other, released, tmp_path, capfd, monkeypatch)
    assert plain[0] in (0, 1), plain[1]
    assert "defect" not in with_it[1]
    if with_it[0] > 1:
        assert with_it != plain
    else:
        assert with_it[1:] != plain[1:], f"{option} is ignored"
