"""What a model learns from a release: how often it is right about people, beside one trained on the original.

A model that predicts a column is trained on released rows and asked about other people, whose quasi columns it is told
as they are. It is held against the same model trained on the original, and against guessing the commonest value, which
is all that is left when every cell is suppressed. A withheld row is in none of these figures.
"""

from __future__ import annotations

import warnings
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import UsageError
from shoal.core.levels import Levels
from shoal.core.release import Boxes
from shoal.core.table import Table, factorize
from shoal.measures.loss import runs_of

Features = NDArray[np.float64]
FOLDS = 3  # a third of the people is asked about, in turns
MOST_ROWS = 20_000  # of the table; more change the second digit
MOST_NODES = 100  # different features of a column; the lowest level with so many nodes is used
MOST_VALUES = 100  # that are told apart
ROUNDS = 200  # of the solver


class Learned(msgspec.Struct, frozen=True):
    """How often a model is right about ``target``: trained on the original, on the release, and knowing nothing else.

    >>> Learned("income", original=0.83, released=0.81, guessed=0.75).kept
    0.75
    """

    target: str
    original: float
    released: float
    guessed: float

    @property
    def kept(self) -> float:
        """The share of what the original teaches beyond guessing that the release still teaches; 1 if that is nothing.

        >>> Learned("x", 0.5, 0.5, 0.5).kept
        1.0
        """
        gain = self.original - self.guessed
        return round((self.released - self.guessed) / gain, 3) if gain > 0 else 1.0


class Learner:
    """A column to be predicted from the quasi columns of a table; the original is learned once for all releases.

    >>> from shoal.core.release import boxes_of
    >>> from shoal.core.schema import Schema
    >>> from shoal.core.table import code
    >>> frame = pl.DataFrame({"age": [20, 21, 60, 61] * 6, "works": ["yes", "yes", "no", "no"] * 6})
    >>> table = code(frame, Schema.build(quasi={"age": None}))
    >>> labels = (table.matrix[:, 0] > 1).astype(np.int32)
    >>> Learner(table, frame["works"]).learned(labels, boxes_of(table, labels))
    Learned(target='works', original=1.0, released=1.0, guessed=0.25)
    """

    def __init__(self, table: Table, target: pl.Series, seed: int = 0) -> None:
        _need_sklearn()
        self.name = target.name
        self._table = table
        random = np.random.default_rng(seed)
        whose = np.arange(table.size) if table.people is None else table.people
        chosen = random.permutation(table.size)[:MOST_ROWS]
        fold_of = random.integers(0, FOLDS, int(whose.max(initial=-1)) + 1)  # all rows of a person are in one
        wanted = target.gather(table.rows[chosen]).cast(pl.String)
        known = wanted.is_not_null().to_numpy()
        self._rows, self._fold = chosen[known], fold_of[whose[chosen[known]]]
        self._wanted = factorize(wanted.filter(pl.Series(known)))[0]
        many = len(np.unique(self._wanted))
        if not 2 <= many <= MOST_VALUES:
            raise UsageError(
                f"expected 2 to {MOST_VALUES} different values to learn, found {many:,}",
                where=f"column {self.name!r}",
                hint="name a column that classifies people, as an outcome does",
            )
        self._originals: dict[bytes, float] = {}

    def learned(self, labels: NDArray[np.int32], boxes: Boxes) -> Learned:
        """The three figures of a release, to three digits. O(rows x features) per round of the solver."""
        kept = labels[self._rows] >= 0
        rows, fold, wanted = self._rows[kept], self._fold[kept], self._wanted[kept]
        if len(np.unique(fold)) < FOLDS:
            return Learned(self.name, *[float("nan")] * 3)
        frequency = [
            np.bincount(self._table.matrix[labels >= 0, j], minlength=x.size).astype(np.float64)
            for j, x in enumerate(self._table.levels)
        ]
        as_they_are, as_released = [], []
        for j, levels in enumerate(self._table.levels):
            own = _features(levels, frequency[j])
            if own is not None:
                as_they_are.append(own[self._table.matrix[rows, j]])
                as_released.append(_in_cells(levels, boxes, j, own, frequency[j])[labels[rows]])
        truth = np.hstack([np.zeros((len(rows), 0)), *as_they_are])
        key = kept.tobytes()
        if key not in self._originals:
            self._originals[key] = _right(truth, truth, wanted, fold)
        seen = np.hstack([np.zeros((len(rows), 0)), *as_released])
        return Learned(
            self.name,
            _told(self._originals[key]),
            _told(_right(seen, truth, wanted, fold)),
            _told(_right(truth[:, :0], truth[:, :0], wanted, fold)),
        )


def _features(levels: Levels, frequency: NDArray[np.float64]) -> Features | None:
    """What a model is told of each code: a number, in units of its spread, or which node of a level it is in."""
    known = levels.values.is_not_null().to_numpy()
    if levels.values.dtype.is_numeric():
        numbers = levels.values.cast(pl.Float64).fill_null(0.0).to_numpy()
        weights = np.where(known, frequency, 0.0)
        total = max(1.0, weights.sum())
        middle = (numbers @ weights) / total
        spread = np.sqrt((numbers - middle) ** 2 @ weights / total) or 1.0
        return np.column_stack([np.where(known, (numbers - middle) / spread, 0.0), ~known]).astype(np.float64)
    for level in range(levels.depth - 1):
        nodes = levels.codes[:, level]
        if nodes.max(initial=0) < MOST_NODES:
            return np.eye(int(nodes.max(initial=0)) + 1)[nodes]
    return None


def _in_cells(levels: Levels, boxes: Boxes, j: int, own: Features, frequency: NDArray[np.float64]) -> Features:
    """The same of each group's cell: the mean over the values behind it, as often as they were released."""
    runs = runs_of(levels, boxes, j)
    many = np.maximum(runs.sums(frequency), 1e-300)
    return np.column_stack([runs.sums(frequency * column) / many for column in own.T])


def _right(train: Features, test: Features, wanted: NDArray[Any], fold: NDArray[np.int64]) -> float:
    """The share of rows about which a model is right that was trained on the others."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    right = 0
    for at in range(FOLDS):
        others, asked = fold != at, fold == at
        values, counts = np.unique(wanted[others], return_counts=True)
        guess = np.full(int(asked.sum()), values[counts.argmax()])
        # where all rows read alike there is nothing to learn; a solver would find that within its tolerance
        if train.shape[1] and len(values) > 1 and np.ptp(train[others], axis=0).any():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = LogisticRegression(max_iter=ROUNDS).fit(train[others], wanted[others])
            guess = model.predict(test[asked])
        right += int((guess == wanted[asked]).sum())
    return right / max(1, len(wanted))


def _told(share: float) -> float:
    return round(share, 3)


def _need_sklearn() -> None:
    from importlib.util import find_spec

    if find_spec("sklearn") is None:
        raise UsageError("scikit-learn is not installed", where="learn", hint="pip install 'shoal[learn]'")
