"""Positions: cells of a grid, in metres."""

from __future__ import annotations

import re
from functools import lru_cache
from math import floor

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.hierarchy.base import Hierarchy, LabelBytes, Labeller
from shoal.core.levels import Codes, Levels, code_of, nest
from shoal.kernels.shared import labels as kernel

METRES_PER_DEGREE = 111_320.0
WORLD = 20_000_000  # metres from pole to pole: no cell is larger
FAR = 999.0  # degrees
CELLS = 1 << 14  # cells whose names are kept
BANDS = 4096  # bands of latitude whose stretch is kept
_NUMBER = r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
_POSITION = re.compile(f"{_NUMBER},{_NUMBER}", re.ASCII)


class Grid(Hierarchy, frozen=True, tag="grid"):
    """A position ``latitude,longitude`` becomes the cell it lies in, ever larger: ``sizes`` in metres.

    Values are texts like ``40.7128,-74.0060``. A cell is named by its south-west corner and its size. Each size
    should divide the next; sizes that do not nest serve z-anonymity, which counts every level for itself, and are
    refused where nesting is needed.

    >>> import polars as pl
    >>> Grid((100, 1000)).preview(pl.Series(["40.7128,-74.0060"])).row(0)
    ('40.7128,-74.0060', '40.71236,-74.00626 +100m', '40.71146,-74.01455 +1000m', '*')
    """

    sizes: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.sizes or any(not s > 0 for s in self.sizes) or list(self.sizes) != sorted(set(self.sizes)):
            raise UsageError("`sizes` must be positive metres, from small to large", where="grid")

    def called(self, level: int) -> str | None:
        """See :class:`Hierarchy`.

        >>> Grid((100, 1000)).called(2), Grid((100, 1000)).called(3)
        ('cells of 1000 m', None)
        """
        return f"cells of {self.sizes[level - 1]:g} m" if 0 < level <= len(self.sizes) else None

    def wider(self, factor: int) -> Grid | None:
        """See :class:`Hierarchy`.

        >>> Grid((100, 1000)).wider(20)
        Grid(sizes=(20000,))
        """
        size = self.sizes[-1] * factor
        return Grid((size,)) if size <= WORLD else None

    @property
    def nests(self) -> bool:
        """Whether each size divides the next."""
        return all((large / small).is_integer() for small, large in zip(self.sizes, self.sizes[1:], strict=False))

    def compile(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`."""
        if not self.nests:
            raise UsageError(
                "these sizes do not nest, so cells of one level cross cells of the next",
                where=where,
                hint="let each size divide the next, for example 100, 500, 1000",
            )
        return self._compile(values, where, need_nesting=True)

    def _compile(self, values: pl.Series, where: str, *, need_nesting: bool) -> tuple[Levels, Codes]:
        latitude, longitude, known = positions(values)
        kept = values.filter(pl.Series(known | values.is_null().to_numpy()))
        inside = known | values.is_null().to_numpy()
        labels = [kept.cast(pl.String)]
        for size in self.sizes:
            labels.append(self._cells(latitude[inside], longitude[inside], size))
        labels.append(pl.Series([SUPPRESSED] * len(kept), dtype=pl.String))
        levels = nest(kept, labels, need_nesting=need_nesting, where=where)
        return levels, code_of(levels, values)

    def compile_levels(self, values: pl.Series, *, where: str = "hierarchy") -> tuple[Levels, Codes]:
        """See :class:`Hierarchy`."""
        return self._compile(values, where, need_nesting=False)

    def labeller(self, *, where: str = "hierarchy") -> Labeller:
        """See :class:`Hierarchy`."""
        forms = self._forms()
        # what large cells are called is asked again and again; a cell lies in one band, so its place is enough
        known: dict[tuple[float, int, int], str] = {}

        def labels(text: str) -> list[str] | None:
            match = _POSITION.fullmatch(text)
            if match is None:
                return None
            latitude, longitude = float(match[1]), float(match[2])
            if not (abs(latitude) <= 90 and abs(longitude) <= 180):
                return None
            out, counted = [text], 0.0
            for size, band, unit, tall, wide, name in forms:
                if band != counted:  # where sizes nest, all are counted in one unit and one band
                    counted, north = band, floor(latitude * METRES_PER_DEGREE / unit)
                    stretch = _stretch(north // tall, band)
                    east = floor(longitude * stretch / unit)
                cell = size, north // wide, east // wide
                label = known.get(cell)
                if label is None:
                    south, west = float(cell[1]) * size / METRES_PER_DEGREE, float(cell[2]) * size / stretch
                    label = f"{south:.5f},{west:.5f}{name}"
                    if len(known) >= CELLS:
                        known.clear()
                    known[cell] = label
                out.append(label)
            return out

        return labels

    def label_bytes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], most: int
    ) -> LabelBytes | None:
        """See :class:`Hierarchy`. Numbers of usual length, rounded beyond doubt; all others are left to Python."""
        latitude, longitude = np.empty(len(starts)), np.empty(len(starts))
        plain = np.empty(len(starts), np.bool_)
        kernel.positions(data, starts, lengths, latitude, longitude, plain)
        plain &= (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)
        latitude[~plain] = longitude[~plain] = 0.0
        forms = self._forms()[: most - 1]
        begins = np.zeros((len(starts), 1 + len(forms)), np.int64)
        sizes = np.full(begins.shape, kernel.ASK, np.int64)
        begins[:, 0], sizes[:, 0] = starts, np.where(plain, lengths, kernel.ASK)
        parts, at, counted = [data], len(data), 0.0
        for level, (size, band, unit, tall, wide, name) in enumerate(forms, 1):
            if 180 * METRES_PER_DEGREE / unit >= 2**53:  # not to be counted exactly
                return None
            if band != counted:
                counted, north = band, np.floor(latitude * METRES_PER_DEGREE / unit).astype(np.int64)
                bands, which = np.unique(north // tall, return_inverse=True)
                stretch = np.array([_stretch(int(one), band) for one in bands])[which]
                east = np.floor(longitude * stretch / unit).astype(np.int64)
            south = (north // wide).astype(np.float64) * size / METRES_PER_DEGREE
            west = (east // wide).astype(np.float64) * size / stretch
            far = np.maximum(np.abs(south), np.abs(west)) >= FAR  # beside a pole large cells begin anywhere
            south[far], west[far], sizes[far, 0] = 0.0, 0.0, kernel.ASK
            out = np.empty(len(starts) * (21 + len(name)) or 1, np.uint8)  # two numbers of ten bytes and a comma
            used = kernel.cells(south, west, np.frombuffer(name.encode(), np.uint8), out, begins, sizes, level)
            begins[:, level] += at
            parts.append(out[:used])
            at += int(used)
        return LabelBytes(np.concatenate(parts), begins, sizes)

    def _forms(self) -> list[tuple[float, float, float, int, int, str]]:
        """Per size: it, the band and the unit its cells are counted in, units of a band and of a cell, its name."""
        return [
            (size, band, unit, round(band / unit), round(size / unit), f" +{size:g}m")
            for size, band, unit in (
                (size, self.sizes[-1] if self.nests else size, self.sizes[0] if self.nests else size)
                for size in self.sizes
            )
        ]

    def _cells(self, latitude: NDArray[np.float64], longitude: NDArray[np.float64], size: float) -> pl.Series:
        # one width per band of the coarsest size that nests, or columns of small cells would cross large ones
        band = self.sizes[-1] if self.nests else size
        # large cells are counted in small ones: two roundings of one position must not put it into both of two
        unit = self.sizes[0] if self.nests else size
        north = np.floor(latitude * METRES_PER_DEGREE / unit)
        middle = (np.floor_divide(north, round(band / unit)) + 0.5) * band / METRES_PER_DEGREE
        stretch = METRES_PER_DEGREE * np.maximum(np.cos(np.radians(middle)), 1e-6)
        east = np.floor(longitude * stretch / unit)
        south = np.floor_divide(north, round(size / unit)) * size / METRES_PER_DEGREE
        west = np.floor_divide(east, round(size / unit)) * size / stretch
        south, west = south + 0.0, west + 0.0  # minus zero would name the cell at zero twice
        name = f"{size:g}"
        texts = [
            None if np.isnan(a) else f"{a:.5f},{b:.5f} +{name}m"
            for a, b in zip(south.tolist(), west.tolist(), strict=True)
        ]
        return pl.Series(texts, dtype=pl.String)


@lru_cache(BANDS)  # people are in few places: most positions lie in a band seen before
def _stretch(band: int, height: float) -> float:
    """Metres per degree of longitude in a band of latitude."""
    return METRES_PER_DEGREE * max(float(np.cos(np.radians((band + 0.5) * height / METRES_PER_DEGREE))), 1e-6)


def positions(values: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Latitudes, longitudes, and which values are positions on Earth.

    >>> latitude, longitude, there = positions(pl.Series(["52.5,13.4", "nowhere"]))
    >>> there.tolist()
    [True, False]
    """
    parts = values.cast(pl.String).str.split(",")
    latitude, longitude = (
        parts.list.get(at, null_on_oob=True).str.strip_chars().cast(pl.Float64, strict=False).to_numpy()
        for at in (0, 1)
    )
    with np.errstate(invalid="ignore"):
        known = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180) & (parts.list.len().to_numpy() == 2)
    return latitude, longitude, known
