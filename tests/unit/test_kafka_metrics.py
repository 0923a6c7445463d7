"""Metrics, health and logs of a worker, read from counters; no broker needed."""

from __future__ import annotations

import io
import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from shoal.connect.kafka import missing
from shoal.core.errors import OutputError, UsageError
from shoal.runtime.kafka.serve.counters import BOUNDS, Counters
from shoal.runtime.kafka.serve.journal import Journal, Trouble
from shoal.runtime.kafka.serve.metrics import STUCK, Health, Page, address_of
from tests.kafka.alarms import raised, scraped

ROOT = Path(__file__).resolve().parents[2]


class Waiting:
    """A view of one partition, as the counters see it."""

    def __init__(self, withheld: int, held: int, smallest: int | None, oldest: int | None) -> None:
        self.withheld, self.held, self.smallest, self.oldest = withheld, held, smallest, oldest

    @property
    def reasons(self) -> dict[str, int]:
        return {"rare": self.withheld // 2, "too_late": self.withheld - self.withheld // 2}

    @property
    def judged(self) -> tuple[int, int]:
        return self.withheld, self.held


@pytest.fixture
def counters() -> Counters:
    made = Counters.of(["ward", "research"])
    made.read, made.dead, made.lag, made.restoring = 100, 3, {0: 7, 1: 0}, False
    made.verify = 0.1
    made.versions, made.epochs = {"ward": 2}, {"default": 3}
    made.written |= {"ward": 97, "research": 60}
    made.stand("research", [Waiting(20, 5, 4, 1_000), Waiting(10, 2, None, None)])
    for seconds in (0.004, 0.02, 0.02, 30.0):
        made.committed(seconds)
    second = made.beside()
    second.lag, second.restoring = {0: 2}, False
    return made


def get(page: Page, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def page(counters: Counters):
    made = Page(":0", counters)
    yield made
    made.close()


def samples(page: Page) -> dict[tuple[str, str], float]:
    _, text = get(page, "/metrics")
    return {
        (s.name, ",".join(s.labels.values())): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def test_every_figure_is_there_and_right(page):
    found = samples(page)
    assert found["shoal_records_read_total", ""] == 100
    assert found["shoal_dead_letters_total", ""] == 3
    assert found["shoal_records_written_total", "ward"] == 97
    assert found["shoal_records_withheld_total", "research"] == 30
    assert found["shoal_withheld_reasons_total", "rare,research"] == 15
    assert found["shoal_withheld_reasons_total", "too_late,research"] == 15
    assert found["shoal_withheld_share", "research"] == pytest.approx(30 / 90)
    assert found["shoal_smallest_group", "research"] == 4
    assert ("shoal_smallest_group", "ward") not in found  # a view without promises has no groups
    assert found["shoal_oldest_held_seconds", "research"] > 1e9
    assert found["shoal_oldest_held_seconds", "ward"] == 0
    assert found["shoal_records_held", "research"] == 7
    assert found["shoal_lag_records", "0"] == 7
    assert found["shoal_view_version", "ward"] == 2
    assert found["shoal_key_epoch", "default"] == 3
    assert found["shoal_ready", ""] == 1


def test_commit_latency_is_a_histogram(page):
    found = samples(page)
    assert found["shoal_commit_seconds_bucket", "0.01"] == 1
    assert found["shoal_commit_seconds_bucket", "0.025"] == 3
    assert found["shoal_commit_seconds_bucket", str(BOUNDS[-1])] == 3
    assert found["shoal_commit_seconds_bucket", "+Inf"] == found["shoal_commit_seconds_count", ""] == 4
    assert found["shoal_commit_seconds_sum", ""] == pytest.approx(30.044)


def test_what_no_longer_waits_is_no_longer_shown(counters, page):
    counters.stand("research", [Waiting(20, 0, 3, None)])
    found = samples(page)
    assert found["shoal_oldest_held_seconds", "research"] == 0
    assert found["shoal_smallest_group", "research"] == 3


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 50), max_size=5)), min_size=1, max_size=12))
def test_what_is_withheld_is_counted_once_and_never_falls(turns):
    """Partitions come with what they withheld elsewhere, and go: the total is what this worker withheld itself."""
    made, mine, expected, before = Counters.of(["research"]), [], 0, 0
    for comes, withheld in turns:
        if comes or not mine:
            mine.append(Waiting(1000, 0, None, None))
            made.begin(mine[-1])
        else:
            mine.pop(0)
        for one, more in zip(mine, withheld, strict=False):
            one.withheld += more
            expected += more
        made.stand("research", mine)
        assert made.withheld["research"] == sum(made.reasons.values()) == expected >= before
        before = expected


def test_ready_only_after_the_restore_and_live_only_while_the_loop_turns(counters, page):
    assert get(page, "/readyz") == (200, "ok\n")
    counters.restoring = True
    assert get(page, "/readyz")[0] == 503
    assert get(page, "/livez")[0] == 200
    assert get(page, "/people")[0] == 404
    counters.restoring, counters.paused = False, True
    assert get(page, "/readyz") == (503, "paused\n")
    assert (samples(page)["shoal_ready", ""], samples(page)["shoal_paused", ""]) == (0, 1)
    counters.paused = False
    now = [1000.0]
    counters.beat = time.monotonic() - STUCK - 1
    assert samples(page)["shoal_ready", ""] == 0  # as on the page of its health
    health = Health(counters, lambda: now[0])
    counters.restoring, counters.beat = False, 1000.0
    assert health.ready
    now[0] += STUCK + 1
    assert not health.live
    assert not health.ready
    counters.restoring = True  # a long restore is work, not death
    assert health.live


def test_a_bad_address_is_told():
    for text in ("9100", "host:port", ":99999"):
        with pytest.raises(UsageError, match="host:port"):
            address_of(text)
    first = Page(":0", Counters())
    with pytest.raises(OutputError, match="cannot listen"):
        Page(f":{first.port}", Counters())
    first.close()


def test_logs_are_json_and_quote_nobody(counters):
    out = io.StringIO()
    journal = Journal(out, every=0, dataset="patients")
    journal.turn(counters)
    journal.say("serving")
    journal.say(Trouble("the group's offset is gone"))
    journal.failed(missing("patients"))
    journal.failed(ValueError("F. Ott is not a number"))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(entry["level"], entry["event"]) for entry in lines] == [
        ("info", "serving"),
        ("info", "note"),
        ("warn", "note"),
        ("error", "failed"),
        ("error", "failed"),
    ]
    assert all(entry["dataset"] == "patients" for entry in lines)
    assert lines[0]["lag"] == 7
    assert lines[-2]["text"] == "the topic 'patients' is not there"
    assert lines[-2]["hint"] == "run `shoal serve apply` first"
    assert "Ott" not in out.getvalue()


def test_the_dashboard_and_the_page_name_all_metrics_and_no_others(page):
    from scripts import grafana

    assert grafana.TARGET.read_text() == grafana.text(), "run scripts/grafana.py"
    there = {name for name, _ in samples(page) if not name.endswith(("_sum", "_count", "_created"))}
    named = re.findall(
        r"shoal_[a-z_]+", " ".join(t["expr"] for p in grafana.dashboard()["panels"] for t in p.get("targets", []))
    )
    assert set(named) == there
    told = set(re.findall(r"`(shoal_[a-z_]+)", (ROOT / "docs/how-to/kafka-operations.md").read_text()))
    assert told == {name.removesuffix("_bucket") for name in there}
    privacy = {"shoal_smallest_group", "shoal_withheld_share", "shoal_oldest_held_seconds"}
    assert privacy <= set(named)


def test_alert_rules_are_written_and_name_metrics_that_exist(page):
    from scripts import alerts

    assert alerts.TARGET.read_text() == alerts.text(), "run scripts/alerts.py"
    there = {name for name, _ in samples(page)}
    for rule in alerts.rules()["groups"][0]["rules"]:
        named = set(re.findall(r"shoal_[a-z_]+", rule["expr"]))
        assert named
        assert named <= there, rule["alert"]
        assert rule["annotations"]["summary"]


def test_alarms_are_raised_by_what_the_page_says_and_by_nothing_else(counters, page):
    before = scraped([page.port])
    assert raised(before, before) == {"ShoalHoldsTooLong"}  # what was counted long ago is no news
    assert raised([], []) == {"ShoalNobodyServes"}
    counters.stand("research", [Waiting(90, 0, 1, None)])
    counters.lost, counters.fresh, counters.dead = 1, 1, 4
    counters.lag = {0: 9_000, 1: 2_000}
    assert counters.regions is not None
    counters.regions.lag = {0: 80, 1: 30}
    told = {"ShoalRecordsLost", "ShoalStateLost", "ShoalDeadLetters", "ShoalClocks", "ShoalWithholdsMost"}
    assert raised(scraped([page.port]), before) == told | {"ShoalSmallestGroup", "ShoalLagGrows", "ShoalRegionsLag"}
    newer = [s._replace(labels=(("key", "default"), ("worker", "9")), value=4.0) for s in before if "epoch" in s.name]
    assert raised([*before, *newer], before) == {"ShoalHoldsTooLong", "ShoalKeysDiffer"}
    counters.paused = True
    assert {"ShoalPaused", "ShoalNobodyServes"} <= raised(scraped([page.port]), before)
    counters.paused, counters.restoring = False, True
    assert {"ShoalNotReady", "ShoalNobodyServes"} <= raised(scraped([page.port]), before)
