"""P-subgroups that keep promises about sensitive values, found while records are grouped by their words.

Records with one word (a *run*) are swept by height into parts; a part is closed when it has P records and keeps every
promise. What a run has too much of, of some value, goes on to the next coarser level, where it meets others.
"""

from typing import NamedTuple

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.promises import DISTINCT, ENTROPY, FREQUENCY, RECURSIVE, judge_counts

SLACK = 1e-10  # less than the verifier's: what is accepted here is accepted there
ROUNDS = 4  # of trimming: what one sensitive column gives up may be what another needed


class Tally(NamedTuple):
    """Sensitive values of the records at hand, per promise; adding a record costs nothing but itself."""

    count: np.ndarray  # float64[s, most values]
    most: np.ndarray  # float64[s]: the greatest count
    distinct: np.ndarray  # int64[s]
    surprise: np.ndarray  # float64[s]: the sum of count x log count


@kernel()
def tally_of(rules):
    """An empty tally."""
    s = rules.kind.shape[0]
    width = rules.overall.shape[1] if s else 1
    return Tally(np.zeros((s, width)), np.zeros(s), np.zeros(s, np.int64), np.zeros(s))


@kernel()
def add(tally, rules, row):
    """One record more."""
    for s in range(rules.kind.shape[0]):
        v = rules.value[s, row]
        before = tally.count[s, v]
        tally.count[s, v] = before + 1.0
        tally.most[s] = max(tally.most[s], before + 1.0)
        tally.surprise[s] += (before + 1.0) * np.log(before + 1.0)
        if before == 0.0:
            tally.distinct[s] += 1
        else:
            tally.surprise[s] -= before * np.log(before)


@kernel()
def clear(tally, rules, rows, start, stop):
    """Forget ``rows[start:stop]``, which are all that was added."""
    for s in range(rules.kind.shape[0]):
        for at in range(start, stop):
            tally.count[s, rules.value[s, rows[at]]] = 0.0
        tally.most[s] = 0.0
        tally.distinct[s] = 0
        tally.surprise[s] = 0.0


@kernel()
def keeps(tally, rules, size):
    """Whether the records of a tally, ``size`` of them, may be one P-subgroup (``rules.k`` is P)."""
    if size < rules.k:
        return False
    for s in range(rules.kind.shape[0]):
        kind = rules.kind[s]
        if kind == FREQUENCY:
            fine = tally.most[s] * rules.bound[s] <= size
        elif kind == DISTINCT:
            fine = tally.distinct[s] >= rules.bound[s]
        elif kind == ENTROPY:
            fine = np.log(size) - tally.surprise[s] / size >= np.log(rules.bound[s]) - SLACK
        else:
            fine = judge_counts(rules, s, tally.count[s], float(size), size)
        if not fine:
            return False
    return True


@kernel()
def _capped_holds(rules, s, counts, cap):
    """Whether counts, each cut to ``cap``, keep promise s: entropy, frequency or recursive."""
    kind = rules.kind[s]
    cut = np.minimum(counts, cap)
    total = cut.sum()
    if kind == FREQUENCY:
        return cut.max() * rules.bound[s] <= total
    if kind == ENTROPY:
        entropy = 0.0
        for c in cut:
            entropy -= c / total * np.log(c / total)
        return entropy >= np.log(rules.bound[s]) - SLACK
    ordered = np.sort(cut)[::-1]
    first = int(rules.bound[s]) - 1
    if first >= len(ordered):
        return False
    return ordered[0] < rules.c[s] * ordered[first:].sum() - 1e-9


@kernel()
def _cap(rules, s, counts):
    """The greatest cap under which the counts keep promise s, 0 if none does.

    The lower the cap the flatter the counts: what holds under one holds under every lower one.
    """
    low, high = 0, int(counts.max())
    while low < high:
        middle = (low + high + 1) // 2
        if _capped_holds(rules, s, counts, float(middle)):
            low = middle
        else:
            high = middle - 1
    return low


@kernel()
def trim(rules, rows, start, stop, kept, tally):
    """Mark in ``kept`` as many of ``rows[start:stop]`` as keep the promises together; returns how many, 0 if none do.

    Of a value that occurs too often some go, evenly spread over the order of the rows. Closeness and distinct values
    are not reached by taking records away: there all stay or none.
    """
    for at in range(start, stop):
        kept[at] = True
    size = stop - start
    for _ in range(ROUNDS):
        for at in range(start, stop):
            if kept[at]:
                add(tally, rules, rows[at])
        fine = keeps(tally, rules, size)
        before = size
        if not fine and size >= rules.k:
            for s in range(rules.kind.shape[0]):
                if rules.kind[s] in (FREQUENCY, ENTROPY, RECURSIVE):
                    size -= _trim_one(rules, s, rows, start, stop, kept)
        clear(tally, rules, rows, start, stop)
        if fine:
            return size
        if size == before or size < rules.k:
            break
    return 0


@kernel()
def _trim_one(rules, s, rows, start, stop, kept):
    """Cut the values of one promise to their cap; how many records went."""
    value = rules.value[s]
    held = 0
    for at in range(start, stop):
        held += kept[at]
    if held == 0:
        return 0
    present = np.empty(held, np.int64)
    place = np.empty(held, np.int64)
    held = 0
    for at in range(start, stop):
        if kept[at]:
            present[held] = value[rows[at]]
            place[held] = at
            held += 1
    order = np.argsort(present, kind="mergesort")
    counts = np.empty(held)
    starts = np.empty(held + 1, np.int64)
    kinds = 0
    for at in range(held):
        if at == 0 or present[order[at]] != present[order[at - 1]]:
            starts[kinds] = at
            kinds += 1
    starts[kinds] = held
    for v in range(kinds):
        counts[v] = starts[v + 1] - starts[v]
    cap = _cap(rules, s, counts[:kinds])
    gone = 0
    for v in range(kinds):
        here = starts[v + 1] - starts[v]
        for j in range(here):
            if here > cap and (j + 1) * cap // here == j * cap // here:
                kept[place[order[starts[v] + j]]] = False
                gone += 1
    return gone


@kernel()
def _sweep(rules, rows, start, stop, kept, tally, part, first):
    """Cut the kept rows of a run into parts that keep the promises; returns how many parts there are."""
    members = np.empty(stop - start, np.int64)
    size = 0
    for at in range(start, stop):
        if kept[at]:
            members[size] = rows[at]
            size += 1
    starts = np.empty(size + 1, np.int64)
    parts = 0
    begin = 0
    for at in range(size):
        add(tally, rules, members[at])
        if keeps(tally, rules, at + 1 - begin):
            clear(tally, rules, members, begin, at + 1)
            starts[parts] = begin
            parts += 1
            begin = at + 1
    stopped = size
    if begin < size:
        # what is left at the end takes the parts before it until it keeps the promises: all together do
        while parts and not keeps(tally, rules, stopped - begin):
            parts -= 1
            for at in range(starts[parts], begin):
                add(tally, rules, members[at])
            begin = starts[parts]
        clear(tally, rules, members, begin, stopped)
        starts[parts] = begin
        parts += 1
    starts[parts] = size
    for number in range(parts):
        for at in range(starts[number], starts[number + 1]):
            part[members[at]] = first + number
    return parts


@kernel()
def diverse_parts(codes, rows, rules, share, word, part):
    """Give ``rows`` (by height) a word and a part, at the finest level where that keeps all promises.

    From the finest level down: of the rows left with one word as many are kept as keep the promises, if that is
    ``share`` of them (at the coarsest level: whatever it is); the others go on. Writes ``word`` and ``part`` (-1: no
    part); returns how many parts there are.
    """
    left = rows.copy()
    tally = tally_of(rules)
    kept = np.zeros(len(rows), np.bool_)
    for row in rows:
        part[row] = -1
        word[row] = -1
    parts = 0
    for level in range(codes.shape[0] - 1, -1, -1):
        code = codes[level]
        left = left[np.argsort(code[left], kind="mergesort")]
        start = 0
        rest = 0
        while start < len(left):
            stop = start + 1
            while stop < len(left) and code[left[stop]] == code[left[start]]:
                stop += 1
            size = 0
            if stop - start >= rules.k:
                size = trim(rules, left, start, stop, kept, tally)
            if size >= rules.k and (level == 0 or size >= share * (stop - start)):
                parts += _sweep(rules, left, start, stop, kept, tally, part, parts)
            else:
                for at in range(start, stop):
                    kept[at] = False
            for at in range(start, stop):
                row = left[at]
                if kept[at]:
                    word[row] = code[row]
                else:
                    left[rest] = row
                    rest += 1
            start = stop
        left = left[:rest]
        if rest == 0:
            break
        # by height again, whatever words they had: rows are numbered by height
        left = np.sort(left)
    return parts
