"""The tools around a stream, on a real broker: generate, connect, consume, replay."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import polars as pl
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from stage import GUARD, drain

from shoal.cli import main
from shoal.connect.kafka import KafkaError
from shoal.core.errors import InputError, PolicyError
from shoal.core.keys import KeyRing
from shoal.policy.load import load
from shoal.runtime.kafka.provision.cluster import Cluster
from shoal.runtime.kafka.provision.provision import Provisioner
from shoal.runtime.kafka.serve.worker import Worker
from shoal.runtime.kafka.tools.collect import Collector
from shoal.runtime.kafka.tools.feed import Feeder
from shoal.runtime.kafka.tools.replay import Replay
from shoal.runtime.kafka.tools.send import TopicWriter
from shoal.runtime.kafka.tools.watch import Watch
from shoal.views.records import RecordGate

pytestmark = pytest.mark.system
NUMBER = itertools.count()
PARTITIONS = 2
SECRET = "cd" * 32

POLICY = """
dataset: patients
source: {{use: kafka, topic: {topic}, properties: admin.properties}}
columns:
  pid: {{role: subject, type: int}}
  name: {{role: identifier, type: str}}
  age: {{role: quasi, type: {age}, hierarchy: suppress}}
  diag: {{role: sensitive, type: str}}
  sent: {{role: plain, type: int}}
views:
  nurse:
    users: [{user}]
    show: [age, diag, sent]
  clerk:
    show: [diag]
"""


@pytest.fixture
def place(cluster, tmp_path: Path, monkeypatch, capfd):
    """A source topic, a policy over it, applied, and a way to run commands beside it."""
    number = next(NUMBER)
    topic, user = f"tools{number}", f"tool{number}"
    admin = AdminClient(cluster.login())
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        future.result(30)
    Cluster._until(lambda: topic in admin.list_topics(timeout=30).topics, "the source")  # a busy broker shows it later
    (tmp_path / "admin.properties").write_text("".join(f"{k}={v}\n" for k, v in cluster.login().items()))
    monkeypatch.setenv(f"SHOAL_PASSWORD_TOOL{number}", "tool-secret")
    monkeypatch.setenv("SHOAL_KEY", SECRET)
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY.format(topic=topic, user=user, age="int"))
    service = Provisioner(load(file))
    service.apply(service.plan())

    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def shoal(*words: str) -> subprocess.CompletedProcess[str]:
        """A command in this process: starting one takes seconds."""
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        sys.stdout.flush()
        found = capfd.readouterr()
        return subprocess.CompletedProcess(words, int(ended.value.code or 0), found.out, found.err)

    yield topic, file, shoal
    for number, handler in handlers.items():
        signal.signal(number, handler)
    service.destroy()


def work(file: Path, count: int) -> Worker:
    """A worker that has taken this many records."""
    worker = Worker(load(file), KeyRing.load(), commit_every=0.2)
    end = time.monotonic() + GUARD
    worker.run(lambda: worker.counters.read >= count or time.monotonic() > end)
    assert worker.counters.read >= count
    return worker


def test_generated_patients_reach_the_view_and_its_own_consumer_measures_and_checks(cluster, place):
    topic, file, shoal = place
    words = ("hospital", "--rows", "1500", "--seed", "5", "--sent", "sent")
    made = shoal("generate", *words, "--topic", topic, "--properties", "admin.properties")
    assert made.returncode == 0, made.stderr
    source = [msgspec.json.decode(m.value()) for m in drain(cluster, topic)]
    assert sorted(r["pid"] for r in source) == list(range(1, 1501))
    beside = shoal("generate", "hospital", "--rows", "1500", "--seed", "5", "-o", "beside.ndjson")
    assert beside.returncode == 0
    rows = [json.loads(line) for line in (file.parent / "beside.ndjson").read_text().splitlines()]
    assert sorted(({**r, "sent": 0} for r in source), key=lambda r: r["pid"]) == [{**r, "sent": 0} for r in rows]
    work(file, 1500)
    seen = shoal("consume", "policy.yaml", "--role", "nurse", "--end", "--sent", "sent", "--json")
    assert seen.returncode == 0, seen.stderr
    found = json.loads(seen.stdout)
    assert (found["records"], found["unreadable"], found["foreign"]) == (1500, 0, 0)
    assert 0 < found["latency_ms"]["p50"] <= found["latency_ms"]["p99"] < 600_000
    names = shoal("consume", "policy.yaml", "--role", "nurse", "--end", "--sent", "name")
    assert names.returncode == 2
    assert "does not see" in names.stderr


def test_a_view_that_shows_too_much_is_noticed(cluster, place):
    topic, _, shoal = place
    writer = TopicWriter(cluster.login(), f"{topic}.nurse")
    hidden = {"pid": "*", "name": "*", "age": 7, "diag": "E10", "sent": 1}
    leaks = [{**hidden, "name": "F. Ott"}, {**hidden, "iban": "DE02"}, {**hidden, "pid": 4}]
    writer.send([msgspec.json.encode(r) for r in [hidden, *leaks, hidden]])
    writer.send([b"no json"])
    writer.close()
    seen = shoal("consume", "policy.yaml", "--role", "nurse", "--end", "--json")
    assert seen.returncode == 1, seen.stderr
    found = json.loads(seen.stdout)
    assert (found["records"], found["foreign"], found["unreadable"]) == (6, 3, 1)
    assert "Ott" not in seen.stdout + seen.stderr


def test_promises_are_judged_from_the_topic_and_z_says_it_cannot_be(cluster, place):
    topic, file, shoal = place
    promised = file.read_text().replace(
        "    show: [age, diag, sent]",
        "    show: [age, diag]\n    promises: [{use: k-anonymity, k: 2}, {use: l-diversity, l: 2, column: diag}]\n"
        "    method: {use: batches, delay: 50}",
    )
    (file.parent / "promised.yaml").write_text(promised)
    good = [{"age": a, "diag": d} for a in ("[20, 29]", "[30, 39]") for d in ("E10", "E11")]
    writer = Producer(cluster.login())
    for one in good:  # as a worker publishes a group: one partition, one time
        writer.produce(f"{topic}.nurse", msgspec.json.encode(one), partition=0, timestamp=1_800_000_000_000)
    assert writer.flush(20) == 0
    kept = shoal("consume", "promised.yaml", "--role", "nurse", "--end")
    assert kept.returncode == 0, kept.stderr
    assert kept.stdout.count("verified:") == 4  # by columns, and by what is beside them
    writer = TopicWriter(cluster.login(), f"{topic}.nurse")
    writer.send([b'{"age": "41", "diag": "E10"}'])
    writer.close()
    broken = shoal("consume", "promised.yaml", "--role", "nurse", "--end")
    assert broken.returncode == 1
    assert broken.stdout.count("BROKEN:") == 4
    z = file.read_text().replace("role: plain, type: int", "role: time").replace("    show: [age, diag, sent]", (
        "    show: [age, diag, sent]\n    promises: [{use: z-anonymity, z: 5, window: 1h}]\n    method: z-anonymity"
    ))  # fmt: skip
    (file.parent / "z.yaml").write_text(z)
    told = shoal("consume", "z.yaml", "--role", "nurse", "--end")
    assert told.returncode == 0, told.stderr
    assert "z-anonymity cannot be verified from a view" in told.stdout
    assert "verified:" not in told.stdout


def test_a_folder_is_sent_once_though_the_sender_is_killed(cluster, place):
    topic, file, shoal = place
    folder = file.parent / "in"
    folder.mkdir()
    frame = pl.DataFrame({"pid": range(60_000), "name": ["N"] * 60_000, "age": [30] * 60_000})
    frame[:40_000].write_ndjson(folder / "a.ndjson")
    frame[40_000:].write_csv(folder / "b.csv")
    words = [sys.executable, "-m", "shoal", "connect", "load", "in", "--topic", topic]
    words += ["--properties", "admin.properties"]
    chance, kills = random.Random(11), 0
    for _ in range(12):
        process = subprocess.Popen(words, cwd=file.parent, stderr=subprocess.PIPE, text=True)
        try:
            _, told = process.communicate(timeout=chance.uniform(1.5, 3.0) if kills < 2 else GUARD)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
    assert process.returncode == 0, told
    times = Counter(msgspec.json.decode(m.value())["pid"] for m in drain(cluster, topic))
    assert set(times) == set(range(60_000))
    assert set(times.values()) == {1}, f"repeated after {kills} kills"
    again = shoal("connect", "load", "in", "--topic", topic, "--properties", "admin.properties")
    assert "0 records sent" in again.stderr
    # a file that grew is continued, one that was replaced is refused
    with (folder / "a.ndjson").open("a") as more:
        more.write('{"pid": 60000}\n')
    assert Feeder(cluster.login(), topic).run(folder) == 1
    (folder / "a.ndjson").write_text('{"pid": 9}\n')
    with pytest.raises(InputError, match="another file of this name"):
        Feeder(cluster.login(), topic).run(folder)


def test_a_half_sent_batch_is_sent_again_as_a_whole(cluster, place, monkeypatch):
    """The position and its records are one transaction: what fails between them leaves nothing behind."""
    topic, file, _ = place
    path = file.parent / "a.ndjson"
    path.write_text("".join(f'{{"pid": {n}}}\n' for n in range(12_000)))
    feeder = Feeder(cluster.login(), topic)
    whole = Feeder._send
    sent = []

    def failing(self, producer, batch):
        sent.append(len(batch))
        whole(self, producer, batch if len(sent) == 1 else batch[:100])
        if len(sent) == 2:
            producer.flush(10)  # they reach the broker, and are aborted
            raise RuntimeError("the sender dies here")

    monkeypatch.setattr(Feeder, "_send", failing)
    with pytest.raises(RuntimeError, match="dies here"):
        feeder.run(path)
    monkeypatch.setattr(Feeder, "_send", whole)
    assert feeder.position(path) == 5_000
    assert Feeder(cluster.login(), topic).run(path) == 7_000
    # transactions that nobody ended time out only after a minute: read what is there
    seen = Counter(msgspec.json.decode(m.value())["pid"] for m in drain(cluster, topic, "read_uncommitted"))
    assert set(seen) == set(range(12_000))
    assert {n for n, times in seen.items() if times > 1} == set(range(5_000, 5_100))


def test_a_view_becomes_parquet_and_is_continued_by_its_file_names(cluster, place):
    topic, file, shoal = place
    view = f"{topic}.nurse"
    login = cluster.login(next(iter(load(file).views["nurse"].users)), "tool-secret")
    (file.parent / "nurse.properties").write_text("".join(f"{k}={v}\n" for k, v in login.items()))

    def write(first: int, count: int) -> None:
        writer = TopicWriter(cluster.login(), view)
        numbers = range(first, first + count)
        values = [msgspec.json.encode({"age": n, "diag": "E10"}) for n in numbers]
        writer.send(values, [b"%d" % n for n in numbers])
        writer.close()

    write(0, 3000)
    words = ("connect", "save", "out", "--topic", view, "--properties", "nurse.properties", "--group", "nurse.files")
    first = shoal(*words)
    assert first.returncode == 0, first.stderr
    write(3000, 500)
    (file.parent / "out" / ".p0-half.part").write_text("half a file")  # as a killed run leaves it
    second = shoal(*words)
    assert "500 records written" in second.stderr
    assert "0 records written" in shoal(*words).stderr
    frame = pl.concat([pl.read_parquet(p) for p in (file.parent / "out").glob("p*.parquet")])
    assert sorted(frame["age"]) == list(range(3500))
    admin = AdminClient(cluster.login())
    places = [TopicPartition(view, p, 10**9) for p in range(PARTITIONS)]
    ends = {p: Collector(login, view, file.parent / "out").positions()[p] for p in range(PARTITIONS)}
    write(3500, 400)
    for place_ in places:
        place_.offset = ends[place_.partition] + 50
    for future in admin.delete_records(places).values():
        future.result(30)
    lost = shoal(*words)
    assert lost.returncode == 3
    assert "deleted before they were read" in lost.stderr


@pytest.fixture
def letters(cluster, place, monkeypatch):
    """Forty records and one that is no JSON; a worker that could not read ten of them yet."""
    topic, file, _ = place
    writer = Producer(cluster.login())
    for number in range(40):
        record = {"pid": number, "name": "F. Ott", "age": number, "diag": "E10" if number < 30 else "hard", "sent": 1}
        writer.produce(topic, msgspec.json.encode(record), key=str(number), partition=number % 2)
    writer.produce(topic, b"Ott, no json", partition=0)
    writer.flush(20)
    able = RecordGate.many

    def unable(self, records):
        kept = list(records)
        hard = [at for at, record in enumerate(kept) if b"hard" in record]
        return able(self, [b"" if at in hard else record for at, record in enumerate(kept)])

    with monkeypatch.context() as patch:
        patch.setattr(RecordGate, "many", unable)
        work(file, 41)
    return drain(cluster, f"{topic}.shoal.dead")


def test_dead_letters_are_pointers_and_their_records_are_queued_once(cluster, place, letters):
    topic, file, shoal = place
    assert len(letters) == 11
    assert not any("Ott" in m.value().decode() for m in letters)
    dry = shoal("replay", "policy.yaml", "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    nothing = {"partly": 0, "settled": 0, "gone": 0}
    assert json.loads(dry.stdout) == {"pointers": 11, "ready": 10, "still": 1, **nothing}
    assert "Ott" not in dry.stdout + dry.stderr
    assert len(drain(cluster, topic)) == 41
    done = shoal("replay", "policy.yaml")
    assert "10 queued again, 1 still" in done.stdout
    source = drain(cluster, topic)
    times = Counter(m.key() for m in source)
    assert {int(k) for k, n in times.items() if n == 2} == set(range(30, 40))
    work(file, 10)
    for view in ("nurse", "clerk"):
        assert len([m for m in drain(cluster, f"{topic}.{view}") if m.value()]) == 40
    # nothing is queued twice, and the one that does not fit keeps its pointer
    once_more = Replay(load(file), KeyRing.load()).run()
    assert (once_more.pointers, once_more.ready, once_more.still) == (1, 0, 1)
    high = max(m.offset() for m in source if m.partition() == 0) + 1
    admin = AdminClient(cluster.login())
    for future in admin.delete_records([TopicPartition(topic, 0, high)]).values():
        future.result(30)
    assert Replay(load(file), KeyRing.load()).run().gone == 1


def test_what_some_views_have_published_or_newer_versions_have_read_is_not_queued(cluster, place, letters):
    topic, file, shoal = place
    writer = Producer(cluster.login())
    pointer = {"topic": topic, "partition": 1, "error": "unreadable"}
    for offset, view in enumerate((f"{topic}.nurse", f"{topic}.older")):
        writer.produce(f"{topic}.shoal.dead", msgspec.json.encode({**pointer, "offset": offset, "views": [view]}))
    writer.flush(20)
    found = Replay(load(file), KeyRing.load()).run(dry=True)
    assert (found.pointers, found.ready, found.partly, found.settled) == (13, 10, 1, 1)
    # a changed policy makes a new version of its views, which reads the log from its beginning
    file.write_text(file.read_text().replace("show: [age, diag, sent]", "show: [age, diag]"))
    with pytest.raises(PolicyError, match="not what was applied"):
        Replay(load(file), KeyRing.load()).run()
    service = Provisioner(load(file))
    service.apply(service.plan(), keys=KeyRing.load())
    seen = shoal("consume", "policy.yaml", "--role", "nurse", "--end", "--json")
    assert seen.returncode == 0, seen.stderr
    assert json.loads(seen.stdout)["records"] == 40  # of the new version, the only one this user can see
    later = Replay(load(file), KeyRing.load()).run(dry=True)
    # the clerk's view is the old one: its ten records are still missing there, and are now in the nurse's
    assert (later.ready, later.partly, later.still) == (0, 10, 1)


def test_a_missing_topic_and_a_wrong_password_are_told(cluster, place):
    topic, file, shoal = place
    with pytest.raises(KafkaError, match="not there"):
        TopicWriter(cluster.login(), "nowhere")
    with pytest.raises(KafkaError, match="_AUTHENTICATION"):
        TopicWriter(cluster.login(password="no"), topic)
    with pytest.raises(PolicyError, match="no view"):
        Watch(load(file), "doctor", cluster.login())
    none = shoal("consume", "policy.yaml", "--role", "nurse", "--user", "nobody")
    assert none.returncode == 2
    assert "no such user" in none.stderr
    with pytest.raises(KafkaError, match="wrong user or password"):
        Watch(load(file), "nurse", cluster.login(password="no")).run(to_end=True)
