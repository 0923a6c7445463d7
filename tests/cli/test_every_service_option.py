"""Every option of the commands around a broker, of keys, tokens and experiments has an effect, or is refused.

No broker runs here: what would talk to one is a stand-in that writes down how it was made and what it was asked. That
those parts do what they are asked is tested beside a broker (tests/kafka).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shoal.cli import build
from shoal.runtime.kafka.provision.status import Status
from shoal.runtime.kafka.serve.membership import Membership
from shoal.runtime.kafka.tools.replay import Replayed
from shoal.runtime.kafka.tools.watch import Watched
from tests.cli.in_process import call

KAFKA = "shoal.runtime.kafka"
POLICY = """
dataset: patients
source: {use: kafka, topic: patients, brokers: "nowhere:9092"}
columns: {number: {role: plain, type: int}, name: {role: identifier, type: str}, at: {role: time}}
views:
  ward: {show: [number, name, at], masks: {name: tokenize}, users: [ada, bob]}
"""
BASES = {
    "serve plan": ["p.yaml"],
    "serve apply": ["p.yaml"],
    "serve run": ["p.yaml"],
    "serve pause": ["p.yaml"],
    "serve resume": ["p.yaml"],
    "serve reload": ["p.yaml"],
    "serve status": ["p.yaml"],
    "serve destroy": ["p.yaml"],
    "serve destroy --yes": ["p.yaml"],
    "connect load": ["t.csv", "--topic", "patients", "--brokers", "nowhere:9092"],
    "connect save": ["files", "--topic", "patients", "--brokers", "nowhere:9092"],
    "connect save --follow": ["files", "--topic", "patients", "--brokers", "nowhere:9092"],
    "consume": ["p.yaml", "--role", "ward"],
    "replay": ["p.yaml"],
    "experiment": [],
    "experiment kp": [],
    "policy": ["schema"],
    "keys list": ["--ring", "ring.json"],
    "keys rotate default": ["--ring", "ring.json"],
    "keys forget default": ["--ring", "ring.json", "--epoch", "1"],
    "reveal": ["p.yaml", "--role", "ward", "--column", "name"],
}
SAMPLES = {
    "--name": ["shoal-0"], "--verify": ["0.5"], "--session": ["9"],
    "--only": ["topics"], "--commands": [], "--json": [], "--allow-wider": [], "--yes": [], "--commit-every": ["9"],
    "--protocol": ["consumer"], "--metrics": [":0"], "--log": ["json"], "--topic": ["other"], "--brokers": ["b:1"],
    "--properties": ["client.properties"], "--policy": ["p.yaml"], "--group": ["g"], "--rows": ["7"], "--every": ["2"],
    "--follow": [], "--role": ["nobody"], "--user": ["bob"], "--output": ["seen.ndjson"], "--sent": ["at"],
    "--limit": ["5"], "--end": [], "--dry-run": [], "--out": ["figures"], "--data": ["data"], "--ring": ["other.json"],
    "--epoch": ["2"], "--vault": ["v.db"], "--column": ["number"], "--keys": ["missing.json"], "--audit": ["audit.log"],
    "--watch": [], "--passwords": [], "--with-audit": [],
}  # fmt: skip


def options(command: str) -> list[str]:
    """The long names of a command's options, positional parameters left out."""
    first, *rest = command.split()
    app = build()[first]
    if first in ("serve", "connect"):
        app = app[rest[0]]
    found = app.assemble_argument_collection()
    named = [n for a in found if a.parse and a.field_info.is_keyword_only for n in a.names if n.startswith("--")]
    return [n for n in named if n not in ("--help", "--version")]


CASES = [(base, option) for base in BASES for option in options(base) if option not in base]


@pytest.fixture
def log(monkeypatch) -> list[str]:
    """What the stand-ins were told."""
    told: list[str] = []
    monkeypatch.setenv("SHOAL_KEY", "ab" * 32)

    def show(value: Any) -> str:
        plain = isinstance(value, str | int | float | bool | dict | Path | Membership | None)
        return repr(value) if plain else type(value).__name__

    def stand_in(where: str, **answers: Any) -> None:
        class StandIn:
            properties: dict[str, str] = {"bootstrap.servers": "nowhere"}  # noqa: RUF012
            port = 9100
            cluster = SimpleNamespace(mechanism="SCRAM-SHA-256")

            def __init__(self, *given: Any, **named: Any) -> None:
                self.given = given
                told.append(f"{where} {[*map(show, given)]} { {k: show(v) for k, v in named.items()} }")

            def __getattr__(self, name: str) -> Any:
                def asked(*given: Any, **named: Any) -> Any:
                    told.append(f"{name} {[*map(show, given)]} { {k: show(v) for k, v in named.items()} }")
                    answer = answers.get(name)
                    return answer(self) if callable(answer) else answer

                return asked

        monkeypatch.setattr(f"{KAFKA}.{where}", StandIn)

    plan = SimpleNamespace(changes=[], wider=[], refusals=[], wanted=[], served={})
    stand_in("provision.provision.Provisioner", plan=plan, destroy=["topic patients.ward"])
    stand_in("regions.stages.Worker")
    stand_in("serve.service.Service", run=lambda service: service.given[1](SimpleNamespace(source={}, views={})))
    stand_in("serve.metrics.Page")
    stand_in("tools.feed.Feeder", run=3)
    stand_in("tools.collect.Collector", run=3)
    stand_in("tools.watch.Watch", run=Watched())
    stand_in("tools.replay.Replay", run=Replayed())
    monkeypatch.setattr(f"{KAFKA}.formats.registry.codec_of", lambda policy: None)
    monkeypatch.setattr(f"{KAFKA}.provision.commands.commands", lambda wanted, brokers, mechanism: ["kafka-acls"])
    monkeypatch.setattr(f"{KAFKA}.provision.status.status", lambda service: Status(None))
    monkeypatch.setattr("shoal.runtime.provision.passwords.password_of", lambda name, folder: f"password of {name}")
    for name in ("send", "wait_for_rest"):
        monkeypatch.setattr(f"{KAFKA}.provision.control.{name}", lambda *told_of: None)
    monkeypatch.setattr("shoal.experiments.find", lambda name: lambda folder, data: told.append(f"{folder} {data}"))
    return told


def outcome(words: list[str], folder: Path, log: list[str]) -> tuple[int, str, list[str], dict[str, str]]:
    folder.mkdir()
    (folder / "p.yaml").write_text(POLICY)
    (folder / "client.properties").write_text("client.id=ward\n")
    ring = [["keys", "new", "default"], ["keys", "rotate", "default"]]
    for line in ring if words[0] in ("keys", "reveal") else []:
        assert call([*line, "--ring", "ring.json"], folder).returncode == 0
    log.clear()
    done = call(words, folder, stdin="")
    left = {str(f.relative_to(folder)) for f in folder.rglob("*")}
    said = (done.stdout + done.stderr).replace(str(folder), "")
    if words[0] == "reveal":  # the time of the audit line
        said = said.split('"at"')[0] + said[-90:]
    return done.returncode, said, list(log), dict.fromkeys(sorted(left), "")


def test_every_option_has_a_sample():
    assert not {option for _, option in CASES} - set(SAMPLES)
    assert {base.split()[0] for base in BASES} == {
        "serve", "connect", "consume", "replay", "experiment", "policy", "keys", "reveal"
    }  # fmt: skip
    for first in ("serve", "connect"):
        commands = {name for name in build()[first] if not name.startswith("-")}
        assert commands == {base.split()[1] for base in BASES if base.startswith(first)}


@pytest.mark.parametrize(("base", "option"), CASES, ids=lambda word: word)
def test_an_option_has_an_effect_or_is_refused(base, option, log, tmp_path):
    words = [*base.split(), *BASES[base]]
    if option in words:
        at = words.index(option)
        changed = [*words[:at], option, *SAMPLES[option], *words[at + 2 :]]
    else:
        changed = [*words, option, *SAMPLES[option]]
    plain = outcome(words, tmp_path / "one", log)
    other = outcome(changed, tmp_path / "two", log)
    assert "defect" not in other[1]
    if other[0] == 2 and plain[0] == 0:
        return  # refused
    assert other != plain, f"{option} is ignored"
