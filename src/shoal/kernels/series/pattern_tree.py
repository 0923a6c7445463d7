"""Create-tree and recycle-bad-leaves of Shou et al.: records with the same word become subgroups of at least P.

``codes[level, record]`` is the word of a record at a level, as an integer that no other level uses; level 0 is the
coarsest and all records agree there. Levels need not nest. Records end at the level whose own word they publish.
"""

import numpy as np

from shoal.kernels.compile import kernel


@kernel()
def create_tree(codes, records, p, leaf, leaf_level, leaf_good):
    """Split ``records`` by their words, level by level, as long as parts of at least ``p`` remain.

    Writes the leaf of each record into ``leaf`` and the level and goodness of each leaf; returns the leaf count.
    """
    levels = codes.shape[0]
    order = records.copy()
    spare = np.empty_like(order)
    # a stack instead of recursion; its stretches lie apart, so there are at most as many as records
    starts = np.empty(len(order) + 1, np.int64)
    stops = np.empty(len(order) + 1, np.int64)
    depths = np.empty(len(order) + 1, np.int64)
    leaves = 0
    starts[0], stops[0], depths[0] = 0, len(order), 0
    waiting = 1 if len(order) else 0
    while waiting:
        waiting -= 1
        start, stop, level = starts[waiting], stops[waiting], depths[waiting]
        size = stop - start
        # a finer word that all of them share costs nobody any company
        while size >= p and level + 1 < levels and _agree(codes[level + 1], order, start, stop):
            level += 1
        # fewer than 2P records cannot make two good leaves: the paper stops here, too
        good_as_it_is = p <= size < 2 * p or level + 1 == levels
        scattered = 0
        largest = 0
        if size >= p and not good_as_it_is:
            scattered, largest = _sort_by_code(codes[level + 1], order, start, stop, p, spare)
        # if no part of the split would have P records, all would be bad leaves; the node stays whole instead
        if size < p or good_as_it_is or largest < p:
            for at in range(start, stop):
                leaf[order[at]] = leaves
            leaf_level[leaves], leaf_good[leaves] = level, size >= p
            leaves += 1
            continue
        # small parts together have P records: they stay one good leaf at this level. Fewer than P become bad leaves
        # at the finer one and are recycled
        merged = -1
        if scattered >= p:
            merged = leaves
            leaf_level[leaves], leaf_good[leaves] = level, True
            leaves += 1
        begin = start
        while begin < stop:
            end = _run_end(codes[level + 1], order, begin, stop)
            if end - begin >= p or merged < 0:
                starts[waiting], stops[waiting], depths[waiting] = begin, end, level + 1
                waiting += 1
            else:
                for at in range(begin, end):
                    leaf[order[at]] = merged
            begin = end
    return leaves


@kernel()
def _agree(code, order, start, stop):
    for at in range(start + 1, stop):
        if code[order[at]] != code[order[start]]:
            return False
    return True


@kernel()
def _run_end(code, order, begin, stop):
    end = begin + 1
    while end < stop and code[order[end]] == code[order[begin]]:
        end += 1
    return end


@kernel()
def _sort_by_code(code, order, start, stop, p, spare):
    """Sort a stretch by code (stable); how many records lie in runs shorter than ``p``, and the longest run."""
    keys = np.empty(stop - start, code.dtype)
    for at in range(start, stop):
        keys[at - start] = code[order[at]]
        spare[at] = order[at]
    # stable, because the order of equal words decides the numbers of leaves, and a release must not hang on it
    ranks = np.argsort(keys, kind="mergesort")
    for at in range(start, stop):
        order[at] = spare[start + ranks[at - start]]
    scattered = 0
    largest = 0
    begin = start
    while begin < stop:
        end = _run_end(code, order, begin, stop)
        largest = max(largest, end - begin)
        if end - begin < p:
            scattered += end - begin
        begin = end
    return scattered, largest


@kernel()
def recycle(codes, level, good, p, words):
    """Give every record that is not ``good`` the finest level at or below its own at which it finds company.

    From the highest level of a bad record downward, bad records with the same word join: the good records that have
    this word already, else each other once they are ``p``. Whoever stays alone keeps ``good`` False: fewer than
    ``p`` records, because at the coarsest level all agree. Changes ``level`` and ``good``; returns how many are left.
    """
    n = len(level)
    bad = 0
    top = 0
    for record in range(n):
        if not good[record]:
            bad += 1
            top = max(top, level[record])
    loose = np.zeros(words, np.int32)
    # words that good records publish already: whoever joins them has P companions at once
    settled = np.zeros(words, np.bool_)
    for record in range(n):
        if good[record]:
            settled[codes[level[record], record]] = True
    for current in range(top, -1, -1):
        if bad == 0:
            break
        code = codes[current]
        for record in range(n):
            if not good[record] and level[record] >= current:
                loose[code[record]] += 1
        for record in range(n):
            if not good[record] and level[record] >= current and (settled[code[record]] or loose[code[record]] >= p):
                good[record] = True
                level[record] = current
                bad -= 1
        for record in range(n):
            # only after the level is done: a word that became good takes its next guests from a coarser level
            settled[code[record]] |= good[record] and level[record] == current
    return bad


@kernel()
def refine(codes, loss, order, level, good, p, share, words, passes):
    """Let good records change to a word of another level that fits them much better; returns how many did.

    ``loss[level, record]`` is what a record loses by publishing its own word of a level; it changes when that falls
    to at most ``share`` of what it was, when ``p`` records are left where it was, and when the new word has ``p``
    records with it. ``order[level]`` sorts the records by code. Changes ``level``.
    """
    levels, n = codes.shape
    count = np.zeros(words, np.int32)
    for record in range(n):
        if good[record]:
            count[codes[level[record], record]] += 1
    joining = np.empty(n, np.int64)
    total = 0
    for _ in range(passes):
        moved = 0
        for target in range(levels - 1, -1, -1):
            code = codes[target]
            begin = 0
            while begin < n:
                word = code[order[target, begin]]
                end = begin
                willing = 0
                while end < n and code[order[target, end]] == word:
                    record = order[target, end]
                    now = level[record]
                    end += 1
                    # the word it leaves must keep P records
                    if not good[record] or now == target or count[codes[now, record]] <= p:
                        continue
                    if loss[target, record] < loss[now, record] and loss[target, record] <= share * loss[now, record]:
                        # taken off at once, so that the next willing record sees how many really stay
                        count[codes[now, record]] -= 1
                        joining[willing] = record
                        willing += 1
                # too few for the new word: all of them go back where they were
                enough = count[word] + willing >= p
                for at in range(willing):
                    record = joining[at]
                    if enough:
                        level[record] = target
                    count[codes[level[record], record]] += 1
                if enough:
                    moved += willing
                begin = end
        total += moved
        if moved == 0:
            break
    return total
