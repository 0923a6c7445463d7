"""Destroy a few neighbouring groups, rebuild them, keep the better version. Every accepted step keeps all promises."""

import numpy as np

from shoal.kernels.compile import bare, kernel
from shoal.kernels.shared.promises import workspace
from shoal.kernels.tables.local_groups import copy_draft, new_draft, settle_draft
from shoal.kernels.tables.local_hooks import FEW, KEPT, clear, failing, lacking, peak, tally, wanted
from shoal.kernels.tables.local_index import nearest
from shoal.kernels.tables.local_pairs import GOLDEN, below, draw, inlined, joined_cost, pair_cost, stretch

NEAR = 4  # neighbours to choose from
MORE = 3  # groups destroyed besides the first: 1 to this many
TRIES = 4  # rebuilds per choice of groups
TURNS = 2  # choices of groups per step
TINY = 1e-9  # of a total loss
TINY_STEP = 1e-12  # of the cost of a row


@kernel
def improve(codes, ids, groups, index, pairs, rules, plain, growing, seeds, most, heat, state):
    """Try to improve around each of the rows ``seeds``; groups above ``most`` rows keep a core. Changes ``groups``.

    ``ids`` are the rows' numbers in the whole table. A step: the seed's group and some neighbours are pooled and
    rebuilt by growing groups from random rows; accepted if the loss does not rise, or by no more than a random part of
    the share ``heat`` of it. O(pool² x columns) per step plus the search for neighbours.
    """
    m = codes.shape[1]
    room = groups.size.shape[0]
    free = np.empty(room, np.int32)
    frees = 0
    for g in range(room - 1, -1, -1):
        if groups.size[g] == 0:
            free[frees] = g
            frees += 1
    capacity = (MORE + 1) * most + rules.k + 1
    pool, real, rest = np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    price, part = np.empty(capacity), np.empty((m, capacity), np.int32)
    draft, keep = new_draft(capacity, m), new_draft(capacity, m)
    best, score = np.empty(NEAR, np.int32), np.empty(NEAR)
    chosen, taken = np.empty(NEAR + 1, np.int32), np.empty(NEAR + 1, np.int64)
    work = workspace(rules)
    count = np.zeros(work.count.shape[0])
    held = np.zeros((capacity // rules.k + MORE + 3, rules.kind.shape[0], work.count.shape[0]))
    rows = np.empty(codes.shape[0] + 1, np.int32)
    for step in range(seeds.shape[0]):
        row = seeds[step]
        if groups.cost[groups.label[row]] <= 0.0:
            continue
        found = nearest(index, pairs, groups.size, codes, row, groups.label[row], 2.0 * rules.k, best, score)
        for _turn in range(TURNS):
            chosen[0] = groups.label[row]
            picked = _pick(groups, best, found, chosen, state)
            size, limit, picked = _pool(groups, chosen, taken, picked, pool, ids, rules, plain, most, rows, work, count)
            kept = np.int64(0)
            if heat > 0.0:
                limit += heat * limit * draw(state)
            for _try in range(TRIES if size else 0):
                made, loss = _rebuild(
                    codes, ids, pairs, rules, plain, growing, groups, chosen, taken, picked, pool, size, limit, draft,
                    rest, part, price, rows, work, count, held, state,
                )  # fmt: skip
                if made > 0 and loss <= limit:
                    limit = loss - TINY_STEP
                    kept = made
                    copy_draft(draft, keep, size, made)
            if kept:
                frees = settle_draft(groups, chosen, taken, picked, pool, size, keep, kept, real, free, frees)


@bare
def _pick(groups, best, found, chosen, state):
    """The neighbours to destroy, nearer ones more often: into ``chosen`` after its first; how many in all."""
    want = 2 + below(state, MORE)
    picked = 1
    for _ in range(3 * NEAR):
        if picked >= want or found == 0:
            break
        share = draw(state)
        other = best[min(found - 1, int(found * share * np.sqrt(share)))]
        fine = groups.size[other] > 0
        for z in range(picked):
            fine = fine and chosen[z] != other
        if fine:
            chosen[picked] = other
            picked += 1
    return picked


@bare
def _pool(groups, chosen, taken, picked, pool, ids, rules, plain, most, rows, work, count):
    """Rows of the chosen groups. A large group gives only surplus rows; its core stays and must keep the promises."""
    size, kept, loss = np.int64(0), np.int64(0), TINY
    k = rules.k
    for z in range(picked):
        g = chosen[z]
        take = groups.size[g]
        if groups.size[g] > most or (plain and z > 0 and groups.size[g] >= 2 * k + 2):
            take = min(groups.size[g] - k, k)
        if take < groups.size[g] and not plain:
            at = groups.head[g]
            seen = 0
            core = 0
            while at >= 0:
                if seen >= take:
                    rows[core] = ids[at]
                    core += 1
                seen += 1
                at = groups.next[at]
            lack = failing(rules, rows, 0, core, work, count)
            if lack != KEPT:
                if lack >= 0:
                    clear(rules, lack, rows, 0, core, count)
                if z == 0:
                    return np.int64(0), 0.0, np.int64(0)
                continue
        chosen[kept] = g
        taken[kept] = take
        kept += 1
        loss += groups.size[g] * groups.cost[g]
        at = groups.head[g]
        for _ in range(take):
            pool[size] = at
            size += 1
            at = groups.next[at]
    return size, loss, kept


@bare
def _rebuild(
    codes, ids, pairs, rules, plain, growing, groups, chosen, taken, picked, pool, size, limit, draft, rest, part,
    price, rows, work, count, held, state,
):  # fmt: skip
    """One random rebuild into ``draft``: number of groups (0: failed) and their loss."""
    made, loss = np.int64(0), 0.0
    for z in range(picked):
        g = chosen[z]
        if taken[z] < groups.size[g]:  # the core of a large group
            for j in range(codes.shape[1]):
                draft.low[made, j] = groups.low[g, j]
                draft.high[made, j] = groups.high[g, j]
            draft.size[made] = groups.size[g] - taken[z]
            draft.cost[made] = groups.cost[g]
            loss += draft.size[made] * draft.cost[made]
            made += 1
    for y in range(size):
        rest[y] = y
        for j in range(codes.shape[1]):
            part[j, y] = codes[pool[y], j]
    left = size
    while left >= rules.k and loss < limit:
        members, left, cost = grow(
            pairs, ids, rules, plain, pool, rest, left, part, price, draft, made, -1, limit - loss + TINY, rows, work,
            count, held[0], state,
        )  # fmt: skip
        if members < 0 or (members == 0 and made == 0):  # it would lose more than the groups at hand, or nothing helps
            return np.int64(0), np.inf
        if members == 0:
            break  # what is left cannot stand alone: it joins the others
        draft.size[made] = members
        draft.cost[made] = cost
        loss += members * cost
        made += 1
    if made == 0 or loss > limit:
        return np.int64(0), np.inf
    counted = not growing and rules.people == 0
    if counted and left:
        _count_drafts(groups, chosen, taken, picked, ids, pool, size, rest, left, draft, made, rules, held)
    failed = False
    for z in range(left):
        y = rest[z]
        row = pool[y]
        bestp = np.inf
        bestg = np.int64(-1)
        bestc = 0.0
        for g in range(made):
            cost = joined_cost(pairs, draft.low, draft.high, g, codes, row, np.inf)
            price = cost + draft.size[g] * (cost - draft.cost[g])
            if price >= bestp:
                continue
            if counted:
                tally(rules, held[g], ids[row], 1)
                lack, _ = lacking(rules, held[g], draft.size[g] + 1)
                tally(rules, held[g], ids[row], -1)
                if lack != KEPT:
                    continue
            elif not growing and not _fits(
                groups, chosen, taken, picked, ids, pool, size, rest, z, left, draft, g, y, rules, rows, work, count
            ):
                continue
            bestp, bestg, bestc = price, g, cost
        loss += bestp
        failed = bestg < 0 or loss > limit
        if failed:
            break
        if counted:
            tally(rules, held[bestg], ids[row], 1)
        draft.label[y] = bestg
        draft.size[bestg] += 1
        draft.cost[bestg] = bestc
        stretch(draft.low, draft.high, bestg, codes, row)
    if counted and left:
        held[:made] = 0.0
    return (np.int64(0), np.inf) if failed else (made, loss)


@bare
def _count_drafts(groups, chosen, taken, picked, ids, pool, size, rest, left, draft, made, rules, held):
    """The values of every draft group into ``held``; rows that have no group yet are labelled -1."""
    cores = 0
    for z in range(picked):
        if taken[z] < groups.size[chosen[z]]:
            at = groups.head[chosen[z]]
            for _ in range(taken[z]):
                at = groups.next[at]
            while at >= 0:
                tally(rules, held[cores], ids[at], 1)
                at = groups.next[at]
            cores += 1
    for z in range(left):
        draft.label[rest[z]] = -1
    for y in range(size):
        if draft.label[y] >= 0:
            tally(rules, held[draft.label[y]], ids[pool[y]], 1)


@bare
def grow(
    pairs, ids, rules, plain, pool, rest, left, part, price, draft, made, first, most, rows, work, count, held, state
):  # fmt: skip
    """Grow draft group ``made`` by its nearest rows until it keeps the promises, from row ``first`` (-1: any).

    ``part[j, z]`` is the code of row ``rest[z]``; ``price[z]`` follows what the group would cost with that row.
    Returns the group's size (0: it cannot be finished; -1: it would cost more than ``most``; its rows stay in
    ``rest``), the rows left, the cost of a row. ``held`` is zero before and after.
    """
    m = part.shape[0]
    low, high = draft.low, draft.high
    start = left
    counted = not plain and rules.people == 0
    z = below(state, left) if first < 0 else first
    for j in range(m):
        low[made, j] = part[j, z]
        high[made, j] = part[j, z]
    left = _take(rest, part, price, z, left)
    _begin(pairs, part, low[made], left, price)
    members = np.int64(1)
    current = 0.0
    lack = np.int64(FEW)
    again = np.int64(0)
    rows[0] = ids[pool[rest[left]]]
    if counted:
        tally(rules, held, rows[0], 1)
    while True:
        if members < rules.k:
            lack = np.int64(FEW)
        elif plain:
            lack = np.int64(KEPT)
        elif not counted:
            lack = failing(rules, rows, 0, members, work, count)
        elif members >= again:
            lack, again = lacking(rules, held, members)
        best = -1
        if lack != KEPT:
            held_count = held[lack] if counted and lack >= 0 else count
            best = _cheapest(ids, rules, lack, members, pool, rest, left, price, current, rows, work, held_count, state)
            if lack >= 0 and not counted:
                clear(rules, lack, rows, 0, members, count)
        if best >= 0 and max(rules.k, members + 1) * price[best] > most:
            if plain:  # the numbers that the rest of the group would have drawn are passed by: what comes next stays
                state[0] += GOLDEN * np.uint64(rules.k - 1 - members)
            for at in range(members if counted else 0):
                tally(rules, held, rows[at], -1)
            return np.int64(-1), start, 0.0
        if best < 0:
            if counted:
                for at in range(members):
                    tally(rules, held, rows[at], -1)
            if lack != KEPT:
                return np.int64(0), start, 0.0
            for at in range(left, start):
                draft.label[rest[at]] = made
            return members, left, current
        cost = price[best]
        left = _take(rest, part, price, best, left)
        rows[members] = ids[pool[rest[left]]]
        members += 1
        if counted:
            tally(rules, held, rows[members - 1], 1)
        if cost <= current + TINY_STEP:
            continue
        current = cost
        for j in range(m):
            code = part[j, left]
            if code < low[made, j] or code > high[made, j]:
                a, b = low[made, j], high[made, j]
                low[made, j] = min(a, code)
                high[made, j] = max(b, code)
                _widen(pairs, part, j, a, b, low[made, j], high[made, j], left, price)


@inlined
def _begin(pairs, part, row, left, price):
    """What a box of the one tuple ``row`` would cost with each of the rows left."""
    for z in range(left):
        price[z] = 0.0
    for j in range(part.shape[0]):
        code = row[j]
        begin, size = pairs.start[j], pairs.size[j]
        if begin >= 0:
            row_of_code = begin + code * size  # the table is symmetric
            for z in range(left):
                price[z] += pairs.table[row_of_code + part[j, z]]
        else:
            for z in range(left):
                other = part[j, z]
                price[z] += pair_cost(pairs, j, min(code, other), max(code, other))


@inlined
def _widen(pairs, part, j, a, b, low, high, left, price):
    """Column j of the box grows from (a, b) to (low, high): what that changes for each of the rows left."""
    begin, size = pairs.start[j], pairs.size[j]
    if begin >= 0:
        for z in range(left):
            code = part[j, z]
            price[z] += (
                pairs.table[begin + min(low, code) * size + max(high, code)]
                - pairs.table[begin + min(a, code) * size + max(b, code)]
            )
    else:
        for z in range(left):
            code = part[j, z]
            price[z] += pair_cost(pairs, j, min(low, code), max(high, code)) - pair_cost(
                pairs, j, min(a, code), max(b, code)
            )


@bare
def _take(rest, part, price, z, left):
    """Swap row z behind the rows left; how many are left."""
    left -= 1
    rest[z], rest[left] = rest[left], rest[z]
    price[z], price[left] = price[left], price[z]
    for j in range(part.shape[0]):
        part[j, z], part[j, left] = part[j, left], part[j, z]
    return left


@bare
def _cheapest(ids, rules, lack, members, pool, rest, left, price, current, rows, work, count, state):
    """The row that costs least, among those that help with what is lacking; -1 if there is none."""
    top = peak(rules, lack, rows, 0, members, count) if lack >= 0 else 0.0
    stamp = work.stamp[0]
    best = -1
    least = np.inf
    z = below(state, left) if left else 0  # ties go to a random row
    for _ in range(left):
        z = z + 1 if z + 1 < left else 0
        if price[z] >= least:
            continue
        if lack >= 0:
            if not wanted(rules, lack, count, members, top, rules.value[lack, ids[pool[rest[z]]]]):
                continue
        elif members >= rules.k and work.seen_person[rules.person[ids[pool[rest[z]]]]] == stamp:
            continue
        best = z
        least = price[z]
        if least <= current + TINY_STEP:
            break
    return best


@bare
def _fits(groups, chosen, taken, picked, ids, pool, size, rest, done, left, draft, g, y, rules, rows, work, count):
    """Whether draft group ``g`` keeps the promises with pool row ``y`` too."""
    members = np.int64(0)
    cores = 0
    for z in range(picked):
        if taken[z] < groups.size[chosen[z]]:
            if cores == g:
                at = groups.head[chosen[z]]
                for _ in range(taken[z]):
                    at = groups.next[at]
                while at >= 0:
                    rows[members] = ids[at]
                    members += 1
                    at = groups.next[at]
            cores += 1
    for z in range(done, left):
        draft.label[rest[z]] = -1  # not placed yet
    for other in range(size):
        if draft.label[other] == g:
            rows[members] = ids[pool[other]]
            members += 1
    rows[members] = ids[pool[y]]
    lack = failing(rules, rows, 0, members + 1, work, count)
    if lack >= 0:
        clear(rules, lack, rows, 0, members + 1, count)
    return lack == KEPT
