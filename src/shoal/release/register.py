"""The register of people that a promise speaks about: from a policy's file, or handed in beside the data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.connect.files import read
from shoal.core.errors import UsageError
from shoal.core.frames import from_any, require
from shoal.core.groups import Coverage
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.schema import Schema
from shoal.core.table import hierarchy_for
from shoal.measures.attack import Nodes, fitting, members
from shoal.promises.base import Promise, lacks_register, those_about
from shoal.release.wishes import Wishes
from shoal.views.derived import with_derived
from shoal.views.role_view import RoleView


def register_of(
    wishes: Wishes, promises: Sequence[Promise], schema: Schema, view: RoleView | None = None
) -> pl.DataFrame | None:
    """The quasi columns of the register, a row per person; nothing where no promise speaks about one.

    >>> register_of(Wishes({}), [], Schema({})) is None
    True
    """
    asked = those_about(promises, "register")
    if not asked:
        return None
    named = {file for promise in asked if (file := getattr(promise, "register", ""))}
    given = wishes.take("register")
    if given is not None and named:
        wishes.refuse("register", "the promise names its register", "leave it out")
    if given is None and len(named) != 1:
        if not named:
            raise lacks_register(asked[0])
        raise UsageError("expected one register for all promises", where="register", hint="name the same file in all")
    source = given if given is not None else named.pop()
    hidden = () if view is None else view.hides
    # by a column that a role does not see it tells nobody apart
    quasi = [name for name in schema.quasi if name not in hidden]
    masked = next((name for name in quasi if view is not None and name in view.masks), None)
    if masked is not None:
        raise UsageError(
            f"column {masked!r} is masked: a register has values as people know them",
            where="register",
            hint="leave the mask to the column's hierarchy",
        )
    if isinstance(source, str | os.PathLike):
        # derived columns are made below, from their sources
        frame = read(str(source), types={n: t for n, t in schema.types().items() if schema[n].derive is None})
    else:
        frame = from_any(source)[0]
    frame = with_derived(frame, schema)
    require(frame, quasi, "register")
    return frame.select(quasi)


def nodes_of_register(register: pl.DataFrame, schema: Schema) -> Mapping[str, Nodes]:
    """Which values of the register stand under each label of the declared hierarchies.

    >>> from shoal.core.hierarchy.prefix import Prefix
    >>> from shoal.core.schema import Column
    >>> schema = Schema({"zip": Column("quasi", hierarchy=Prefix(length=2))})
    >>> sorted(nodes_of_register(pl.DataFrame({"zip": ["ab", "ac"]}), schema)["zip"]["a*"])
    ['ab', 'ac']
    """
    out = {}
    for name in register.columns:
        values = register[name]
        hierarchy: Hierarchy = hierarchy_for(values, schema[name])
        # an interval of numbers says itself whom it covers
        if not values.dtype.is_numeric() or schema[name].hierarchy is not None:
            out[name] = members(hierarchy.compile(values.unique().sort(nulls_last=True), where=f"column {name!r}")[0])
    return out


def beside(
    frame: pl.DataFrame, quasi: Sequence[str], register: pl.DataFrame
) -> Callable[[NDArray[np.int32]], Coverage]:
    """Which people of a register groups of a table may stand for, by their labels; columns have their usual hierarchy.

    >>> ages = pl.DataFrame({"age": [21, 25, 25]})
    >>> beside(ages, ["age"], ages)(np.array([0, 1, 1], np.int32)).counts().tolist()
    [1, 2]
    """
    require(register, quasi, "register")
    nodes = nodes_of_register(register.select(quasi), Schema.build(quasi=dict.fromkeys(quasi)))
    return lambda labels: coverage(frame, labels, quasi, register, nodes)


def coverage(
    frame: pl.DataFrame,
    labels: NDArray[np.int32],
    quasi: Sequence[str],
    register: pl.DataFrame,
    nodes: Mapping[str, Nodes] | None = None,
) -> Coverage:
    """Which people of a register each group may stand for, by the text of its cells; a label nobody knows, for none.

    >>> cells, people = pl.DataFrame({"age": ["[20, 29]"]}), pl.DataFrame({"age": [21, 25, 25, 31]})
    >>> coverage(cells, np.zeros(1, np.int32), ["age"], people).counts().tolist()
    [3]
    """
    require(register, quasi, "register")
    # no file can have a column of this name
    entries = register.select(quasi).group_by(quasi, maintain_order=True).len("\0people")
    first = np.unique(labels, return_index=True)[1]
    cells = frame.select(quasi)[first]
    people = entries["\0people"].to_numpy().astype(np.int64)
    # the safe side: a label that cannot be resolved hides nobody
    return Coverage(people, lambda: (match for _, match in fitting(cells, entries, quasi, nodes, unknown=False)))
