"""What a z buys, for people: the figures of :mod:`shoal.measures.zk_model` that a planner asks for."""

from __future__ import annotations

import msgspec

from shoal.core.errors import UsageError
from shoal.core.notebook import Shown
from shoal.measures.zk_model import Method, Model


class Plan(Shown, msgspec.Struct, frozen=True, omit_defaults=True):
    """The share of people whom ``z`` makes k-anonymous, with its standard error; with a ``goal``, what reaches it.

    >>> Plan(20, 2, 24, "exact", 0.9, 0.01, 0.5, 7)
    <Plan: z = 20 makes 90.0% of the people 2-anonymous>
    """

    z: int
    k: int
    windows: float
    method: Method
    p: float
    standard_error: float
    released_of_most_common: float
    values_above_1_percent: int
    goal: float | None = None
    smallest_z: int | None = None
    longest_windows: int | None = None

    def __str__(self) -> str:
        people = f"{self.p:.4f} ± {self.standard_error:.4f} of the people are {self.k}-anonymous"
        lines = [f"z = {self.z}: {people} after {self.windows:g} windows ({self.method})"]
        if self.goal is not None:
            smallest = self.smallest_z if self.smallest_z is not None else "none reaches it"
            lines += [
                f"smallest z for {self.goal:g}: {smallest}",
                f"z = {self.z} keeps {self.goal:g} for {self.longest_windows} windows",
            ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Plan: z = {self.z} makes {self.p:.1%} of the people {self.k}-anonymous>"


def planned(
    model: Model, z: int, k: int = 2, *, goal: float | None = None, method: Method = "exact", samples: int = 20_000
) -> Plan:
    """The figures of one z.

    >>> planned(Model(), 20, method="paper2020")
    <Plan: z = 20 makes 86.9% of the people 2-anonymous>
    """
    for name, value in (("z", z), ("k", k), ("samples", samples)):
        if value < 1:
            raise UsageError(f"{name} must be at least 1, found {value}", where=name, hint=f"for example {name}=20")
    if goal is not None and not 0 < goal <= 1:
        raise UsageError(f"expected a probability above 0 and up to 1, found {goal:g}", where="goal", hint="goal=0.8")
    found, top = model.p_k(z, k, method, samples), model.p_y(z)[0]
    return Plan(
        z,
        k,
        model.windows,
        method,
        found.value,
        found.error,
        # nobody may show the most common value at all
        float(top[0] / max(model.p_x()[0][0], 1e-300)),
        int((top > 0.01).sum()),
        goal,
        None if goal is None else model.smallest_z(goal, k, method, samples),
        None if goal is None else model.longest(goal, z, k, method, samples),
    )
