"""The live page: what it shows, that it is read-only, bounded, and tells its end."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from shoal.core.errors import InputError
from shoal.datasets.streams import stream
from shoal.release.job import job_of
from shoal.release.stream import LocalRunner
from shoal.release.wishes import Wishes
from shoal.web.board import (
    AT_MOST,
    ERRORS,
    EVERY,
    MOST_HELD,
    MOST_SAMPLES,
    Board,
    Hidden,
    Sample,
    of_service,
    of_stream,
)
from shoal.web.gate import Gate
from shoal.web.live import LivePage, live_app
from shoal.web.pages.live import PARTS, parts_of
from tests.web.forms import BASE, HOST


def ticking(step: float = 1.0):
    return itertools.count(0.0, step).__next__


def filled(looks: int = 5) -> Board:
    numbers = itertools.count(1)

    def sample() -> Sample:
        n = next(numbers)
        found = {"z": 10 + n, "smallest_group": 7, "held": 3, "delay_mean": 4.0, "delay_most": 9}
        return of_stream(
            {"events": 100 * n, "released": 60 * n, "withheld": 40 * n, "level_1": 60 * n, "rare": 40 * n}, found
        )

    board = Board("visits <b>", sample, clock=ticking())
    for _ in range(looks):
        board.look()
    return board


def test_everything_an_operator_asks_for_is_there():
    board = filled()
    board.failed("line 3 cannot be read")
    text = "".join(parts_of(board).values())
    for words in (
        "100/s",
        "level 1",
        "shown by too few people",
        "z over time",
        "Smallest group",
        "most 9",
        "Held",
        "Memory",
        "line 3",
    ):
        assert words in text
    assert set(parts_of(board)) == set(PARTS) == set(parts_of(Board("empty", lambda: Sample(0.0))))


def test_a_page_that_is_opened_before_the_first_event_is_told_so():
    board = Board("empty", lambda: Sample(0.0))
    board.ended = True
    gate = Gate(live_app(board), [HOST], read_only=True)
    with TestClient(gate, base_url=BASE) as client:
        client.get(gate.link())
        assert "No event yet" in client.get("/events").text


def test_what_a_board_keeps_is_bounded():
    board = filled(5 * MOST_SAMPLES)
    assert len(board.history) <= MOST_SAMPLES
    assert board.history[-1].events == 500 * MOST_SAMPLES
    for n in range(3 * ERRORS):
        board.failed(f"error {n}")
    assert len(board.errors) == ERRORS
    assert board.errors[-1][1] == f"error {3 * ERRORS - 1}"


def test_between_two_samples_nothing_is_asked():
    asked = []
    board = Board("x", lambda: asked.append(1) or Sample(0.0), clock=ticking(0.01))
    for _ in range(100):
        board.look()
    assert len(asked) <= 3


def test_a_service_is_shown_by_view():
    counters = SimpleNamespace(
        lag={0: 3, 1: 4}, dead=2, smallest={"ward": 5}, commit_seconds=0.02, reasons={("ward", "rare"): 7},
        written={"ward": 90, "open": 10}, withheld={"ward": 10, "open": 0}, held={"ward": 6}, read=100,
    )  # fmt: skip
    board = Board("patients", lambda: of_service(counters), clock=ticking())
    board.look()
    text = "".join(parts_of(board).values())
    for words in ("ward", "Lag", "Dead letters", "20 ms", "rare", "90"):
        assert words in text


def test_people_hidden_are_measured_without_a_tuner_and_at_a_small_price():
    frames = list(stream("domains", scale=0.002, seed=1, hours=(0, 6)).iter_slices(500))

    def run(clock):
        job = job_of(Wishes({"z": 3, "window": "1h"}))
        runner, found = LocalRunner(job, bytes(32), lambda part: None), []
        hidden = Hidden(runner.method.engine, clock)
        for frame in frames:
            runner.feed(frame)
            hidden.look()
            if hidden.p_k is not None and (not found or found[-1] != hidden.p_k):
                found.append(hidden.p_k)
        return found

    job = job_of(Wishes({"z": 3, "window": "1h"}))
    whole = LocalRunner(job, bytes(32), lambda part: None)
    watch = whole.method.engine.watch(3_600_000_000, 2)
    for frame in frames:
        whole.feed(frame)
    true = [row["p_k"] for row in watch.rows]
    always = run(itertools.count(0.0, 1e6).__next__)
    assert len(always) > 1
    assert set(always) <= set(true[1:])  # whole windows only, each as it is measured from the beginning
    assert run(lambda: 0.0) == []  # no time has passed: it may cost nothing
    figures = of_stream({"events": 1}, {"z": 3}, None, always[0]).figures
    assert figures["p_k"] == always[0]


class Measured:
    """The engine of a stream where measuring costs ``price`` seconds per look and is done after ``looks`` of them."""

    def __init__(self, price: float, looks: int, held: int = 0) -> None:
        self.price, self.looks, self.held = price, looks, held
        self.watching, self.promise = None, SimpleNamespace(spans=lambda at: at + 3_600_000_000)

    def watch(self, every: int, k: int) -> SimpleNamespace:
        self.watching = SimpleNamespace(rows=[], spent=0.0, held=self.held)
        return self.watching

    def go_on(self) -> None:
        if self.watching is not None:
            self.watching.spent += self.price
            if self.watching.spent >= self.price * self.looks:
                self.watching.rows = [{"p_k": 0.1}, {"p_k": 0.6}]


@pytest.mark.parametrize(("price", "looks"), [(0.01, 3), (0.2, 2), (0.2, 50), (1.5, 10), (0.1, 10**9)])
def test_measuring_people_hidden_spends_only_what_was_saved(price, looks):
    now = [0.0]
    engine = Measured(price, looks)
    hidden = Hidden(engine, lambda: now[0])
    for _ in range(60_000):
        engine.go_on()
        hidden.look()
        now[0] += EVERY
        spent = hidden.spent + (engine.watching.spent if engine.watching else 0.0)
        assert spent <= AT_MOST * now[0] + price + 1e-9  # one look may go over
    assert (hidden.p_k == 0.6) == (looks < 10**9)


def test_a_window_that_is_too_full_is_not_measured():
    engine = Measured(0.001, 10**9, held=MOST_HELD + 1)
    hidden = Hidden(engine, itertools.count(0.0, 100.0).__next__)
    begun = 0
    for _ in range(50):
        before = engine.watching
        hidden.look()
        begun += before is None and engine.watching is not None
    assert (begun, engine.watching, hidden.p_k) == (1, None, None)


def test_what_ended_a_run_is_said_without_a_value():
    board = filled()
    board.broke(InputError("cannot be read as CSV", where="visits.csv"))
    board.broke(ValueError("could not convert F. Ott"))
    shown = parts_of(board)["errors"]
    assert "cannot be read as CSV" in shown
    assert "an unexpected ValueError" in shown
    assert "Ott" not in shown


def test_the_page_is_read_only_and_behind_the_gate():
    board = filled()
    gate = Gate(live_app(board), [HOST], read_only=True)
    with TestClient(gate, base_url=BASE, headers={"origin": BASE}) as client:
        assert client.get("/").status_code == 403
        assert client.get("/events").status_code == 403
        client.get(gate.link())
        page = client.get("/").text
        assert "visits &lt;b&gt;" in page
        assert client.post("/").status_code == 403
        assert client.put("/events").status_code == 403
        assert client.get("/", headers={"host": "evil.example"}).status_code == 421
        board.end()
        told = client.get("/events").text
        message = json.loads(re.search(r"^data: (.*)$", told, re.M)[1])
        assert message["ended"]
        assert set(message["parts"]) == set(PARTS)
        assert board.listeners == 0
        again = client.get("/events").text  # a page that comes back gets the whole history
        assert re.search(r"^data: (.*)$", again, re.M)[1] == json.dumps(
            message, separators=(",", ":"), ensure_ascii=False
        )


def test_a_page_beside_a_run_is_served_and_closed():
    said = []
    page = LivePage(filled(), said.append)
    try:
        link = re.search(r"http\S+", said[0])[0]
        visit = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        visit.open(link, timeout=30).close()
        with visit.open(link.partition("/enter")[0] + "/", timeout=30) as shown:
            assert "Events per second" in shown.read().decode()
    finally:
        page.close()
    assert page.board.ended
    page.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(link, timeout=5)


@pytest.mark.slow
def test_a_stream_from_the_command_line_is_watched(tmp_path: Path):
    events = stream("domains", scale=0.0005, seed=1)
    events = events.with_columns(subject="person-" + events["subject"], value="site-" + events["value"])
    started = subprocess.Popen(
        [sys.executable, "-m", "shoal", "stream", "--z", "2", "--window", "1h", "--watch", "-o", "out.ndjson"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdin is not None
    assert started.stderr is not None
    try:
        started.stdin.write(b"no record\n" + events.write_ndjson().encode())
        started.stdin.flush()
        link = re.search(rb"http\S+", started.stderr.readline())[0].decode()
        visit = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        visit.open(link, timeout=30).close()
        with visit.open(link.partition("/enter")[0] + "/events", timeout=30) as told:
            for line in told:
                if line.startswith(b"data: ") and "shown by too few" in json.loads(line[6:])["parts"]["became"]:
                    break
            started.stdin.close()
            rest = told.read()
        assert b'"ended":true' in rest
    finally:
        started.stdin.close()
        assert started.wait(60) == 0
        started.stderr.close()
    assert b"1 lines cannot be read" in rest
    assert "person-" not in rest.decode()
    assert "site-" not in rest.decode()
