"""Columns that are one thing together: a latitude and a longitude, a city in its region in its country.

Generalized one by one they lose more than they must: a grid keeps two numbers near each other, a path keeps the region
where the city has to go. The draft derives one column from them and shows none of them by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

import polars as pl

LATITUDE, LONGITUDE = re.compile(r"(^|_)lat(itude)?(_|$)"), re.compile(r"(^|_)(lon|lng|long)(gitude)?(_|$)")
SEPARATORS = (".", " / ", "|", "::")
REPEATED = 3  # rows per value on average, below which every column seems to determine every other


class Whole(NamedTuple):
    """What some columns are together: a name for it, the columns, how it is derived and generalized, and why."""

    name: str
    of: tuple[str, ...]
    derive: str
    hierarchy: str
    why: str


def pairs(words: dict[str, str], taken: Collection[str], grid: str) -> Iterator[Whole]:
    """Latitudes and longitudes of one name; ``words`` are the columns' names as lower-case words.

    >>> [(w.name, w.of) for w in pairs({"Lat": "lat", "Lng": "lng", "age": "age"}, ["Lat", "Lng"], "grid")]
    [('position', ('Lat', 'Lng'))]
    """
    east = {LONGITUDE.sub("_", word).strip("_"): name for name, word in words.items() if LONGITUDE.search(word)}
    for north, word in words.items():
        rest = LATITUDE.sub("_", word).strip("_")
        if LATITUDE.search(word) and rest in east:
            name = free_name(f"{rest}_position" if rest else "position", taken)
            why = f"{north} and {east[rest]} are a place: published as cells of a grid"
            yield Whole(name, (north, east[rest]), "position", grid, why)


def nested(frame: pl.DataFrame, candidates: list[str], quoted: dict[str, str]) -> Whole | None:
    """The longest chain of columns of which each value lies in one value of the next: a city in one region.

    >>> places = pl.DataFrame({"city": ["Ulm", "Bonn", "Lyon"] * 9, "country": ["de", "de", "fr"] * 9})
    >>> nested(places, ["city", "country"], {}).of
    ('country', 'city')
    """
    sizes = {name: frame[name].drop_nulls().n_unique() for name in candidates}
    # where hardly a value repeats, each lies in one value of any other column by chance
    usable = [n for n in candidates if sizes[n] > 1 and sizes[n] * REPEATED <= frame.height]
    # from many values to few: what lies in something else has more values than it
    ordered = sorted(usable, key=lambda n: -sizes[n])
    best: list[str] = []
    for at, first in enumerate(ordered):
        chain = [first]
        for other in ordered[at + 1 :]:
            # as many values would be the same thing under another name, and a step that generalizes nothing
            if sizes[other] < sizes[chain[-1]] and _lies_in(frame, chain[-1], other):
                chain.append(other)
        best = max(best, chain, key=len)
    # a separator that occurs inside a value would be read as one more step
    mark = next((m for m in SEPARATORS if not _has(frame, best, m)), None)
    if len(best) < 2 or mark is None:
        return None
    of = tuple(reversed(best))
    listed = ", ".join(quoted.get(name, name) for name in of)
    why = " in one ".join(f"each {name}" if at == 0 else name for at, name in enumerate(best)) + ": one path"
    parted = "" if mark == "." else f', separator: "{mark}"'
    return Whole(
        free_name(f"{best[0]}_path", frame.columns),
        of,
        f"{{use: join, of: [{listed}]{parted}}}",
        f"{{use: path, depth: {len(of)}{parted}}}",
        why,
    )


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no column has.

    >>> free_name("place", ["place"])
    'place_'
    """
    while name in taken:
        name += "_"
    return name


def _lies_in(frame: pl.DataFrame, inner: str, outer: str) -> bool:
    """Whether every value of the one column stands beside one value of the other only."""
    beside = frame.select(inner, outer).drop_nulls().unique()
    return beside.height == beside[inner].n_unique()


def _has(frame: pl.DataFrame, names: list[str], mark: str) -> bool:
    return any(bool(frame[n].str.contains(mark, literal=True).any()) for n in names)
