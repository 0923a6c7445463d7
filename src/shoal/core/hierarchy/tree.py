"""A tree of categories: from a nested mapping, from a file of paths, or built with n children per node."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import InputError, UsageError
from shoal.core.hierarchy.base import Hierarchy, Labeller
from shoal.core.levels import Codes, Levels, code_of, in_runs, nest
from shoal.core.originals import register

Paths = dict[str, list[str]]  # leaf -> its labels, the leaf first, the root last
_JOINT = " … "  # between the first and the last value of a node that was built
_SPAN = re.compile(r"^[\[(]?\s*(-?\d+(?:\.\d+)?)\s*(?:-|–|\.\.+|,|to)\s*(-?\d+(?:\.\d+)?)\s*([\])[]?)$")


class Tree(Hierarchy, frozen=True, tag="tree"):
    """Categories under categories. Give one of ``nodes``, ``file``, ``children``.

    ``nodes`` is a nested mapping, leaves in lists; ``file`` a CSV without header whose lines are paths from the
    leaf to the root (`Berlin;Germany;Europe;*`), as other tools write them; ``children`` builds a tree over the
    sorted values with that many children per node (Garai 2019 refuses more children than values; here all values then
    lie under one node). A value the tree does not hold goes under the node ``default``; without it, its rows are
    withheld and counted.

    >>> import polars as pl
    >>> tree = Tree(nodes={"respiratory": ["Asthma", "Covid"], "metabolic": ["Diabetes"]})
    >>> tree.preview(pl.Series(["Asthma", "Diabetes"])).rows()
    [('Asthma', 'respiratory', '*'), ('Diabetes', 'metabolic', '*')]
    """

    file_fields: ClassVar[tuple[str, ...]] = ("file",)

    nodes: dict[str, Any] | None = None
    file: str | None = None
    children: int | None = None
    separator: str = ";"
    default: str | None = None

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.nodes, self.file, self.children)) != 1:
            raise UsageError("expected exactly one of `nodes`, `file`, `children`", where="tree")
        if self.children is not None and self.children < 2:
            raise UsageError("`children` must be at least 2", where="tree")

    @property
    def grows(self) -> tuple[str, str] | None:
        """See :class:`Hierarchy`."""
        if self.children is None:
            return None
        return "a tree built from the data has no fixed levels", "give `nodes` or `file`"

    def declared(self) -> Any:
        """See :class:`Hierarchy`. Of a file, the paths count, not how they are written."""
        plain = msgspec.to_builtins(self)
        return plain if self.file is None else {**plain, "file": list(self.paths().items())}

    def leaves(self) -> pl.Series | None:
        """See :class:`Hierarchy`."""
        return None if self.children is not None else pl.Series(list(self.paths()), dtype=pl.String)

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`. Costs O(leaves x levels)."""
        texts = values.dtype == pl.String
        if self.children is not None and texts and not values.str.contains(_JOINT, literal=True).any():
            return _compile_grown(values, self.children)
        paths = self.paths(values, where=where)
        depth = len(next(iter(paths.values()))) if paths else 2
        text = leaf_texts(values)
        present = [v for v in text.to_list() if v is None or v in paths]
        kept = values.filter(text.is_in(list(paths)) | text.is_null())
        labels = [
            pl.Series([paths[v][at] if v is not None else None for v in present], dtype=pl.String)
            for at in range(depth)
        ]
        labels[-1] = pl.Series([SUPPRESSED] * len(present), dtype=pl.String)
        levels = nest(kept, labels, sizes=_sizes(paths, kept), where=where)
        return levels, code_of(levels, values)

    def paths(self, values: pl.Series | None = None, *, where: str = "hierarchy") -> Paths:
        """The path of every leaf; unknown ``values`` are put under ``default``."""
        known = [v for v in leaf_texts(values).to_list() if v is not None] if values is not None else []
        if self.children is not None:
            assert values is not None
            ordered = leaf_texts(values.drop_nulls().sort()).to_list()
            return _grown(ordered, self.children)
        paths = _read(Path(self.file), self.separator) if self.file else _flatten(self.nodes or {}, where)
        check(paths, where)
        return self._with_default(paths, known, where)

    def labeller(self, *, where: str = "hierarchy") -> Labeller | None:
        """See :class:`Hierarchy`. Takes texts as :func:`leaf_texts` writes them."""
        if self.children is not None:
            return None
        paths = self.paths(where=where)
        depth = len(next(iter(paths.values())))
        below = [path[:-1] for path in self._with_default(dict(paths), ["\0"], where).values()][len(paths) :]

        def labels(text: str) -> list[str] | None:
            path = paths.get(text)
            if path is not None:
                return path[: depth - 1]
            return [text if label == "\0" else label for label in below[0]] if below else None

        return labels

    def doubts(self) -> list[str]:
        """See :class:`Hierarchy`: labels that read as an interval and do not contain their leaf.

        >>> Tree(nodes={"75-79": ["78", "80"], "80-84": ["81"]}).doubts()
        ['level 1: 1 leaf lies outside the interval its label names (leaf number 2)']
        """
        if self.children is not None:
            return []
        found: dict[int, list[int]] = {}
        for position, path in enumerate(self.paths().values(), 1):
            for level, label in enumerate(path[1:-1], 1):
                if not _inside(path[0], label):
                    found.setdefault(level, []).append(position)
        return [
            f"level {level}: {len(at)} {'leaf lies' if len(at) == 1 else 'leaves lie'} outside the interval "
            f"{'its label names' if len(at) == 1 else 'their labels name'} (leaf number {', '.join(map(str, at[:5]))}"
            f"{', …' if len(at) > 5 else ''})"
            for level, at in sorted(found.items())
        ]

    def export(self, file: Path, values: pl.Series | None = None) -> None:
        """Write the paths, one line per leaf, so that other tools and :class:`Tree` read them back."""
        with file.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out, delimiter=self.separator).writerows(self.paths(values).values())

    def _with_default(self, paths: Paths, values: Sequence[str], where: str) -> Paths:
        if self.default is None:
            return paths
        under = next((p[p.index(self.default) :] for p in paths.values() if self.default in p[1:]), None)
        if under is None:
            raise UsageError("`default` is not a node of the tree", where=where, hint="name an inner node, or `*`")
        depth = len(next(iter(paths.values())))
        for value in values:
            if value not in paths:  # the default node may lie high: the value itself fills the levels below it
                paths[value] = [value] + [f"{value}"] * (depth - len(under) - 1) + under
        return paths


def check(paths: Paths, where: str) -> None:
    """Every level covers the domain and there is one root (that each leaf stands once is checked on reading)."""
    depths = {len(p) for p in paths.values()}
    if not paths:
        raise UsageError("the tree is empty", where=where, hint="expected at least one leaf")
    if len(depths) > 1:
        most = max(depths)
        short = next(i for i, p in enumerate(paths.values(), 1) if len(p) != most)
        raise UsageError(
            f"level {len(list(paths.values())[short - 1])} does not cover the domain: path number {short} is shorter "
            f"than {most}",
            where=where,
            hint="give every leaf as many labels; repeat a label to fill a level",
        )
    roots = {p[-1] for p in paths.values()}
    if len(roots) > 1:
        raise UsageError(
            f"the last level has {len(roots)} nodes, expected one root", where=where, hint="end every path with `*`"
        )


def _read(file: Path, separator: str) -> Paths:
    paths: Paths = {}
    register(file)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for position, row in enumerate(csv.reader(lines, delimiter=separator), 1):
                if not row:
                    continue
                if row[0] in paths:
                    raise UsageError(
                        "level 0: this leaf stands twice",
                        where=f"{file.name}, line {position}",
                        hint="each value belongs to one path",
                    )
                paths[row[0]] = row if len(row) > 1 else [*row, SUPPRESSED]
    except OSError as error:
        raise InputError(f"cannot read the tree ({error.strerror})", where=str(file), hint="check the path") from None
    except UnicodeDecodeError:
        raise InputError("the tree is not UTF-8 text", where=str(file), hint="save the file as UTF-8") from None
    return paths


def _flatten(nodes: Mapping[str, Any], where: str) -> Paths:
    paths = list(_walk(nodes, (SUPPRESSED,)))
    depth = max((len(p) for p in paths), default=0)
    out: Paths = {}
    for position, path in enumerate(paths, 1):
        if path[0] in out:
            raise UsageError(
                f"level 0: leaf number {position} stands twice", where=where, hint="each value belongs to one path"
            )
        out[path[0]] = [path[0]] * (depth - len(path)) + list(path)  # a short branch is filled at its leaf
    return out


def _walk(node: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, Mapping):
        for name, below in node.items():
            yield from _walk(below, (str(name), *above)) if below else [(str(name), *above)]
    else:
        for leaf in node if isinstance(node, list | tuple) else [node]:
            yield (str(leaf), *above)


def _grown(values: Sequence[str], children: int) -> Paths:
    """A balanced tree over sorted values: each node has ``children`` children, the last perhaps fewer."""
    paths = {v: [v] for v in values}
    span = 1
    while span < len(values):
        span *= children
        for start in range(0, len(values), span):
            members = values[start : start + span]
            label = SUPPRESSED if span >= len(values) else _between(members)
            for v in members:
                paths[v].append(label)
    return paths if span > 1 else {v: [v, SUPPRESSED] for v in values}


def _between(members: Sequence[str]) -> str:
    return members[0] if len(members) == 1 else f"{members[0]}{_JOINT}{members[-1]}"


def _compile_grown(values: pl.Series, children: int) -> tuple[Levels, Codes]:
    """As :func:`_grown`, for different texts none of which could be taken for a label: no path is written out."""
    order = None if values.is_sorted(nulls_last=True) else values.arg_sort(nulls_last=True)
    texts = values if order is None else values[order]
    known = len(texts) - texts.null_count()
    depth, span = 1, 1
    while span < known:
        span, depth = span * children, depth + 1
    at = np.arange(len(texts))
    codes = np.zeros((len(texts), max(2, depth)), np.int32)
    for level in range(codes.shape[1] - 1):
        codes[:known, level] = at[:known] // children**level
        codes[known:, level] = codes[known - 1, level] + 1 if known else 0

    def label_at(level: int, first: NDArray[np.int64]) -> pl.Series:
        if level == codes.shape[1] - 1:
            return pl.repeat(SUPPRESSED, len(first), dtype=pl.String, eager=True)
        last = np.append(first, len(texts))[1:] - 1
        low, high = texts[first], texts[last]
        return pl.select(pl.when(pl.Series(first < last)).then(low + _JOINT + high).otherwise(low)).to_series()

    levels = in_runs(texts, codes, label_at)
    if order is None:
        return levels, codes[:, 0].copy()
    own = np.empty(len(texts), np.int32)
    own[order.to_numpy()] = codes[:, 0]
    return levels, own


def _inside(leaf: str, label: str) -> bool:
    span = _SPAN.match(label)
    try:
        value = float(leaf)
    except ValueError:
        return True
    if span is None:
        return True
    return float(span[1]) <= value and (value < float(span[2]) if span[3] in (")", "[") else value <= float(span[2]))


def leaf_texts(values: pl.Series) -> pl.Series:
    """Values as a tree's file writes them: a whole number has no decimals, whatever its column's type.

    >>> leaf_texts(pl.Series([1.0, 2.5])).to_list()
    ['1', '2.5']
    """
    if not values.dtype.is_float():
        return values.cast(pl.String)
    whole = values.is_finite() & (values == values.round()) & (values.abs() < 2**53)
    return (
        values.to_frame("v")
        .select(
            pl.when(pl.Series(whole))
            .then(pl.col("v").cast(pl.Int64, strict=False).cast(pl.String))
            .otherwise(pl.col("v").cast(pl.String))
        )
        .to_series()
    )


def _numbers(paths: Paths) -> list[float] | None:
    """The leaves as numbers, if all of them are."""
    try:
        return [float(leaf) for leaf in paths]
    except ValueError:
        return None


def _sizes(paths: Paths, kept: pl.Series) -> list[dict[str, float]]:
    """The loss of each node: width over width of the domain for numbers, else leaves over leaves of the tree."""
    depth = len(next(iter(paths.values()))) if paths else 2
    numbers = kept.drop_nulls().cast(pl.Float64).to_list() if kept.dtype.is_numeric() else []
    sizes: list[dict[str, float]] = []
    places = _numbers(paths) if numbers else None
    if places is not None:
        low, high = min(numbers), max(numbers)
        leaves = [(at, path) for at, path in zip(places, paths.values(), strict=True) if low <= at <= high]
        for at in range(depth):
            ends: dict[str, tuple[float, float]] = {}
            for value, path in leaves:
                a, b = ends.get(path[at], (value, value))
                ends[path[at]] = (min(a, value), max(b, value))
            sizes.append({label: (b - a) / ((high - low) or 1.0) for label, (a, b) in ends.items()})
        return sizes
    for at in range(depth):
        count: dict[str, int] = {}
        for path in paths.values():
            count[path[at]] = count.get(path[at], 0) + 1
        sizes.append({label: n / len(paths) if n > 1 else 0.0 for label, n in count.items()})
    return sizes
