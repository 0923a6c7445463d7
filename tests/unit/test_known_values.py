"""Values of a stream compiled one by one: labels as in a whole compile, files read once, forgetting changes nothing."""

from __future__ import annotations

import re
from pathlib import Path as File

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.grid import Grid
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.kernels.shared.labels import ASK
from shoal.promises.k_anonymity import KAnonymity
from shoal.streams import known_values
from shoal.streams.base import Batch
from shoal.streams.batches import Batches
from shoal.streams.chains import Coder
from shoal.streams.texts import bytes_of
from shoal.streams.z_stream import z_anonymity

KEY = bytes(range(32))
NODES = {"lungs": ["covid", "asthma"], "blood": {"sugar": ["diabetes"], "red": ["anaemia"]}}
KINDS: list[Hierarchy] = [
    Grid((100, 500, 3000)),
    Grid((70, 300)),
    Prefix(1),
    Prefix(4),
    Prefix(2, words=True),
    Path(depth=2),
    Path(depth=3, separator="::"),
    Path(depth=2, reverse=True),
    Suppress(),
    Tree(nodes=NODES),
    Tree(nodes=NODES, default="blood"),
    Tree(nodes=NODES, default="*"),
]
degrees = st.one_of(
    st.floats(-95, 95).map(str),
    st.integers(-190, 190).map(str),
    st.sampled_from(["0", "-0.0", "1e1", "+5", " 7 "]),
)
texts = st.one_of(
    st.tuples(degrees, degrees).map(",".join),
    st.text("ab. :*1", min_size=1, max_size=7),
    st.sampled_from(["covid", "asthma", "diabetes", "anaemia", "blood", "red", "a::b::c", "nan,1", "1_0,2", "1,2,3"]),
)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@given(values=st.lists(texts, min_size=1, max_size=8, unique=True))
def test_labels_one_by_one_are_those_of_the_whole_compile(kind: Hierarchy, values: list[str]) -> None:
    label = kind.labeller()
    assert label is not None
    for value in values:
        # each by itself: what does not nest together may still come one after the other
        levels, codes = kind.compile_levels(pl.Series([value]))
        found = label(value)
        if codes[0] < 0:
            assert found is None
            continue
        assert found == [levels.labels(at).gather(levels.codes[codes, at])[0] for at in range(max(1, levels.depth - 1))]


@pytest.mark.parametrize("kind", [*KINDS, Range(min=0, max=64)], ids=repr)
@given(data=st.data())
def test_a_column_is_coded_alike_however_it_is_cut_or_forgotten(kind: Hierarchy, data: st.DataObject) -> None:
    one = texts if not isinstance(kind, Range) else st.integers(0, 64)
    values = data.draw(st.lists(one, min_size=1, max_size=12))
    whole, parts = Coder(kind, KEY, "c"), Coder(kind, KEY, "c")
    if parts._known is not None and data.draw(st.booleans()):
        whole._known._forget()  # type: ignore[union-attr]
    expected = whole.code(pl.Series(values))
    assert (expected.codes >= -2).all()
    chains = [expected.chains[c].tolist() if c >= 0 else int(c) for c in expected.codes]
    text = []
    for row, chain in enumerate(chains):
        steps = sum(map(bool, chain)) if isinstance(chain, list) else 0
        alone = [np.where(np.arange(len(values)) == row, at, -1).astype(np.int8) for at in range(steps)]
        text.append([expected.text(levels)[row] for levels in alone])
    for row, value in enumerate(values):
        if parts._known is not None and data.draw(st.booleans()):
            parts._known._forget()
        coded = parts.code(pl.Series([value]))
        code = int(coded.codes[0])
        own = [c for c in coded.chains[code].tolist() if c] if code >= 0 else code
        assert own == ([c for c in chains[row] if c] if isinstance(chains[row], list) else chains[row])
        chain, labels = parts.one(value)
        assert chain == (own if isinstance(own, list) else [])
        assert labels == text[row]


def test_a_tree_is_read_once(tmp_path: File) -> None:
    """Editing or deleting the file changes no running stream."""
    file = tmp_path / "tree.csv"
    file.write_text("a;x;*\nb;x;*\nc;y;*\n")
    tree = Tree(file=str(file))
    zero = z_anonymity(2, "1h", tree, key=KEY)
    frame = pl.DataFrame({"kind": ["a", "b", "c", "c"]})
    schema = Schema({"kind": Column("quasi", hierarchy=tree)})
    delayed = Batches(delay=3, reuse="never").start(schema, [KAnonymity(2)], key=KEY)
    file.write_text("a;changed;*\nb;changed;*\nc;changed;*\n")
    assert zero.push_many([0, 1], ["p", "q"], ["a", "b"]).values.to_list() == [None, "x"]
    file.unlink()
    assert zero.push(2, "r", "a") == "a"
    assert zero.push(3, "s", "c") is None
    out = delayed.push(Batch(frame, np.arange(4)))
    assert out.released is not None
    assert sorted(out.released["kind"]) == ["c", "c", "x", "x"]


def test_a_new_value_costs_no_more_when_many_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: each value is asked for once, and again only after everything was forgotten."""
    monkeypatch.setattr(known_values, "KEPT", 50)
    coder = Coder(Prefix(3), KEY, "c")
    known = coder._known
    assert known is not None
    asked: list[int] = []
    learn = known._learn
    monkeypatch.setattr(known, "_learn", lambda keys, *rest: asked.extend(keys.tolist()) or learn(keys, *rest))
    for i in range(200):
        coder.code(pl.Series([f"{i % 40:03}"]))
    assert len(asked) == 40
    coder.code(pl.Series([f"{i:03}" for i in range(60)]))
    assert len(asked) == 100
    assert known._rows <= 60


def test_a_value_pushed_again_is_not_asked_again() -> None:
    stream = z_anonymity(1, "1h", Prefix(3), key=KEY)
    known = stream._coder._known
    assert known is not None
    label, asked = known._label, []
    assert label is not None
    known._label = lambda text: asked.append(text) or label(text)  # type: ignore[func-returns-value]
    for i in range(200):
        assert stream.push(float(i), "ada", f"{i % 40:03}") == f"{i % 40:03}"
    assert len(asked) == 40


@given(st.lists(texts, max_size=6, unique=True), st.integers(1, 4))
def test_what_a_tree_lists_is_never_forgotten_and_labels_handed_out_stay(values: list[str], kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_values, "KEPT", 4)
        coder = Coder(Tree(nodes=NODES, default="blood"), KEY, "c")
    known = coder._known
    assert known is not None
    before = coder.code(pl.Series(["covid", "odd"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_values, "KEPT", kept)
        for value in values:
            coder.code(pl.Series([value]))
    assert known._own == 4
    assert known._rows <= 4 + max(kept, 1)
    assert before.text(np.array([0, 0], np.int8)).to_list() == ["covid", "odd"]
    assert coder.code(pl.Series(["covid"])).text(np.zeros(1, np.int8)).to_list() == ["covid"]


spelled = st.one_of(
    texts,
    st.text(st.characters(max_codepoint=0x1F600, exclude_categories=["Cs"]), min_size=1, max_size=9),
    st.tuples(st.integers(-90, 90), st.integers(-180, 180)).map(lambda p: f"{p[0]},{p[1]}"),
    st.tuples(st.decimals(-90, 90, places=5), st.decimals(-180, 180, places=4)).map(lambda p: f"{p[0]},{p[1]}"),
    st.sampled_from(["90,180", "-90,-180", ".5,-.5", "5.,7", "-0,-0", "-0.000001,-0.000001", ".,.", "89.99999,179.9"]),
)


@pytest.mark.parametrize(
    "kind",
    [Prefix(1), Prefix(4), Prefix(40), *map(Grid, [(100, 500, 3000), (70, 300), (0.5,), (1e-14,), (5e6, 1e9)])],
    ids=repr,
)
@given(values=st.lists(spelled, min_size=1, max_size=8))
def test_labels_as_bytes_are_those_of_the_labeller(kind: Hierarchy, values: list[str]) -> None:
    raw = bytes_of(pl.Series(values))
    for most in (13, 2):
        made = kind.label_bytes(*raw, most)
        if made is None:
            assert kind == Grid((1e-14,))  # too small to be counted
            return
        label = kind.labeller()
        assert label is not None
        for value, begins, sizes in zip(values, made.begins.tolist(), made.sizes.tolist(), strict=True):
            expected = label(value)
            if sizes[0] == ASK:  # allowed for what is unusual, and only for that
                assert (
                    expected is None
                    or not re.fullmatch(r"-?[1-8]?\d(\.5)?,-?[1-8]?\d(\.5)?", value)
                    or "e" in repr(kind)
                )
                continue
            found = [made.data[b : b + n].tobytes().decode() for b, n in zip(begins, sizes, strict=True)]
            assert expected is not None
            assert found == expected[:most]
