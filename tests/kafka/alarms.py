"""The alert rules on what workers say about themselves: the few forms of PromQL they use, without the waiting."""

from __future__ import annotations

import operator
import re
import urllib.request
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from scripts.alerts import RULES

SELECTOR = re.compile(r'(shoal_\w+)(?:\{(\w+)=~"([^"]*)"\})?')
COMPARED = re.compile(r"(.+?) (==|>|<) ([\d.]+)$")
SIGNS = {"==": operator.eq, ">": operator.gt, "<": operator.lt}


class Sample(NamedTuple):
    """One figure of one worker."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


def scraped(ports: Iterable[int], timeout: float = 30.0) -> list[Sample]:
    """What all workers say now; one that does not answer says nothing."""
    out: list[Sample] = []
    for port in ports:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=timeout) as page:
                text = page.read().decode()
        except OSError:
            continue
        families = text_string_to_metric_families(text)
        who = ("worker", str(port))
        out += [Sample(s.name, (who, *sorted(s.labels.items())), s.value) for f in families for s in f.samples]
    return out


def raised(now: list[Sample], before: list[Sample]) -> set[str]:
    """The alarms whose condition holds now; ``before`` is what was said some minutes ago."""
    return {alarm for alarm, (expression, *_) in RULES.items() if _found(expression, now, before)}


def _found(expression: str, now: list[Sample], before: list[Sample]) -> set[tuple[tuple[str, str], ...]]:
    """The labels for which a condition holds."""
    if " and " in expression:
        return set.intersection(*(_found(part, now, before) for part in expression.split(" and ")))
    if (absent := re.fullmatch(r"absent\((.+)\)", expression)) is not None:
        return set() if _found(absent[1], now, before) else {()}
    compared = COMPARED.fullmatch(expression)
    assert compared is not None, f"no form that is known here: {expression}"
    query, sign, limit = compared[1], compared[2], float(compared[3])
    name, label, pattern = SELECTOR.findall(query)[0]
    mine = [s for s in now if s.name == name and (not label or re.fullmatch(pattern, dict(s.labels).get(label, "")))]
    values = {s.labels: s.value for s in mine}
    if "increase(" in query or "deriv(" in query:
        was = {s.labels: s.value for s in before if s.name == name}
        values = {labels: value - was.get(labels, 0.0) for labels, value in values.items()}
    if (spread := re.match(r"max by \((\w+)\)", query)) is not None and " - min by " in query:
        every: dict[str, list[float]] = {}
        for labels, value in values.items():
            every.setdefault(dict(labels)[spread[1]], []).append(value)
        values = {((spread[1], one),): max(many) - min(many) for one, many in every.items()}
    elif "sum(" in query:
        values = {(): sum(values.values())}
    return {labels for labels, value in values.items() if SIGNS[sign](value, limit)}
