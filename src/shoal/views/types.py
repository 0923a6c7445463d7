"""What a value of a declared type is: the one rule, for JSON records and for columns.

A value leaves only as what its column is declared to be. A column without a declared type may hold single values
(text, numbers, booleans, dates), never objects or lists: a field nobody declared could hide inside. Whoever wants
parts of an object to be seen declares their paths (``insurance.company``).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from shoal.core.schema import Schema, Type
from shoal.policy.paths import Node
from shoal.views.forms import form_of, read_form

# what a column of 64 bits holds: records and columns refuse the same numbers
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
TYPES: dict[Type | None, Any] = {
    "int": Whole | None,
    "float": float | None,  # a double: whole numbers beyond 2**53 are rounded, so identifiers are declared int or str
    "str": str | None,
    "bool": bool | None,
    "date": datetime.date | None,
    "datetime": datetime.datetime | None,
    None: str | int | float | bool | None,
}


def record_type(node: Node, schema: Schema, *, root: bool = True) -> Any:
    """The type a place of a JSON record is decoded to; fields are numbered, for their names are data.

    >>> from shoal.core.schema import Column
    >>> schema = Schema({"age": Column("quasi", type="int")})
    >>> from shoal.policy.paths import tree
    >>> msgspec.json.decode(b'{"age": 7, "name": "F. Ott"}', type=record_type(tree(["age"]), schema)).f0
    7
    """
    if node.leaf is not None:
        column = schema[node.leaf]
        return TYPES[column.type] if column.format is None else form_of(column) | None
    if node.element is not None:
        return list[record_type(node.element, schema, root=False)] | None  # type: ignore[misc]
    kinds = [record_type(below, schema, root=False) for below in node.fields.values()]
    made = struct_of(node, kinds)
    return made if root else made | None


def decoder(node: Node, schema: Schema) -> Callable[[bytes], Any]:
    """Reads JSON records as :func:`record_type`, texts with a declared form included.

    >>> from shoal.core.schema import Column
    >>> from shoal.policy.paths import tree
    >>> schema = Schema({"born": Column("quasi", type="date", format="%d.%m.%Y")})
    >>> decoder(tree(["born"]), schema)(b'{"born": "31.12.2020"}').f0
    datetime.date(2020, 12, 31)
    """
    return msgspec.json.Decoder(record_type(node, schema), dec_hook=read_form).decode


def struct_of(node: Node, kinds: list[Any] | None = None) -> type[msgspec.Struct]:
    """An object with the fields of a place, missing ones null: what is decoded to, and what is encoded from.

    >>> from shoal.policy.paths import tree
    >>> msgspec.json.encode(struct_of(tree(["age"]))(30))
    b'{"age":30}'
    """
    kinds = kinds if kinds is not None else [Any] * len(node.fields)
    fields = [(f"f{at}", kind, None) for at, kind in enumerate(kinds)]
    rename = {f"f{at}": name for at, name in enumerate(node.fields)}
    # records hold no cycles, so the garbage collector need not look at them
    return msgspec.defstruct("Record", fields, rename=rename, gc=False)


def in_utc(value: datetime.datetime | None) -> datetime.datetime | None:
    """A moment as columns hold it: in UTC, without a zone. ``OverflowError`` if UTC has no year for it.

    >>> zone = datetime.timezone(datetime.timedelta(hours=2))
    >>> in_utc(datetime.datetime(2024, 5, 1, 2, tzinfo=zone))
    datetime.datetime(2024, 5, 1, 0, 0)
    """
    if value is None or value.tzinfo is None:
        return value
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def getters(node: Node, at: str = "") -> Iterable[tuple[str, Callable[[Any], Any]]]:
    """How to get each column of a record of :func:`record_type`, whatever may be null on the way.

    >>> from shoal.core.schema import Column
    >>> from shoal.policy.paths import tree
    >>> root, schema = tree(["a.b"]), Schema({"a.b": Column("plain", "int")})
    >>> dict(getters(root))["a.b"](decoder(root, schema)(b'{"a": {"b": 7}}'))
    7
    """
    for number, below in enumerate(node.fields.values()):
        place = f"{at}.f{number}" if at else f"f{number}"
        if below.leaf is None:
            yield from getters(below, place)
        else:
            yield below.leaf, _safely(place) if "." in place else attrgetter(place)


def _safely(place: str) -> Callable[[Any], Any]:
    """A getter through objects that may be null."""
    steps = place.split(".")

    def get(record: Any) -> Any:
        for step in steps:
            if record is None:
                return None
            record = getattr(record, step)
        return record

    return get
