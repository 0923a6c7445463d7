"""Methods and parameters side by side: what each loses, and what risk it leaves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import PromiseError, UsageError
from shoal.core.frames import require
from shoal.core.notebook import Shown
from shoal.core.register import beside_register
from shoal.core.release import read_alike, recode
from shoal.core.schema import Schema
from shoal.core.table import Table, code
from shoal.measures.frontier import frontier
from shoal.measures.learning import Learned, Learner
from shoal.measures.loss import loss
from shoal.measures.population import population_risk
from shoal.measures.risk import risk
from shoal.promises.base import Promise
from shoal.promises.k_anonymity import KAnonymity
from shoal.release.judge import Judge
from shoal.release.limits import limits_kept
from shoal.report.chart import Axis, Chart, Heat, Mark, Points, Scatter, sheet
from shoal.report.measured import sampling_weights
from shoal.report.page import Grid, Picture, Section, Verdict, Words, page
from shoal.tables import TABLE_METHODS, TableMethod

Progress = Callable[[float, str], None]
OUTSIDE = "outside"


class Row(msgspec.Struct, frozen=True):
    """One method with one k. Without a release (``note`` says why) the figures are empty.

    >>> Row("local", 5, gcp=0.1, risk=0.05).frontier
    False
    """

    method: str
    k: int
    gcp: float | None = None  # mean loss of a quasi cell, 0 to 1
    risk: float | None = None  # mean chance of being found again
    worst: float | None = None  # the highest chance
    groups: int | None = None
    suppressed: int | None = None
    seconds: float | None = None  # CPU, grouping only
    frontier: bool = False  # no other row has both less loss and less risk
    note: str = ""
    columns: dict[str, float] = {}  # mean loss of the cells of each quasi column
    learned: Learned | None = None  # what a model learns from the release, where that was asked for
    outside: float | None = (
        None  # mean chance of being found again in the population, where weights say how large it is
    )


class Comparison(Shown, msgspec.Struct, frozen=True):
    """All rows, and how many people the table has.

    >>> Comparison([Row("local", 5, 0.1, 0.05, 0.2, 9, 0, 1.0, frontier=True)], people=100)
    <Comparison of 1 releases, 1 on the frontier>
    """

    rows: list[Row]
    people: int

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rows)} releases, {sum(r.frontier for r in self.rows)} on the frontier>"

    def text(self) -> str:
        """A table for a terminal; ``*`` marks the frontier."""
        head = f"  {'method':<18}{'k':>5}{'loss':>9}{'risk':>9}{'worst':>9}{'groups':>9}{'suppressed':>12}{'CPU s':>9}"
        head += "".join(f"{word:>9}" for word in self._more())
        first = next((r.learned for r in self.rows if r.learned is not None), None)
        feet = []
        if first is not None:
            feet.append(
                f"right: how often a model trained on the release is right about {first.target!r}; trained on the "
                f"original {first.original:.1%}, guessing {first.guessed:.1%}"
            )
        if OUTSIDE in self._more():
            feet.append(f"{OUTSIDE}: the mean chance of being found again among all the people that rows stand for")
        return "\n".join([head, *map(_line, self.rows), *([""] if feet else []), *feet])

    def chart(self) -> Scatter:
        """Loss against risk, a kind of point per method, and the staircase of the best."""
        return self._against(lambda row: row.risk, Axis("mean chance of being found again", form="percent", low=0))

    def population(self) -> Scatter:
        """Loss against the risk that somebody is found in the population."""
        axis = Axis("mean chance of being found again in the population", form="percent", low=0)
        drawn = self._against(lambda row: row.outside, axis)
        return msgspec.structs.replace(drawn, name="population", title="Loss against risk in the population")

    def _more(self) -> list[str]:
        """The columns that only some comparisons have."""
        learned, outside = (any(getattr(r, name) is not None for r in self.rows) for name in ("learned", "outside"))
        return [*(["right"] if learned else []), *([OUTSIDE] if outside else [])]

    def _against(self, chance: Callable[[Row], float | None], axis: Axis) -> Scatter:
        done = self._made()
        several = len({r.k for r in done}) > 1  # one k for all needs no word at every point
        kinds = [
            Points(
                name,
                [chance(r) or 0.0 for r in done if r.method == name],
                [r.gcp or 0.0 for r in done if r.method == name],
                [f"k={r.k}" if several else name for r in done if r.method == name],
                colour=at,
            )
            for at, name in enumerate(dict.fromkeys(r.method for r in done))
        ]
        on = frontier([(r.gcp or 0.0, chance(r) or 0.0) for r in done])
        best = [r for r, marked in zip(done, on, strict=True) if marked]
        if best:  # below the others: a point on the frontier still shows its method
            stairs = ([chance(r) or 0.0 for r in best], [r.gcp or 0.0 for r in best])
            kinds.insert(0, Points("frontier", *stairs, colour=7, connect=True))
        return Scatter(
            name="frontier",
            title="Loss against risk",
            points=kinds,
            x=axis,
            y=Axis("loss (GCP)", form="percent", low=0),
        )

    def by_column(self) -> Heat:
        """What every release loses in each column."""
        done = [r for r in self._made() if r.columns]
        names = list(dict.fromkeys(name for r in done for name in r.columns))
        several = len({r.k for r in done}) > 1
        return Heat(
            name="columns",
            title="Loss by column",
            rows=[f"{r.method}, k={r.k}" if several else r.method for r in done],
            columns=names,
            values=[[r.columns.get(name, math.nan) for name in names] for r in done],
            form="percent",
            low=0,
            high=1,
        )

    def learning(self) -> Scatter:
        """How often a model trained on each release is right, against risk; the original and guessing as lines."""
        done = [(r, r.learned) for r in self._made() if r.learned is not None]
        several = len({r.k for r, _ in done}) > 1
        first = done[0][1]
        marks = [Mark(first.original, "original"), Mark(first.guessed, "guessing the commonest")]
        kinds = []
        for at, name in enumerate(dict.fromkeys(r.method for r, _ in done)):
            own = [(r, found) for r, found in done if r.method == name]
            words = [f"k={r.k}" if several else name for r, _ in own]
            kinds.append(Points(name, [r.risk or 0.0 for r, _ in own], [f.released for _, f in own], words, colour=at))
        return Scatter(
            name="learning",
            title=f"What a model learns about {first.target}",
            points=kinds,
            x=Axis("mean chance of being found again", form="percent", low=0),
            y=Axis("right about others", form="percent"),
            marks=marks,
        )

    def _made(self) -> list[Row]:
        return [r for r in self.rows if r.gcp is not None and r.risk is not None]

    def _charts(self) -> list[tuple[Chart, str]]:
        """Every picture that this comparison has, with what it says."""
        about = "Down and to the left is better: less lost, and a smaller chance that someone is found again."
        charts: list[tuple[Chart, str]] = [(self.chart(), about)]
        if any(r.columns for r in self._made()):
            which = "0 %: the cells are as they were; 100 %: nothing of the column is left."
            charts.append((self.by_column(), which))
        if OUTSIDE in self._more():
            by = "The same, where the reader has a register of the population that the weights speak of."
            charts.append((self.population(), by))
        if any(r.learned for r in self._made()):
            told = "Up and to the left is better: a model trained on the release is right about people it has not seen."
            charts.append((self.learning(), told))
        return charts

    def picture(self, title: str) -> str:
        """All pictures of the page as one SVG, one under the other."""
        return sheet("comparison", title, [chart for chart, _ in self._charts()], columns=1)

    def page(self, title: str) -> str:
        """One self-contained HTML page."""
        width = 6 + len(more := self._more())
        rows = [
            [
                r.method,
                r.k,
                *(["-"] * width if r.gcp is None else _cells(r)),
                r.note or ("frontier" if r.frontier else ""),
            ]
            for r in self.rows
        ]
        grid = Grid(["method", "k", "loss", "risk", "worst", "groups", "suppressed", "CPU s", *more, ""], rows)
        pictures = [Picture(chart, about) for chart, about in self._charts()]
        sections = [
            Section("Side by side", pictures),
            Section("All releases", [grid, Words("Every release was verified before it was measured.")]),
        ]
        return page(title, sections, verdict=Verdict(True, "every release verified"))


def compare(
    frame: pl.DataFrame,
    schema: Schema,
    *,
    methods: Sequence[TableMethod | str] = (),
    ks: Sequence[int] = (5,),
    promises: Sequence[Promise] = (),
    seed: int = 0,
    learn: str | None = None,
    register: pl.DataFrame | None = None,
    weight: str | None = None,
    progress: Progress = lambda share, word: None,
) -> Comparison:
    """Each method with each k on one table, verified, measured; ``promises`` beside k hold for all.

    ``learn`` names a column that a model is to predict from each release (:mod:`shoal.measures.learning`),
    ``register`` has the people that promises like k-map speak about, and ``weight`` names the column that says how many
    people of the population a row stands for: then also the risk to be found among them is measured.

    >>> from shoal.core.schema import Column
    >>> schema = Schema({"age": Column("quasi")})
    >>> compare(pl.DataFrame({"age": [20, 21, 50, 52]}), schema, methods=["mondrian"], ks=[2]).rows[0].groups
    2
    """
    chosen, rows = _chosen(methods, ks)
    if not ks:
        raise UsageError("expected at least one k", where="compare")
    table = code(frame, schema)
    if register is not None:
        table = beside_register(table, frame, schema, register)
    stands_for = None if weight is None else _weights(frame, schema, weight)
    learner = None if learn is None else _learner(frame, schema, table, learn, seed)
    people = None if schema.subject is None else frame[schema.subject]
    levels = {name: s.levels for name, s in table.sensitive.items() if s.levels is not None}
    for at, (method, k) in enumerate((m, k) for m in chosen for k in ks):
        progress(at / (len(chosen) * len(ks)), f"{method.use}, k = {k}")
        asked = [KAnonymity(k), *promises]
        # CPU, not the clock: the machine may have other work
        start = time.process_time()
        try:
            grouping = method.group(table, asked, seed=seed)
        except (PromiseError, UsageError) as error:
            # of all methods, one that cannot is a row with its reason; one that was named is an error
            if methods and isinstance(error, UsageError):  # asked for by name
                raise
            rows.append(Row(_name(method), k, note=error.message))
            continue
        seconds = time.process_time() - start
        # as in a release: groups that read alike are one to everyone outside
        labels, boxes = read_alike(table, grouping.labels, grouping.floor)
        released, groups = recode(frame, schema, table, labels, boxes)
        whose = None if people is None else people.filter(pl.Series(groups >= 0))
        judge = Judge(schema, tuple(asked), register=register)
        verdict = judge.judge(released, people=whose, levels=levels, every_row=True)
        # a release that breaks a promise is not measured: its loss would look better than it is
        if broken := next((f for f in (*verdict.findings, *limits_kept(released, table)) if not f.kept), None):
            rows.append(Row(_name(method), k, note=str(broken)))
            continue
        found = loss(table, labels, boxes, k=k, rows=frame.height)
        chance = risk(_people_per_group(groups, people))
        rows.append(
            Row(
                _name(method),
                k,
                found.gcp,
                chance.average,
                chance.prosecutor,
                chance.groups,
                found.suppressed,
                seconds,
                columns=found.columns,
                learned=None if learner is None else learner.learned(labels, boxes),
                outside=None if stands_for is None else _outside(groups, stands_for),
            )
        )
    progress(1.0, "done")
    return Comparison(_mark(rows), table.crowd)


def _chosen(methods: Sequence[TableMethod | str], ks: Sequence[int]) -> tuple[list[TableMethod], list[Row]]:
    """The methods to compare, and rows that say which cannot be: they have a parameter without a default.

    Only where all methods are meant, for one that was asked for by name is an error.
    """
    if methods:
        return [TABLE_METHODS.decode(m, "method") for m in methods], []
    found, skipped = [], []
    for name in TABLE_METHODS.names():
        # also methods of other packages: one of them must not end the comparison of all
        needed = [f.name for f in msgspec.structs.fields(TABLE_METHODS.get(name)) if f.required]
        if needed:
            note = f"skipped: it needs {', '.join(f'`{n}`' for n in needed)}, so name it with its parameters"
            skipped += [Row(name, k, note=note) for k in ks]
        else:
            found.append(TABLE_METHODS.decode(name, "method"))
    return found, skipped


def _learner(frame: pl.DataFrame, schema: Schema, table: Table, target: str, seed: int) -> Learner:
    if target in schema.quasi or target == schema.subject:
        raise UsageError(
            "a model learns it from the quasi columns, so it cannot be one of them, nor say who somebody is",
            where=f"column {target!r}",
            hint="name a sensitive or a plain column",
        )
    require(frame, [target], "learn")
    return Learner(table, frame[target], seed)


def _weights(frame: pl.DataFrame, schema: Schema, name: str) -> NDArray[np.float64]:
    """How many people each row stands for."""
    if schema.subject is not None or name in schema.quasi:
        raise UsageError(
            "a sampling weight is one of a person: it is no quasi column, and a subject may have several rows",
            where="sampling_weight",
            hint="compare releases of one row per person, without subject",
        )
    require(frame, [name], "sampling_weight")
    return sampling_weights(frame[name])


def _outside(groups: NDArray[np.int32], weights: NDArray[np.float64]) -> float:
    """The mean chance of a released row to be found again in the population."""
    kept = groups >= 0
    kinds = np.unique(groups[kept], return_inverse=True)[1]
    return population_risk(kinds, weights[kept]).expected / max(1, int(kept.sum()))


def _people_per_group(groups: np.ndarray, people: pl.Series | None) -> np.ndarray:
    # withheld rows stand in no group
    kept = groups[groups >= 0]
    if people is None:
        return np.bincount(kept)
    pairs = pl.DataFrame({"group": kept, "person": people.filter(pl.Series(groups >= 0))}).unique()
    return np.bincount(pairs["group"].to_numpy())


def _name(method: TableMethod) -> str:
    defaults = {
        f.name: f.default_factory() if f.default_factory is not msgspec.NODEFAULT else f.default
        for f in msgspec.structs.fields(method)
    }
    changed = {n: v for n, v in msgspec.structs.asdict(method).items() if v != defaults[n]}
    return method.use + ("" if not changed else " " + " ".join(f"{n}={v}" for n, v in changed.items()))


def _mark(rows: Sequence[Row]) -> list[Row]:
    """The rows, those on the frontier marked."""
    made = [row for row in rows if row.gcp is not None and row.risk is not None]
    best = frontier([(row.gcp or 0.0, row.risk or 0.0) for row in made])
    # by identity: two methods may have the very same figures
    marked = {id(row) for row, on in zip(made, best, strict=True) if on}
    return [msgspec.structs.replace(row, frontier=id(row) in marked) for row in rows]


def _line(row: Row) -> str:
    start = f"{'*' if row.frontier else ' '} {row.method:<18}{row.k:>5}"
    if row.gcp is None:
        return f"{start}  {row.note}"
    gcp, chance, worst, groups, suppressed, *rest = _cells(row)
    return f"{start}{gcp:>9}{chance:>9}{worst:>9}{groups:>9}{suppressed:>12}" + "".join(f"{word:>9}" for word in rest)


def _cells(row: Row) -> list[str]:
    return [
        f"{100 * (row.gcp or 0):.2f} %",
        f"{100 * (row.risk or 0):.2f} %",
        f"{100 * (row.worst or 0):.2f} %",
        f"{row.groups or 0:,}",
        f"{row.suppressed or 0:,}",
        f"{row.seconds or 0:.2f}",
        *([f"{row.learned.released:.1%}"] if row.learned is not None else []),
        *([f"{row.outside:.2%}"] if row.outside is not None else []),
    ]
