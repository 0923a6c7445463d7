"""What free texts tell beside their exact form: words that two texts share and nobody else's text has together.

A mask of texts hides what it finds; the rest still describes somebody. So the visits of one person, each under a token
of its own, are tied by what their notes have in common, a note is tied to a letter about the same visit, and a number
in a note to the range that the other view shows of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.cells import SUPPRESSED
from shoal.core.texts import texts_of
from shoal.release.linking import Codes, Comparison, Nearness
from shoal.release.other_names import BEYOND_CHANCE, TRIED, least_beyond_chance
from shoal.release.residues import nearness

LOOKED_AT = 200  # cells by which a column is judged
WORDS = 3  # of a text that describes; fewer are a name or a category
APART = 8  # records of one person between which shared words are looked for
RARE = 20  # records that have a word which still says something of each
MOST_STEPS = 5_000  # texts looked at for one record; who has more rivals is taken to have none: the safe side
CORRELATED = 0.1  # lengths that go together less tell nothing

Words = list[frozenset[str]]


def free_texts(data: pl.DataFrame, columns: Collection[str]) -> list[str]:
    """The columns that hold sentences.

    >>> data = pl.DataFrame({"note": ["no fever, good appetite", "came back with pain"], "sex": ["f", "m"]})
    >>> free_texts(data, data.columns)
    ['note']
    """
    out = []
    for name in columns:
        if data[name].dtype == pl.String():
            known = data[name].drop_nulls().filter(data[name].drop_nulls() != SUPPRESSED).head(LOOKED_AT)
            if len(known) and np.median(known.str.count_matches(r"[\pL\d]+").to_numpy()) >= WORDS:
                out.append(name)
    return out


def words_of(texts: pl.Series) -> Words:
    """The words of each text, without case.

    >>> sorted(words_of(pl.Series(["No fever; no pain", None]))[0])
    ['fever', 'no', 'pain']
    """
    split = texts.fill_null("").str.to_lowercase().str.extract_all(r"[\pL\d]+")
    return [frozenset(words) for words in split.to_list()]


class Rivals:
    """Texts of people, asked whether somebody else's has all the words of a person and no more words in all.

    >>> rivals = Rivals(words_of(pl.Series(["a red boat", "a red car", "a boat"])), np.array([1, 2, 3]))
    >>> rivals.has_one(frozenset({"red"}), [1], 3), rivals.has_one(frozenset({"red", "boat"}), [1], 3)
    (True, False)
    """

    def __init__(self, words: Words, people: Codes) -> None:
        self._words, self._people = words, people.tolist()
        self.used: Counter[str] = Counter(word for many in words for word in many)
        self._places: dict[str, list[int]] = defaultdict(list)
        for at, many in enumerate(words):
            for word in many:
                self._places[word].append(at)

    def has_one(self, shared: frozenset[str], owners: Collection[int], length: int) -> bool:
        """Whether there is such a text of nobody in ``owners`` with at most ``length`` words."""
        if not shared:
            return True
        # whoever has all shared words has the rarest, and that list is the shortest
        rarest = min(shared, key=self.used.__getitem__)
        for at in self._places[rarest][:MOST_STEPS]:
            if self._people[at] not in owners and len(self._words[at]) <= length and shared <= self._words[at]:
                return True
        return False


def alike(mine: Words, theirs: Words, people: Codes, pairs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """For each pair of a text of mine and one of theirs, whether the words both have are together in nobody else's."""
    sides = (Rivals(mine, people), Rivals(theirs, people))
    out = np.zeros(len(pairs), np.bool_)
    for at, (i, j) in enumerate(pairs):
        shared, owners = mine[i] & theirs[j], (people[i], people[j])
        # by the words of either side, as an attacker may begin with either file
        out[at] = not (
            sides[0].has_one(shared, owners, len(mine[i])) and sides[1].has_one(shared, owners, len(theirs[j]))
        )
    return out


def tied_by_words(texts: pl.Series, people: Codes) -> Codes:
    """A number per record, the same for those whose texts tie them together; -1 for all if texts tie nobody, and for
    records without a text. A record tied to no other is one of its own: who finds no more of a person has them all.

    >>> notes = pl.Series([f"{'first second'.split()[n % 2]} visit of patient {n // 2}" for n in range(100)])
    >>> tied_by_words(notes, np.arange(100) // 2)[:6].tolist()
    [0, 0, 2, 2, 4, 4]
    >>> tied_by_words(notes, np.arange(100) % 50).max() < 0  # what the texts say has nothing to do with people
    np.True_
    """
    words = words_of(texts)
    pairs = _of_one_person(people)
    found = _beyond_chance(words, words, people, pairs)
    label = np.arange(len(words))
    for (i, j), yes in zip(pairs, found, strict=True):
        if yes:
            a, b = _root(label, i), _root(label, j)
            # the smaller number wins, so that the order of pairs does not matter
            label[max(a, b)] = min(a, b)
    told = found.any() & texts.is_not_null().to_numpy()
    return np.where(told, [_root(label, at) for at in range(len(words))], -1)


def told_by_words(mine: pl.DataFrame, theirs: pl.DataFrame, people: Codes) -> Iterator[Comparison]:
    """Free texts of two names about the same: who is alone with the words both have, and the rare ones among them."""
    for one, other in product(free_texts(mine, mine.columns), free_texts(theirs, theirs.columns)):
        if one == other:
            continue
        a, b = words_of(mine[one]), words_of(theirs[other])
        found = _beyond_chance(a, b, people, [(at, at) for at in range(len(a))])
        if found.any():
            used = Counter(word for many in b for word in many)
            rare = [" ".join(sorted(w for w in x & y if used[w] <= RARE)) for x, y in zip(a, b, strict=True)]
            # a text of their own for those who are alone with their words: nobody else can have it
            said = [f"\0{at}" if yes else rare[at] or None for at, yes in enumerate(found)]
            value = pl.Series(said, dtype=pl.String)
            yield Comparison(f"words of {one!r} in {other!r}", value, value)


def mentions(
    texts: pl.DataFrame, originals: pl.DataFrame, shown: Collection[str]
) -> Iterator[tuple[str, str, pl.Series]]:
    """Cells of the ``originals`` of the columns ``shown`` that the free texts of a view mention as whole words:
    what it is called, the column, and the cells (null where there is no mention).

    >>> notes = pl.DataFrame({"note": [f"a patient aged {n}" for n in range(20, 80)]})
    >>> [name for name, *_ in mentions(notes, pl.DataFrame({"age": range(20, 80)}), ["age"])]
    ["'age' in 'note'"]
    """
    for column in free_texts(texts, texts.columns):
        padded = _padded(texts[column])
        for part in shown:
            if part == column or part not in originals.columns or originals[part].dtype.is_nested():
                continue
            cells = _padded(texts_of(originals[part]))
            told = _contains(padded, cells)
            # against the cells of other rows: what is mentioned as often there is a common word
            chance = _contains(padded, cells.gather((np.arange(len(cells)) + 1 + len(cells) // 2) % len(cells)))
            if told.to_numpy().mean() >= least_beyond_chance(float(chance.to_numpy().mean()), len(cells)):
                found = pl.select(pl.when(told).then(originals[part])).to_series()
                yield f"{part!r} in {column!r}", part, found


def mentioned_forms(
    texts: pl.DataFrame, originals: pl.DataFrame, other: pl.DataFrame, shown: Collection[str], keyed: Collection[str]
) -> tuple[list[Comparison], list[Nearness]]:
    """What the texts mention of the columns of the ``other`` view, beside the form it shows of them."""
    compared, near = list[Comparison](), list[Nearness]()
    for name, column, found in mentions(texts, originals, shown):
        if column in keyed:
            close = nearness(name, found, other[column])
            near += [close] if close is not None else []
        else:
            form = pl.select(pl.when(found.is_not_null()).then(other[column])).to_series()
            compared.append(Comparison(name, found, form))
    return compared, near


def lengths(name: str, mine: pl.Series, theirs: pl.Series) -> Nearness | None:
    """The lengths of two forms of a text, one of them under a key: what is long stays long.

    >>> notes = pl.Series(["x" * n for n in range(60)])
    >>> lengths("note", notes, "t1." + notes + notes).theirs.tolist()[:3]
    [3.0, 5.0, 7.0]
    """
    if mine.dtype != pl.String() or theirs.dtype != pl.String():
        return None
    a, b = (s.str.len_chars().cast(pl.Float64).fill_null(np.nan).to_numpy() for s in (mine, theirs))
    known = ~(np.isnan(a) | np.isnan(b))
    if known.sum() < WORDS or not a[known].std() or not b[known].std():
        return None
    # three standard errors above, so that few records do not pass by chance
    if np.corrcoef(a[known], b[known])[0, 1] < CORRELATED + 3 / np.sqrt(known.sum()):
        return None
    slope, start = np.polyfit(a[known], b[known], 1)  # an attacker knows how long a token of so many letters is
    return Nearness(name, start + slope * a, b)


def _padded(texts: pl.Series) -> pl.Series:
    """Words between single spaces, so that whole words are found as they are."""
    plain = texts.str.to_lowercase().str.replace_all(r"[^\pL\d]+", " ").str.strip_chars()
    return pl.select(pl.when(plain != "").then(" " + plain + " ")).to_series()


def _contains(texts: pl.Series, parts: pl.Series) -> pl.Series:
    return pl.select(pl.lit(texts).str.contains(pl.lit(parts), literal=True).fill_null(False)).to_series()


def _of_one_person(people: Codes) -> list[tuple[int, int]]:
    """Pairs of records of one person, not too far from each other."""
    order = np.argsort(people, kind="stable")
    pairs = []
    for apart in range(1, APART + 1):
        same = np.flatnonzero(people[order][apart:] == people[order][:-apart])
        pairs += [*zip(order[same].tolist(), order[same + apart].tolist(), strict=True)]
    return pairs


def _beyond_chance(mine: Words, theirs: Words, people: Codes, pairs: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """As :func:`alike`, and nowhere so if texts of two people have as much in common, rare words counting more."""
    used = Counter(word for many in theirs for word in many)
    weight = {word: float(np.log(len(theirs) / count)) for word, count in used.items()}
    # a fixed seed: a check gives the same figure whenever it is run
    draw = np.random.default_rng(0)
    mixed = [(i, j) for i, j in draw.integers(0, max(1, len(mine)), (TRIED, 2)).tolist() if people[i] != people[j]]
    if len(pairs) < 2 or len(mixed) < 2:
        return np.zeros(len(pairs), np.bool_)
    some = [pairs[at] for at in draw.permutation(len(pairs))[:TRIED]]
    same, other = (np.array([sum(weight[w] for w in mine[i] & theirs[j]) for i, j in of]) for of in (some, mixed))
    spread = other.std() * np.sqrt(1 / len(same) + 1 / len(other))
    if same.mean() <= (1 + BEYOND_CHANCE) * other.mean() + 3 * spread:
        return np.zeros(len(pairs), np.bool_)
    return alike(mine, theirs, people, pairs)


def _root(label: Codes, at: int) -> int:
    while label[at] != at:
        label[at] = label[label[at]]
        at = int(label[at])
    return at
