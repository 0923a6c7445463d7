"""A served policy is observed: metrics, health and logs of a real worker, and the audit topic."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from stage import GUARD, SECRET

from shoal.policy.load import load
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.service import Service
from shoal.runtime.provision.widening import fingerprint

pytestmark = pytest.mark.system

POLICY = """
dataset: patients
source: {use: kafka, topic: {topic}, properties: admin.properties}
columns:
  pid: {role: subject, type: int}
  name: {role: identifier, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  diag: {role: sensitive, type: str}
views:
  ward:
    show: [age, name]
    masks: {name: {use: blur, first: 1}}
  research:
    show: [age, diag]
    promises: [{use: k-anonymity, k: 5}]
    method: {use: batches, delay: 200}
"""


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=GUARD) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def figures(port: int) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(get(port, "/metrics")[1])
    return {(s.name, ",".join(s.labels.values())): s.value for f in families for s in f.samples}


def test_a_worker_is_ready_after_its_restore_and_its_metrics_add_up(stage):
    made = stage(POLICY)
    people = [{"pid": n, "name": f"Person{n}", "age": 20 + n % 60, "diag": "E10"} for n in range(3000)]
    made.send([(msgspec.json.encode(p), str(p["pid"])) for p in people])
    made.send([(b"Person, no json", "x")])
    words = [sys.executable, "-m", "shoal", "serve", "run", str(made.file), "--commit-every", "0.2"]
    process = subprocess.Popen(
        [*words, "--metrics", ":0", "--log", "json", "--verify", "1"],
        env={**os.environ, "SHOAL_KEY": SECRET},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        port = int(json.loads(process.stderr.readline())["text"].rpartition(" ")[2])
        first = get(port, "/readyz")[0]
        assert first == 503  # the group has not met yet
        made.until(lambda: get(port, "/readyz")[0] == 200)
        made.until(lambda: figures(port)["shoal_records_read_total", ""] >= 3001)
        made.until(lambda: sum(v for (n, _), v in figures(port).items() if n == "shoal_lag_records") == 0)
        time.sleep(1)
        found = figures(port)
        assert found["shoal_records_written_total", "ward"] == 3000
        assert found["shoal_dead_letters_total", ""] == 1
        released, held = (found[n, "research"] for n in ("shoal_records_written_total", "shoal_records_held"))
        assert released + held + found["shoal_records_withheld_total", "research"] == 3000
        assert 0 < held <= 2 * 200
        assert found["shoal_smallest_group", "research"] >= 5
        assert 0 < found["shoal_oldest_held_seconds", "research"] < 600
        assert found["shoal_commit_seconds_count", ""] >= 1
        assert found["shoal_verify_share", ""] == 1
        assert found["shoal_verify_checks_total", "research"] >= 1  # every group that was published was judged before
        assert found["shoal_verify_not_judged_total", "research"] == 0
        assert get(port, "/livez")[0] == 200
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=GUARD)
    assert process.returncode == 0
    lines = [json.loads(line) for line in rest.splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert lines[-1]["read"] == 3001
    assert "Person" not in rest


class Joining:
    """A worker that has not joined its group yet: what is unread by then?"""

    def __init__(self, counters: Counters) -> None:
        self.counters, self.unread = counters, {}

    def run(self, stop) -> Counters:
        self.unread = dict(self.counters.lag)
        return self.counters


def test_what_a_worker_says_is_whole_before_its_first_commit(stage):
    made = stage(POLICY)
    people = [{"pid": n, "name": f"Person{n}", "age": 20 + n % 60, "diag": "E10"} for n in range(600)]
    made.send([(msgspec.json.encode(p), None, p["pid"] % 2) for p in people])
    counters = Counters.of(["ward", "research"])
    joining = Joining(counters)
    Service(made.file, lambda policy: joining, counters=counters).run(lambda: bool(joining.unread))
    assert joining.unread == {0: 300, 1: 300}
    made.serve()
    counters.lag = {0: 7, 1: 7, 2: 7}  # as while it stood still: one of them is another worker's by now
    seen: list[tuple[dict[int, int], dict[str, int]]] = []

    def stop() -> bool:
        if not counters.restoring:
            seen.append((dict(counters.lag), dict(counters.smallest)))
        return bool(seen)

    made.worker(counters=counters).run(stop)
    assert counters.commits == 0
    assert seen[0][0] == {0: 0, 1: 0}
    assert seen[0][1]["research"] >= 5
    assert counters.versions == {"ward": 1, "research": 1}
    assert counters.epochs == {"default": 1}


def test_the_audit_topic_says_who_applied_which_policy(stage, cluster):
    made = stage(POLICY)
    entries = [json.loads(m.value()) for m in made.drain(f"{made.topic}.shoal.audit")]
    assert entries[0]["policy"] == fingerprint(load(made.file))
    assert entries[0]["by"] == cluster.login()["sasl.username"]
    assert set(entries[0]["views"]) == {"ward", "research"}
    made.write_policy(POLICY.replace("k: 5", "k: 7"))
    made.apply(allow_wider=True)
    entries = [json.loads(m.value()) for m in made.drain(f"{made.topic}.shoal.audit")]
    whole = [entry for entry in entries if "step" not in entry]
    assert whole[-1]["policy"] == fingerprint(load(made.file)) != whole[0]["policy"]
    # the first apply had no audit topic to keep its journal in
    steps = [entry["step"] for entry in entries[entries.index(whole[0]) + 1 :] if "step" in entry]
    assert steps == ["begun", "made", "switched", "ended"]
