"""Whole releases of curves: curves in any form and parameters in; what may be published, and its figures, out.

Nothing here verifies: whoever publishes runs the promise's own check on the released frame first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.frames import from_any
from shoal.measures.series import SeriesLoss, series_loss
from shoal.promises.base import Promise
from shoal.series import PATTERNS, SERIES_METHODS
from shoal.series.diverse import group_diverse, refuse_promises, rules_for
from shoal.series.input import Curves, Missing
from shoal.series.long import Aggregate, from_long
from shoal.series.method import Progress, SeriesGrouping, SeriesMethod, check_sizes, silent
from shoal.series.panel import comparable, pattern_of
from shoal.series.pattern import Encoded, Floats, Pattern
from shoal.series.perturb import Perturb
from shoal.series.publish import GROUP, LEVEL, PATTERN, Published, order_of_publication
from shoal.series.queries import Released, query_errors, questions
from shoal.series.representatives import FEWEST, Representatives, represent
from shoal.series.wide import from_lists, from_matrix, from_wide

DEFAULT_METHOD = "kapra"
QUERIED = 20_000  # records up to which figures hold the errors of queries
COMPARED = 8_000  # curves up to which centroids of plain microaggregation are made beside
QUERIES = 600  # fewer give another figure with every seed


@dataclass(frozen=True)
class SeriesRelease:
    """What may be published (``data``, the form that came in), and beside it what the operator keeps.

    >>> import shoal
    >>> made, _ = shoal.anonymize_series(np.add.outer(np.arange(8), [0, 1, 2, 3]), k=4, p=2)
    >>> made.frame().height, made.instants
    (8, ['0', '1', '2', '3'])
    """

    data: Any
    published: Published
    curves: Curves
    encoded: Encoded
    grouping: SeriesGrouping
    records: NDArray[np.int64]  # the curve of every published record
    method: SeriesMethod
    pattern: Pattern
    loss: SeriesLoss
    withheld: Mapping[str, int]
    altered: Mapping[str, int]  # sensitive values changed by perturbation, per column

    def frame(self, *, typed: bool = False) -> pl.DataFrame:
        """The wide release, whatever form ``data`` has: this is what a verifier judges."""
        return self.published.wide(typed=typed)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The input position of every published record."""
        return self.curves.rows[self.records]

    @property
    def instants(self) -> list[str]:
        """The envelope columns of :meth:`frame`."""
        return self.curves.names

    def representatives(self) -> Representatives:
        """The mean curve of each P-subgroup: more to ask than envelopes, and more that is told; see the class."""
        return represent(self.curves.values[self.records], self.grouping.cells()[self.records])

    def representative_frame(self) -> pl.DataFrame:
        """A row per P-subgroup: group, pattern, level, size, and per instant its mean and spread."""
        published = self.published
        about = {GROUP: published.group, PATTERN: published.pattern, LEVEL: published.level}
        return self.representatives().frame(self.curves.names, pl.DataFrame(about))

    def query_errors(self, queries: int = QUERIES, seed: int = 0, *, representatives: bool = False) -> dict[str, float]:
        """How wrong answers from this release are; see :func:`shoal.series.queries.query_errors`."""
        released = self.released(representatives=representatives)
        return query_errors(released, self.curves.values, self.records, queries=queries, seed=seed)

    def released(self, *, representatives: bool = False) -> Released:
        """What queries see of this release, with its representatives or without."""
        group, word = self.published.group, self.grouping.word[self.records]
        words, which = np.unique(word, return_inverse=True)
        shapes = self.pattern.stretch(self.encoded.shapes(words), self.curves.values.shape[1])
        means = self.representatives() if representatives else None
        low, high = self.published.low[group], self.published.high[group]
        return Released(low, high, shapes, which, means, self.curves.whole)

    def answered(self, queries: int = QUERIES, seed: int = 0) -> dict[str, dict[str, float]]:
        """Errors of queries answered from envelopes and patterns, with means, and from plain microaggregation.

        ``means`` is there if every subgroup may have one, ``mdav`` (the centroids of groups of the same k) up to
        8,000 curves.
        """
        from shoal.series.centroids import microaggregated

        sizes = np.bincount(self.grouping.cells()[self.records]) if len(self.records) else np.zeros(1)
        values = self.curves.values
        asked = questions(values, queries, seed=seed)
        out = {"": query_errors(self.released(), values, self.records, asked=asked)}
        if sizes.min() >= FEWEST:
            out["means_"] = query_errors(self.released(representatives=True), values, self.records, asked=asked)
        if len(values) <= COMPARED:
            k = int(np.bincount(self.published.group).min())
            everyone = np.arange(len(values))
            out["mdav_"] = query_errors(microaggregated(values, k), values, everyone, asked=asked)
        return out

    def figures(self) -> dict[str, float]:
        """Loss, sizes, counts and errors of queries, for a report."""
        sizes = np.bincount(self.published.group)
        cells = self.grouping.cells()
        counts = np.bincount(cells[cells >= 0])
        asked = len(self.records) <= QUERIED and not self.curves.variables  # a range has one unit
        answered = self.answered() if asked else {}
        return {
            **self.loss.figures(),
            "groups": float(len(sizes)),
            "smallest_group": float(sizes.min(initial=len(self.published.group))),
            "subgroups": float(len(counts)),
            "smallest_subgroup": float(counts.min(initial=len(self.published.group))),
            "altered": float(sum(self.altered.values())),
            **{f"query_{by}{name}": error for by, errors in answered.items() for name, error in errors.items()},
        }


class Reading(TypedDict, total=False):
    """How curves are read; see :func:`anonymize_series`."""

    id: str | None
    sensitive: Sequence[str] | Mapping[str, Any]
    instants: Sequence[str] | None
    time: str | None
    value: str | Sequence[str] | None
    every: str | float | None
    aggregate: Aggregate
    missing: Missing
    zone: str | None


class Words(Reading, total=False):
    """How curves are read and grouped; see :func:`anonymize_series`."""

    weights: Sequence[float] | None
    seed: int
    progress: Progress


def anonymize_series(
    data: Any,
    *,
    k: int,
    p: int,
    method: SeriesMethod | str = DEFAULT_METHOD,
    pattern: Pattern | str = "sax",
    l: float | None = None,
    t: float | None = None,
    promises: Sequence[Promise] = (),
    perturb: Perturb | None = None,
    **words: Unpack[Words],
) -> SeriesRelease:
    """Curves made (k,P)-anonymous: k under one envelope, P of them with one pattern.

    A table is wide (a row per ``id``, a column per instant) unless ``time`` and ``value`` name the columns of a long
    one (several values make a panel), or ``value`` alone a column of lists; a NumPy array (of a panel with three
    dimensions) or a list of rows is a matrix, with ``sensitive`` as a mapping of names to arrays. ``l``: no
    sensitive value in more than 1/l of a P-subgroup; ``t``: the values of every P-subgroup are spread like all
    released ones, within t; ``promises`` are others of their families, about columns of one's choice. They are minded
    while grouping; ``perturb`` changes values for ``l`` instead. ``weights`` per instant weigh the normalized certainty
    penalty. ``pattern``: ``sax``, ``seasonal``, ``slope``, ``shapelets``, or ``auto``, which takes the one that loses
    least of whole curves.

    >>> import numpy as np
    >>> curves = np.add.outer(np.arange(8), [0, 1, 2, 3]); curves[::2] = curves[::2, ::-1]
    >>> release = anonymize_series(curves, k=4, p=2)
    >>> release.frame().select("group", "0", "pattern", "level").row(0)
    (0, '[1, 5]', 'acgi', 9)
    """
    weights, seed, progress = words.pop("weights", None), words.pop("seed", 0), words.pop("progress", silent)
    reading: dict[str, Any] = dict(words)
    unknown = [word for word in reading if word not in Reading.__annotations__]
    if unknown:
        raise UsageError(f"there is no parameter {unknown[0]!r}", where="series")
    curves, back = _read(data, **reading)
    check_sizes(len(curves.values), k, p)
    chosen = SERIES_METHODS.decode(method, where="method")
    shape = pattern_of(curves, PATTERNS.decode(pattern, where="pattern"), k, p)
    encoded = shape.encode(curves.values)
    space = comparable(curves)
    asked = _promises(curves.sensitive, l, t, promises)
    beside = curves.sensitive
    altered: dict[str, int] = {}
    if asked and perturb is None:
        grouping = _diverse(dataclasses.replace(curves, values=space), encoded, chosen, asked, k, p, seed, progress)
    else:
        grouping = chosen.group(space, encoded, k, p, seed=seed, progress=progress)
        beside, altered = _perturbed(curves.sensitive, grouping, l, perturb, asked, seed)
    why = "sensitive values" if asked and perturb is None else "no pattern in common"
    withheld = {"missing instants": curves.dropped, why: grouping.suppressed}
    # of the true values; `space` only measures
    low, high = _envelopes(curves.values, grouping)
    published, records = _publish(curves, encoded, grouping, beside, low, high)
    ends = (low, high) if space is curves.values else _envelopes(space, grouping)
    found = _loss(space, encoded, shape, grouping, ends, weights)
    counted = {why: count for why, count in withheld.items() if count}
    return SeriesRelease(
        back(published), published, curves, encoded, grouping, records, chosen, shape, found, counted, altered
    )


def _read(
    data: Any,
    id: str | None = None,  # noqa: A002 - the word of the command line
    sensitive: Sequence[str] | Mapping[str, Any] = (),
    instants: Sequence[str] | None = None,
    time: str | None = None,
    value: str | Sequence[str] | None = None,
    every: str | float | None = None,
    aggregate: Aggregate = "mean",
    missing: Missing = "error",
    zone: str | None = None,
) -> tuple[Curves, Any]:
    """The curves, and the way back to the form they came in."""
    for name, word, known in (("missing", missing, get_args(Missing)), ("aggregate", aggregate, get_args(Aggregate))):
        if word not in known:
            raise UsageError(f"there is no rule {word!r}", where=name, hint=f"one of: {', '.join(known)}")
    if isinstance(data, np.ndarray | list | tuple):
        if not isinstance(sensitive, Mapping):
            if len(sensitive):
                raise UsageError(
                    "the sensitive values of a matrix are given as a mapping", where="sensitive", hint='{"name": array}'
                )
            sensitive = {}
        return from_matrix(data, sensitive=sensitive, missing=missing), Published.arrays
    if isinstance(sensitive, Mapping):
        raise UsageError("the sensitive columns of a table are given by name", where="sensitive")
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    frame, _ = from_any(data)
    kind = type(data).__module__.split(".")[0]

    def like(out: pl.DataFrame) -> Any:
        # a new index: the one of the input would tell whose row it is
        return out.to_pandas() if kind == "pandas" else out.to_arrow() if kind == "pyarrow" else out

    if zone is not None and time is None:
        raise UsageError("`zone` needs a long table", where="zone", hint="name its columns by `time` and `value`")
    if isinstance(value, str) and time is None and every is None and instants is None:
        curves = from_lists(frame, id=id, value=value, sensitive=names, missing=missing)
        return curves, lambda x: like(x.wide())
    if time is None and value is None:
        if every is not None:
            raise UsageError("`every` needs a long table", where="every", hint="name its columns by `time` and `value`")
        return from_wide(frame, id=id, sensitive=names, instants=instants, missing=missing), lambda x: like(x.wide())
    if time is None or value is None or id is None:
        raise UsageError(
            "a long table needs the names of three columns", where="series", hint="give `id`, `time` and `value`"
        )
    if instants is not None:
        raise UsageError("a long table has no instant columns", where="instants", hint="leave out `time` and `value`")
    curves = from_long(
        frame, id=id, time=time, value=value, sensitive=names, every=every, aggregate=aggregate, missing=missing,
        zone=zone,
    )  # fmt: skip
    return curves, lambda x: like(x.long(time, value if isinstance(value, str) else value[0]))


def _promises(sensitive: pl.DataFrame, l: float | None, t: float | None, promises: Sequence[Promise]) -> list[Promise]:
    """What must hold of the sensitive values of every P-subgroup."""
    from shoal.promises.l_diversity import LDiversity
    from shoal.promises.t_closeness import TCloseness

    refuse_promises(promises)
    asked = list(promises)
    if l is not None and l > 1:
        asked += [LDiversity(l, column, kind="frequency") for column in sensitive.columns]
    if t is not None:
        asked += [TCloseness(t, column) for column in sensitive.columns]
    if ((l is not None and l > 1) or t is not None) and not sensitive.columns:
        name, where = ("l", "l-diversity") if t is None else ("t", "t-closeness")
        raise UsageError(f"{name} needs a sensitive column", where=where, hint="name it by `sensitive`")
    return asked


def _diverse(
    curves: Curves,
    encoded: Encoded,
    method: SeriesMethod,
    asked: Sequence[Promise],
    k: int,
    p: int,
    seed: int,
    progress: Progress,
) -> SeriesGrouping:
    """Groups that keep the promises; where they speak about all released records, these are judged again."""
    kept = np.arange(len(curves.values))
    titles = " and ".join(promise.title for promise in asked)
    while True:
        part = Encoded(
            encoded.levels,
            np.ascontiguousarray(encoded.codes[:, kept]),
            encoded.features[kept],
            encoded.level_of,
            encoded.make_texts,
            encoded.make_shapes,
        )
        values = np.ascontiguousarray(curves.values[kept])
        rules = rules_for(curves.sensitive[kept], asked, p)
        bands = method.bands(values, k, seed)
        found = group_diverse(values, part, bands, k, rules, asked=titles, progress=progress)
        if not found.suppressed or all(promise.use != "t-closeness" for promise in asked):
            break
        kept = kept[found.group >= 0]  # t is about the released: without these it may be another
    group = np.full(encoded.size, -1, np.int32)
    word = np.full(encoded.size, -1, np.int32)
    group[kept], word[kept] = found.group, found.word
    return SeriesGrouping(group, word)


def _perturbed(
    sensitive: pl.DataFrame,
    grouping: SeriesGrouping,
    l: float | None,
    perturb: Perturb | None,
    asked: Sequence[Promise],
    seed: int,
) -> tuple[pl.DataFrame, dict[str, int]]:
    if perturb is None or l is None or not asked:
        return sensitive, {}
    if any(getattr(promise, "kind", None) != "frequency" for promise in asked):
        raise UsageError(
            "perturbation reaches frequency l-diversity only",
            where="perturb",
            hint="ask for `l` alone, or leave out `perturb`",
        )
    cells = grouping.cells()
    altered: dict[str, int] = {}
    columns = []
    for column in sensitive:
        changed, altered[column.name] = perturb.apply(column, cells, l, seed)
        columns.append(changed)
    return pl.DataFrame(columns), altered


def _envelopes(values: Floats, grouping: SeriesGrouping) -> tuple[Floats, Floats]:
    from shoal.kernels.series.envelopes import hulls

    low, high = hulls(values, values, grouping.group.astype(np.int64), grouping.count)
    return low, high


def _publish(
    curves: Curves, encoded: Encoded, grouping: SeriesGrouping, beside: pl.DataFrame, low: Floats, high: Floats
) -> tuple[Published, NDArray[np.int64]]:
    kept = np.flatnonzero(grouping.group >= 0)
    words, which = np.unique(grouping.word[kept], return_inverse=True)
    pattern = pl.Series(encoded.texts(words), dtype=pl.String).gather(which)
    level = encoded.published_levels(words)[which]
    around = beside[kept] if beside.columns else beside
    order = order_of_publication(grouping.group[kept], level, pattern, around)
    published = Published(
        curves.instants,
        low,
        high,
        grouping.group[kept][order],
        pattern.gather(order),
        level[order],
        around[order] if around.columns else around,
        curves.whole,
        curves.variables,
    )
    return published, kept[order]


def _loss(
    values: Floats,
    encoded: Encoded,
    pattern: Pattern,
    grouping: SeriesGrouping,
    envelopes: tuple[Floats, Floats],
    weights: Sequence[float] | None,
) -> SeriesLoss:
    words, which = np.unique(np.maximum(grouping.word, 0), return_inverse=True)
    shapes = encoded.shapes(words)
    full = pattern.stretch(shapes, values.shape[1])
    weight = None if weights is None else np.asarray(weights, np.float64)
    return series_loss(values, encoded.features, envelopes, grouping.group, (shapes, full), which, weight)
