"""Laws of every hierarchy: nodes nest and are runs of codes, cost rises with the level, every cell covers its value."""

from __future__ import annotations

import datetime
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.cells import read
from shoal.core.errors import UsageError
from shoal.core.hierarchy import HIERARCHIES, Hierarchy
from shoal.core.hierarchy.calendar import ORDER, Calendar
from shoal.core.hierarchy.custom import Custom
from shoal.core.hierarchy.grid import Grid
from shoal.core.hierarchy.intervals import Intervals
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.sets import Sets
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.levels import Levels

LEAVES = [f"v{i}" for i in range(12)]
TREE = Tree(nodes={"a": {"a1": ["v0", "v1", "v2"], "a2": ["v3"]}, "b": {"b1": ["v4", "v5"], "b2": LEAVES[6:]}})


def _maybe_null(values: st.SearchStrategy) -> st.SearchStrategy[list]:
    return st.lists(st.none() | values, min_size=1, max_size=30)


def _case(hierarchy: Hierarchy, dtype: pl.DataType | type[pl.DataType], values: st.SearchStrategy) -> st.SearchStrategy:
    return st.tuples(st.just(hierarchy), _maybe_null(values).map(lambda v: pl.Series(v, dtype=dtype)))


TEXT = st.text("abc* .", max_size=6)
FLOATS = st.floats(-1e6, 1e6, allow_nan=False)
PLACES = st.tuples(st.floats(-90, 90), st.floats(-180, 180)).map(lambda p: f"{p[0]!r},{p[1]!r}")
CORNERS = st.tuples(st.integers(-5, 5), st.integers(-5, 5)).map(
    lambda p: f"{p[0] * 1000 / 111_320!r},{p[1] * 1000 / 111_320!r}"
)
TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
CASES = {
    "tree": _case(TREE, pl.String, st.sampled_from(LEAVES)),
    "tree, automatic": st.integers(2, 4).flatmap(lambda n: _case(Tree(children=n), pl.String, TEXT)),
    "tree, automatic, numbers": _case(Tree(children=3), pl.Int64, st.integers(-50, 50)),
    "range": _case(Range(), pl.Int64, st.integers(-1000, 1000)),
    "range, snapped": _case(Range(min=-1000, max=1000, snap=True), pl.Int64, st.integers(-1000, 1000)),
    "range, wide": _case(Range(snap=True), pl.Int64, st.integers(-(2**53), 2**53)),
    "range, floats": _case(Range(), pl.Float64, FLOATS),
    "range, floats, snapped": _case(Range(snap=True, smallest=0.25), pl.Float64, FLOATS),
    "range, coded ends": _case(Range(bottom=-20, top=20, snap=True), pl.Int64, st.integers(-100, 100)),
    "range, coded ends, hull": _case(Range(bottom=-20, top=20), pl.Int64, st.integers(-100, 100)),
    "intervals": _case(Intervals((-20, 0, 7, 50)), pl.Int64, st.integers(-100, 100)),
    "intervals, one border": _case(Intervals((0.5,)), pl.Int64, st.integers(-2, 2)),
    "intervals, floats": _case(Intervals((-20, 0.5, 7)), pl.Float64, FLOATS),
    "prefix": _case(Prefix(4), pl.String, TEXT),
    "prefix of words": _case(Prefix(2, words=True), pl.String, TEXT),
    "path": _case(Path(), pl.String, TEXT),
    "path, reversed": _case(Path(reverse=True, depth=2), pl.String, TEXT),
    "calendar, dates": _case(Calendar(), pl.Date, st.dates()),
    "calendar, times": _case(Calendar(levels=ORDER), pl.Datetime("us"), TIMES),
    "grid": _case(Grid((100, 500, 1000)), pl.String, PLACES),
    "grid, corners": _case(Grid((100, 500, 1000)), pl.String, CORNERS),
    "suppress": _case(Suppress(), pl.String, TEXT),
    "sets": _case(Sets(3), pl.String, TEXT),
    "sets, numbers": _case(Sets(), pl.Int64, st.integers(-50, 50)),
    "suppress, booleans": _case(Suppress(), pl.Boolean, st.booleans()),
    "custom": _case(Custom(lambda v, at: str(v // 10**at), levels=3), pl.Int64, st.integers(0, 10_000)),
    "custom, merging": _case(Custom(lambda v, at: str(v // 2 // 10**at), levels=2), pl.Int64, st.integers(0, 99)),
}


def all_cases(test):
    return settings(max_examples=20)(pytest.mark.parametrize("name", CASES)(test))


def _compiled(name: str, data: st.DataObject) -> tuple[Hierarchy, pl.Series, Levels, np.ndarray]:
    hierarchy, series = data.draw(CASES[name])
    values = series.unique().sort(nulls_last=True)
    levels, codes = hierarchy.compile(values)
    return hierarchy, values, levels, codes


def test_every_hierarchy_is_here():
    assert {name.split(",")[0].split(" ")[0] for name in CASES} == set(HIERARCHIES.names())


@all_cases
@given(data=st.data())
def test_nodes_are_runs_that_nest(name, data):
    _, values, levels, codes = _compiled(name, data)
    assert codes.shape == (len(values),)
    assert levels.codes.dtype == np.int32
    for at in range(levels.depth):
        column = levels.codes[:, at]
        steps = np.diff(column)
        assert column[0] == 0
        assert set(steps.tolist()) <= {0, 1}, "every node is a run of consecutive codes"
    for below, above in zip(range(levels.depth), range(1, levels.depth), strict=False):
        parents = {}
        for child, parent in zip(levels.codes[:, below], levels.codes[:, above], strict=True):
            assert parents.setdefault(child, parent) == parent
    assert (levels.codes[:, -1] == 0).all(), "one root"


@all_cases
@given(data=st.data())
def test_the_loss_rises_with_the_level(name, data):
    _, _, levels, _ = _compiled(name, data)
    assert (levels.costs(0) == 0).all()
    for code in range(levels.size):
        climb = [levels.costs(at)[levels.codes[code, at]] for at in range(levels.depth)]
        assert all(0 <= c <= 1 for c in climb)
        assert climb == sorted(climb)
    if levels.size > 1:
        assert levels.costs(levels.depth - 1).tolist() == [1.0]


@all_cases
@given(data=st.data())
def test_a_missing_value_is_the_last_and_stays_apart_until_the_root(name, data):
    _, values, levels, codes = _compiled(name, data)
    assert (levels.missing >= 0) == bool(values.null_count())
    if values.null_count():
        assert levels.missing == levels.size - 1 == codes[-1]
        if levels.size > 1:
            assert (levels.codes[-1, :-1] != levels.codes[-2, :-1]).all()
        low = np.array([levels.missing], np.int32)
        assert levels.text(low, low).to_list() == [None]


@all_cases
@given(data=st.data())
def test_a_cell_is_the_label_of_the_lowest_common_node(name, data):
    """And never another one's: two values that share a label share a node."""
    _, _, levels, _ = _compiled(name, data)
    picks = st.integers(0, levels.size - 1)
    low, high = sorted((data.draw(picks), data.draw(picks)))
    a, b = np.array([low], np.int32), np.array([high], np.int32)
    level = int(levels.meet(a, b)[0])
    assert levels.codes[low, level] == levels.codes[high, level]
    assert level == 0 or levels.codes[low, level - 1] != levels.codes[high, level - 1]
    text = levels.text(a, b)[0]
    hull = levels.numbers is not None and level > 0 and high != levels.missing
    if not hull and text is not None:
        assert text == levels.labels(level)[int(levels.codes[low, level])]
    assert levels.ncp(a, b)[0] <= levels.costs(level)[levels.codes[low, level]] + 1e-12, "a hull never exceeds its node"


@all_cases
@given(data=st.data())
def test_many_boxes_at_once_read_as_each_alone(name, data):
    _, _, levels, _ = _compiled(name, data)
    pairs = st.tuples(*[st.integers(0, levels.size - 1)] * 2).map(sorted)
    boxes = np.array(data.draw(st.lists(pairs, min_size=1, max_size=80)), np.int32)
    floor = np.array([data.draw(st.integers(0, levels.depth - 1)) for _ in boxes], np.int8)
    for least in (0, floor):
        together = levels.text(boxes[:, 0], boxes[:, 1], least).to_list()
        for at, (low, high) in enumerate(boxes):
            alone = levels.text(
                np.array([low]), np.array([high]), least if isinstance(least, int) else least[at : at + 1]
            )
            assert alone.to_list() == together[at : at + 1]


NUMBERS = [name for name in CASES if name.startswith("range")]


@pytest.mark.parametrize("name", NUMBERS)
@given(data=st.data())
def test_an_interval_covers_its_numbers_also_when_read_back(name, data):
    _, values, levels, codes = _compiled(name, data)
    known = [(v, c) for v, c in zip(values.to_list(), codes.tolist(), strict=True) if v is not None]
    if not known:
        return
    picked = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=5))
    low, high = min(c for _, c in picked), max(c for _, c in picked)
    for least in range(levels.depth):
        text = levels.text(np.array([low]), np.array([high]), np.array([least], np.int8))[0]
        assert all(read(text).covers(v) for v, _ in picked)
    hull = levels.text(np.array([low]), np.array([high]))[0]
    assert all(read(hull).covers(v) for v, _ in picked)


@pytest.mark.parametrize("hierarchy", [Prefix(4), Path(), Suppress(), Tree(children=2)])
@given(values=st.lists(TEXT, min_size=1, max_size=20, unique=True))
def test_preview_shows_every_value_from_itself_to_nothing(hierarchy, values):
    preview = hierarchy.preview(pl.Series(values))
    assert preview.height == len(set(preview["0"].to_list()))
    assert set(preview[preview.columns[-1]].to_list()) == {"*"}


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.data())
def test_whole_ranges_are_halved_as_in_garai_2019(low, width, data):
    """Garai 2019, section 3.4.5: split at ⌈(low+high)/2⌉ into [low, m-1] and [m, high], as plain Python."""
    high = low + width
    value = data.draw(st.integers(low, high))
    depth = math.ceil(math.log2(width + 1)) + 1
    labels = Range(min=low, max=high, snap=True).preview(pl.Series([value])).row(0)
    assert len(labels) == depth
    a, b = low, high
    for at in range(depth - 1, -1, -1):
        assert labels[at] == (str(a) if a == b else f"[{a}, {b}]")
        middle = -((a + b) // -2)
        if a < b:
            a, b = (middle, b) if value >= middle else (a, middle - 1)
    assert a == b == value


@given(st.lists(st.sampled_from(LEAVES), min_size=1, unique=True))
def test_a_tree_written_and_read_is_the_same(tmp_path_factory, leaves):
    file = tmp_path_factory.mktemp("trees") / "tree.csv"
    TREE.export(file)
    again = Tree(file=str(file))
    values = pl.Series(leaves)
    assert again.preview(values).rows() == TREE.preview(values).rows()


@given(st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=30, unique=True), st.integers(2, 5))
def test_an_automatic_tree_written_and_read_is_the_same(tmp_path_factory, leaves, children):
    file = tmp_path_factory.mktemp("trees") / "tree.csv"
    tree = Tree(children=children)
    tree.export(file, pl.Series(leaves))
    assert sorted(Tree(file=str(file)).preview(pl.Series(leaves)).rows()) == sorted(
        tree.preview(pl.Series(leaves)).rows()
    )


@given(st.lists(TEXT, min_size=1, max_size=40, unique=True), st.integers(2, 5))
def test_an_automatic_tree_has_single_leaves_and_no_node_with_too_many_children(values, children):
    levels, codes = Tree(children=children).compile(pl.Series(values).sort())
    assert sorted(codes.tolist()) == list(range(len(values)))
    for at in range(1, levels.depth):
        below = {(int(p), int(c)) for c, p in levels.codes[:, [at - 1, at]].tolist()}
        sizes = np.bincount([p for p, _ in below])
        assert sizes.max() <= children


def test_more_children_than_values_make_one_node():
    few = pl.Series(["a", "b", "c"])
    assert Tree(children=9).preview(few).rows() == Tree(children=3).preview(few).rows()
    assert [row[1:] for row in Tree(children=9).preview(few).rows()] == [("*",)] * 3


def test_unknown_values_are_told_apart_from_missing_ones():
    values = pl.Series(["v1", "nowhere", None])
    levels, codes = TREE.compile(values)
    assert codes[1] == -1
    assert codes[2] == levels.missing
    under = Tree(nodes=TREE.nodes, default="b2")
    levels, codes = under.compile(values)
    assert codes[1] >= 0
    assert levels.labels(1)[int(levels.codes[codes[1], 1])] == "b2"
    high = Tree(nodes=TREE.nodes, default="*").preview(pl.Series(["nowhere", "v1"]))
    assert ("nowhere", "nowhere", "nowhere", "*") in high.rows()


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan")])
def test_what_is_no_number_is_unknown_to_a_range(value):
    _, codes = Range().compile(pl.Series([1.0, value, 2.0]))
    assert codes.tolist() == [0, -1, 1]


def test_a_tree_of_numbers_knows_a_column_of_floats():
    """pandas turns whole numbers with a gap into floats."""
    tree = Tree(nodes={"young": ["20", "21"], "old": ["70"]})
    assert tree.compile(pl.Series([20.0, 70.0, None]))[1].min() >= 0
    mixed = Tree(nodes={"young": ["20", "21"], "old": ["70", "unknown"]})
    assert mixed.compile(pl.Series([20, 70]))[0].costs(1).max() <= 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Tree(), "exactly one"),
        (lambda: Tree(nodes={}, children=2), "exactly one"),
        (lambda: Tree(children=1), "at least 2"),
        (lambda: Prefix(0), "at least 1"),
        (lambda: Intervals(()), "at least one"),
        (lambda: Intervals((3, 2)), "must rise"),
        (lambda: Intervals((3, float("inf"))), "finite"),
        (lambda: Path(separator=""), "must not be empty"),
        (lambda: Path(depth=-1), "must not be negative"),
        (lambda: Grid(()), "positive metres"),
        (lambda: Grid((100, 50)), "small to large"),
        (lambda: Calendar(levels=("year", "day")), "fine to coarse"),
        (lambda: Range(min=2, max=1), "not above"),
        (lambda: Range(bottom=1, top=1), "below"),
        (lambda: Range(max=math.inf), "finite"),
        (lambda: Range(smallest=0), "positive"),
        (lambda: Custom(lambda v, at: v, levels=0), "at least 1"),
    ],
)
def test_parameters_out_of_range_are_refused(make, words):
    with pytest.raises(UsageError, match=words):
        make()


SECRET = "Ahl-Brook-1977"


def _fails(nothing, level):
    raise ValueError(SECRET)


@pytest.mark.parametrize(
    ("hierarchy", "values", "words"),
    [
        (Tree(nodes={"a": [SECRET], "b": [SECRET]}), ["x"], "level 0: leaf number 2 stands twice"),
        (Tree(nodes={}), ["x"], "empty"),
        (Grid((100, 250)), [f"{SECRET}"], "do not nest"),
        (
            Custom(lambda v, at: "same" if at == 1 else v if at == 0 else v[-1], levels=3),
            [SECRET, "x"],
            "level 1 does not",
        ),
        (Custom(_fails, levels=1), [SECRET], "level 0 for distinct value number 0"),
        (Prefix(300), [SECRET], "at most 127"),
        (Range(), [SECRET], "expected numbers, found String"),
        (Calendar(), [SECRET], "expected dates or times"),
        (Range(max=3), [1, 5, 7], "2 distinct values lie outside"),
        (Range(), [2**60], "names rather than numbers"),
        (Range(top=1.5), [1, 2], "must be whole"),
    ],
)
def test_validation_names_level_and_position_never_a_value(hierarchy, values, words):
    with pytest.raises(UsageError, match=words) as caught:
        hierarchy.compile(pl.Series(values), where="column 'x'")
    assert SECRET not in str(caught.value)
    assert "column 'x'" in str(caught.value)


def test_a_file_of_paths_is_checked_line_by_line(tmp_path):
    file = tmp_path / "tree.csv"
    for text, words in [
        (f"{SECRET};a;*\n{SECRET};b;*\n", "line 2.*stands twice"),
        (f"{SECRET};a;*\nother;*\n", "path number 2 is shorter"),
        (f"{SECRET};a;top\nother;b;bottom\n", "2 nodes, expected one root"),
        ("", "empty"),
    ]:
        file.write_text(text)
        with pytest.raises(UsageError, match=words) as caught:
            Tree(file=str(file)).compile(pl.Series(["other"]))
        assert SECRET not in str(caught.value)


def test_sizes_that_do_not_nest_serve_where_nesting_is_not_needed():
    grid = Grid((100, 250))
    levels, codes = grid.compile_levels(pl.Series(["40.7,-74.0", "40.701,-74.0"]))
    assert codes.min() >= 0
    assert levels.depth == 4


@pytest.mark.shared
def test_the_shared_age_hierarchy_puts_80_under_75_to_79(shared):
    tree = Tree(file=str(shared / "data/adult/hierarchies_arx/age.csv"))
    doubts = tree.doubts()
    assert doubts
    assert doubts[0].startswith("level 1")
    assert "80 leaf" not in doubts[0]


@pytest.mark.parametrize(
    ("label", "doubtful"), [("[70, 80[", True), ("[70, 80)", True), ("70-80", False), ("70 to 79", True)]
)
def test_labels_that_read_as_an_interval_without_their_value_are_reported(label, doubtful):
    assert bool(Tree(nodes={label: ["80"], "other": ["90"]}).doubts()) == doubtful


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=6, unique=True).map(sorted),
    st.lists(st.integers(-30, 30), min_size=1),
)
def test_a_number_lies_in_every_interval_that_is_published_of_it(borders, numbers):
    values = pl.Series(numbers).unique().sort()
    shown = Intervals(tuple(borders)).preview(values)
    for value, row in zip(values, shown.rows(), strict=True):
        assert all(read(text).covers(value) for text in row)
        below = max((b for b in borders if b <= value), default=None)
        above = min((b for b in borders if b > value), default=None)
        expected = f"[{below}, {above - 1}]" if below is not None and above is not None else None
        if expected is not None and above - 1 > below:
            assert row[1] == expected
