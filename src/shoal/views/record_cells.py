"""Views of plain JSON records, many at a time: flat ones whose values are spelled as an encoder would spell them.

A second road beside :mod:`shoal.views.record_writer`, for speed alone: a compiled loop finds the cells of all records,
masks are asked once per different value, and another loop writes each role's records. What is not of that kind is left
to the first road, record by record; the tests compare the two. Every byte that leaves was checked against its column's
type: a text without escapes, a number, a truth value, or nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.connect.ndjson import is_utf8
from shoal.core.cells import SUPPRESSED
from shoal.core.lines import Lines
from shoal.core.schema import Type
from shoal.kernels.shared.json_cells import (
    ABSENT,
    ANSWER,
    ANY,
    CLEAR,
    FIXED,
    GIVEN,
    NULL,
    PASSING,
    UNKNOWN,
    cells_of,
    learn,
    look_up,
    measured,
    write,
)
from shoal.kernels.shared.json_flat import BOOL, FLOAT, INT, NEWLINE, TEXT
from shoal.masks.base import Running
from shoal.masks.suppress import Constant
from shoal.policy.paths import Node
from shoal.views.record_writer import MOST_ANSWERS
from shoal.views.role_view import RoleView

KINDS: dict[Type | None, int] = {"int": INT, "float": FLOAT, "bool": BOOL, "str": TEXT, None: ANY}
# what a cell says; a mask of an untyped column would have to be told a text from a number
READ: dict[Type | None, Callable[[bytes], Any]] = {
    "int": int,
    "float": float,
    "bool": b"true".__eq__,
    "str": bytes.decode,
}
BASIS = np.uint64(secrets.randbits(64))
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Cells = tuple[Ints, Ints, Bytes]  # where values begin, their lengths and forms: a row per record, a column per name
encode = msgspec.json.Encoder().encode


class Growing:
    """Bytes of many entries, one after the other, with room for more.

    >>> some = Growing()
    >>> some.extend([b"ab", b"c"]), some.extend([b"d"]), len(some)
    (0, 2, 3)
    """

    def __init__(self) -> None:
        self.data: Bytes = np.empty(1024, np.uint8)
        self.ends: Ints = np.zeros(256, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, texts: Sequence[bytes]) -> int:
        """Keep some more; answers the number of the first."""
        return self.put(np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)], dtype=np.int64))

    def put(self, data: Bytes, ends: Ints) -> int:
        """:meth:`extend` by entries that stand one after the other and end where ``ends`` says, after a zero."""
        first, at = self._count, int(self.ends[self._count])
        self.data = _at_least(self.data, at + int(ends[-1]))
        self.ends = _at_least(self.ends, first + len(ends))
        self.data[at : at + int(ends[-1])] = data
        self.ends[first : first + len(ends)] = at + ends
        self._count += len(ends) - 1
        return first

    def forget(self, count: int) -> None:
        """Keep only the first so many."""
        self._count = min(count, self._count)


def _at_least(array: Any, size: int) -> Any:
    """The array, with room for so many items."""
    if len(array) >= size:
        return array
    return np.concatenate([array, np.empty(max(size, 2 * len(array)) - len(array), array.dtype)])


class Asked:
    """A mask on one column, asked once per different value of a batch.

    Answers of a pure mask are kept, as long as there is room.
    """

    def __init__(self, column: int, kind: Type | None, mask: Running) -> None:
        self._column, self._one, self._read = column, mask.one, READ[kind]
        # what needed a key is not kept beside the value it hides
        self._most = MOST_ANSWERS if mask.pure else 0
        self._keys = Growing()
        self._prints = np.empty(256, np.uint64)
        self._numbers = np.empty(256, np.int64)  # of the answers
        self._slots = np.full(1024, UNKNOWN, np.int64)

    def of(self, whole: bytes, cells: Cells, found: Ints, answers: Growing, passing: list[bytes]) -> None:
        """Numbers of the answers, by line; from PASSING down, of those that cannot be kept."""
        data = np.frombuffer(whole, np.uint8)
        look_up(data, *cells, self._column, BASIS, self._slots, self._prints, self._keys.data, self._keys.ends, found)
        known, lacking = np.flatnonzero(found >= 0), np.flatnonzero(found == UNKNOWN)
        found[known] = self._numbers[found[known]]
        if not len(lacking):
            return
        begins = cells[0][lacking, self._column]
        ends = begins + cells[1][lacking, self._column]
        new: dict[bytes, int] = {}
        at = [new.setdefault(whole[b:e], len(new)) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
        one, read = self._one, self._read
        made, room = [encode(one(read(value))) for value in new], self._most - len(self._keys)
        first = self._keep(list(new)[:room], made[:room], answers)
        numbers = np.concatenate(
            [np.arange(first, first + len(made[:room])), PASSING - len(passing) - np.arange(len(made[room:]))]
        )
        passing += made[room:]
        found[lacking] = numbers[at]

    def _keep(self, values: list[bytes], made: list[bytes], answers: Growing) -> int:
        first, number = self._keys.extend(values), answers.extend(made)
        count = len(self._keys)
        self._prints, self._numbers = _at_least(self._prints, count), _at_least(self._numbers, count)
        self._numbers[first:count] = np.arange(number, number + len(made))
        if 2 * count > len(self._slots):  # at most half full: what is looked for is near its place
            self._slots, first = np.full(1 << (2 * count).bit_length() + 1, UNKNOWN, np.int64), 0
        learn(self._keys.data, self._keys.ends, first, count, BASIS, self._slots, self._prints)
        return number


class Told:
    """A mask on one column that writes many texts at once: quicker than to know again what it was asked before."""

    def __init__(self, column: int, kind: Type | None, mask: Running) -> None:
        assert mask.written is not None
        self._column, self._one, self._read, self._written = column, mask.one, READ[kind], mask.written

    def of(self, data: Bytes, cells: Cells, found: Ints, answers: Growing) -> None:
        """Numbers of the answers, by line, kept for this batch only."""
        begins = cells[0][: len(found), self._column].copy()
        lengths = np.where(cells[2][: len(found), self._column] == NULL, -1, cells[1][: len(found), self._column])
        made, ends, read = self._written(data, begins, lengths)
        found[:] = np.where(read, answers.put(made, ends) + np.arange(len(found)), ABSENT)
        other = np.flatnonzero(~read & (lengths >= 0))
        if len(other):
            places = zip(begins[other].tolist(), lengths[other].tolist(), strict=True)
            texts = [encode(self._one(self._read(data[at : at + size].tobytes()))) for at, size in places]
            found[other] = answers.extend(texts) + np.arange(len(other))


class RecordCells:
    """All roles' views of flat records; see :func:`record_cells`."""

    def __init__(self, columns: dict[str, Type | None]) -> None:
        raw = [name.encode(errors="replace") for name in columns]
        self._columns = {name: at for at, name in enumerate(columns)}
        self._types = columns
        self._names = np.frombuffer(b"".join(raw) or b"\0", np.uint8)
        self._starts = np.cumsum([0, *map(len, raw)], dtype=np.int64)
        self._kinds = np.array([KINDS[kind] for kind in columns.values()], np.int64)
        self._answers = Growing()
        self._constants: dict[bytes, int] = {}
        self._asked: list[tuple[str, Any, Asked | Told]] = []  # column, mask, and who answers for it
        empty = np.empty((0, 0), np.int64)
        self._cells: Cells = (empty, empty, np.empty((0, 0), np.uint8))
        self._roles: list[tuple[Ints, Bytes, Ints]] = []
        self._alike: dict[Any, int] = {}
        self._which: list[int] = []  # the records of each role: those who see the same share them

    def add(self, view: RoleView, masks: dict[str, Running]) -> None:
        """One role more."""
        fields, fixed = [], [b"{"]
        for name, below in view.node().fields.items():
            fixed[-1] += encode(name) + b":"
            how, column, which, text = self._field(view, masks, below)
            if how == FIXED:
                fixed[-1] += text + b","
                continue
            fields.append((how, column, which))
            fixed.append(b",")
        fixed[-1] = fixed[-1].removesuffix(b",") + b"}\n"
        plan = np.array(fields, np.int64).reshape(-1, 3)
        whole = np.frombuffer(b"".join(fixed), np.uint8)
        same = tuple(fields), tuple(fixed)
        if same not in self._alike:
            self._alike[same] = len(self._roles)
            self._roles.append((plan, whole, np.cumsum([0, *map(len, fixed)], dtype=np.int64)))
        self._which.append(self._alike[same])

    def _field(self, view: RoleView, masks: dict[str, Running], below: Node) -> tuple[int, int, int, bytes]:
        if view.is_hidden(below):
            return FIXED, -1, -1, encode(None if view.hidden == "null" else SUPPRESSED)
        assert below.leaf is not None
        column = self._columns.get(below.leaf, -1)
        mask = masks.get(below.leaf)
        if mask is None:
            return CLEAR, column, -1, b""
        if isinstance(mask, Constant):
            text = encode(mask.value)
            if mask.nulls:
                return FIXED, -1, -1, text
            if text not in self._constants:
                self._constants[text] = self._answers.extend([text])
            return GIVEN, column, self._constants[text], b""
        spec = view.masks[below.leaf]
        # only what needs no key or memory answers alike: a pseudonym is a role's own, though the mask reads the same
        for at, (other, same, _) in enumerate(self._asked if mask.pure else ()):
            if other == below.leaf and same == spec:
                return ANSWER, column, at, b""
        answering = Asked if mask.written is None else Told
        self._asked.append((below.leaf, spec, answering(column, self._types[below.leaf], mask)))
        return ANSWER, column, len(self._asked) - 1, b""

    def many(self, records: Sequence[bytes]) -> list[Lines]:
        """Each role's records of the first so many that are of the plain kind: maybe all, maybe none."""
        data = Lines.of(records).packed().data
        nothing = [Lines.of([]) for _ in self._which]
        # a line end inside of a record would be taken for the end of it
        if np.count_nonzero(data == NEWLINE) != len(records):
            return nothing
        cells = self._room(len(records))
        lines, ascii_only = cells_of(data, self._names, self._starts, self._kinds, *cells)
        whole = data.tobytes()
        if not lines or not (ascii_only or is_utf8(whole)):
            return nothing
        found, kept = self._found(whole, data, cells, lines)
        made = [self._written(data, cells, lines, role, found) for role in self._roles]
        self._answers.forget(kept)
        return [made[at] for at in self._which]

    def _room(self, lines: int) -> Cells:
        """Arrays for the cells of so many records; kept, because fresh memory costs as much as finding them."""
        if len(self._cells[0]) < lines:
            shape = lines, len(self._kinds)
            self._cells = np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape, np.uint8)
        return self._cells

    def _found(self, whole: bytes, data: Bytes, cells: Cells, lines: int) -> tuple[Ints, int]:
        """The answers of all masks, by line; and how many answers are to be kept."""
        found = np.empty((len(self._asked), lines), np.int64)
        passing: list[bytes] = []
        for at, (_, _, mask) in enumerate(self._asked):
            if isinstance(mask, Asked):
                mask.of(whole, cells, found[at], self._answers, passing)
        kept = len(self._answers)
        if passing:  # behind those that are kept, for this batch only
            self._answers.extend(passing)
            found = np.where(found <= PASSING, kept + PASSING - found, found)
        for at, (_, _, mask) in enumerate(self._asked):
            if isinstance(mask, Told):
                mask.of(data, cells, found[at], self._answers)
        return found, kept

    def _written(self, data: Bytes, cells: Cells, lines: int, role: tuple[Ints, Bytes, Ints], found: Ints) -> Lines:
        fields, fixed, ends = role
        answers = self._answers
        size = measured(*cells, lines, fields, ends, found, answers.ends)
        out, sizes = np.empty(size, np.uint8), np.empty(lines, np.int64)
        write(data, *cells, lines, fields, fixed, ends, found, answers.data, answers.ends, out, sizes)
        return Lines.behind(out, sizes)


def record_cells(views: Sequence[RoleView], masks: Sequence[dict[str, Running]]) -> RecordCells | None:
    """The fast road for these views; None where one of them needs more than single values and masks of them alone.

    >>> from shoal.core.schema import Column, Schema
    >>> schema = Schema({"pid": Column("subject", type="int"), "diag": Column("sensitive", type="str")})
    >>> view = RoleView.resolve("ward", schema, ["diag"])
    >>> [list(made) for made in record_cells([view], [{}]).many([b'{"pid": 7, "diag": "E10"}', b'{"pid": 8}'])]
    [[b'{"pid":"*","diag":"E10"}', b'{"pid":"*","diag":null}']]
    """
    schema = views[0].schema
    seen: set[str] = set()
    for view, running in zip(views, masks, strict=True):
        for column, mask in running.items():
            constant = isinstance(mask, Constant)
            if not constant and (not mask.alike or mask.by or mask.nulls or schema[column].type not in READ):
                return None
            seen |= set() if constant and mask.nulls else {column}
        seen |= set(view.shown)
    columns = {name: schema[name] for name in schema.columns if name in seen}
    for name, said in columns.items():
        if said.derive is not None or said.format is not None or said.type not in KINDS or _is_part(name):
            return None
    if any(_is_part(name) for view in views for name in view.masks):
        return None
    made = RecordCells({name: said.type for name, said in columns.items()})
    for view, running in zip(views, masks, strict=True):
        made.add(view, running)
    return made


def _is_part(name: str) -> bool:
    """Whether a column stands inside an object or a list."""
    return "." in name or "[" in name
