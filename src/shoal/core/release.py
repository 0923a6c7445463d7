"""A release: the released data, the groups behind it, what was withheld. Values only; a report is attached above."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.levels import Codes, Members
from shoal.core.schema import Schema
from shoal.core.table import Table


@dataclass(frozen=True)
class Boxes:
    """Per group and column the lowest and highest code, and the least level to publish.

    Of columns that may be published as sets, ``members`` are the codes that each group holds.

    >>> low, high = np.array([[0, 2]], np.int32), np.array([[1, 2]], np.int32)
    >>> Boxes(low, high).column(0)
    (array([0], dtype=int32), array([1], dtype=int32), 0, None)
    """

    low: Codes
    high: Codes
    floor: NDArray[np.int8] | None = None
    members: Mapping[int, Members] = field(default_factory=dict)

    def column(self, j: int) -> tuple[Codes, Codes, NDArray[np.int8] | int, Members | None]:
        """The boxes of one column."""
        floor = 0 if self.floor is None else self.floor[:, j]
        return self.low[:, j], self.high[:, j], floor, self.members.get(j)


def nothing() -> None:
    """Most releases leave nothing to be written down.

    >>> nothing()
    """


@dataclass(repr=False)
class Release:
    """What may be published, and beside it what the operator keeps in memory.

    ``data`` is the kind of frame that came in, in an order that tells nothing; ``positions`` says, in memory only,
    which input row each released row is. ``groups`` has a label per input row, -1 for withheld; ``withheld`` counts
    the reasons. ``report``, ``model`` and ``curves`` are attached by whoever made it.

    Whoever pickles or copies a release passes on what may be published, and nothing else.

    >>> Release(data=pl.DataFrame({"age": ["[20, 29]"] * 2}), withheld={"suppressed by the method": 1}).withheld
    {'suppressed by the method': 1}
    """

    data: Any
    groups: NDArray[np.int32] | None = None
    withheld: Mapping[str, int] = field(default_factory=dict)
    schema: Schema | None = None
    left_out: Sequence[str] = ()  # columns of the input that were not declared
    report: Any = None
    model: Any = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what looks like a mistake and must be said aloud
    positions: NDArray[np.int64] | None = None
    curves: Any = None
    written: bool = False  # it is where it goes already: a table that never was in memory
    settle: Callable[[], None] = nothing  # call it when the data are written: what was taken is written down

    def page(self, file: str) -> str:
        """The report as a file of this name: .html, .json or .txt."""
        out: str = self.report.page(file) if self.curves is None else self.report.page(file, self.curves)
        return out

    def __repr__(self) -> str:
        counted = getattr(self.report, "released", None)
        rows = counted if counted is not None else getattr(self.data, "height", None) or len(self.data)
        verdict = "verified" if getattr(self.report, "verified", False) else "not verified"
        return f"<Release of {rows:,} rows, {sum(self.withheld.values()):,} withheld, {verdict}>"

    def _repr_html_(self) -> str:
        head = self.data.head() if hasattr(self.data, "head") else self.data
        shown = head._repr_html_() if hasattr(head, "_repr_html_") else ""
        report = self.report._repr_html_() if hasattr(self.report, "_repr_html_") else ""
        return f"{shown}{report}"

    def __getstate__(self) -> dict[str, Any]:
        kept = ("data", "withheld", "report", "notes")
        return {
            **{f.name: None for f in fields(self)},
            "left_out": (),
            "settle": nothing,
            "written": False,
            **{name: getattr(self, name) for name in kept},
        }


def boxes_of(table: Table, labels: NDArray[np.int32], floor: NDArray[np.int8] | None = None) -> Boxes:
    """The box of every group of a table.

    >>> from shoal.core.schema import Column
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"age": [20, 21, 50]}), Schema({"age": Column("quasi")}))
    >>> boxes_of(table, np.array([0, 0, 1], np.int32)).high.tolist()
    [[1], [2]]
    """
    from shoal.kernels.shared.boxes import group_boxes

    groups = int(labels.max(initial=-1)) + 1
    low, high = group_boxes(table.matrix, labels, groups)
    members = {
        j: Members.of(table.matrix[:, j], labels, groups) for j, levels in enumerate(table.levels) if levels.most
    }
    return Boxes(low, high, floor, members)


def dense(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Labels renumbered from 0 without gaps; -1 stays.

    >>> dense(np.array([4, -1, 4, 9], np.int32)).tolist()
    [0, -1, 0, 1]
    """
    kept = labels >= 0
    out = np.full(labels.shape, -1, np.int32)
    out[kept] = np.unique(labels[kept], return_inverse=True)[1]
    return out


def read_alike(
    table: Table, labels: NDArray[np.int32], floor: NDArray[np.int8] | None = None
) -> tuple[NDArray[np.int32], Boxes]:
    """Labels and boxes of the groups as published: groups that read alike are one group to everybody who reads.

    >>> from shoal.core.schema import Column
    >>> from shoal.core.table import code
    >>> table = code(pl.DataFrame({"sex": ["f", "f", "m", "m"]}), Schema({"sex": Column("quasi")}))
    >>> read_alike(table, np.array([0, 1, 0, 1], np.int32))[0].tolist()  # both groups read "*"
    [0, 0, 0, 0]
    """
    labels = labels if floor is not None else dense(labels)
    while True:
        boxes = boxes_of(table, labels, floor)
        cells = pl.DataFrame([x.text(*boxes.column(j)).alias(f"{j}") for j, x in enumerate(table.levels)])
        different = cells.unique(maintain_order=True).with_row_index("group")
        if different.height == cells.height:
            return labels, boxes
        joined = cells.join(different, on=cells.columns, how="left", nulls_equal=True, maintain_order="left")
        alike = joined["group"].to_numpy().astype(np.int32)
        if floor is not None:
            above = np.zeros((different.height, floor.shape[1]), np.int8)
            np.maximum.at(above, alike, floor)
            floor = above
        labels = np.where(labels >= 0, alike[labels], -1).astype(np.int32)


def recode(
    frame: pl.DataFrame,
    schema: Schema,
    table: Table,
    labels: NDArray[np.int32],
    boxes: Boxes,
    *,
    typed: bool = False,
    categories: Collection[str] = (),
) -> tuple[pl.DataFrame, NDArray[np.int32]]:
    """The released frame, and the group of every input row (-1: withheld).

    Quasi columns become text (or structs), once per group and then spread over its rows; sensitive and plain
    columns are untouched; subjects, identifiers and undeclared columns are not in it. Columns named in ``categories``
    have few different texts: they are kept as polars' categories, which are spread, sorted and judged at less cost.

    >>> from shoal.core.schema import Column
    >>> from shoal.core.table import code
    >>> frame, schema = pl.DataFrame({"age": [20, 21]}), Schema({"age": Column("quasi")})
    >>> table, labels = code(frame, schema), np.zeros(2, np.int32)
    >>> recode(frame, schema, table, labels, boxes_of(table, labels))[0].rows()
    [('[20, 21]',), ('[20, 21]',)]
    """
    groups = np.full(frame.height, -1, np.int32)
    groups[table.rows] = labels
    kept = np.flatnonzero(groups >= 0)
    shown = [
        c for c in frame.columns if c in schema.columns and schema[c].role in ("quasi", "sensitive", "plain", "time")
    ]
    columns: list[pl.Series] = []
    for name in shown:
        if name in table.names:
            j = table.names.index(name)
            cells = table.levels[j].text(*boxes.column(j))
            if typed:
                cells = typed_cells(cells)
            elif name in categories:
                cells = cells.cast(pl.Categorical)
            columns.append(cells.gather(groups[kept]).alias(name))
        else:
            columns.append(taken(frame[name], None if len(kept) == frame.height else kept))
    return pl.DataFrame(columns), groups


def taken(column: pl.Series, rows: NDArray[np.int64] | None = None) -> pl.Series:
    """These rows of a column (or all), and not a byte of others.

    Polars shares the buffers of long texts: who pickles a release would pass on what withheld rows say, or rows that
    somebody had filtered out before.

    >>> taken(pl.Series("diag", ["flu", "cold"]), np.array([1])).to_list()
    ['cold']
    """
    out = column if rows is None else column.gather(rows)
    if out.dtype == pl.String:
        return (out + "").alias(column.name)
    if isinstance(out.dtype, pl.Enum):  # its categories are written with every part of it
        used = set(out.unique().to_list())
        return out.cast(pl.String).cast(pl.Enum([c for c in out.dtype.categories.to_list() if c in used]))
    if out.dtype == pl.Binary or out.dtype.is_nested():
        return pl.Series(column.name, out.to_list(), dtype=out.dtype)
    return out


def cleaned(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame, and in its memory not a byte of rows it was cut from (see :func:`taken`).

    >>> cleaned(pl.DataFrame({"name": ["F. Ott", "*"]})[1:]).rows()
    [('*',)]
    """
    return pl.DataFrame([taken(column) for column in frame.get_columns()]) if frame.width else frame


def typed_cells(cells: pl.Series) -> pl.Series:
    """Cells as structs ``{kind, text, low, high, closed}``, for files that keep types.

    >>> typed_cells(pl.Series(["[20, 29]"])).struct.field("high").to_list()
    [29.0]
    """
    from shoal.core.cells import read

    parsed = [read(text) for text in cells.to_list()]
    frame = pl.DataFrame(
        {
            "kind": [c.kind for c in parsed],
            "text": cells,
            "low": [c.low for c in parsed],
            "high": [c.high for c in parsed],
            "closed": [c.closed for c in parsed],
        },
        schema={"kind": pl.String, "text": pl.String, "low": pl.Float64, "high": pl.Float64, "closed": pl.Boolean},
    )
    return frame.fill_nan(None).to_struct(cells.name)
