"""The verifier of z-anonymity: re-scan the original events beside the release, by the definition alone.

A released stream cannot be judged by itself, because those who support a value may all have been withheld. This code
shares nothing with the method: it sorts, walks two pointers and counts names. It is slow and obvious on purpose.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import polars as pl

from shoal.core.frames import require
from shoal.core.groups import Finding
from shoal.core.hierarchy.base import Hierarchy
from shoal.core.time import Unit, micros
from shoal.promises.z_anonymity import ZAnonymity

Shown = dict[str, list[tuple[int, str]]]  # what a label was shown by: (time, who)


def rescan(
    original: pl.DataFrame,
    released: pl.DataFrame,
    promise: ZAnonymity,
    *,
    time: str,
    subject: str | None,
    quasi: Mapping[str, Hierarchy | None],
    unit: Unit = "s",
) -> list[Finding]:
    """Judge each released quasi column: did z people show the released label in the window that ends at its time?

    Times must be released as they were. O((events x levels + released) log events).

    >>> events = pl.DataFrame({"time": [0, 1, 2], "who": ["a", "b", "c"], "site": ["x", "x", "y"]})
    >>> how = {"time": "time", "subject": "who", "quasi": {"site": None}}
    >>> [finding.kept for finding in rescan(events, events[:2], ZAnonymity(z=2, window="1h"), **how)]
    [False]
    """
    for frame, name in ((original, "original"), (released, "released")):
        require(frame, (time, *quasi), name)
    when = micros(original[time], unit)
    row = [str(i) for i in range(original.height)]  # without a subject every row is a person of its own
    who: list[str | None] = [*row] if subject is None else original[subject].cast(pl.String).to_list()
    then = micros(released[time], unit)
    return [
        _judge(column, promise, _shown(original[column], hierarchy, when.tolist(), who), then, released[column])
        for column, hierarchy in quasi.items()
    ]


def _shown(values: pl.Series, hierarchy: Hierarchy | None, when: list[int], who: list[str | None]) -> Shown:
    """Who showed which label when; labels are the value and all its generalizations."""
    labels = _labels(values, hierarchy)
    out: Shown = defaultdict(list)
    for value, time, person in zip(values.cast(pl.String).to_list(), when, who, strict=True):
        if value is not None and person is not None and time >= 0:
            for label in labels.get(value, ()):
                out[label].append((time, person))
    return out


def _labels(values: pl.Series, hierarchy: Hierarchy | None) -> dict[str, set[str]]:
    distinct = values.drop_nulls().unique()
    texts = distinct.cast(pl.String).to_list()
    out: dict[str, set[str]] = {text: {text} for text in texts}
    if hierarchy is None or not texts:
        return out
    levels, codes = hierarchy.compile_levels(distinct)
    for level in range(levels.depth - 1):
        names = levels.labels(level).to_list()
        for text, code in zip(texts, codes.tolist(), strict=True):
            if code >= 0:
                out[text].add(names[levels.codes[code, level]])
    return out


def _judge(column: str, promise: ZAnonymity, shown: Shown, then: np.ndarray, values: pl.Series) -> Finding:
    asked: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for time, span, label in zip(then.tolist(), promise.spans(then).tolist(), values.cast(pl.String), strict=True):
        if label is not None:
            asked[label].append((time, span))
    supports = [s for label, times in asked.items() for s in _supports(sorted(shown.get(label, [])), sorted(times))]
    broken = sum(s < promise.z for s in supports)
    reached = min(supports, default=0)
    note = f"column {column!r}" + ("" if supports else "; nothing was released")
    return Finding(
        f"{promise.z}-anonymity of the stream", broken == 0, promise.z, reached, len(supports), broken, "people", note
    )


def _supports(events: list[tuple[int, str]], asked: list[tuple[int, int]]) -> list[int]:
    """For each (time, span), how many people are in [time - span, time]."""
    if len({span for _, span in asked}) > 1:  # windows of changing length: look at each by itself
        return [len({who for at, who in events if time - span <= at <= time}) for time, span in asked]
    present: Counter[str] = Counter()
    first = last = 0
    out = []
    for time, span in asked:
        while last < len(events) and events[last][0] <= time:
            present[events[last][1]] += 1
            last += 1
        while first < last and events[first][0] < time - span:
            present[events[first][1]] -= 1
            if not present[events[first][1]]:
                del present[events[first][1]]
            first += 1
        out.append(len(present))
    return out
