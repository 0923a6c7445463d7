"""The metrics of ``shoal stream``: names and health of a Kafka worker's, figures of the run, never a value."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from prometheus_client.parser import text_string_to_metric_families

from shoal.cli.stream_metrics import EVERY, StreamMetrics
from shoal.release.job import job_of
from shoal.release.stream import LocalRunner
from shoal.release.wishes import Wishes
from shoal.runtime.kafka.serve.counters import Counters
from shoal.runtime.kafka.serve.metrics import Page
from shoal.testing import HandClock


def families(page: Page) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics", timeout=30) as answer:
        return {family.name: family for family in text_string_to_metric_families(answer.read().decode())}


def value(found: dict[str, Any], name: str, **labels: str) -> float:
    return next(s.value for s in found[name].samples if s.labels == labels and not s.name.endswith("_created"))


def test_the_page_of_a_stream_has_the_names_of_a_worker_and_the_figures_of_the_run() -> None:
    out: list[pl.DataFrame] = []
    job: Any = job_of(Wishes({"z": 2, "window": "1h"}))
    runner = LocalRunner(job, job.key(), out.append, verify=1.0)
    source: Any = SimpleNamespace(bad=3)
    saved: Any = SimpleNamespace(written=0, sizes={})
    clock = HandClock(time.monotonic())
    metrics = StreamMetrics({"": runner}, source, saved, clock=clock)
    page = Page(":0", metrics.counters)
    try:
        runner.feed(pl.DataFrame({"time": [0, 1, 2], "subject": ["ada", "bob", "eve"], "value": ["x", "x", "secret"]}))
        saved.written, saved.sizes = 2, {"": 512}
        metrics.look()
        assert value(families(page), "shoal_records_read") == 0  # not so often
        clock.move(2 * EVERY)
        metrics.look()
        found = families(page)
        plain = Page(":0", Counters.of(["stream"]))
        try:
            # a worker that verifies has the three families of its checks, too
            assert set(families(plain)) <= set(found)
        finally:
            plain.close()
        assert value(found, "shoal_records_read") == 3
        assert value(found, "shoal_dead_letters") == 3
        assert value(found, "shoal_records_written", view="stream") == out[0].height == 1
        assert value(found, "shoal_records_withheld", view="stream") == 2
        assert value(found, "shoal_withheld_reasons", view="stream", reason="rare") == 2
        assert value(found, "shoal_smallest_group", view="stream") == 2
        assert value(found, "shoal_snapshots") == 2
        assert value(found, "shoal_state_bytes", view="stream") == 512
        assert value(found, "shoal_verify_checks", view="stream") == 1
        assert value(found, "shoal_ready") == 1
        assert not any(word in str(found) for word in ("secret", "ada", "bob", "eve"))
    finally:
        page.close()


def test_a_running_stream_answers_until_it_ends(tmp_path: Path) -> None:
    """A process that waits for more events tells how many it has had."""
    run = subprocess.Popen(
        [sys.executable, "-m", "shoal", "stream", "--z", "2", "--window", "1h", "--trust-times", "--metrics", ":0"],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stdin is not None
    assert run.stderr is not None
    rng = np.random.default_rng(1)
    for at in range(300):
        run.stdin.write(json.dumps({"time": at, "subject": f"u{rng.integers(9)}", "value": "x"}) + "\n")
    run.stdin.flush()
    said = next(line for line in run.stderr if "on port" in line)
    page: Any = SimpleNamespace(port=int(said.rsplit(" ", 1)[1]))
    for _ in range(600):
        found = families(page)
        if value(found, "shoal_records_read") == 300:
            break
        time.sleep(0.1)
    assert value(found, "shoal_records_read") == 300
    assert value(found, "shoal_records_written", view="stream") > 250
    run.communicate()
    assert run.returncode == 0
