"""What SECURITY.md says that is *not* protected: each limit is shown to be one, so that the page is not too dark."""

from __future__ import annotations

import datetime

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
