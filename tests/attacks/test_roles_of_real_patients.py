"""Pseudonyms of their own do not keep two roles apart: matching all records of one with all records of another.

Diabetes 130-US hospitals (Strack and others 2014). How many records are linked depends on what both roles see; how
many people of two or more records hardly does. The attack gets two released files; the truth only scores it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict

import polars as pl
import pytest

from shoal.policy.load import parse
from shoal.release.roles import pools, view
from shoal.testing.masks import fixed_ring

KEYS = fixed_ring()
# what both see: records linked, and people of two or more records, of all 101,766 records
SHARED_BY_BOTH = {
    ("time_in_hospital", "diag_1"): (0.435, 0.876),
    ("diag_1", "num_medications", "A1Cresult"): (0.518, 0.977),
    ("diag_1", "num_lab_procedures"): (0.524, 0.990),
}
COLUMNS = ["patient_nbr", "gender", "payer_code", *sorted({c for many in SHARED_BY_BOTH for c in many})]


def matched(mine: pl.DataFrame, theirs: pl.DataFrame, both: list[str]) -> dict[str, str]:
    """Pseudonyms of mine and of theirs whose records, all together, read alike and like nobody else's."""
    signs = []
    for frame in (mine, theirs):
        records = defaultdict(list)
        for who, *cells in frame.select("patient_nbr", *both).rows():
            records[who].append(tuple(cells))
        people = defaultdict(list)
        for who, cells in records.items():
            people[tuple(sorted(cells, key=repr))].append(who)
        signs.append(people)
    return {a[0]: signs[1][sign][0] for sign, a in signs[0].items() if len(a) == 1 == len(signs[1].get(sign, ()))}


@pytest.mark.shared
@pytest.mark.parametrize("both", SHARED_BY_BOTH, ids=" and ".join)
def test_check_says_what_matching_all_records_of_a_pseudonym_finds(both, shared):
    file = shared / "data" / "diabetes_130us" / "diabetic_data.csv.gz"
    whole = "SHOAL_LONG" in os.environ
    frame = pl.read_csv(file, infer_schema=False, columns=COLUMNS, n_rows=None if whole else 8_000)
    columns = {c: {"role": "quasi", "type": "str"} for c in frame.columns} | {"patient_nbr": {"role": "subject"}}
    show = {"clinician": ["patient_nbr", "gender", *both], "billing": ["patient_nbr", "payer_code", *both]}
    views = {role: {"show": many, "masks": {"patient_nbr": "pseudonym"}} for role, many in show.items()}
    policy = parse(json.dumps({"columns": columns, "views": views}))
    ((pool,), failed) = pools(frame, policy, keys=KEYS)
    assert not failed
    released = {role: view(frame, policy, role, keys=KEYS, seed=0) for role in show}
    truth = frame["patient_nbr"].to_list()
    who = {
        role: dict(zip(r.data["patient_nbr"], (truth[row] for row in r.rows), strict=True))
        for role, r in released.items()
    }
    pairs = matched(released["clinician"].data, released["billing"].data, list(both))
    right = {who["clinician"][a] for a, b in pairs.items() if who["clinician"][a] == who["billing"][b]}
    assert len(right) == len(pairs)  # the same records are in both files: a match is never wrong
    sizes = frame["patient_nbr"].value_counts()
    linked = sizes.filter(pl.col("patient_nbr").is_in(list(right)))
    several, found = (int((s["count"] > 1).sum()) for s in (sizes, linked))
    assert found > 0.5 * several
    assert linked["count"].sum() <= pool.linked
    assert linked.height <= pool.linked_people
    if whole:
        assert (round(linked["count"].sum() / frame.height, 3), round(found / several, 3)) == SHARED_BY_BOTH[both]
