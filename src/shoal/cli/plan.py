"""``shoal plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from shoal.cli.terminal import Json, answer, as_json
from shoal.core.columns import require_columns

if TYPE_CHECKING:
    from shoal.measures.zk_model import UserClass


def plan(
    *,
    z: int = 20,
    k: int = 2,
    users: int = 50_000,
    attributes: int = 5_000,
    rate: float = 0.05,
    exponent: float = 1.0,
    windows: float = 24,
    goal: float | None = None,
    method: Literal["exact", "paper2020"] = "exact",
    samples: int = 20_000,
    exposed: str | None = None,
    column: str = "p",
    classes: str | None = None,
    seed: int = 0,
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
        People who shall not be told apart.
    users
        People in the stream.
    attributes
        Different values; the one of rank r is shown at `rate` / r^`exponent` per window.
    rate
        How often a person shows the most common value in a window.
    exponent
        Of the power law.
    windows
        For how many windows an attacker watches.
    goal
        The probability wanted.
    method
        `exact`, or the paper's own last step, which promises too much.
    samples
        Realizations drawn by `exact`; the standard error falls with their root.
    exposed
        A file with the measured probability per window of every value, instead of the power law;
        `shoal measure --stream --out` writes it as exposed.csv.
    column
        Its column.
    classes
        A file with people of several kinds, one row each: `users`, `rate`, and `exponent` if it is not 1. They replace
        `--users`, `--rate` and `--exponent`; only `exact` knows several kinds.
    seed
        The same seed gives the same draws.
    json
        Figures as JSON.
    """
    from shoal.measures.zk_model import Model

    shares = None
    if exposed is not None:
        from shoal.connect import files

        frame = files.read(exposed)
        require_columns([column], frame.columns, exposed, hint="name it with --column")
        shares = frame[column].to_numpy().astype(float)
    kinds = _classes(classes, attributes) if classes is not None else ()
    model = Model(users, attributes, rate, exponent, windows, exposed=shares, classes=kinds, seed=seed)
    found = model.p_k(z, k, method, samples)
    top = model.p_y(z)[0]
    out: dict[str, object] = {
        "z": z,
        "k": k,
        "method": method,
        "p": found.value,
        "standard_error": found.error,
        "released_of_most_common": float(top[0] / max(model.p_x()[0][0], 1e-300)),
        "values_above_1_percent": int((top > 0.01).sum()),
    }
    if goal is not None:
        out["goal"] = goal
        out["smallest_z"] = model.smallest_z(goal, k, method, samples)
        out["longest_windows"] = model.longest(goal, z, k, method, samples)
    if json:
        answer(as_json(out))
        return
    word = f"z = {z}: {found.value:.4f} ± {found.error:.4f} of the people are {k}-anonymous"
    answer(f"{word} after {windows:g} windows ({method})")
    if goal is not None:
        smallest = out["smallest_z"]
        answer(f"smallest z for {goal:g}: {smallest if smallest is not None else 'none reaches it'}")
        answer(f"z = {z} keeps {goal:g} for {out['longest_windows']} windows")


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
