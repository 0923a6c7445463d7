"""What a stream can carry: people per cell and window beside a slow twin, and what ``shoal check`` says of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.keys import KeyRing
from shoal.measures.carrying import SHARE, carried, company, windows_of
from shoal.policy.load import parse
from shoal.release.carrying import carries
from tests.cli.in_process import call

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=40)


@given(rows, st.integers(1, 4))
def test_company_beside_its_slow_twin(some: list[tuple[int, int, int]], wanted: int) -> None:
    windows, people, cells = (np.array(column) for column in zip(*some, strict=True))
    expected = [len({p for v, p, d in some if (v, d) == (w, c)}) for w, _, c in some]
    assert company(windows, people, cells).tolist() == expected
    found = carried(windows, people, [cells], wanted)[0]
    assert found.share == pytest.approx(sum(e >= wanted for e in expected) / len(expected))
    assert sum(e >= found.people for e in expected) >= SHARE * len(expected)
    assert sum(e > found.people for e in expected) < SHARE * len(expected) or found.people == max(expected)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(0, 5), st.integers(0, 20))
def test_windows_are_runs_within_both_bounds(gaps: list[int], events: int, micros: int) -> None:
    times = np.cumsum(gaps)
    found = windows_of(times, events, micros)
    assert found[0] == 0
    assert set(np.diff(found).tolist()) <= {0, 1}
    for window in range(int(found[-1]) + 1):
        mine = times[found == window]
        assert not events or len(mine) <= events
        assert not micros or mine[-1] - mine[0] < max(micros, 1) or mine[-1] == mine[0]


POLICY = """
dataset: phones
columns:
  at: {role: time, unit: s}
  phone: subject
  place: {role: quasi, hierarchy: {use: grid, sizes: [100, 1000, 10000]}}
views:
  city: {show: [place], promises: [{use: k-anonymity, k: K}], method: {use: batches, delay: 40}}
  market: {show: [place], promises: [{use: z-anonymity, z: K, window: 60s}], method: z-anonymity}
"""


def tracks(phones: int, count: int = 1200) -> pl.DataFrame:
    """Phones that walk about within a few kilometres, an event each second."""
    rng = np.random.default_rng(7)
    who = rng.integers(0, phones, count)
    home = rng.uniform(-0.01, 0.01, (phones, 2))
    spot = home[who] + rng.normal(0, 0.002, (count, 2)) + [52.5, 13.4]
    return pl.DataFrame(
        {
            "at": 1_700_000_000 + np.arange(count),
            "phone": [f"phone-{i}" for i in who],
            "place": [f"{a:.5f},{b:.5f}" for a, b in spot.tolist()],
        }
    )


def test_a_stream_of_few_phones_is_told_at_which_level_or_delay_it_carries_k() -> None:
    frame = tracks(30)
    easy = carries(parse(POLICY.replace("K", "3")), frame, keys=KeyRing())
    assert set(easy) == {"city", "market"}
    city = easy["city"]
    assert (city.wanted, city.names) == (3, ["exact", "cells of 100 m", "cells of 1000 m", "cells of 10000 m"])
    assert [one.people for one in city.levels] == sorted(one.people for one in city.levels)
    assert city.levels[0].people == 1
    assert city.enough
    assert city.proposals == ["3 people are carried from cells of 1000 m on"]
    assert city.levels[1].share < SHARE <= city.levels[2].share
    hard = carries(parse(POLICY.replace("K", "28").replace("delay: 40", "delay: 30")), frame, keys=KeyRing())["city"]
    assert not hard.enough
    assert hard.proposals[0] == "28 people are carried at no level"
    delay = int(hard.proposals[1].split("delay: ")[1].split()[0])
    again = carries(parse(POLICY.replace("K", "28").replace("delay: 40", f"delay: {delay}")), frame, keys=KeyRing())
    assert again["city"].enough
    never = carries(parse(POLICY.replace("K", "31")), frame, keys=KeyRing())["market"]
    assert "nor with a delay or window that this sample can try" in never.proposals[1]


@pytest.mark.parametrize("more", ["", "  mode: {role: quasi, hierarchy: suppress}\n"])
@pytest.mark.parametrize("view", ["city", "market"])
def test_where_no_size_carries_k_a_larger_one_is_named_that_does(more: str, view: str) -> None:
    frame = tracks(30).with_columns(mode=pl.Series(["walk", "bus", "car"] * 400))
    text = POLICY.replace("K", "12").replace("[100, 1000, 10000]", "SIZES").replace("views:", f"{more}views:")
    text = text.replace("[place]", "[place, mode]") if more else text
    hard = carries(parse(text.replace("SIZES", "[50, 200]")), frame, keys=KeyRing())[view]
    if hard.enough:  # a column that is suppressed at this level leaves enough to the other
        assert more
        return
    told = next(proposal for proposal in hard.proposals if "cells of" in proposal)
    size = told.split("cells of ")[1].split(" m")[0]
    wider = carries(parse(text.replace("SIZES", f"[50, 200, {size}]")), frame, keys=KeyRing())[view]
    assert wider.enough
    assert any(f"cells of {size} m" in name for name in wider.names)


def test_check_says_it_without_a_single_position(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY.replace("K", "3"))
    tracks(30).write_ndjson(tmp_path / "events.ndjson")
    done = call(["check", "policy.yaml", "events.ndjson"], tmp_path, None, {"SHOAL_KEY": "ab" * 32})
    assert done.returncode == 0, done.stderr
    assert "city: a window has" in done.stdout
    assert "are carried from cells of" in done.stdout
    assert "52." not in done.stdout + done.stderr
    assert "phone-" not in done.stdout + done.stderr
    done = call(["check", "policy.yaml", "events.ndjson", "--json"], tmp_path, None, {"SHOAL_KEY": "ab" * 32})
    assert json.loads(done.stdout)["carries"]["city"]["wanted"] == 3
