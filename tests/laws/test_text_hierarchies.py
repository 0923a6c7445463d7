"""Prefixes and built trees of texts number their nodes without writing labels out: the same levels as written out."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.tree import Tree, _grown, _sizes
from shoal.core.levels import Codes, Levels, code_of, nest

# few letters, so that texts begin alike; with letters of two and four bytes, stars and the character that pads
TEXTS = st.lists(st.none() | st.text("ab*ü𝄞\0 …", max_size=6), max_size=25, unique=True)


def written_out_prefix(text: pl.Series, length: int) -> tuple[Levels, Codes]:
    """Every label of every text, then the levels of these labels."""

    def label(value: str, count: int) -> str:
        return value if len(value) <= count else value[:count] + "*" * (length - count if count < length else 0)

    labels = [[None if v is None else label(v, count) for v in text.to_list()] for count in range(length, 0, -1)]
    columns = [pl.Series(f"{i}", column, dtype=pl.String) for i, column in enumerate(labels)]
    root = pl.repeat("*", len(text), dtype=pl.String, eager=True).alias("root")
    distinct = pl.DataFrame([*columns, root]).unique()
    levels = nest(distinct["0"], [distinct[c] for c in distinct.columns])
    return levels, code_of(levels, columns[0])


def written_out_tree(text: pl.Series, children: int) -> tuple[Levels, Codes]:
    """The path of every text, then the levels of these paths."""
    paths = _grown(text.drop_nulls().sort().to_list(), children)
    depth = len(next(iter(paths.values()))) if paths else 2
    labels = [pl.Series([None if v is None else paths[v][at] for v in text], dtype=pl.String) for at in range(depth)]
    labels[-1] = pl.repeat("*", len(text), dtype=pl.String, eager=True)
    levels = nest(text, labels, sizes=_sizes(paths, text))
    return levels, code_of(levels, text)


def assert_alike(found: tuple[Levels, Codes], slow: tuple[Levels, Codes]) -> None:
    levels, codes = found
    twin, slow_codes = slow
    assert codes.tolist() == slow_codes.tolist()
    assert levels.values.to_list() == twin.values.to_list()
    assert levels.codes.tolist() == twin.codes.tolist()
    assert levels.nested
    for level in range(levels.depth):
        assert levels.labels(level).to_list() == twin.labels(level).to_list()
        assert levels.costs(level).tolist() == twin.costs(level).tolist()


@given(TEXTS, st.integers(1, 7), st.booleans())
@example(["a", "a\0", "ab"], 3, True)
def test_prefixes_are_those_that_are_written_out(texts, length, in_order):
    series = pl.Series("text", texts, dtype=pl.String)
    series = series.sort(nulls_last=True) if in_order else series
    assert_alike(Prefix(length).compile(series), written_out_prefix(series, length))


@given(TEXTS.map(lambda texts: [t for t in texts if t is None or " … " not in t]), st.integers(2, 5), st.booleans())
def test_a_built_tree_is_that_of_its_paths(texts, children, in_order):
    series = pl.Series("text", texts, dtype=pl.String)
    series = series.sort(nulls_last=True) if in_order else series
    assert_alike(Tree(children=children).compile(series), written_out_tree(series, children))


def test_a_prefix_with_more_levels_than_a_byte_counts_is_refused():
    with pytest.raises(Exception, match="128 levels are too many"):
        Prefix(127).compile(pl.Series(["a"]))
    assert Prefix(126).compile(pl.Series(["a"]))[0].depth == 127


@pytest.mark.parametrize("numbers", [pl.Series([9, 10, 110]), pl.Series([9.5, 10.0, 11.25])])
def test_a_prefix_of_numbers_is_that_of_their_texts(numbers):
    texts = numbers.cast(pl.String)
    assert_alike(Prefix(2).compile(numbers), written_out_prefix(texts, 2))
