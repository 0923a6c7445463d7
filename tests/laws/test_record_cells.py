"""The fast road of views over JSON records writes what the slow one writes, and refuses what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.core.errors import InputError
from shoal.core.keys import KeyRing
from shoal.core.schema import Column, Schema
from shoal.masks import MASKS
from shoal.views import record_cells, records
from shoal.views.records import RecordGate
from shoal.views.role_view import RoleView

KEYS = KeyRing({"default": {1: bytes(range(32))}})
NAMES = ("age", "name", "grö", "ok", "else")
MASKS_OF: dict[str | None, list[Any]] = {
    "int": [{"use": "bucket", "width": 10}, {"use": "suppress", "to": "zero"}, {"use": "pseudonym"}, {"use": "number"}],
    "float": [{"use": "round", "to": 0.5}, {"use": "substitute", "value": 1.5, "nulls": True}],
    "str": [
        {"use": "blur", "first": 1},
        {"use": "blur", "first": 1, "last": 2, "length": 3, "char": "#"},
        {"use": "blur", "last": 2, "char": "\\"},
        {"use": "suppress", "nulls": True},
        {"use": "substitute", "value": 'a"b'},
        {"use": "pseudonym"},
        {"use": "hash"},
        {"use": "tokenize", "key": "default"},
        {"use": "address"},
        {"use": "text"},
    ],
    "bool": [{"use": "suppress"}, {"use": "suppress", "to": "null"}],
    None: [{"use": "suppress"}, {"use": "blur", "last": 1}],
}
NUMBERS = """
    0 -0 0.0 -0.0 5.0 1.10 0.05 0.0005 0.00005 1e5 1E-7 00 1. - 1.0e0 -7 -7.25 123456789012345 1234567890123456
    123456789012345678 9223372036854775808 12345678901234.5 123456789012345.6 99999999999999999.9 0.1234567890123456
"""
numbers = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-10_000, 10_000, places=3, allow_nan=False).map(str),
    st.sampled_from(NUMBERS.split()),
)
texts = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=6).map(lambda text: f'"{text}"'),  # with quotes and line ends in it
    st.sampled_from(['"a"', '"5"', '""', '"\\u00e9"', '"\\n"', '"é"', '"\x7f"', '"a', '"\\""']),
)
words = st.sampled_from(["null", "true", "false", "nul", "True", "{}", "[1]", '{"age": 1}', "", "null null"])
spelled = st.one_of(numbers, texts, words)
blanks = st.sampled_from(["", " ", "\t", "\n", "\r"])


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A record as text, mostly a good one; a name may stand twice, and bytes may be no text."""
    pairs = draw(st.lists(st.tuples(st.sampled_from([*NAMES, "n\\u0061me", "x"]), spelled), max_size=5))
    space = draw(st.sampled_from(["", "", "", " "])) or draw(blanks) * draw(st.integers(0, 1))
    inside = ",".join(f'{space}"{name}"{space}:{space}{value}{space}' for name, value in pairs)
    made = f"{{{inside}}}{space}".encode()
    ending = draw(st.sampled_from([b""] * 9 + [b"\xff", b"x", b"\n{}"]))
    return made + ending


@st.composite
def roles(draw: st.DrawFn) -> list[RoleView]:
    kinds = {name: draw(st.sampled_from(["int", "float", "str", "bool", None])) for name in NAMES}
    schema = Schema({name: Column("plain", type=kind) for name, kind in kinds.items()})
    views = []
    for role in range(draw(st.integers(1, 3))):
        shown = draw(st.lists(st.sampled_from(NAMES), unique=True))
        masks = {n: MASKS.decode(draw(st.sampled_from(MASKS_OF[kinds[n]]))) for n in shown if draw(st.booleans())}
        hidden = draw(st.sampled_from(["star", "null", "drop"]))
        views.append(RoleView.resolve(f"role{role}", schema, shown, masks, hidden=hidden))
    return views


def one_by_one(views: list[RoleView], batch: list[bytes]) -> tuple[list[list[bytes]], list[int]]:
    gate = RecordGate(views, KEYS)
    made: list[list[bytes]] = [[] for _ in views]
    refused = []
    for at, record in enumerate(batch):
        try:
            for out, value in zip(made, gate(record), strict=True):
                out.append(value)
        except InputError:
            refused.append(at)
    return made, refused


@pytest.fixture(autouse=True)
def _every_batch_goes_the_fast_road(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "FEWEST", 1)


@settings(max_examples=300)
@given(roles(), st.lists(lines(), max_size=12), st.integers(0, 3), st.sampled_from([0, 2, 65_536]))
@example([RoleView.resolve("r", Schema({"x": Column("plain", type="float")}), ["x"])], [b'{"x":5}', b'{"x":-0}'], 3, 0)
def test_a_batch_is_what_its_records_are_one_by_one(views, batch, odd, room):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "MOST_ODD", odd)
        patch.setattr(record_cells, "MOST_ANSWERS", room)
        gate = RecordGate(views, KEYS)
        for _ in range(2):  # the second time some answers are known
            made = gate.many(batch)
            assert (made.views, [at for at, _ in made.refused]) == one_by_one(views, batch)


def test_plain_records_go_the_fast_road():
    """Or the law above would compare the slow road with itself."""
    schema = Schema(
        {
            "pid": Column("subject", type="int"),
            "zip": Column("quasi", type="str"),
            "gluc": Column("plain", type="float"),
            "note": Column("plain"),
        }
    )
    masks = {"zip": MASKS.decode({"use": "blur", "first": 2}), "gluc": MASKS.decode({"use": "round", "to": 10})}
    views = [RoleView.resolve("ward", schema, "everything", masks), RoleView.resolve("lab", schema, ["gluc", "note"])]
    cells = RecordGate(views)._cells
    assert cells is not None
    batch = [b'{"pid":%d,"zip":"%05d","gluc":%d.5,"note":"\xc3\xa9"}' % (n, n * 97, n) for n in range(500)]
    made = cells.many(batch)
    assert [len(role) for role in made] == [500, 500]
    assert (made, []) == one_by_one(views, batch)
    assert cells.many([b'{"pid":1}', b'{"pid":1.5}', b'{"pid":2}'])[0] == [RecordGate(views)(b'{"pid":1}')[0]]


def test_answers_are_kept_as_long_as_there_is_room(monkeypatch):
    monkeypatch.setattr(record_cells, "MOST_ANSWERS", 100)
    schema = Schema({"pid": Column("subject", type="int")})
    view = RoleView.resolve("r", schema, "everything", {"pid": MASKS.decode({"use": "bucket", "width": 7})})
    gate = RecordGate([view])
    for first in range(0, 1000, 100):
        batch = [b'{"pid":%d}' % n for n in range(first - 50, first + 100)]
        assert (gate.many(batch).views, []) == one_by_one([view], batch)
    assert len(gate._cells._answers) == 100


@pytest.mark.parametrize(
    ("column", "mask"),
    [
        (Column("plain", type="date"), None),
        (Column("plain", type="date", format="%d.%m.%Y"), None),
        (Column("plain"), {"use": "blur", "first": 1}),
        (Column("plain", type="str"), {"use": "pseudonym", "vault": "people.vault"}),
    ],
)
def test_what_needs_more_has_no_fast_road(column, mask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    view = RoleView.resolve("r", Schema({"x": column}), ["x"], {"x": MASKS.decode(mask)} if mask else {})
    assert RecordGate([view], KEYS)._cells is None


def test_a_key_and_what_it_hides_are_not_kept_beside_each_other():
    schema = Schema({"pid": Column("subject", type="int")})
    view = RoleView.resolve("r", schema, "everything", {"pid": MASKS.decode({"use": "pseudonym"})})
    gate = RecordGate([view], KEYS)
    batch = [b'{"pid":%d}' % (n % 40) for n in range(100)]
    assert (gate.many(batch).views, []) == one_by_one([view], batch)
    assert (len(gate._cells._answers), len(gate._cells._asked[0][2]._keys)) == (0, 0)


def test_a_value_that_a_mask_cannot_take_is_told_by_the_other_road(monkeypatch):
    schema = Schema({"pid": Column("subject", type="int")})
    view = RoleView.resolve("r", schema, "everything", {"pid": MASKS.decode({"use": "bucket", "width": 7})})
    gate = RecordGate([view])

    def refuse(value: int) -> None:
        raise OverflowError

    monkeypatch.setattr(gate._cells._asked[0][2], "_one", refuse)
    batch = [b'{"pid":%d}' % n for n in range(100)]
    assert (gate.many(batch).views, []) == one_by_one([view], batch)


@pytest.mark.parametrize("name", ["a.b", "a[*]"])
def test_parts_of_objects_have_no_fast_road(name):
    view = RoleView.resolve("r", Schema({name: Column("plain", type="str")}), [name])
    assert RecordGate([view])._cells is None
