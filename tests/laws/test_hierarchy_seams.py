"""What a hierarchy says of itself, so that nobody has to ask which one it is."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import ClassVar

import polars as pl
import pytest

from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.hierarchy.path import Path
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Column, Schema
from shoal.masks.base import Context
from shoal.masks.generalize import Generalize
from shoal.promises.k_anonymity import KAnonymity
from shoal.series import PATTERNS, SERIES_METHODS
from shoal.streams.batches import Batches
from shoal.tables.continuous import Continuous


class Letters(Hierarchy, frozen=True, tag="letters"):
    """A hierarchy of another package whose levels depend on the values present, and which reads a file."""

    file_fields: ClassVar[tuple[str, ...]] = ("words",)

    words: str | None = None

    @property
    def grows(self) -> tuple[str, str] | None:
        return "letters are counted in the data", "use another"

    def compile(self, values: pl.Series, *, where: str = "hierarchy"):
        return Prefix(3).compile(values, where=where)


@pytest.mark.parametrize("growing", [Range(), Range(min=0), Path(), Tree(children=2), Letters()])
def test_whoever_needs_fixed_levels_refuses_a_hierarchy_that_grows(growing):
    why = growing.grows[0]
    with pytest.raises(UsageError, match=why):
        growing.fixed("column 'a'")
    with pytest.raises(UsageError, match=why):
        Generalize(level=1).start(Context(column="a", hierarchy=growing))
    schema = Schema({"a": Column("quasi", hierarchy=growing)})
    with pytest.raises(UsageError, match=why if not isinstance(growing, Range) else "needs its ends"):
        Batches(delay=3).start(schema, [KAnonymity(2)], key=bytes(32))
    with pytest.raises(UsageError, match=why):
        Continuous(schema, [KAnonymity(1)]).push(pl.DataFrame({"a": [1] if isinstance(growing, Range) else ["x"]}))


@pytest.mark.parametrize("fixed", [Range(min=0, max=9), Path(depth=2), Tree(nodes={"a": ["x"]}), Prefix(2)])
def test_a_hierarchy_with_fixed_levels_says_so(fixed):
    assert fixed.grows is None
    assert fixed.fixed("here").use == fixed.use


def test_files_are_named_as_seen_from_the_policy_and_belong_to_what_is_declared(tmp_path: FilePath):
    (tmp_path / "words.txt").write_text("first")
    letters = Letters(words="words.txt").beside(tmp_path)
    assert letters.files == (str(tmp_path / "words.txt"),)
    before = letters.declared()
    (tmp_path / "words.txt").write_text("second")
    assert letters.declared() != before
    (tmp_path / "tree.csv").write_text("x;a;*\ny;a;*\n")
    tree = Tree(file="tree.csv").beside(tmp_path)
    assert tree.leaves().to_list() == ["x", "y"]
    before = tree.declared()
    (tmp_path / "tree.csv").write_text('"x";a;*\ny;a;*\n')
    assert tree.declared() == before, "the same tree, written otherwise"
    assert Prefix(3).files == ()
    assert Prefix(3).beside(tmp_path) == Prefix(3)


def test_the_names_of_all_families_can_be_entry_point_groups():
    assert SERIES_METHODS.name == "series_method"
    assert PATTERNS.name == "pattern"
