"""What tuning found: releases with other parameters, their loss, risk and delay, and the one that meets the goal."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.core.notebook import Shown
from shoal.measures.frontier import frontier
from shoal.report.chart import Axis, Points, Scatter
from shoal.report.page import Grid, Picture, Section, Verdict, Words, page

UNBOUNDED = "no goal: the least loss"


class Goal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What must hold of a release. Of those that meet it, the least loss is best; with a bound on loss, the least risk.

    ``loss`` is the mean loss of a cell, ``risk`` the mean chance of being found again, ``delay`` how many events may
    pass before one is released.

    >>> Goal(loss=0.1).met(Point({"k": 5}, loss=0.08, risk=0.1)), str(Goal(risk=0.05))
    (True, 'risk at most 5 %')
    """

    loss: float | None = None
    risk: float | None = None
    delay: int | None = None

    def met(self, point: Point) -> bool:
        """Whether a point keeps every bound."""
        bounds = ((self.loss, point.loss), (self.risk, point.risk), (self.delay, point.delay))
        return point.note == "" and all(most is None or found <= most for most, found in bounds)

    def order(self, point: Point) -> tuple[float, ...]:
        """Smaller is better, among points that meet the goal."""
        first = (point.loss, point.risk) if self.loss is None else (point.risk, point.loss)
        return (*first, float(point.delay))

    def __str__(self) -> str:
        given = (("loss", self.loss), ("risk", self.risk))
        shares = [f"{name} at most {100 * value:g} %" for name, value in given if value is not None]
        if self.delay is not None:
            shares.append(f"delay at most {self.delay:,} events")
        return ", ".join(shares) or UNBOUNDED


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """One release: the ``settings`` that made it, beside what was asked for anyway, and what was measured of it.

    ``settings`` are arguments of :func:`shoal.anonymize` or :func:`shoal.stream`; ``command`` takes the same point on
    the command line. Without a release, ``note`` says why.

    >>> Point({"k": 5, "method": "mondrian"}, 0.1, 0.05).words
    'mondrian, k = 5'
    """

    settings: dict[str, Any]
    loss: float = 1.0
    risk: float = 1.0
    delay: int = 0
    released: float = 1.0  # share of the rows
    frontier: bool = False  # no other point has less or as much of everything
    command: str = ""
    options: str = ""  # what of the command is this point's own
    note: str = ""
    method: str = ""

    @property
    def words(self) -> str:
        """The settings for people."""
        given = dict(self.settings)
        method = given.pop("method", self.method)
        inner = {n: v for n, v in method.items() if n != "use"} if isinstance(method, dict) else {}
        name = method["use"] if isinstance(method, dict) else method
        return ", ".join(filter(None, [name, *(f"{n} = {v}" for n, v in {**given, **inner}.items())]))


class Tuning(Shown, msgspec.Struct, frozen=True):
    """All points; ``rows`` of the ``of`` rows were used.

    >>> points = marked([Point({"k": 5}, 0.1, 0.2), Point({"k": 9}, 0.3, 0.1)])
    >>> found = Tuning(points, Goal(risk=0.15), 100, 100)
    >>> found.best.settings, found
    ({'k': 9}, <Tuning of 2 points, 2 on the frontier, best: k = 9>)
    """

    points: list[Point]
    goal: Goal
    rows: int
    of: int
    streamed: bool = False

    @property
    def best(self) -> Point | None:
        """The point to take; none if no point meets the goal."""
        meeting = [p for p in self.points if self.goal.met(p)]
        # a point of the frontier before its equals: it has the stronger promise
        return min(meeting, key=lambda p: (self.goal.order(p), not p.frontier)) if meeting else None

    @property
    def delayed(self) -> bool:
        """Whether events wait for others."""
        return any(p.delay for p in self.points)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        best = "none meets the goal" if self.best is None else f"best: {self.best.words}"
        return f"<Tuning of {len(self.points)} points, {sum(p.frontier for p in self.points)} on the frontier, {best}>"

    def text(self) -> str:
        """The frontier, the least loss first, and what failed; then the proposal and the command that takes it."""
        best, shown = self.best, sorted((p for p in self.points if p.frontier), key=lambda p: (p.loss, p.risk))
        head = f"  {'loss':>9}{'risk':>9}{'released':>10}" + (f"{'delay':>8}" if self.delayed else "")
        lines = [f"goal: {self.goal}", "", head, *(self._line(p, p is best) for p in shown)]
        beaten = sum(not p.frontier and not p.note for p in self.points)
        lines += [f"  points beaten by one of these: {beaten:,}"] * (beaten > 0)
        lines += [f"  {p.words}: {p.note}" for p in self.points if p.note] + [""]
        if best is None:
            lines.append("no point meets the goal: allow more loss, risk or delay, or name other methods")
        else:
            lines += [f"proposed: {best.words}", *([f"  {best.command}"] if best.command else [])]
            lines += ["any other point: the same command with the options of its line"] * bool(best.command)
        return "\n".join([*lines, *([] if self.rows == self.of else [self._sampled()])])

    def _sampled(self) -> str:
        few = f"measured on {self.rows:,} of {self.of:,} rows"
        return few if self.streamed else f"{few}: all of them usually lose less"

    def _line(self, point: Point, chosen: bool) -> str:
        sized = zip(self._cells(point), (9, 9, 10, 8), strict=False)
        figures = "".join(f"{cell:>{size}}" for cell, size in sized)
        return f"{'→' if chosen else ' '} {figures}  {point.options or point.words}"

    def _cells(self, point: Point) -> list[str]:
        shares = [f"{100 * share:.2f} %" for share in (point.loss, point.risk, point.released)]
        return [*shares, *([f"{point.delay:,}"] if self.delayed else [])]

    def chart(self) -> Scatter:
        """Loss against risk, a kind of mark per method, and the proposal."""
        made = [p for p in self.points if not p.note]
        kinds = [
            Points(
                name,
                [p.risk for p in made if p.method == name],
                [p.loss for p in made if p.method == name],
                [p.words for p in made if p.method == name],
            )
            for name in dict.fromkeys(p.method for p in made)
        ]
        if self.best is not None:
            kinds.append(Points("proposed", [self.best.risk], [self.best.loss], [self.best.words]))
        return Scatter(
            name="tuning",
            title="Loss against risk",
            points=kinds,
            x=Axis("mean chance of being found again", form="percent", low=0),
            y=Axis("loss", form="percent", low=0),
        )

    def page(self, title: str) -> str:
        """One self-contained HTML page."""
        delay = ["delay"] if self.delayed else []
        empty = ["-"] * (3 + len(delay))
        rows = [
            [p.words, *(empty if p.note else self._cells(p)), p.note or ("frontier" if p.frontier else ""), p.command]
            for p in self.points
        ]
        about = f"Goal: {self.goal}. Down and to the left is better."
        proposed = "no point meets the goal" if self.best is None else f"proposed: {self.best.words}"
        notes = [] if self.rows == self.of else [Words(self._sampled())]
        sections = [
            Section("Loss against risk", [Picture(self.chart(), about), *notes]),
            Section("All points", [Grid(["", "loss", "risk", "released", *delay, "", "command"], rows)]),
        ]
        return page(title, sections, verdict=Verdict(self.best is not None, proposed))


def marked(points: list[Point]) -> list[Point]:
    """The points, those on the frontier marked.

    >>> [p.frontier for p in marked([Point({"k": 2}, 0.1, 0.2), Point({"k": 5}, 0.1, 0.2), Point({}, 0.2, 0.2)])]
    [False, True, False]
    """
    # of points with the same figures the last stands for all: stronger promises come later
    made = list({(p.loss, p.risk, float(p.delay)): p for p in points if not p.note}.items())
    best = frontier([figures for figures, _ in made])
    on = {id(p) for (_, p), is_best in zip(made, best, strict=True) if is_best}
    return [msgspec.structs.replace(p, frontier=id(p) in on) for p in points]
