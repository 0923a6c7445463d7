"""Roles that pool a free text, masked, with what others see: `check` says at least what each attack finds.

Every visit has a token of its own, so nothing but its text says whose it is. An attack gets two files only.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.policy.load import parse
from shoal.release import roles
from shoal.testing.masks import fixed_ring
from tests.attacks.test_what_roles_tell_elsewhere import best, only, tied, whole

KEYS = fixed_ring()
COLUMNS = """
columns:
  pid: {role: subject, type: int}
  visit: {role: identifier, type: str}
  note: {role: sensitive, type: str}
  letter: {role: sensitive, type: str}
  kind: quasi
  age: {role: quasi, type: int}
  pay: {role: plain, type: float}
"""
SYLLABLES = ["ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu"]
DAILY = "no fever good appetite slept well came back with pain seen by team walks alone eats little rests much"
FILLING = DAILY.split()
KINDS = list("ABCDE")


def visits(seed: int, people: int = 20) -> pl.DataFrame:
    """Notes say what is true of a person (trade, hobby, age), and something of the day in words everybody uses."""
    draw = np.random.default_rng(seed)
    rows = []
    ages = draw.permutation(np.arange(20, 95, 3)).tolist()
    for pid in range(people):
        trade, hobby = ("".join(draw.choice(SYLLABLES, 3)) for _ in range(2))
        age = ages[pid]
        for _ in range(int(draw.integers(1, 5))):
            day = " ".join(draw.choice(FILLING, int(draw.integers(3, 70))))
            pay, organ = float(draw.integers(900, 4000)), "".join(draw.choice(SYLLABLES, 2))
            note = f"Dr. Weber saw Frau Ott, aged {age}, a {trade} who likes {hobby}; {day}; {organ} hurts."
            letter = f"dear colleague, thank you for the {trade}; my findings: {organ} swollen, {day.split()[0]}"
            rows.append((pid, f"v{len(rows):04}", note, letter, str(draw.choice(KINDS)), age, pay))
    return pl.DataFrame(rows, schema=["pid", "visit", "note", "letter", "kind", "age", "pay"], orient="row")


# what an attacker does with two files ------------------------------------------------------------------------------


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def rare(texts, most=6):
    used = Counter(w for t in texts for w in words(t))
    return [{w for w in words(t) if used[w] <= most} for t in texts]


def same_words(a, b):
    """Visits whose notes share two rare words are one person's; all their kinds beside those of a pseudonym."""
    seldom = rare(a["note"].to_list())
    group = list(range(len(seldom)))
    for i, one in enumerate(seldom):
        for j in range(i):
            if len(one & seldom[j]) >= 2:
                group = [group[j] if g == group[i] else g for g in group]
    mine = [[i for i, g in enumerate(group) if g == h] for h in dict.fromkeys(group)]
    theirs = tied(b, ["pid"])
    signs = [[tuple(sorted(f["kind"].gather(r).to_list())) for r in g] for f, g in ((a, mine), (b, theirs))]
    return whole(mine, theirs, only(*signs))


def common_words(a, b):
    """The letter that has most words of the note."""
    notes, letters = ([words(t) for t in texts] for texts in (a["note"].to_list(), b["letter"].to_list()))
    return best(notes, letters, lambda x, y: len(x & y))


def weighed_words(a, b):
    """The same, rare words counting more and long letters less."""
    notes, letters = ([words(t) for t in texts] for texts in (a["note"].to_list(), b["letter"].to_list()))
    used = Counter(w for t in letters for w in t)
    return best(notes, letters, lambda x, y: sum(1 / used[w] for w in x & y) / np.sqrt(len(y)))


def told_age(a, b):
    """The age in the note, put into the range of the other file; then the kind both show."""
    ages = [int(re.search(r"aged (\d+)", note).group(1)) for note in a["note"].to_list()]
    mine = [(f"[{n // 10 * 10}, {n // 10 * 10 + 9}]", k) for n, k in zip(ages, a["kind"].to_list(), strict=True)]
    return only(mine, b.select("age", "kind").rows())


def told_noise(a, b):
    """The age in the note, and a record of the noisy age that is nearest."""
    ages = [int(re.search(r"aged (\d+)", note).group(1)) for note in a["note"].to_list()]
    noisy = b["age"].to_list()
    values = list(dict.fromkeys(noisy))
    found = best(ages, values, lambda x, y: -abs(x - y))
    # as many notes as records: nobody else got the same number
    return [(i, noisy.index(values[j])) for i, j in found if ages.count(ages[i]) == noisy.count(values[j])]


def skeletons(a, b):
    """What is left when all that any mask wrote is taken out."""
    bare = (
        [re.sub(r"\[\w+ \d+\]|\d+|Weber|Ott|Frau|Dr\.|#", "", t) for t in texts]
        for texts in (a["note"].to_list(), b["note"].to_list())
    )
    return only(*bare)


def in_order(x, y):
    """The largest with the largest, and so on, where no two are equal."""
    order = [sorted(range(len(side)), key=side.__getitem__) for side in (x, y)]
    return [(i, j) for i, j in zip(*order, strict=True) if x.count(x[i]) == y.count(y[j]) == 1]


def by_length(a, b):
    """The longest text with the longest token."""
    return in_order(*([len(t) for t in f["note"].to_list()] for f in (a, b)))


def ranks(a, b):
    """The largest number with the largest, noise or not."""
    return in_order(a["pay"].to_list(), b["pay"].to_list())


def ranks_of_kinds(a, b):
    """The same among the records of each kind."""
    mine, theirs = tied(a, ["kind"]), {b["kind"][g[0]]: g for g in tied(b, ["kind"])}
    out = []
    for group in mine:
        other = theirs[a["kind"][group[0]]]
        found = in_order(a["pay"].gather(group).to_list(), b["pay"].gather(other).to_list())
        out += [(group[i], other[j]) for i, j in found]
    return out


TOKEN = {"visit": {"use": "tokenize"}, "note": "text"}
WHO = {"pid": "pseudonym"}
NOISE = {"visit": {"use": "tokenize"}, "pay": {"use": "noise", "spread": 20}}
ATTACKS = {
    "notes that tie visits": (same_words, (["visit", "note", "kind"], TOKEN), (["pid", "kind"], WHO)),
    "a note and a letter": (common_words, (["visit", "note"], TOKEN), (["letter", "pay"], {"letter": "text"})),
    "the same, weighed": (weighed_words, (["visit", "note"], TOKEN), (["letter", "pay"], {"letter": "text"})),
    "an age that a note tells": (
        told_age,
        (["visit", "note", "kind"], TOKEN),
        (["age", "kind", "pay"], {"age": {"use": "bucket", "width": 10}}),
    ),
    "the same, with noise": (
        told_noise,
        (["visit", "note"], TOKEN),
        (["age", "pay"], {"age": {"use": "noise", "spread": 1}}),
    ),
    "two masks of one text": (
        skeletons,
        (["visit", "note"], TOKEN | {"note": {"use": "text", "find": ["name"]}}),
        (["pay", "note"], {"note": {"use": "replace", "find": "[0-9]+|Weber|Ott", "by": "#"}}),
    ),
    "tokens of a text in the order of lengths": (
        by_length,
        (["visit", "note"], TOKEN),
        (["note", "pay"], {"note": "tokenize"}),
    ),
    "noise in order": (ranks, (["visit", "pay"], NOISE), (["pay", "kind"], {})),
    "the same, kind by kind": (ranks_of_kinds, (["visit", "pay", "kind"], NOISE), (["pay", "kind"], {})),
}


def released(seed, one, other):
    frame = visits(seed)
    views = {r: {"show": show, "masks": masks} for r, (show, masks) in (("a", one), ("b", other))}
    policy = parse(COLUMNS + f"views: {json.dumps(views)}")
    return frame, policy, [roles.view(frame, policy, role, keys=KEYS, seed=0) for role in "ab"]


def right(attack, frame, a, b):
    who = frame["pid"].to_list()
    return {a.rows[i] for i, j in attack(a.data, b.data) if who[a.rows[i]] == who[b.rows[j]]}


@pytest.mark.parametrize("name", ATTACKS)
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(seed=st.integers(0, 10**6))
def test_check_says_at_least_what_the_attack_finds(name, seed):
    attack, one, other = ATTACKS[name]
    frame, policy, (a, b) = released(seed, one, other)
    (pool,), failed = roles.pools(frame, policy, keys=KEYS)
    assert not failed
    assert len(right(attack, frame, a, b)) <= pool.linked


def test_two_visits_of_a_person_that_noise_exchanged_are_theirs_all_the_same():
    attack, one, other = ATTACKS["the same, kind by kind"]
    frame, policy, (a, b) = released(685953, one, other)
    (pool,), _ = roles.pools(frame, policy, keys=KEYS)
    found = attack(a.data, b.data)
    who = frame["pid"].to_list()
    exchanged = [(a.rows[i], b.rows[j]) for i, j in found if a.rows[i] != b.rows[j]]
    assert any(who[i] == who[j] for i, j in exchanged)
    assert len(right(attack, frame, a, b)) <= pool.linked


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attacks_find_something(name):
    """An attack that never succeeds would hold `check` to nothing."""
    attack, one, other = ATTACKS[name]
    found = 0
    for seed in range(3):
        frame, _, (a, b) = released(seed, one, other)
        found += len(right(attack, frame, a, b))
    assert found >= 6


def test_the_column_that_ties_visits_is_named_and_no_word_of_it():
    frame, policy, _ = released(1, *ATTACKS["notes that tie visits"][1:])
    (pool,), _ = roles.pools(frame, policy, keys=KEYS)
    assert any("note" in cause.column for cause in pool.causes)
    said = str(pool) + " ".join(c.column for c in pool.causes)
    told = re.findall(r"a (\w+) who likes (\w+)", " ".join(frame["note"]))
    assert told
    assert not any(trade in said or hobby in said for trade, hobby in told)


def test_texts_that_say_nothing_of_anybody_tie_nothing():
    """Notes of words everybody uses, drawn anew for each visit."""
    _, policy, _ = released(0, *ATTACKS["notes that tie visits"][1:])
    for seed in range(3):
        draw = np.random.default_rng(seed)
        frame = visits(seed)
        notes = [" ".join(draw.choice(FILLING, 8)) for _ in range(frame.height)]
        (pool,), _ = roles.pools(frame.with_columns(note=pl.Series(notes)), policy, keys=KEYS)
        assert not any("note" in cause.column for cause in pool.causes)


def test_a_cell_that_only_looks_like_a_mention_is_none():
    frame, policy, _ = released(2, *ATTACKS["the same, with noise"][1:])
    mixed = frame.with_columns(note=frame["note"].shuffle(seed=1))
    (pool,), _ = roles.pools(mixed, policy, keys=KEYS)
    assert not any(" in " in cause.column for cause in pool.causes)
    (pool,), _ = roles.pools(frame, policy, keys=KEYS)
    assert any(cause.column == "'age' in 'note'" for cause in pool.causes)


def test_words_decide_as_the_slow_twin_says():
    from shoal.release.descriptions import alike, words_of

    frame = visits(5, 12)
    people = frame["pid"].to_numpy()
    mine, theirs = words_of(frame["note"]), words_of(frame["letter"])
    pairs = [(i, j) for i in range(0, frame.height, 3) for j in range(frame.height)]

    def rival(side, shared, owners, length):
        return any(
            shared <= text and len(text) <= length and who not in owners for text, who in zip(side, people, strict=True)
        )

    for (i, j), found in zip(pairs, alike(mine, theirs, people, pairs), strict=True):
        shared, owners = mine[i] & theirs[j], {people[i], people[j]}
        hidden = rival(mine, shared, owners, len(mine[i])) and rival(theirs, shared, owners, len(theirs[j]))
        assert found == (bool(shared) and not hidden)
