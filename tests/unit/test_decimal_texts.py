"""Texts that are numbers, recognized by a loop and by a pattern."""

import re

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.arrow import raw_texts
from shoal.kernels.shared.decimal_texts import json_numbers

PATTERN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
NUMBERS = st.from_regex(PATTERN, fullmatch=True).filter(str.isascii)
TEXTS = st.one_of(NUMBERS, st.text("-0123456789.eE ", max_size=6), st.none())


@given(st.lists(TEXTS, max_size=8))
def test_numbers_are_those_of_the_pattern(texts):
    found = json_numbers(*raw_texts(pl.Series(texts, dtype=pl.String)))
    assert found == all(t is None or PATTERN.fullmatch(t) is not None for t in texts)


@given(NUMBERS, st.text("0123456789.-", min_size=1, max_size=3))
def test_what_stands_beside_a_text_is_not_read(number, beside):
    data = np.frombuffer(f"{beside}{number}{beside}".encode(), np.uint8)
    assert json_numbers(data, np.array([len(beside)]), np.array([len(number)]))
