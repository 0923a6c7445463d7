"""The hospital of Allgöwer 2023: its Table 2, and any number of invented patients of the same schema."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.core.errors import UsageError

FIRST = tuple("ABCDEFGHIJKLMNOPRSTUVW")
LAST = (
    "Ahl",
    "Brook",
    "Castell",
    "Dorn",
    "Eck",
    "Frost",
    "Gold",
    "Hain",
    "Ilm",
    "Jung",
    "Kern",
    "Lund",
    "Moor",
    "Nord",
)
INSURERS = ("TK", "AOK", "IKK", "BARMER", "DAK")
SHARES = (0.32, 0.3, 0.14, 0.14, 0.1)
REGIONS = (10, 12, 13, 20, 22, 34, 50, 60, 70, 80, 81, 91)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def hospital(rows: int = 1000, *, seed: int = 0, visits: float = 1.0) -> pl.DataFrame:
    """``rows`` of diabetes patients; with ``visits`` above 1, patients come back that often on average.

    Younger patients have type 1 (E10, insulin), older ones mostly type 2 (E11, metformin), as in Allgöwer 2023; glucose
    and HbA1c follow the diagnosis.

    >>> hospital(3, seed=1).columns
    ['pid', 'name', 'zip', 'sex', 'age', 'ins_co', 'ins_no', 'diag', 'gluc', 'hba1c', 'med']
    """
    if rows < 0 or visits < 1:
        raise UsageError("`rows` must not be negative and `visits` at least 1", where="hospital")
    rng = np.random.default_rng(seed)
    people = max(1, round(rows / visits))
    person = np.arange(rows) if visits == 1 else rng.integers(0, people, rows)
    age = np.clip(rng.gamma(7.0, 7.5, people), 1, 99).astype(np.int64)
    first_type = rng.random(people) < np.clip(1.1 - age / 55, 0.05, 0.95)
    region = rng.choice(REGIONS, people, p=_falling(len(REGIONS)))
    zips = region * 1000 + rng.integers(0, 999, people)
    sex = rng.choice(["F", "M", "D"], people, p=[0.49, 0.5, 0.01])
    insurer = rng.choice(INSURERS, people, p=SHARES)
    letter = rng.integers(0, len(LETTERS), people)
    policy = rng.integers(10_000, 100_000, people)
    names = [
        f"{FIRST[a]}. {LAST[b]}"
        for a, b in zip(rng.integers(0, len(FIRST), people), rng.integers(0, len(LAST), people), strict=True)
    ]
    own = first_type[person]
    glucose = np.round(np.clip(rng.normal(np.where(own, 21.5, 17.0), 2.5), 4, 33), 1)
    hba1c = np.round(np.clip(rng.normal(np.where(own, 8.1, 6.9), 0.9), 4, 14), 2)
    return pl.DataFrame(
        {
            "pid": person + 1,
            "name": pl.Series(names, dtype=pl.String).gather(person),
            "zip": pl.Series([f"{z:05d}" for z in zips], dtype=pl.String).gather(person),
            "sex": pl.Series(sex.tolist(), dtype=pl.String).gather(person),
            "age": age[person],
            "ins_co": pl.Series(insurer.tolist(), dtype=pl.String).gather(person),
            "ins_no": pl.Series(
                [f"{LETTERS[a]}{b}" for a, b in zip(letter, policy, strict=True)], dtype=pl.String
            ).gather(person),
            "diag": pl.Series(np.where(own, "E10", "E11").tolist(), dtype=pl.String),
            "gluc": glucose,
            "hba1c": hba1c,
            "med": pl.Series(np.where(own, "Insulin", "Metformin").tolist(), dtype=pl.String),
        }
    )


def six_patients() -> pl.DataFrame:
    """The six rows of Table 2 of Allgöwer 2023."""
    return pl.DataFrame(
        {
            "pid": [1, 2, 3, 4, 5, 6],
            "name": ["F. Ott", "L. Lieb", "T. Zeit", "H. Lang", "J. Putz", "I. Spies"],
            "zip": ["10969", "34127", "70192", "80923", "91757", "60819"],
            "sex": ["M", "F", "M", "F", "D", "M"],
            "age": [28, 59, 15, 21, 24, 68],
            "ins_co": ["TK", "AOK", "TK", "TK", "IKK", "TK"],
            "ins_no": ["K15489", "Y41271", "Z17291", "I79435", "Q29751", "J33921"],
            "diag": ["E10", "E11", "E10", "E10", "E10", "E11"],
            "gluc": [22.1, 16.3, 23.8, 18.9, 21.2, 19.1],
            "hba1c": [8.74, 7.61, 8.13, 7.99, 6.04, 5.07],
            "med": ["Insulin", "Metformin", "Insulin", "Insulin", "Insulin", "Metformin"],
        }
    )


def _falling(n: int) -> list[float]:
    weights = 1 / np.arange(1, n + 1) ** 0.6
    return list(weights / weights.sum())
