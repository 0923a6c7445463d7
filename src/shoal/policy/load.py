"""A policy from its file: every mistake with its place, what was expected, and a hint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import msgspec

from shoal.core.derive import DERIVATIONS, check_derived
from shoal.core.errors import PolicyError, UsageError
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.originals import register
from shoal.core.schema import Column, Role, Schema
from shoal.core.spec import Family, Spec
from shoal.masks import MASKS
from shoal.policy.document import WAIVERS, Policy, View
from shoal.policy.paths import matching
from shoal.policy.yaml import Place, Places
from shoal.policy.yaml import load as load_yaml
from shoal.policy.yaml import parse as parse_yaml
from shoal.promises import PROMISES
from shoal.series import SERIES_METHODS
from shoal.streams import STREAM_METHODS
from shoal.tables import TABLE_METHODS

TOP = ("dataset", "source", "columns", "views")
VIEW = ("users", "show", "masks", "promises", "method", "service", "hidden", "waive", "sample")
FILES = ("file", "vault", "register", "properties", "descriptor")  # keys of a policy whose values are files beside it
METHODS: tuple[Family[Any], ...] = (TABLE_METHODS, STREAM_METHODS, SERIES_METHODS)


def load(path: str | Path) -> Policy:
    """Read a policy file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "policy.yaml"
    >>> _ = file.write_text("{columns: {age: quasi}, views: {ward: {show: [age]}}}")
    >>> sorted(load(file).views)
    ['ward']
    """
    data, places = load_yaml(path)
    for name in _files(data):  # a vault that is made later must not be an output, either
        register(Path(path).parent / name)
    policy = _Reader(places, Path(path).parent).policy(data, str(path))
    for column in policy.schema.columns.values():  # a hierarchy of another package says itself which of its fields are
        for file in column.hierarchy.files if column.hierarchy is not None else ():
            register(file)
    return policy


def parse(text: str, name: str = "policy", folder: Path | None = None) -> Policy:
    """A policy from text.

    >>> parse("dataset: visits\\ncolumns: {zip: {role: quasi, hierarchy: {use: prefix, length: 5}}}").schema.quasi
    ['zip']
    """
    data, places = parse_yaml(text, name)
    return _Reader(places, folder or Path()).policy(data, name)


def _files(data: Any) -> Iterator[str]:
    """The files that a policy names, wherever in it."""
    if isinstance(data, Mapping):
        yield from (name for key, name in data.items() if key in FILES and isinstance(name, str))
    for below in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _files(below)


class _Reader:
    """Walks plain data and knows where it is."""

    def __init__(self, places: Places, folder: Path) -> None:
        self.places = places
        self.folder = folder

    def policy(self, data: Any, path: str) -> Policy:
        top = self._mapping(data, (), TOP)
        columns = self._mapping(top.get("columns"), ("columns",))
        if not columns:
            raise PolicyError(
                "no column is declared", where=self.places.at(("columns",)), hint="`columns:` says what each column is"
            )
        declared = {str(name): self._column(value, ("columns", name)) for name, value in columns.items()}
        # rules that span columns are told at the column that breaks them
        try:
            schema = Schema(declared)
            check_derived(declared)
        except UsageError as error:
            where = error.where or ""
            place: Place = tuple(where.split(".")) if where.startswith("columns.") else ("columns",)
            raise PolicyError(error.message, where=self.places.at(place), hint=error.hint) from None
        views = {
            name: self._view(name, value, ("views", name), schema)
            for name, value in self._mapping(top.get("views", {}), ("views",)).items()
        }
        self._refuse_unused(schema, views)
        source = self._mapping(top.get("source", {}), ("source",))
        return Policy(str(top.get("dataset", Path(path).stem)), schema, views, source, path)

    def _refuse_unused(self, schema: Schema, views: Mapping[str, View]) -> None:
        """A hierarchy of a column that nothing generalizes is a wish that nobody would fulfil."""
        for name, column in schema.columns.items():
            if column.hierarchy is None or column.role in ("quasi", "sensitive"):
                continue
            masked = [view for view in views.values() if name in view.masks]
            # a method publishes times as they are; a mask of one view does nothing for the others
            bare = [
                v for v in views.values() if column.role == "time" and v.promises and v.shows(name) and v not in masked
            ]
            if views and (bare or not masked):
                of = f" in the view {bare[0].name!r}" if bare else ""
                raise PolicyError(
                    f"a hierarchy has no effect on a column of the role `{column.role}`{of}",
                    where=self.places.at(("columns", name, "hierarchy")),
                    hint=f"leave it out, or let a mask use it: `masks: {{{name}: {{use: generalize, level: 1}}}}`",
                )

    def _column(self, data: Any, place: Place) -> Column:
        fields = tuple(f.name for f in msgspec.structs.fields(Column))
        # `age: quasi` is short for `age: {role: quasi}`
        plain = dict(self._mapping({"role": data} if isinstance(data, str) else data, place, fields))
        # both are decoded by their families, which know plug-ins and name the line of what is wrong
        hierarchy, derive = plain.pop("hierarchy", None), plain.pop("derive", None)
        if plain.get("role") not in get_args(Role):
            raise PolicyError(
                f"expected a role, found {plain.get('role')!r}",
                where=self.places.at((*place, "role")),
                hint=f"one of: {', '.join(get_args(Role))}",
            )
        column: Column = self._convert(plain, Column, place)
        if derive is not None:
            made = DERIVATIONS.decode(derive, self.places.at((*place, "derive")))
            try:
                column = msgspec.structs.replace(column, derive=made)
            except UsageError as error:
                raise PolicyError(error.message, where=self.places.at(place), hint=error.hint) from None
        if hierarchy is None:
            return column
        where = self.places.at((*place, "hierarchy"))
        # files of a hierarchy are named from where the policy lies, not from where the command is called
        return msgspec.structs.replace(column, hierarchy=HIERARCHIES.decode(hierarchy, where).beside(self.folder))

    def _view(self, name: str, data: Any, place: Place, schema: Schema) -> View:
        plain = self._mapping(data, place, VIEW)
        show = plain.get("show")
        if show != "everything":
            show = self._names(show, (*place, "show"), schema)
        masks = {}
        for column, specs in self._mapping(plain.get("masks", {}), (*place, "masks")).items():
            here = (*place, "masks", column)
            self._known(column, here, schema)
            # most likely `show` lacks a line: a mask that is ignored would surprise whoever reads the release
            if show != "everything" and not any(column in matching(p, [column]) for p in show):
                raise PolicyError(
                    f"column {column!r} is masked but not shown",
                    where=self.places.at(here),
                    hint="list it in `show`, too: what is not listed is not released",
                )
            many = specs if isinstance(specs, list) else [specs]
            masks[column] = tuple(MASKS.decode(m, self.places.at(here)) for m in many)
        promises = tuple(
            PROMISES.decode(p, self.places.at((*place, "promises", at))).beside(self.folder)
            for at, p in enumerate(self._list(plain.get("promises", []), (*place, "promises")))
        )
        # a promise about a column that does not exist would hold of anything
        for at, promise in enumerate(promises):
            if promise.sensitive is not None:
                self._known(promise.sensitive, (*place, "promises", at), schema)
        method = None if plain.get("method") is None else self._method(plain["method"], (*place, "method"))
        users = tuple(str(u) for u in self._list(plain.get("users", []), (*place, "users")))
        service = self._mapping(plain.get("service", {}), (*place, "service"))
        hidden = plain.get("hidden", "star")
        if hidden not in ("star", "null", "drop"):
            raise PolicyError(
                f"expected star, null or drop, found {hidden!r}", where=self.places.at((*place, "hidden"))
            )
        sample = self._share(plain, place) if plain.get("sample") is not None else None
        return View(name, show, users, masks, promises, method, service, hidden, self._waived(plain, place), sample)

    def _share(self, plain: Mapping[str, Any], place: Place) -> float:
        share, where = plain["sample"], self.places.at((*place, "sample"))
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise PolicyError("expected a share between 0 and 1", where=where, hint="for example `sample: 0.1`")
        if plain.get("promises"):
            hint = "sample the data first, or leave the promises to another view"
            raise PolicyError("a view with promises shows everybody, not a sample", where=where, hint=hint)
        return float(share)

    def _waived(self, plain: Mapping[str, Any], place: Place) -> tuple[str, ...]:
        names = tuple(str(n) for n in self._list(plain.get("waive", []), (*place, "waive")))
        for at, name in enumerate(names):
            if name not in WAIVERS:
                raise PolicyError(
                    f"there is no risk called {name!r} to waive",
                    where=self.places.at((*place, "waive", at)),
                    hint=f"one of: {', '.join(WAIVERS)}",
                )
        return names

    def _method(self, data: Any, place: Place) -> Spec:
        where = self.places.at(place)
        name = data if isinstance(data, str) else data.get("use") if isinstance(data, Mapping) else None
        # tables, streams and curves have methods of their own: the name tells which the view is about
        for family in METHODS:
            if name in family.names():
                found: Spec = family.decode(data, where)
                return found
        names = sorted({n for family in METHODS for n in family.names()})
        raise PolicyError(f"there is no method called {name!r}", where=where, hint=f"one of: {', '.join(names)}")

    def _names(self, data: Any, place: Place, schema: Schema) -> tuple[str, ...]:
        if data is None:
            raise PolicyError(
                "nothing is shown", where=self.places.at(place), hint="`show: everything`, or a list of columns"
            )
        names = tuple(str(n) for n in self._list(data, place))
        for at, name in enumerate(names):
            self._known(name, (*place, at), schema)
        return names

    def _known(self, name: str, place: Place, schema: Schema) -> None:
        if not matching(name, schema.columns):
            close = get_close_matches(name, schema.columns, 1)
            raise PolicyError(
                f"there is no column {name!r} in this policy",
                where=self.places.at(place),
                hint=f"did you mean {close[0]!r}?" if close else f"the columns are: {', '.join(schema.columns)}",
            )

    def _mapping(self, data: Any, place: Place, allowed: tuple[str, ...] = ()) -> Mapping[str, Any]:
        if not isinstance(data, Mapping):
            raise PolicyError(
                f"expected a mapping, found {type(data).__name__}",
                where=self.places.at(place),
                hint=f"with some of: {', '.join(allowed)}" if allowed else "write `name: value` lines",
            )
        # a misspelt key that is skipped would leave something shown or not promised
        for key in data:
            if allowed and key not in allowed:
                close = get_close_matches(key, allowed, 1)
                raise PolicyError(
                    f"{key!r} is not known here",
                    where=self.places.at((*place, key)),
                    hint=f"did you mean {close[0]!r}?" if close else f"one of: {', '.join(allowed)}",
                )
        return data

    def _list(self, data: Any, place: Place) -> list[Any]:
        if not isinstance(data, list):
            raise PolicyError(f"expected a list, found {type(data).__name__}", where=self.places.at(place))
        return data

    def _convert(self, data: Any, kind: Any, place: Place) -> Any:
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as error:
            if isinstance(error.__cause__, UsageError):  # of a rule of our own, which has a place and a hint
                own = error.__cause__
                field = (own.where or "").partition(".")[2]
                where = self.places.at((*place, field) if field in data else place)
                raise PolicyError(own.message, where=where, hint=own.hint) from None
            raise PolicyError(str(error), where=self.places.at(place)) from None
