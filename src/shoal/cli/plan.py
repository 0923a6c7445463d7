"""``shoal plan``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from shoal.cli.options import only_with
from shoal.cli.terminal import Json, MaybeWhole, Whole, answer, as_json
from shoal.core.columns import require_columns

if TYPE_CHECKING:
    from shoal.measures.zk_model import Model, UserClass


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class People:
    """The people of the model and what they show.

    Parameters
    ----------
    users
        People in the stream; 50,000 if not given.
    attributes
        Different values, 5,000 if not given; the one of rank r is shown at `rate` / r^`exponent` per window.
    rate
        How often a person shows the most common value in a window; 0.05 if not given.
    exponent
        Of the power law; 1 if not given.
    exposed
        A file with the measured probability per window of every value, instead of the power law;
        `shoal measure --stream --out` writes it as exposed.csv.
    column
        Its column; `p` if not given.
    classes
        A file with people of several kinds, one row each: `users`, `rate`, and `exponent` if it is not 1. They replace
        `--users`, `--rate` and `--exponent`; only `exact` knows several kinds.
    """

    users: MaybeWhole = None
    attributes: MaybeWhole = None
    rate: float | None = None
    exponent: float | None = None
    exposed: str | None = None
    column: str | None = None
    classes: str | None = None


def plan(
    *,
    z: Whole = 20,
    k: Whole = 2,
    people: People = People(),
    windows: float = 24,
    goal: float | None = None,
    method: Literal["exact", "paper2020"] = "exact",
    samples: MaybeWhole = None,
    seed: Whole = 0,
    json: Json = False,
) -> None:
    """What z buys: the probability that a person shares everything released of them with at least k - 1 others.

    The defaults are Table II of the paper (Jha et al. 2020). With `--goal`, also the smallest z that reaches it, and
    for how many windows this z holds. Example: `shoal plan --z 100 --k 3 --goal 0.8`.

    Parameters
    ----------
    z
        People who must have shown a value in the window.
    k
        People who must not be told apart.
    windows
        For how many windows an attacker watches.
    goal
        The probability wanted.
    method
        `exact`, or the paper's own last step, which promises too much.
    samples
        Realizations drawn by `exact`, 20,000 if not given; the standard error falls with their root.
    seed
        The same seed gives the same draws.
    json
        Figures as JSON.
    """
    from shoal.measures.z_plan import planned

    only_with(method == "exact", "--method exact", samples=samples, classes=people.classes)
    found = planned(
        _model(people, windows, seed), z, k, goal=goal, method=method, samples=20_000 if samples is None else samples
    )
    answer(as_json(found) if json else str(found))


def _model(people: People, windows: float, seed: int) -> Model:
    from shoal.measures.zk_model import Model

    law = {"rate": people.rate, "exponent": people.exponent}
    only_with(people.exposed is not None, "--exposed", column=people.column)
    only_with(people.exposed is None, "a power law: leave out --exposed", attributes=people.attributes, **law)
    only_with(people.classes is None, "one kind of people: leave out --classes", users=people.users, **law)
    shares = None
    if people.exposed is not None:
        from shoal.connect import files

        frame, column = files.read(people.exposed), people.column or "p"
        require_columns([column], frame.columns, people.exposed, hint="name it with --column")
        shares = frame[column].to_numpy().astype(float)
    attributes = 5_000 if people.attributes is None else people.attributes
    kinds = _classes(people.classes, attributes) if people.classes is not None else ()
    users = 50_000 if people.users is None else people.users
    rate = 0.05 if people.rate is None else people.rate
    exponent = 1.0 if people.exponent is None else people.exponent
    return Model(users, attributes, rate, exponent, windows, exposed=shares, classes=kinds, seed=seed)


def _classes(path: str, attributes: int) -> list[UserClass]:
    import numpy as np

    from shoal.connect import files
    from shoal.measures.zk_model import UserClass, power_law

    frame = files.read(path)
    require_columns(["users", "rate"], frame.columns, path, hint="users, rate and perhaps exponent")
    rows = frame.to_dicts()
    return [
        UserClass(int(r["users"]), -np.expm1(-power_law(attributes, float(r["rate"]), float(r.get("exponent", 1)))))
        for r in rows
    ]
