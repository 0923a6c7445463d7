"""What SECURITY.md says that is *not* protected: each limit is shown to be one, so that the page is not too dark."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli import main
from shoal.core.cells import read
from shoal.core.keys import KeyRing
from shoal.masks import MASKS
from shoal.masks.base import Context

KEYS = KeyRing({"default": {1: bytes(range(32))}})


def test_one_known_date_undoes_the_shift_of_that_person_and_of_nobody_else():
    context = Context("seen", "date", keys=KEYS, subject="pid")
    shift = MASKS.decode({"use": "date-shift", "days": 300}).start(context)
    first, second = datetime.date(2024, 3, 1), datetime.date(2025, 7, 9)
    known = shift.one(first, "ada") - first
    assert shift.one(second, "ada") - known == second
    others = [f"p{n}" for n in range(200)]
    assert sum(shift.one(second, who) - known == second for who in others) < 10


def test_noise_hides_no_outlier_and_averages_out_over_a_value_that_drifts():
    mask = MASKS.decode({"use": "noise", "spread": 5.0}).start(Context("pay", "float", keys=KEYS, subject="pid"))
    pay = {f"p{n}": 50.0 + n % 40 for n in range(500)} | {"rich": 1e6}
    masked = {who: mask.one(value, who) for who, value in pay.items()}
    assert max(masked, key=masked.__getitem__) == "rich"
    # each day a little more: every noise is drawn anew, and a month of them is thirty readings of one value
    days = np.arange(900)
    noise = np.array([mask.one(70.0 + 0.001 * day, "ada") - (70.0 + 0.001 * day) for day in days])
    assert abs(noise.mean()) < 4 * 5.0 / np.sqrt(len(days))
    assert np.abs(noise).mean() > 3.0


def test_a_plain_column_that_names_people_is_not_noticed_in_a_stream(tmp_path):
    events = "".join(
        f'{{"t": {n}, "pid": "p{n % 40}", "age": {30 + n % 3}, "nick": "nick{n % 40}"}}\n' for n in range(400)
    )
    (tmp_path / "e.ndjson").write_text(events)
    (tmp_path / "p.yaml").write_text(
        "dataset: e\n"
        "columns:\n"
        "  t: {role: time, type: float}\n"
        "  pid: {role: subject}\n"
        "  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}\n"
        "  nick: {role: plain}\n"
        "views:\n"
        "  ward: {show: [age, nick], promises: [{use: k-anonymity, k: 3}], method: {use: batches, delay: 40}}\n"
    )
    words = [
        "stream",
        str(tmp_path / "e.ndjson"),
        "--policy",
        str(tmp_path / "p.yaml"),
        "-o",
        str(tmp_path / "o.ndjson"),
    ]
    with pytest.raises(SystemExit, match="0"):
        main(words)
    assert "nick7" in (tmp_path / "o.ndjson").read_text()


def test_a_range_without_declared_ends_tells_those_of_the_table():
    frame = pl.DataFrame({"age": [17, 30, 40, 50, 60, 93]})
    ends = [read(text) for text in shoal.anonymize(frame, quasi=["age"], k=6, seed=1).data["age"].unique()]
    assert ends[0].covers(17)
    assert ends[0].covers(93)
    assert not ends[0].covers(16)
    assert not ends[0].covers(94)


def test_without_a_subject_every_row_is_a_person():
    frame = pl.DataFrame({"pid": ["ada"] * 5 + ["bob"] * 5, "age": [40] * 5 + [50] * 5})
    assert shoal.anonymize(frame, quasi=["age"], k=5, seed=1).report.verified
    with pytest.raises(shoal.PromiseError, match="cannot be reached"):
        shoal.anonymize(frame, quasi=["age"], subject="pid", k=5, seed=1)


def test_two_sums_of_windows_that_differ_by_one_person_tell_their_value():
    pay = [100.0, 200.0, 300.0, 471.5]
    total = MASKS.decode({"use": "aggregate", "function": "sum", "k": 3}).start(Context("pay", "float", keys=KEYS))

    def told(values: list[float]) -> float:
        made = total.apply(pl.Series(values), pl.Series([f"p{n}" for n in range(len(values))]))
        return float(made.to_list()[0])

    assert told(pay) - told(pay[:-1]) == pytest.approx(pay[-1])
    most = MASKS.decode({"use": "aggregate", "function": "max", "k": 3}).start(Context("pay", "float", keys=KEYS))
    assert set(most.apply(pl.Series(pay), pl.Series(list("abcd"))).to_list()) == {471.5}


def test_a_defect_is_said_by_its_place_and_only_who_asks_sees_the_rest(tmp_path, monkeypatch, capfd):
    def broken(*given: object, **named: object) -> None:
        raise RuntimeError("Qzx1w is a value")

    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    monkeypatch.setattr("shoal.release.table.TableJob.run", broken)
    words = ["anonymize", str(tmp_path / "t.csv"), "--quasi", "age", "--k", "2", "-o", str(tmp_path / "o.csv")]
    for debug, seen in (("", False), ("1", True)):
        monkeypatch.setenv("SHOAL_DEBUG", debug)
        with pytest.raises((SystemExit, RuntimeError)) as ended:
            main(words)
        said = capfd.readouterr().err + (str(ended.value) if debug else "")
        assert ("Qzx1w" in said) == seen
