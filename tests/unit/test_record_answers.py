"""Kept answers of masks: the same as asked anew, and never more than there is room for."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.schema import Column, Schema
from shoal.masks import MASKS
from shoal.views import record_writer
from shoal.views.record_writer import Answers
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView

SCHEMA = Schema({"a": Column("quasi", type="int"), "b": Column("quasi", type="str"), "c": Column("quasi")})
SPECS = {"a": {"use": "bucket", "width": 7}, "b": {"use": "blur", "first": 1}, "c": {"use": "blur", "last": 1}}
VIEW = RoleView.resolve("role", SCHEMA, "everything", {c: MASKS.decode(m) for c, m in SPECS.items()})

any_value = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([0.0, 1.0, -0.0]) | st.text(max_size=2)


@given(st.lists(st.tuples(st.none() | st.integers(-9, 9), st.none() | st.text(max_size=2), any_value), max_size=40))
def test_kept_answers_are_those_the_masks_give(rows):
    records = [msgspec.json.encode({"a": a, "b": b, "c": c}) for a, b, c in rows]
    together = RecordGate([VIEW]).many(records).views[0]
    alone = [RecordGate([VIEW])(record)[0] for record in records]  # nothing is kept from one to the next
    assert together == alone


def test_no_more_is_kept_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(record_writer, "MOST_ANSWERS", 3)
    asked: list[int] = []
    answers = Answers(lambda value: asked.append(value) or value + 1)  # type: ignore[func-returns-value]
    for value in (1, 2, 3, 4, 5, 1, 5):
        assert answers[value] == value + 1
    assert len(answers) == 3
    assert asked == [1, 2, 3, 4, 5, 5]


def test_a_constant_hides_missing_values_in_lists_too_if_asked():
    schema = Schema({"tags[*]": Column("plain", type="str"), "name": Column("plain", type="str")})
    for nulls, first in ((True, "x"), (False, None)):
        mask = MASKS.decode({"use": "substitute", "value": "x", "nulls": nulls})
        views = RecordGate([RoleView.resolve("role", schema, "everything", {"tags[*]": mask, "name": mask})])
        (made,) = views(b'{"tags": [null, "a"], "name": null}')
        assert msgspec.json.decode(made) == {"tags": [first, "x"], "name": first}
