"""Plan and apply: one table per role, its users and their rights, in one transaction: whole, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from shoal.connect.sql import Address
from shoal.connect.sql.dialects import DIALECTS, quoted
from shoal.connect.sql.failures import told
from shoal.connect.sql.reading import declared, fetch
from shoal.connect.sql.writing import store
from shoal.connect.types import cast, declarations
from shoal.core.errors import PromiseError
from shoal.core.keys import KeyRing
from shoal.policy.document import Policy
from shoal.release.job import job_of
from shoal.release.wishes import Wishes
from shoal.runtime.provision.change import Change
from shoal.runtime.provision.passwords import password_of, refuse_shared_variables
from shoal.runtime.provision.widening import fingerprint, seen_by_role, widened
from shoal.runtime.sql import audit
from shoal.runtime.sql.audit import Entry
from shoal.runtime.sql.layout import layout
from shoal.runtime.sql.rights import (
    Grant,
    create,
    drop_idle,
    everyone_reads,
    existing,
    grants,
    is_there,
    makes_roles,
    may_read,
)


@dataclass(frozen=True)
class Plan:
    """The difference between a policy and a database, what would be wider than before, and what forbids it."""

    changes: tuple[Change, ...] = ()
    wider: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    last: Entry | None = None
    fresh: bool = False  # the tables show the rows of the source as they are now, by this policy

    @property
    def well(self) -> bool:
        """Whether the database looks as the policy says."""
        return not (self.changes or self.refusals)

    def __str__(self) -> str:
        lines = [str(c) for c in self.changes] or ["nothing to do"]
        lines += [f"! wider: {w}" for w in self.wider]
        return "\n".join([*lines, *(f"! refused: {r}" for r in self.refusals)])


class Tables:
    """Plans and applies the role tables of one policy.

    What a role's user could read beside its own table is looked for before and after every change, inside the
    transaction: by rights, for everyone, by membership, by making roles. If anything is found, nothing happens.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.wanted = layout(policy)

    def plan(self) -> Plan:
        """What would be done; changes nothing."""
        with self._transaction() as cursor:
            return self._plan(cursor, self._rows(cursor))

    def apply(self, *, allow_wider: bool = False, keys: KeyRing | None = None) -> Plan:
        """Make the database look as the policy says. What is already so is not touched.

        Every view is released anew when its rows or the policy have changed. A view with promises is compared with
        the table it replaces: who kept a copy of that one must not learn more than is promised.
        """
        ring = KeyRing.load() if keys is None else keys
        with self._transaction(commit=True) as cursor:
            rows = self._rows(cursor)
            plan = self._plan(cursor, rows)
            if plan.refusals:
                raise PromiseError(plan.refusals[0], where="serve apply", hint="nothing was changed")
            if plan.wider and not allow_wider:
                raise PromiseError(
                    f"roles would see more than before: {'; '.join(plan.wider)}",
                    where="serve apply",
                    hint="--allow-wider if that is meant; nothing was changed",
                )
            if plan.well:
                return plan
            made = self._users(cursor, plan.last)
            if not plan.fresh:
                self._views(cursor, rows, plan.last, ring)
            self._rights(cursor, plan.last)
            gone = set(_users(plan.last)) - set(self.wanted.users)
            made = sorted(set(made) - set(drop_idle(cursor, gone & set(made))))
            # looked for again inside the transaction: new tables bring rights of their own
            left = self._refusals(cursor)
            if left:  # rights that came with the new tables, by the database's own defaults
                raise PromiseError(left[0], where="serve apply", hint="nothing was changed")
            self._write_down(cursor, rows, made)
            return plan

    def destroy(self) -> list[Change]:
        """Take the views away: rights, tables, and the users that were made for them. Source and audit stay."""
        changes: list[Change] = []
        with self._transaction(commit=True) as cursor:
            last = audit.last(cursor, self.wanted.audit)
            if last is None:
                return []
            for name in sorted(last.tables.values()):
                table = self.wanted.source.beside(name)
                if is_there(cursor, table):
                    cursor.execute(f"drop table {quoted(*table.parts)}")
                    changes.append(Change("delete", "table", name))
            self._schemas(cursor, _users(last), revoke=True)
            changes += [Change("delete", "user", user) for user in drop_idle(cursor, last.made)]
            audit.write(cursor, self.wanted.audit, msgspec.structs.replace(last, destroyed=True))
        return changes

    @contextmanager
    def _transaction(self, *, commit: bool = False) -> Iterator[Any]:
        source = self.wanted.source
        with told(source.shown, writing=commit), closing(DIALECTS[source.kind].connect(source)) as there:
            with closing(there.cursor()) as cursor:
                # one state of the database from the first look to the last: nobody slips in between
                cursor.execute("set transaction isolation level repeatable read")
                yield cursor
            there.commit() if commit else there.rollback()

    def _rows(self, cursor: Any) -> pl.DataFrame:
        frame = fetch(cursor, self.wanted.source)
        return cast(frame, declarations(self.policy.types()), self.wanted.source.shown, lambda column, words: None)

    def _plan(self, cursor: Any, rows: pl.DataFrame) -> Plan:
        last = audit.last(cursor, self.wanted.audit)
        there = existing(cursor, self.wanted.users)
        changes = [Change("create", "user", user) for user in self.wanted.users if user not in there]
        lacking = {role for role, table in self.wanted.tables.items() if not is_there(cursor, table)}
        fresh = last is not None and not lacking and (last.policy, last.digest) == (self._print(), digest(rows))
        fresh = fresh and last is not None and last.tables == self._names()
        refusals = self._refusals(cursor)
        for role, table in self.wanted.tables.items():
            ours = last is not None and table.table in last.tables.values()
            if role in lacking:
                changes.append(Change("create", "table", table.table, f"the view of {role}"))
            elif not ours:
                refusals.append(f"the table {table.table} exists, and no applied view of this policy made it")
            elif not fresh:
                changes.append(Change("change", "table", table.table, f"the view of {role} is released anew"))
        for role, table in self.wanted.tables.items():
            users = {user for user, of in self.wanted.users.items() if of == role}
            now = set() if role in lacking else grants(cursor, table)
            wanted = {Grant(user, "SELECT") for user in users}
            changes += [Change("grant", "right", who, f"{right} {table.table}") for who, right in sorted(wanted - now)]
            changes += [
                Change("revoke", "right", who or "everyone", f"{r} {table.table}") for who, r in sorted(now - wanted)
            ]
        for name in sorted(set(() if last is None else last.tables.values()) - set(self._names().values())):
            changes.append(Change("delete", "table", name, "of a view that is no more"))
        wider = widened(last.views, seen_by_role(self.policy)) if last is not None else []
        return Plan(tuple(changes), tuple(wider), tuple(refusals), last, fresh)

    def _refusals(self, cursor: Any) -> list[str]:
        """Ways by which a role's user would see what is not theirs; rights on our own tables are mended by apply."""
        closed = [self.wanted.source, self.wanted.audit]
        out = [
            f"everyone may read {table.table}: REVOKE ALL ON {table.table} FROM PUBLIC"
            for table in closed
            if is_there(cursor, table) and everyone_reads(cursor, table)
        ]
        for user in sorted(existing(cursor, self.wanted.users)):
            if makes_roles(cursor, user):
                out.append(f"the user {user!r} can give themselves any right (superuser or CREATEROLE)")
                continue
            for table in closed:
                if is_there(cursor, table) and may_read(cursor, user, table):
                    out.append(f"the user {user!r} may read {table.table}, by a right or by a role they belong to")
            out += [
                f"the user {user!r} may read the view of {role!r}, by a role they belong to"
                for role, table in self.wanted.tables.items()
                if self.wanted.users[user] != role and self._reaches(cursor, user, table)
            ]
        return out

    def _reaches(self, cursor: Any, user: str, table: Address) -> bool:
        """Whether a user reads another's table by a way that apply does not take away: it revokes direct rights."""
        if not is_there(cursor, table) or any(grant.who in (user, "") for grant in grants(cursor, table)):
            return False
        return may_read(cursor, user, table)

    def _users(self, cursor: Any, last: Entry | None) -> list[str]:
        """Users that are missing are made; who was made by an earlier apply goes with destroy, too."""
        new = [user for user in self.wanted.users if user not in existing(cursor, self.wanted.users)]
        refuse_shared_variables(list(self.wanted.users))
        for user in new:
            create(cursor, user, password_of(user, self.wanted.folder))
        return sorted({*new, *([] if last is None else last.made)})

    def _views(self, cursor: Any, rows: pl.DataFrame, last: Entry | None, keys: KeyRing) -> None:
        kinds = declared(cursor, self.wanted.source)
        for role, table in self.wanted.tables.items():
            stated: dict[str, Any] = {"policy": self.policy, "view": role, "keys": keys}
            replaced = is_there(cursor, table)
            # whoever kept a copy of the table before has both
            if replaced and self.policy.views[role].promises and last is not None:
                stated["previous"] = [fetch(cursor, table)]
            job = job_of(Wishes(stated))
            release = job.run(rows)
            kept = {name: kind for name, kind in kinds.items() if name in job.unchanged}
            with told(table.shown, writing=True):  # what is wrong with this table is no matter of the source
                store(cursor, release.data, table, kept, replace=replaced)
        for name in set(() if last is None else last.tables.values()) - set(self._names().values()):
            gone = self.wanted.source.beside(name)
            if is_there(cursor, gone):
                cursor.execute(f"drop table {quoted(*gone.parts)}")

    def _rights(self, cursor: Any, last: Entry | None) -> None:
        """Exactly one right for each user: to read their own table."""
        for role, table in self.wanted.tables.items():
            name = quoted(*table.parts)
            # all are taken away first, so that exactly one is left
            for who, _ in grants(cursor, table):
                cursor.execute(f"revoke all on {name} from {quoted(who) if who else 'public'}")
            for user, of in self.wanted.users.items():
                if of == role:
                    cursor.execute(f"grant select on {name} to {quoted(user)}")
        self._schemas(cursor, [u for u in _users(last) if u not in self.wanted.users], revoke=True)
        self._schemas(cursor, list(self.wanted.users), revoke=False)

    def _schemas(self, cursor: Any, users: list[str], *, revoke: bool) -> None:
        """Users reach a table through its schema; of `public`, everyone may do that already."""
        for schema in {table.parts[0] for table in self.wanted.tables.values() if len(table.parts) > 1}:
            for user in sorted(existing(cursor, users)):
                word, to = ("revoke", "from") if revoke else ("grant", "to")
                cursor.execute(f"{word} usage on schema {quoted(schema)} {to} {quoted(user)}")

    def _write_down(self, cursor: Any, rows: pl.DataFrame, made: list[str]) -> None:
        seen = msgspec.to_builtins(seen_by_role(self.policy))
        entry = Entry(self.policy.dataset, self._print(), seen, self._names(), made, rows.height, digest(rows))
        audit.write(cursor, self.wanted.audit, entry)

    def _names(self) -> dict[str, str]:
        return {role: table.table for role, table in self.wanted.tables.items()}

    def _print(self) -> str:
        return fingerprint(self.policy)


def _users(last: Entry | None) -> list[str]:
    return [] if last is None else sorted({user for view in last.views.values() for user in view["users"]})


def digest(rows: pl.DataFrame) -> str:
    """The same for the same rows in any order; kept where only the owner of the rows can read it."""
    texts = rows.select(pl.all().cast(pl.String, strict=False)).sort(pl.all(), nulls_last=True)
    return hashlib.sha256(texts.write_csv().encode()).hexdigest()
