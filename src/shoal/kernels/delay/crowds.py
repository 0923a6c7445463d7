"""Who got a published box, when, and with which sensitive values: a bounded memory per box."""

import numpy as np

from shoal.kernels.compile import bare
from shoal.kernels.shared.promises import T_EQUAL

SEVERAL = -2  # different values; -1 is the code of no missing value


@bare
def crowd_since(person, stamp, slot, since):
    """How many people got a box since a time."""
    crowd = 0
    for e in range(person.shape[1]):
        if person[slot, e] != 0 and stamp[slot, e] > since:
            crowd += 1
    return crowd


@bare
def use(person, stamp, last, slot, who, now):
    """Note who got a box now; the person longest ago gives way. Whether it is the same person. O(K)."""
    at = 0
    again = False
    for e in range(person.shape[1]):
        if person[slot, e] == who:
            at = e
            again = True
            break
        # free places have stamp 0 and are taken first
        if stamp[slot, e] < stamp[slot, at]:
            at = e
    person[slot, at] = who
    stamp[slot, at] = now
    last[slot] = now
    return again


@bare
def _fill(rules, work, person, stamp, slot, prints, members, count, now):
    """Note the first people of a group who got an empty box now, as many as there is room for. O(members)."""
    work.stamp[0] += 1
    at = 0
    for m in range(count):
        who = rules.person[members[m]]
        if at < person.shape[1] and work.seen_person[who] != work.stamp[0]:
            work.seen_person[who] = work.stamp[0]
            person[slot, at] = prints[members[m]]
            stamp[slot, at] = now
            at += 1


@bare
def has_room(person, slot, who):
    """Whether someone who is not remembered with a box can be without anyone giving way. O(K)."""
    for e in range(person.shape[1]):
        if person[slot, e] == who:
            return False
        if person[slot, e] == 0:
            return True
    return False


@bare
def admits(person, slot, who):
    """Whether someone is remembered with a box, or can be without anyone giving way. O(K)."""
    for e in range(person.shape[1]):
        if person[slot, e] == who or person[slot, e] == 0:
            return True
    return False


@bare
def nothing(rules, s):
    """The code of no value: a missing one, but for closeness that is a value like any other."""
    return rules.missing[s] if rules.kind[s] < T_EQUAL else -1


@bare
def note_values(rules, published, slot, row, who, again):
    """Note the sensitive values of someone who is remembered with a box, ``again`` beside those they had."""
    for e in range(published.person.shape[1]):
        if published.person[slot, e] == who:
            for s in range(rules.kind.shape[0]):
                had, value, none = published.value[slot, e, s], rules.value[s, row], nothing(rules, s)
                # two values of one person: which of them an attacker sees is unknown, so neither counts as theirs
                if again and rules.people and had != none and had != value:
                    value = had if value == none else np.int32(SEVERAL)
                published.value[slot, e, s] = value
            break


@bare
def count_values(rules, published, slot, row):
    """Count the sensitive values of a tuple that got a box."""
    # without promises about values the tally is a stand-in of one place
    if published.tally.shape[0] > 1:
        for s in range(rules.kind.shape[0]):
            if rules.value[s, row] < published.tally.shape[2]:
                published.tally[slot, s, rules.value[s, row]] += 1


@bare
def rank(stamp, kth, k, slot):
    """Remember when the k-th latest person got the box: with it the box dies."""
    most = stamp.shape[1]
    # as many places as k: the k-th latest is the oldest of all
    if most == k:
        least = stamp[slot, 0]
        for e in range(1, k):
            least = min(least, stamp[slot, e])
        kth[slot] = least
        return
    # halving between the ends: the largest time since which k people got it
    low = np.int64(-1)
    high = np.int64(-1)
    for e in range(most):
        high = max(high, stamp[slot, e])
    while low < high:
        middle = low + (high - low + 1) // 2
        later = 0
        for e in range(most):
            later += stamp[slot, e] >= middle
        if later >= k:
            low = middle
        else:
            high = middle - 1
    kth[slot] = low


@bare
def is_new(rules, published, slot, row):
    """Whether a tuple brings a sensitive value that nobody remembered with the box has."""
    for s in range(rules.kind.shape[0]):
        known = False
        for e in range(published.person.shape[1]):
            if published.person[slot, e] != 0 and published.value[slot, e, s] == rules.value[s, row]:
                known = True
                break
        if not known:
            return True
    return False


@bare
def first_crowd(rules, work, published, slot, prints, members, count, now):
    """Remember the people of a group with the new box in a slot. O(members), times K where values are promised."""
    if rules.kind.shape[0] == 0 and rules.people > 0:
        _fill(rules, work, published.person, published.stamp, slot, prints, members, count, now)
        return
    # who brings a new value first, then anyone while there is room: all got it at the same time, so who is remembered
    # changes nothing for k, and for the other promises the people remembered are as diverse as the group
    for turn in range(2):
        for m in range(count):
            row = members[m]
            known = turn == 1 or (rules.kind.shape[0] > 0 and is_new(rules, published, slot, row))
            if known and has_room(published.person, slot, prints[row]):
                use(published.person, published.stamp, published.last, slot, prints[row], now)
                note_values(rules, published, slot, row, prints[row], False)
