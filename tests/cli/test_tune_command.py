"""``shoal tune`` and ``shoal.tune``: each point can be taken, and the proposal is the best of them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal as package
from shoal.datasets.hospital import hospital
from shoal.measures.events import event_loss, window_risk
from shoal.measures.frontier import frontier
from shoal.policy.load import parse
from shoal.release.tune import Varied, tune

POLICY = """
dataset: hospital
columns:
  pid: subject
  zip: {role: quasi, type: str, hierarchy: {use: prefix, length: 5}}
  sex: quasi
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 120}}
  diag: sensitive
views:
  research:
    show: [zip, sex, age, diag]
    promises: [{use: k-anonymity, k: 3}]
  delayed:
    show: [sex, age]
    promises: [{use: k-anonymity, k: 3}]
    method: {use: fads, delay: 40, reuse: never}
  ward:
    show: [sex, age]
"""
VISITS = """
dataset: visits
columns: {time: {role: time, unit: s}, client: subject, site: {role: quasi, hierarchy: path}}
views:
  market:
    show: [time, site]
    promises: [{use: z-anonymity, z: 2, window: 40s}]
    method: z-anonymity
"""
CURVES = """
dataset: curves
columns: {who: subject, W0: quasi, W1: quasi, W2: quasi, W3: quasi}
views:
  shapes:
    show: [W0, W1, W2, W3]
    promises: [{use: kP-anonymity, k: 6, p: 3}]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    hospital(120, seed=3).write_csv(tmp_path / "t.csv")
    rng = np.random.default_rng(1)
    events = {
        "time": np.arange(0, 600, 2),
        "client": [f"u{i}" for i in rng.integers(0, 20, 300)],
        "site": [f"{'abcd'[i]}.shop" for i in rng.integers(0, 4, 300)],
    }
    pl.DataFrame(events).write_ndjson(tmp_path / "e.ndjson")
    curves = pl.DataFrame({f"W{i}": rng.integers(0, 9, 60) for i in range(4)})
    curves.with_columns(who=pl.Series(range(60))).write_csv(tmp_path / "c.csv")
    for name, text in (("table", POLICY), ("visits", VISITS), ("curves", CURVES)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def points(shoal, *words: str) -> dict:
    made = shoal("tune", *words, "--seed", "1", "--json")
    assert made.returncode in (0, 1), made.stderr
    return json.loads(made.stdout)


def test_the_command_of_a_point_gives_the_release_that_was_measured(shoal, files):
    found = points(shoal, "table.yaml", "t.csv", "--view", "research", "--methods", "mondrian,datafly", "--k", "3,9")
    assert len(found["tuning"]["points"]) == 4
    for point in found["tuning"]["points"]:
        words = shlex.split(point["command"])
        made = shoal(*words[1:], "--report", "r.json")
        assert made.returncode == 0, made.stderr
        report = json.loads((files / "r.json").read_text())
        assert report["loss"]["gcp"] == point["loss"]
        assert report["risk_after"]["average"] == point["risk"]
        assert shlex.join(shlex.split(point["options"])) in point["command"]


@pytest.mark.parametrize(
    ("words", "wrote"),
    [
        (["table.yaml", "t.csv", "--view", "delayed", "--methods", "fads", "--k", "3", "--delay", "9"], "released.csv"),
        (["visits.yaml", "e.ndjson", "--z", "3", "--window", "20s"], "released.ndjson"),
        (["curves.yaml", "c.csv", "--methods", "kapra", "--k", "6"], "released.csv"),
    ],
    ids=["delay", "z", "curves"],
)  # fmt: skip
def test_streams_and_curves_have_points_that_can_be_taken(shoal, files, words, wrote):
    found = points(shoal, *words)
    best = found["best"]
    assert 0 < best["loss"] < 1
    assert 0 < best["risk"] <= 1
    assert shoal(*shlex.split(best["command"])[1:]).returncode == 0
    assert (files / wrote).is_file()


def test_the_proposal_meets_the_goal_and_is_the_best_that_does(shoal, files):
    words = ["table.yaml", "t.csv", "--view", "research", "--methods", "mondrian,topdown,datafly"]
    for goal, key in ((["--max-risk", "0.15"], "loss"), (["--max-loss", "0.5"], "risk"), ([], "loss")):
        found = points(shoal, *words, *goal)
        most = {name: float(goal[1]) for name in ("risk", "loss") if f"--max-{name}" in goal}
        meeting = [p for p in found["tuning"]["points"] if all(p[n] <= m for n, m in most.items())]
        assert found["best"][key] == min(p[key] for p in meeting)
        assert all(found["best"][n] <= m for n, m in most.items())


def test_a_goal_nobody_reaches_is_told_and_ends_with_one(shoal, files):
    words = ("tune", "table.yaml", "t.csv", "--view", "research", "--methods", "datafly", "--max-loss", "0")
    made = shoal(*words)
    assert made.returncode == 1
    assert "no point meets the goal" in made.stdout


def test_a_page_and_a_picture_of_the_points(shoal, files):
    words = ("tune", "table.yaml", "t.csv", "--view", "research", "--methods", "datafly", "--k", "3,5")
    for name in ("page.html", "picture.svg"):
        assert shoal(*words, "--report", name).returncode == 0
        assert "Loss against risk" in (files / name).read_text()
    assert "--method datafly" in (files / "page.html").read_text()
    assert str(files) not in (files / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["table.yaml", "t.csv", "--view", "research", "--k", "2"], "--k"),
        (["table.yaml", "t.csv", "--view", "research", "--z", "9"], "--z"),
        (["table.yaml", "t.csv", "--view", "research", "--max-delay", "9"], "--max-delay"),
        (["table.yaml", "t.csv", "--view", "research", "--max-loss", "20"], "--max-loss"),
        (["table.yaml", "t.csv", "--view", "research", "--rows", "0"], "--rows"),
        (["table.yaml", "t.csv", "--view", "research", "--report", "t.csv"], "t.csv"),
        (["table.yaml", "t.csv", "--view", "ward"], "--view"),
        (["visits.yaml", "e.ndjson", "--window", "2h"], "--window"),
        (["visits.yaml", "e.ndjson", "--k", "9"], "--k"),
    ],
    ids=lambda value: " ".join(value[2:]) if isinstance(value, list) else "",
)
def test_what_cannot_be_tuned_is_refused_by_its_option(shoal, files, words, place):
    made = shoal("tune", *words)
    assert made.returncode == 2
    assert place in made.stderr.splitlines()[0]
    assert "hint:" in made.stderr


def test_a_point_that_cannot_be_reached_says_why_and_the_others_stay():
    people = pl.DataFrame({"age": [20, 21, 50, 52]})
    found = package.tune(people, quasi=["age"], methods="mondrian", k=[2, 9], seed=1)
    assert [bool(p.note) for p in found.points] == [False, True]
    assert found.best is not None
    with pytest.raises(package.PromiseError):
        package.tune(people, quasi=["age"], methods="mondrian", k=[9], seed=1)


def test_a_sample_has_whole_people_and_the_first_events():
    visits = hospital(400, seed=2, visits=3)
    found = tune(
        visits, {"policy": parse(POLICY), "view": "research", "seed": 1}, Varied(methods=["datafly"]), rows=100
    )
    assert 60 < found.rows < 160
    assert found.of == visits.height
    stream = {"policy": parse(POLICY), "view": "delayed", "seed": 1}
    assert tune(visits, stream, Varied(methods=["fads"], k=[3], delay=[20]), rows=100).rows == 100


def test_nothing_of_a_person_is_in_the_words_of_a_result():
    people = hospital(100, seed=5)
    found = package.tune(people, quasi=["age", "zip"], sensitive="diag", methods="datafly", l=2, k=[2, 90], seed=1)
    for text in (str(found), repr(found), found._repr_html_(), found.page("t")):
        assert not [z for z in people["zip"].unique() if z in text]


SITES = st.sampled_from(["a.x", "b.x", "c.y", "d.y", "e.z"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(SITES, st.booleans(), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12))
def test_loss_and_risk_of_events_are_what_their_definitions_say(rows):
    original = pl.DataFrame({"site": [r[0] for r in rows]})
    kept = [at for at, r in enumerate(rows) if r[1]]
    texts = [rows[at][0].split(".")[1] for at in kept]
    shown = pl.DataFrame({"site": texts}, schema={"site": pl.String})
    different = len({r[0] for r in rows})
    lost = float(len(rows) - len(kept))
    for text in texts:
        under = {rows[at][0] for at, other in zip(kept, texts, strict=True) if other == text}
        lost += (len(under) - 1) / (different - 1) if different > 1 else 0
    assert event_loss(original, shown, np.array(kept, np.int64), ["site"]) == pytest.approx(lost / len(rows))
    people, windows = [rows[at][2] for at in kept], [rows[at][3] for at in kept]
    sets: dict[tuple[int, int], set[str]] = {}
    for person, window, text in zip(people, windows, texts, strict=True):
        sets.setdefault((window, person), set()).add(text)
    chances = [1 / sum(o[0] == key[0] and sets[o] == own for o in sets) for key, own in sets.items()]
    expected = sum(chances) / len(chances) if chances else 0.0
    found = window_risk(pl.Series(people, dtype=pl.Int64), shown, np.array(windows, np.int64))
    assert found == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8))
def test_the_frontier_is_what_nobody_beats(pairs):
    for point, best in zip(pairs, frontier(pairs), strict=True):
        beaten = any(o[0] <= point[0] and o[1] <= point[1] and o != point for o in pairs)
        assert best is not beaten


def test_numbers_lose_the_width_of_their_interval():
    ages = pl.DataFrame({"age": [20, 25, 40]})
    shown = pl.DataFrame({"age": ["[20, 25]", "[20, 25]", "*"]})
    assert event_loss(ages, shown, np.arange(3), ["age"]) == pytest.approx((0.25 + 0.25 + 1) / 3)


def test_a_shorter_window_is_stronger_than_the_policy_and_a_longer_one_is_refused():
    policy = parse(VISITS)
    events = pl.DataFrame({"time": [0, 30], "client": ["a", "b"], "site": ["x", "x"]})
    assert package.stream(events, policy=policy).data.height == 1
    made = package.stream(events, policy=policy, window="20s")
    assert made.data.height == 0
    assert "window of z-anonymity was changed from 40s to 20s by an option" in made.report.notes
    with pytest.raises(package.UsageError, match="window = 40s, and 1m is weaker"):
        package.stream(events, policy=policy, window="1m")
