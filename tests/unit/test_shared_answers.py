"""Roles that are served together get what each would get alone, though what they share is worked out once."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.masks import MASKS
from shoal.views.records import FEWEST, RecordGate
from shoal.views.role_view import RoleView

KEYS = KeyRing({"default": {1: bytes(range(32))}})
SCHEMA = Schema(
    {
        "name": Column("identifier", type="str"),
        "age": Column("quasi", type="int"),
        "ward.name": Column("plain", type="str"),
        "seen": Column("plain", type="datetime"),
        "tags[*]": Column("plain", type="str"),
    }
)
OF_NAME = ["suppress", {"use": "blur", "first": 1}, {"use": "blur", "first": 2}, "pseudonym", None]
OF_AGE = [{"use": "bucket", "width": 10}, {"use": "bucket", "width": 5}, {"use": "substitute", "value": "x"}, None]
RECORDS = [
    b'{"name":"Ada","age":34,"ward":{"name":"north"},"seen":"2024-05-01T02:00:00+02:00","tags":["red","blue",null]}',
    b'{"name":null,"age":7,"ward":null}',
    b'{"name":"Bo","ward":{"name":null}}',
]


def masked(role: str, chosen: dict, show: list[str]) -> RoleView:
    masks = {column: MASKS.decode(mask) for column, mask in chosen.items() if mask is not None and column in show}
    return RoleView.resolve(role, SCHEMA, show, masks)


roles = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(OF_NAME),
                "age": st.sampled_from(OF_AGE),
                "ward.name": st.sampled_from(OF_NAME),
                "tags[*]": st.sampled_from(OF_NAME),
            }
        ),
        st.lists(st.sampled_from(list(SCHEMA.columns)), min_size=1, unique=True),
    ),
    min_size=2,
    max_size=5,
)


@given(roles)
def test_together_as_alone(chosen):
    views = [masked(f"role{at}", masks, show) for at, (masks, show) in enumerate(chosen)]
    together = RecordGate(views, KEYS)
    alone = [RecordGate([view], KEYS) for view in views]
    for record in RECORDS:
        assert together(record) == tuple(gate(record)[0] for gate in alone)
    # a pseudonym is a role's own, though the mask reads alike
    tokens = [
        together(RECORDS[0])[at] for at, (m, show) in enumerate(chosen) if m["name"] == "pseudonym" and show == ["name"]
    ]
    assert len(set(tokens)) == len(tokens)


FLAT = Schema({"pid": Column("subject", type="int"), "name": Column("identifier", type="str")})
KEYED = ["pseudonym", {"use": "number"}, {"use": "hash"}, {"use": "tokenize", "key": "default"}, {"use": "address"}]
OF_PID = ["pseudonym", {"use": "number"}, {"use": "bucket", "width": 10}, None]
MANY = [
    json.dumps({"pid": at % 50, "name": f"10.0.{at % 3}.{at}"}, separators=(",", ":")).encode()
    for at in range(FEWEST + 6)
]
flat_roles = st.lists(st.tuples(st.sampled_from(OF_PID), st.sampled_from([*KEYED, *OF_NAME])), min_size=2, max_size=4)


@given(flat_roles)
@example([("pseudonym", "pseudonym")] * 2)
@example([(None, mask) for mask in KEYED for _ in range(2)])
def test_many_at_once_as_alone(chosen):
    """On the road of many plain records at once, too: two roles must not see one person under the same pseudonym."""

    def view(at: int) -> RoleView:
        asked = {"pid": chosen[at][0], "name": chosen[at][1]}
        masks = {column: MASKS.decode(mask) for column, mask in asked.items() if mask is not None}
        return RoleView.resolve(f"role{at}", FLAT, ["pid", "name"], masks)

    views = [view(at) for at in range(len(chosen))]
    together = [list(lines) for lines in RecordGate(views, KEYS).many(MANY).views]
    one_by_one = RecordGate(views, KEYS)
    assert together == [list(lines) for lines in zip(*map(one_by_one, MANY), strict=True)]
    for at, mine in enumerate(together):
        assert mine == list(RecordGate([views[at]], KEYS).many(MANY).views[0])
        for column, place, keyed in (("pid", 0, OF_PID[:2]), ("name", 1, KEYED)):
            mask = chosen[at][place]
            alike = [lines for lines, words in zip(together[:at], chosen, strict=False) if words[place] == mask]
            tokens = {json.loads(line)[column] for line in mine}
            assert mask not in keyed or not tokens & {json.loads(line)[column] for lines in alike for line in lines}
