"""Laws of continuous mode: every release keeps its promises, cells only become more general, no row is lost."""

from __future__ import annotations

import secrets

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError, OutputError, UsageError
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.suppress import Suppress
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.tables import TABLE_METHODS
from shoal.tables.continuous import Continuous
from shoal.tables.continuous_state import load, save, state_file
from shoal.tables.datafly import Datafly
from shoal.verifier import verify

TREE = {"office": ["clerk", "judge"], "field": ["cook", "sailor"]}
QUASI = {"age": Range(min=0, max=63), "zip": Prefix(3), "job": Tree(nodes=TREE)}
ROW = st.fixed_dictionaries(
    {
        "age": st.none() | st.integers(0, 63),
        "zip": st.sampled_from(["101", "102", "119", "201", "209"]),
        "job": st.sampled_from(["clerk", "judge", "cook", "sailor"]),
        "ill": st.sampled_from(["flu", "cold", "gout"]),
        "who": st.none() | st.integers(0, 30),
    }
)
TYPES = {"age": pl.Int64, "zip": pl.String, "job": pl.String, "ill": pl.String, "who": pl.Int64}
CHUNKS = st.lists(st.lists(ROW, max_size=12), min_size=1, max_size=5)
PROMISES = st.sampled_from([[KAnonymity(2)], [KAnonymity(4)], [KAnonymity(3), LDiversity(2, "ill")]])


def schema(*, people: bool) -> Schema:
    columns = {name: Column("quasi", hierarchy=h) for name, h in QUASI.items()} | {"ill": Column("sensitive")}
    return Schema(columns | ({"who": Column("subject")} if people else {}))


def frames(chunks: list[list[dict]]) -> list[pl.DataFrame]:
    return [pl.DataFrame(chunk, schema=TYPES) for chunk in chunks]


def spans(cell: str | None, name: str) -> set:
    """The values a published cell may stand for."""
    domain = {
        "age": range(64),
        "zip": ["101", "102", "119", "201", "209"],
        "job": [j for js in TREE.values() for j in js],
    }
    if cell == "*":
        return {None, *domain[name]}
    if cell is None:
        return {None}
    if name == "age" and cell.startswith("["):
        low, high = map(int, cell.strip("[]").split(", "))
        return set(range(low, high + 1))
    if name == "zip":
        return {v for v in domain["zip"] if v.startswith(cell.rstrip("*"))}
    return set(TREE[cell]) if cell in TREE else {int(cell) if name == "age" else cell}


@pytest.mark.parametrize("method", TABLE_METHODS.names())
@settings(max_examples=12)
@given(chunks=CHUNKS, promises=PROMISES, people=st.booleans())
def test_the_whole_keeps_its_promises_and_only_becomes_more_general(method, chunks, promises, people):
    growing = Continuous(schema(people=people), promises, TABLE_METHODS.get(method)())
    seen = pl.DataFrame(schema=TYPES)
    before: pl.DataFrame | None = None
    for frame in frames(chunks):
        seen = pl.concat([seen, frame])
        out = growing.push(frame)
        if out.data is None:
            assert out.held > 0 or seen.height == (0 if before is None else before.height)
            continue
        assert out.data.height == seen.height
        assert verify(out.data, list(QUASI), promises, people=seen["who"] if people else None).kept
        assert out.data["ill"].equals(seen["ill"])
        for name in QUASI:
            for value, cell in zip(seen[name], out.data[name], strict=True):
                assert value in spans(cell, name)
            if before is not None:
                for old, new in zip(before[name], out.data[name], strict=False):
                    assert spans(old, name) <= spans(new, name)
        before = out.data


def test_a_missing_subject_is_no_new_person_in_every_increment():
    growing = Continuous(Schema.build(quasi={"age": QUASI["age"]}, subject="who"), [KAnonymity(2)], publish="new")
    ages = {"age": [20, 21]}
    assert growing.push(pl.DataFrame(ages | {"who": [None, "a"]})).released == 2
    assert growing.push(pl.DataFrame(ages | {"who": [None, "b"]})).held == 2, "b alone is new"
    assert growing.push(pl.DataFrame(ages | {"who": [None, "c"]})).released == 4


@settings(max_examples=40)
@given(chunks=CHUNKS, promises=PROMISES, people=st.booleans())
def test_increments_have_k_new_people_per_group_and_their_union_verifies(chunks, promises, people):
    growing = Continuous(schema(people=people), promises, publish="new")
    published, whose = [], []
    known: set[int] = set()
    waiting = pl.DataFrame(schema=TYPES)
    for frame in frames(chunks):
        waiting = pl.concat([waiting, frame])
        out = growing.push(frame)
        if out.data is None:
            assert out.held == waiting.height
            continue
        assert waiting.height
        assert out.data["ill"].equals(waiting["ill"]), "held rows come first, in their order"
        owners = waiting["who"].to_list() if people else [f"row {len(whose)} {i}" for i in range(waiting.height)]
        for _, group in out.data.with_columns(owner=pl.Series(owners)).group_by(list(QUASI)):
            assert len(set(group["owner"]) - known) >= promises[0].k
        known |= set(owners)
        published.append(out.data)
        whose.append(waiting["who"])
        waiting = waiting.clear()
        union = pl.concat(published)
        assert verify(union, list(QUASI), promises, people=pl.concat(whose) if people else None).kept


@settings(max_examples=15)
@given(chunks=CHUNKS, publish=st.sampled_from(["whole", "new"]), people=st.booleans())
def test_saved_and_loaded_is_as_uninterrupted(tmp_path_factory, chunks, publish, people):
    path, key = tmp_path_factory.mktemp("state") / "state", secrets.token_bytes(32)
    declared, promises = schema(people=people), [KAnonymity(3)]
    one = Continuous(declared, promises, publish=publish)
    other = Continuous(declared, promises, publish=publish)
    file = state_file(path, key)
    for frame in frames(chunks):
        expected = one.push(frame)
        found = other.push(frame)
        assert (expected.word, expected.withheld) == (found.word, found.withheld)
        assert (expected.data is None) == (found.data is None)
        assert expected.data is None or expected.data.equals(found.data)
        save(other, file)
        file = state_file(path, key)
        other = load(file, declared, promises, publish=publish)


def test_a_state_says_clearly_why_it_cannot_be_used(tmp_path):
    path, key = tmp_path / "state", secrets.token_bytes(32)
    declared = schema(people=False)
    growing = Continuous(declared, [KAnonymity(2)])
    growing.push(pl.DataFrame([{"age": 1, "zip": "101", "job": "lighthouse", "ill": "flu", "who": 1}], schema=TYPES))
    with pytest.raises(UsageError, match="only under a key"):
        save(growing, state_file(path))
    save(growing, state_file(path, key))
    assert b"lighthouse" not in path.read_bytes()
    with pytest.raises(UsageError, match="sealed"):
        load(state_file(path), declared, [KAnonymity(2)])
    with pytest.raises(InputError, match="cannot be opened"):
        load(state_file(path, secrets.token_bytes(32)), declared, [KAnonymity(2)])
    with pytest.raises(UsageError, match="another schema"):
        load(state_file(path, key), declared, [KAnonymity(3)])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a state"):
        load(state_file(path, key), declared, [KAnonymity(2)])
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="cannot read"):
        load(state_file(path, key), declared, [KAnonymity(2)])
    with pytest.raises(OutputError):
        save(growing, state_file(tmp_path / "no folder" / "state", key))


def test_what_cannot_grow_is_refused():
    frame = pl.DataFrame({"x": [1, 2]})
    with pytest.raises(UsageError, match="grows with its data"):
        Continuous(Schema.build(quasi={"x": Range()}), [KAnonymity(2)]).push(frame)
    with pytest.raises(UsageError, match="grows with its data"):
        Continuous(Schema.build(quasi={"x": None}), [KAnonymity(2)]).push(frame)
    with pytest.raises(UsageError, match="built from the data"):
        Continuous(Schema.build(quasi={"x": Tree(children=2)}), [KAnonymity(2)]).push(frame)
    with pytest.raises(UsageError, match="suppresses rows"):
        Continuous(Schema.build(quasi={"x": Suppress()}), [KAnonymity(2)], Datafly(suppress=0.1))
    with pytest.raises(UsageError, match="`whole` or `new`"):
        Continuous(Schema.build(quasi={"x": Suppress()}), [KAnonymity(2)], publish="both")


def test_the_fuzz_in_which_the_original_breaks_k():
    """The original (gar-r/k-anon 1.2.6) violated k at some release of 2 of 30 such tables."""
    declared = Schema.build(quasi={f"c{j}": Suppress() for j in range(4)})
    for seed in range(30):
        random = np.random.default_rng(seed)
        growing = Continuous(declared, [KAnonymity(3)])
        for n in (20, 7, 11, 2, 15):
            out = growing.push(pl.DataFrame({f"c{j}": random.integers(0, 4, n) for j in range(4)}), seed=seed)
            assert out.data is not None
            assert out.data.group_by(out.data.columns).len()["len"].min() >= 3


def test_another_tree_in_the_same_file_is_another_schema(tmp_path):
    """A cell published as one node and then as another, not a higher one, tells where both meet."""
    file, path = tmp_path / "towns.csv", tmp_path / "state"
    file.write_text("a;north;*\nb;north;*\nc;south;*\nd;south;*\n")
    declared = Schema.build(quasi={"town": Tree(file=str(file))})
    growing = Continuous(declared, [KAnonymity(2)])
    assert growing.push(pl.DataFrame({"town": ["a", "b", "c", "d"]})).released == 4
    save(growing, state_file(path))
    load(state_file(path), declared, [KAnonymity(2)])
    file.write_text("a;south;*\nb;north;*\nc;south;*\nd;south;*\n")
    with pytest.raises(UsageError, match="another schema"):
        load(state_file(path), declared, [KAnonymity(2)])


def test_an_open_state_holds_no_exact_value_of_anyone_but_one_per_node(tmp_path):
    """Without people and held rows a state needs no key: then it must not hold what withheld or released rows said."""
    declared = Schema(
        {
            "town": Column("quasi", hierarchy=Tree(nodes={"north": ["a", "b"]})),
            "zip": Column("quasi", hierarchy=Prefix(12)),
            "note": Column("plain"),
        }
    )
    growing = Continuous(declared, [KAnonymity(2)])
    towns, zips = ["a"] * 20 + ["Atlantis"] + ["b"] * 19, [f"1011{n:02d}secret" for n in range(40)]
    notes = [f"a note that is rather long, of {'someone withheld' if n == 20 else n}" for n in range(40)]
    increment = growing.push(pl.DataFrame({"town": towns, "zip": zips, "note": notes}))
    assert increment.released == 39
    save(growing, state_file(tmp_path / "state"))
    written = (tmp_path / "state").read_bytes()
    assert b"Atlantis" not in written
    assert b"someone withheld" not in written
    assert sum(text.encode() in written for text in zips) <= increment.data["zip"].n_unique()


def test_levels_that_grow_with_the_data_are_refused():
    """A longer path would turn what was published as `a` into `a.b`: more precise, and of someone else."""
    growing = Continuous(Schema({"page": Column("quasi", hierarchy=Path())}), [KAnonymity(2)])
    with pytest.raises(UsageError, match="no fixed levels"):
        growing.push(pl.DataFrame({"page": ["a.b", "a.c", "d.e", "d.f"]}))
    growing = Continuous(Schema({"page": Column("quasi", hierarchy=Path(depth=4))}), [KAnonymity(2)])
    assert growing.push(pl.DataFrame({"page": ["a.b", "a.c", "d.e", "d.f"]})).data["page"].to_list() == [*"aadd"]
    longer = growing.push(pl.DataFrame({"page": ["a.b.c.d", "a.b.c.e", "q.r.s.t", "q.r.s.t"]}))
    assert longer.data["page"][:4].to_list() == [*"aadd"]
