"""What was applied, when and by whom: a table beside the source that only its owner reads."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.connect.sql import Address
from shoal.connect.sql.dialects import quoted
from shoal.runtime.sql.rights import is_there


class Entry(msgspec.Struct, frozen=True):
    """One apply: what each role sees, its tables and users, and a digest of the rows it was made of."""

    dataset: str
    policy: str  # its fingerprint
    views: dict[str, Any]
    tables: dict[str, str]
    made: list[str]  # users that were made by an apply, and go with destroy
    rows: int
    digest: str
    destroyed: bool = False


def last(cursor: Any, audit: Address) -> Entry | None:
    """The newest entry; nothing if there is none, or the views were destroyed since."""
    if not is_there(cursor, audit):
        return None
    cursor.execute(f"select entry from {quoted(*audit.parts)} order by number desc limit 1")
    found = cursor.fetchone()
    entry = None if found is None else msgspec.json.decode(str(found[0]).encode(), type=Entry)
    return None if entry is None or entry.destroyed else entry


def write(cursor: Any, audit: Address, entry: Entry) -> None:
    """Add an entry; the table is made by the first."""
    name = quoted(*audit.parts)
    if not is_there(cursor, audit):
        cursor.execute(
            f"create table {name} (number bigint generated always as identity primary key, "
            "at timestamptz not null default now(), who text not null default current_user, entry text not null)"
        )
        cursor.execute(f"revoke all on {name} from public")
    text = msgspec.json.encode(entry).decode().replace("'", "''")
    cursor.execute(f"insert into {name} (entry) values ('{text}')")
