"""A model in a file is the model in memory, holds nothing that was not published, and joins new rows on every road."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import shoal
from shoal.core.errors import InputError, UsageError
from shoal.core.keys import KeyRing
from shoal.core.sealed_state import unseal
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from shoal.tables.model_file import load, model_file, save

RING = KeyRing({"default": {1: bytes(range(32))}})
QUASI = {"zip": {"use": "prefix", "length": 5}, "age": "range", "sex": None}


def people(n: int, seed: int) -> pl.DataFrame:
    return shoal.hospital(n, seed=seed).select("pid", "zip", "age", "sex", "diag")


def released(n: int = 300, **more):
    asked = {"quasi": QUASI, "sensitive": ["diag"], "seed": 1, "k": 4, **more}
    return shoal.anonymize(people(n, 1), **asked)


@pytest.mark.parametrize("more", [{}, {"l": 2}, {"subject": "pid"}, {"t": 0.4}], ids=str)
def test_a_model_that_was_written_and_read_answers_as_before(tmp_path, more):
    model = released(**more).model
    file = model_file(tmp_path / "hospital.model", RING)
    save(model, file)
    again = load(model_file(tmp_path / "hospital.model", RING))
    arrivals = people(80, 7)
    shown, withheld = model.apply(arrivals)
    other, why = again.apply(arrivals)
    assert shown.equals(other)
    assert withheld == why
    assert shown.height, "some of them fall into published cells"


def test_no_value_that_was_not_published_is_in_the_file(tmp_path):
    frame = people(200, 1).with_columns(
        pid=pl.Series([f"subject-{i}" for i in range(200)]),
        age=pl.Series([7_000_000_019 + 7919 * i for i in range(200)]),
    )
    release = shoal.anonymize(frame, quasi=QUASI, sensitive=["diag"], subject="pid", k=20, method="mondrian", seed=1)
    model = release.model
    told = {str(v) for c in release.data.columns for v in release.data[c].to_list()}
    ends = {word for text in told for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split()}
    save(model, model_file(tmp_path / "open.model", RING))
    sealed = (tmp_path / "open.model").read_bytes()
    content = unseal(sealed, "model of a release", RING.derive("default", "model of a release"))
    assert b"subject-" not in content
    unpublished = [v for v in frame["age"].to_list() if str(v) not in ends]
    assert len(unpublished) > 100
    assert not [v for v in unpublished if str(v).encode() in content or v.to_bytes(8, "little") in content]
    assert b"sensitive" in content, "what is looked for is written in clear inside"
    assert b"sensitive" not in sealed


def test_under_t_closeness_newcomers_are_released_and_the_whole_stays_close():
    release = released(2000, t=0.3)
    arrivals = people(1000, 9)
    shown, withheld = release.model.apply(arrivals)
    assert shown.height + sum(withheld.values()) == 1000
    assert shown.height >= 500, "most fall into published cells and keep the distribution"
    whole, _ = release.model.released()
    assert shoal.verify(whole, quasi=list(QUASI), sensitive=["diag"], k=4, t=0.3).kept


def test_under_t_closeness_a_flood_of_one_value_is_not_taken():
    release = released(600, t=0.2)
    common = people(600, 1).with_columns(diag=pl.lit("E10"))
    _, withheld = release.model.apply(common)
    assert withheld["its group would break"] > 0
    whole, _ = release.model.released()
    assert shoal.verify(whole, quasi=list(QUASI), sensitive=["diag"], k=4, t=0.2).kept


def test_pandas_and_arrow_come_back_as_they_came():
    arrivals = people(40, 7).drop("pid")
    expected = released().model.apply(arrivals)[0]
    shown, _ = released().model.apply(arrivals.to_pandas())
    assert isinstance(shown, pd.DataFrame)
    assert shown["zip"].tolist() == expected["zip"].to_list()
    table, _ = released().model.apply(arrivals.to_arrow())
    assert type(table).__module__.startswith("pyarrow")
    assert table.column("zip").to_pylist() == expected["zip"].to_list()


def test_a_model_of_another_key_or_without_one_is_refused(tmp_path):
    save(released().model, model_file(tmp_path / "m", RING))
    with pytest.raises(InputError, match="cannot be opened"):
        load(model_file(tmp_path / "m", KeyRing({"default": {1: bytes(32)}})))
    with pytest.raises(UsageError, match="there is no key"):
        model_file(tmp_path / "m", KeyRing())
    with pytest.raises(InputError, match="no such model"):
        load(model_file(tmp_path / "other", RING))


def test_rows_that_joined_count_in_the_next_run(tmp_path):
    frame = pl.DataFrame({"age": [30] * 6, "diag": ["a", "b", "c"] * 2})
    promise = shoal.LDiversity(2.0, "diag", kind="frequency")
    asked = {"quasi": ["age"], "sensitive": ["diag"], "k": 2, "promises": [promise], "keys": RING}
    shoal.anonymize(frame, save_model=str(tmp_path / "m"), **asked)
    with pytest.raises(UsageError, match="there is a model of this name"):
        shoal.anonymize(frame, save_model=str(tmp_path / "m"), **asked)
    taken = []
    for _ in range(4):
        more = shoal.anonymize(pl.DataFrame({"age": [30], "diag": ["a"]}), model=str(tmp_path / "m"), keys=RING, seed=1)
        taken.append(more.data.height)
    assert taken == [1, 1, 0, 0], "four of eight may have it, not five of nine"
    assert load(model_file(tmp_path / "m", RING)).rows.height == 8, "whoever was handed out has joined"
    # a job leaves it to who runs it, who writes the rows first
    job = job_of(Wishes({"model": str(tmp_path / "m"), "keys": RING}))
    assert job.run(pl.DataFrame({"age": [30], "diag": ["b"]})).data.height == 1
    assert load(model_file(tmp_path / "m", RING)).rows.height == 8, "what was not settled has not joined"
    with pytest.raises(UsageError, match="no effect"):
        shoal.anonymize(frame, model=str(tmp_path / "m"), keys=RING, k=3)
