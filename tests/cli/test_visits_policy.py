"""The policy of visits, as the design reads it aloud: checked, run, verified; and bad events on the way."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

POLICY = """
dataset: visits
columns:
  time:   {role: time, unit: s, late: 30s, ahead: 5s}
  client: {role: subject}
  domain: {role: quasi, hierarchy: {use: tree, file: categories.csv}}
views:
  market:
    show: [time, client, domain]
    masks: {client: {use: pseudonym, rotate: 24h}}
    promises: [{use: z-anonymity, z: 20, window: 1h}]
    method: {use: z-anonymity, tune: {goal: {k: 3, probability: 0.8}, every: 30m},
             noise: {most: 0.25}, allow_noise: true}
"""


@pytest.fixture
def visits(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_KEY", "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldCE=")
    rng = np.random.default_rng(0)
    n, sites = 8000, 60
    (tmp_path / "visits.yaml").write_text(POLICY)
    (tmp_path / "categories.csv").write_text("".join(f"site{i}.com;kind{i % 5};*\n" for i in range(sites)))
    frame = pl.DataFrame(
        {
            "time": np.round(1.6e9 + np.cumsum(rng.exponential(1.0, n)), 3),
            "client": [f"c{i}" for i in rng.integers(0, 300, n)],
            "domain": [f"site{min(i, sites) - 1}.com" for i in rng.zipf(1.4, n)],
        }
    )
    frame.write_ndjson(tmp_path / "visits.ndjson")
    return frame


def test_the_design_s_policy_runs_as_written(shoal, tmp_path, visits):
    checked = shoal("check", "visits.yaml")
    assert checked.returncode == 0, checked.stderr
    words = ("stream", "visits.ndjson", "--policy", "visits.yaml", "-o", "out.ndjson", "--synthetic", "side", "--json")
    ran = shoal(*words)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stderr[ran.stderr.index("{") :])
    released = pl.read_ndjson(tmp_path / "out.ndjson")
    side = [int(n) for n in (tmp_path / "side").read_text().split()]
    assert released.columns == ["time", "client", "domain"]
    assert len(side) == released.height == found["released"] + found["fakes"]
    assert side.count(-1) == found["fakes"] > 0
    assert not set(released["client"]) & set(visits["client"])
    assert found["level_0"] > found["level_1"] > 0
    assert set(released["domain"]) <= {*visits["domain"], *(f"kind{i}" for i in range(5))}
    # with noise fewer than z real people stand behind some values: the figures say so, and so does the verifier
    assert 15 <= found["least_real"] < 20
    verified = shoal("verify", "out.ndjson", "--policy", "visits.yaml", "--original", "visits.ndjson")
    assert verified.returncode == 1
    assert f"reached {found['least_real']}" in verified.stdout
    quiet = POLICY.replace("noise: {most: 0.25}, allow_noise: true", "")
    (tmp_path / "visits.yaml").write_text(quiet)
    assert shoal("stream", "visits.ndjson", "--policy", "visits.yaml", "-o", "out.ndjson").returncode == 0
    assert shoal("verify", "out.ndjson", "--policy", "visits.yaml", "--original", "visits.ndjson").returncode == 0


def test_a_view_that_hides_the_time_is_checked_on_events_too(shoal, tmp_path, visits):
    hidden = POLICY.replace("noise: {most: 0.25}, allow_noise: true", "").replace(
        "show: [time, client", "show: [client"
    )
    (tmp_path / "visits.yaml").write_text(hidden)
    checked = shoal("check", "visits.yaml", "visits.ndjson")
    assert checked.returncode == 0, checked.stderr
    assert "1 of 1 views made from 8,000 rows" in checked.stdout + checked.stderr
    assert "could not be made" not in checked.stdout + checked.stderr


def test_check_demands_that_noise_be_allowed(shoal, tmp_path, visits):
    (tmp_path / "visits.yaml").write_text(POLICY.replace(", allow_noise: true", ""))
    checked = shoal("check", "visits.yaml")
    assert checked.returncode == 2
    assert "allow_noise" in checked.stderr


BAD = {
    "unparsable": '{"time": 2, "client"',
    "no object": "[1, 2]",
    "missing subject": '{"time": 2, "domain": "a"}',
    "missing time": '{"client": "SECRET", "domain": "a"}',
    "missing value": '{"time": 2, "client": "SECRET"}',
    "negative time": '{"time": -5, "client": "SECRET", "domain": "a"}',
    "absurd time": '{"time": 1e300, "client": "SECRET", "domain": "a"}',
    "time that is no number": '{"time": NaN, "client": "SECRET", "domain": "a"}',
    "time as a text": '{"time": "soon", "client": "SECRET", "domain": "a"}',
    "empty value": '{"time": 2, "client": "SECRET", "domain": ""}',
    "a megabyte": json.dumps({"time": 2, "client": "SECRET", "domain": "x" * 1_000_000}),
}
GOOD = [json.dumps({"time": i, "client": f"c{i}", "domain": "a"}) for i in range(6)]
COMMON = ("--z", "1", "--window", "1h", "--subject", "client", "--value", "domain")


def test_a_stream_is_verified_while_it_runs(shoal, tmp_path):
    lines = "".join(f'{{"t": {i}, "c": "u{i % 5}", "d": "x.com"}}\n' for i in range(40))
    (tmp_path / "in.ndjson").write_text(lines)
    asked = ("stream", "in.ndjson", "--z", "3", "--window", "1h", "--time", "t", "--subject", "c", "--value", "d")
    done = shoal(*asked, "-o", "out.ndjson", "--verify", "1", "--json")
    assert done.returncode == 0, done.stderr
    assert "verified beside the run: 38 checks of a share of 100%, none broken" in done.stderr
    assert '"verify_checked": 38' in done.stderr
    assert shoal(*asked, "-o", "out.ndjson", "--verify", "2").returncode == 2


def test_bad_events_are_withheld_and_counted_and_the_stream_goes_on(shoal, tmp_path):
    lines = [*GOOD[:3], *BAD.values(), *GOOD[3:]]
    (tmp_path / "e.ndjson.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    ran = shoal("stream", "e.ndjson.gz", *COMMON, "-o", "out.csv", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stderr[ran.stderr.index("{") :])
    assert found["events"] == len(lines)
    assert found["released"] == len(GOOD)
    assert found["bad"] == len(BAD)
    assert pl.read_csv(tmp_path / "out.csv")["time"].to_list() == list(range(6))


@pytest.mark.parametrize("kind", ["unparsable", "missing subject", "absurd time", "a megabyte"])
def test_strict_stops_with_the_place_and_never_with_the_value(shoal, tmp_path, kind):
    (tmp_path / "e.ndjson").write_text("\n".join([*GOOD[:3], BAD[kind], *GOOD[3:]]))
    ran = shoal("stream", "e.ndjson", *COMMON, "-o", "out.csv", "--strict")
    assert ran.returncode == 3, ran.stderr
    assert "line 4" in ran.stderr or "event 4" in ran.stderr
    assert "SECRET" not in ran.stderr


def test_what_is_no_text_reads_alike_beside_a_bad_line_and_without(tmp_path):
    from shoal.connect.events import Events

    values = [
        '"x"',
        "3",
        "true",
        '{"a": [1, 2.5, "é\\n\\""]}',
        "7",
        "7.0",
        "7e0",
        "1e20",
        "1e-7",
        "-0.0",
        "1e15",
        "[7.0]",
    ]
    odd = [f'{{"t": {at}, "v": {value}}}' for at, value in enumerate(values)]
    (tmp_path / "good.ndjson").write_text("\n".join(odd))
    (tmp_path / "bad.ndjson").write_text("\n".join([*odd, "{", '{"t": 5.5, "v": "y"}']))
    good, bad = (
        [row for frame in Events(str(tmp_path / f"{name}.ndjson"), ["t", "v"]) for row in frame.rows()]
        for name in ("good", "bad")
    )
    assert bad[: len(odd)] == good
    assert [v for _, v in good[4:7]] == ["7"] * 3  # one person, however it is written
    assert bad[len(odd) :] == [(None, None), ("5.5", "y")]  # a time is never cut short


texts = st.text(alphabet='a",\n1 ', max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(texts, texts), min_size=1, max_size=8), chunk=st.integers(1, 60), broken=st.booleans())
def test_a_text_of_several_lines_invents_no_events(tmp_path, rows, chunk, broken):
    """Whoever writes a text is no crowd: its lines are no rows, wherever a chunk ends or a row is broken."""
    from shoal.connect.events import Events

    path = tmp_path / "e.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(["time", "who", "note"])
        writer.writerows([number, who, note] for number, (who, note) in enumerate(rows))
        out.write('9,"x\n' if broken else "")
    read = pl.concat(Events(str(path), ["time", "who", "note"], chunk=chunk), how="vertical_relaxed").rows()
    expected = [(str(number), who or None, note or None) for number, (who, note) in enumerate(rows)]
    shown = [(time, who or None, note or None) for time, who, note in read]
    assert shown[: len(rows)] == expected
    assert all(row == (None, None, None) for row in shown[len(rows) :])


def test_a_broken_row_of_a_csv_is_withheld_and_the_rest_is_read(tmp_path):
    from shoal.connect.events import Events
    from shoal.core.errors import InputError

    path = tmp_path / "e.csv"
    path.write_text('time,who,what\n1,a,x\n2,b,"y, z"\n3,"c,x\n4,d\n5,e,x\n')
    source = Events(str(path), ["time", "what"])
    assert pl.concat(source).rows() == [("1", "x"), ("2", "y, z"), (None, None), (None, None), ("5", "x")]
    assert source.bad == 2
    with pytest.raises(InputError, match="line 4"):
        list(Events(str(path), ["time", "what"], strict=True))
