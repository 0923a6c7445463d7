"""What looks wrong in events is said before the first release; a unit that cannot be is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cli import main
from shoal.core.time import PER_SECOND
from shoal.measures.plausibility import time_doubts, unit_doubt, who_doubts

NOW = 1_700_000_000.0
UNITS = st.sampled_from(list(PER_SECOND))


@given(st.integers(700_000_000, int(NOW)), UNITS, UNITS, st.booleans())
def test_only_a_wrong_unit_of_times_of_our_days_is_doubted(second, really, declared, as_text):
    times = pl.Series([second * PER_SECOND[really]] * 3)
    doubt = unit_doubt(times.cast(pl.String) if as_text else times, declared, NOW)
    assert (doubt is not None) == (really != declared)
    if doubt is not None:
        assert doubt.grave
        assert f"in {really} they lie in our days" in doubt.words


@given(st.lists(st.integers(0, 10_000_000), min_size=1), UNITS)
def test_times_that_count_from_another_moment_are_not_doubted(times, unit):
    assert unit_doubt(pl.Series(times), unit, NOW) is None


def test_order_gaps_and_the_future_are_said():
    hour, start = 3_600_000_000, 1_600_000_000_000_000
    even = start + np.arange(200) * 1_000_000
    assert time_doubts(even, 0, hour, NOW) == []
    said = [d.words for d in time_doubts(even[::-1], 0, hour, NOW)]
    assert any("later than 0s after a younger one" in w for w in said)
    assert time_doubts(even[::-1], 200_000_000, hour, NOW) == []
    far = np.concatenate([even, even + 200 * 24 * hour])
    assert any("no event for" in d.words for d in time_doubts(far, 0, hour, NOW))
    ahead = np.concatenate([even, [int((NOW + 1e6) * 1e6)]])
    assert any("1 of the first 201 events lie in the future" in d.words for d in time_doubts(ahead, 0, None, NOW))


def test_subjects_and_values_that_cannot_be_are_said():
    many, one, few = (pl.Series(v) for v in ([f"p{n}" for n in range(150)], ["x"] * 150, ["x", "y", "z"] * 50))
    assert who_doubts(few, {"v": few}) == []
    assert "of its own" in who_doubts(many, {})[0].words
    assert "same subject" in who_doubts(one, {})[0].words
    assert "of its own in 'v'" in who_doubts(few, {"v": many})[0].words
    assert "no value in 'v'" in who_doubts(few, {"v": pl.Series([None] * 100 + ["x"] * 50)})[0].words


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "e.ndjson"
    rows = [{"time": 1577836800 + n, "subject": f"p{n % 4}", "value": "x"} for n in range(20)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return int(stop.value.code or 0)


def test_seconds_taken_for_milliseconds_release_nothing_unless_somebody_insists(events, tmp_path, capfd):
    words = ("stream", str(events), "--z", "2", "--window", "1h", "--unit", "ms", "-o", str(tmp_path / "o.ndjson"))
    assert run(*words) == 3
    said = capfd.readouterr().err
    assert "times in ms would lie before 1990, in s they lie in our days" in said
    assert "is the unit s?" in said
    assert not (tmp_path / "o.ndjson").exists()
    assert run(*words, "--trust-times") == 0
    assert "doubt: times in ms" in capfd.readouterr().err
    assert (tmp_path / "o.ndjson").stat().st_size
