"""The different texts of a column, and the masks that are asked once for each of them."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.arrow import FEW
from shoal.core.distinct import different
from shoal.masks.base import Running

TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=40)


@given(TEXTS, st.sampled_from([1, FEW]))
def test_rows_get_their_own_value_back(texts, times):
    """``FEW`` times as many rows take the compiled road, so both are tried."""
    column = pl.Series("name", texts * times, dtype=pl.String)
    some, codes = different(column)
    values = some.to_list()
    assert values == list(dict.fromkeys(t for t in texts if t is not None))
    assert [None if at < 0 else values[at] for at in codes] == column.to_list()


@given(st.lists(st.one_of(st.none(), st.floats(), st.just(-0.0))))
def test_numbers_that_are_equal_are_one_value(numbers):
    some, codes = different(pl.Series("n", numbers, dtype=pl.Float64))
    assert some.n_unique() == len(some)
    found = [None if at < 0 else some[int(at)] for at in codes]
    assert pl.Series(found, dtype=pl.Float64).equals(pl.Series(numbers, dtype=pl.Float64), null_equal=True)


class Told(Running):
    """Writes down what it is asked."""

    def __init__(self, *, nulls):
        super().__init__("str", nulls=nulls)
        self.asked = []

    def one(self, value, *by):
        self.asked.append(value)
        return f"<{value}>"


@given(TEXTS, st.sampled_from([1, FEW]), st.booleans())
def test_a_mask_is_asked_once_for_each_value(texts, times, nulls):
    mask = Told(nulls=nulls)
    made = mask.many(pl.Series("name", texts * times, dtype=pl.String))
    assert made.to_list() == [f"<{t}>" if nulls or t is not None else None for t in texts] * times
    assert made.name == "name"
    assert sorted(mask.asked, key=str) == sorted({t for t in texts if nulls or t is not None}, key=str)
