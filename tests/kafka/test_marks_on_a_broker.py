"""The law of ``tests/attacks/test_marks.py`` on a broker: every topic but the source, and every command around."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from stage import SECRET

from shoal.runtime.kafka.serve.worker import Worker
from tests.attacks.test_marks import POLICY, Marks, clean, clear, left, rows, run
from tests.attacks.test_marks_of_every_road import pages

__all__ = ["pages", "run"]  # fixtures
pytestmark = pytest.mark.system
STREAMS = POLICY[: POLICY.index("  house:")] + POLICY[POLICY.index("  market:") :]  # the others are of tables
SERVED = STREAMS.replace(
    "dataset: patients", "dataset: patients\nsource: {use: kafka, topic: {topic}, properties: admin.properties}"
)


def test_a_service_from_its_source_to_its_consumers(stage, run, pages, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SHOAL_KEY", SECRET)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    here = stage(SERVED)
    policy = here.file.name
    marks = Marks()
    table = [clear(row) for row in rows(marks)]
    table += [{**table[0], "age": marks.text()}, {**table[0], "zip": [marks.text()], "diag": {marks.text(): 1}}]
    (tmp_path / "inputs" / "in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in table))
    run("connect", "load", "inputs/in.ndjson", "--topic", here.topic, "--properties", "admin.properties")
    run("serve", "pause", policy)
    run("serve", "resume", policy)
    turn = Worker.run

    def until_read(self, asked):
        done = threading.Event()

        def stop() -> bool:
            if self.counters.read >= len(table):
                done.set()
                os.kill(os.getpid(), signal.SIGTERM)
            return done.is_set() or asked()

        return turn(self, stop)

    monkeypatch.setattr(Worker, "run", until_read)
    run("serve", "run", policy, "--commit-every", "0.2", "--log", "json", "--verify", "1", "--metrics", ":0", "--watch")
    assert set(pages) == {"metrics", "live"}
    clean(pages, "pages")
    run("serve", "reload", policy)
    topics = list(AdminClient(here.cluster.login()).list_topics(timeout=30).topics)
    mine = [name for name in topics if name.startswith(f"{here.topic}.")]
    assert {f"{here.topic}.{part}" for part in ("desk", "market", "held", "shoal.dead", "shoal.changelog")} <= {*mine}
    seen = {
        name: [b"%r %r %r" % (m.key(), m.value(), m.headers()) for m in here.drain(name, "read_uncommitted")]
        for name in mine
    }
    assert len(seen[f"{here.topic}.desk"]) >= 30
    assert len(seen[f"{here.topic}.shoal.dead"]) >= 1
    clean({name: b"\n".join(records) for name, records in seen.items()}, "topics")
    run("consume", policy, "--role", "desk", "--end", "--json", "--properties", "admin.properties", code=None)
    run(
        "consume", policy, "--role", "desk", "--end", "-o", "seen.ndjson", "--properties", "admin.properties", code=None
    )
    run("replay", policy, "--dry-run", "--json")
    run("replay", policy)
    words = ("--topic", f"{here.topic}.desk", "--properties", "admin.properties")
    run("connect", "save", "saved", *words)
    run("serve", "status", policy, "--json", code=None)
    assert any(name.endswith("parquet") for name in left(tmp_path))
    for number, handler in handlers.items():
        signal.signal(number, handler)
