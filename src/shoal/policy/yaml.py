"""YAML with places: every value knows its line, so that an error can say where."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.core.errors import InputError, PolicyError
from shoal.core.originals import register

if TYPE_CHECKING:
    import yaml  # otherwise loaded by the first document: options alone make releases, too

Place = tuple[str | int, ...]
MOST_NODES = 100_000  # values of one document: aliases of aliases would make billions of a few lines
DEEPEST = 50  # levels of one document
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_RESERVED = re.compile(r"^(y|yes|n|no|on|off|true|false|null|none|nan)$", re.I)


class Places:
    """Where each value of a document stands.

    >>> parse("{columns: {age: quasi}}", "policy.yaml")[1].at(("columns",))
    'policy.yaml, line 1: columns'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Place, int] = {}
        self.values = 0

    def at(self, place: Place) -> str:
        """``policy.yaml, line 7: columns.zip.hierarchy``."""
        known = place
        # what is missing has no line, but what should contain it has
        while known and known not in self.lines:
            known = known[:-1]
        line = self.lines.get(known, 1)
        path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).lstrip(".")
        return f"{self.name}, line {line}" + (f": {path}" if path else "")


def load(path: str | Path) -> tuple[Any, Places]:
    """Plain data and the places of its parts.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "policy.yaml"
    >>> _ = file.write_text("{columns: {age: quasi}}")
    >>> load(file)[0]
    {'columns': {'age': 'quasi'}}
    """
    file = Path(path)
    # from now on the command refuses to write onto it
    register(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("there is no such policy", where=str(path), hint="`shoal init` drafts one") from None
    except (OSError, UnicodeDecodeError):
        raise InputError("the policy cannot be read as UTF-8 text", where=str(path)) from None
    return parse(text, file.name)


def parse(text: str, name: str) -> tuple[Any, Places]:
    """As :func:`load`, from text.

    >>> data, lines = parse("columns: {age: quasi}", "policy.yaml")
    >>> data, lines.at(("columns", "age"))
    ({'columns': {'age': 'quasi'}}, 'policy.yaml, line 1: columns.age')
    """
    import yaml

    places = Places(name)
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # where libyaml is there, a tenth of the time
        _bounded(yaml.parse(text, Loader=loader), name)
        # nodes, not plain data: only nodes know their lines
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise PolicyError(
            f"not valid YAML ({error.problem})", where=where, hint="check indentation and quotes"
        ) from None
    except yaml.YAMLError:
        raise PolicyError("not valid YAML", where=name, hint="check indentation and quotes") from None
    if root is None:
        raise PolicyError("the policy is empty", where=name, hint="`shoal init` drafts one")
    return _plain(root, (), places), places


def _bounded(events: Iterable[yaml.Event], name: str) -> None:
    """Refuse what is nested too deep: who composes calls itself for every level, in libyaml until the process dies."""
    import yaml

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST + 1:
            raise _too_deep(name)


def _too_deep(where: str) -> PolicyError:
    return PolicyError(f"nested deeper than {DEEPEST} levels", where=where, hint="a policy has about six")


def _plain(node: yaml.Node, place: Place, places: Places) -> Any:
    import yaml

    places.values += 1
    if len(place) > DEEPEST:  # an alias inside what it stands for has no end
        raise _too_deep(places.name)
    if places.values > MOST_NODES:
        raise PolicyError(
            f"more than {MOST_NODES:,} values, counting what aliases stand for",
            where=places.name,
            hint="write out what is needed; a long tree belongs in a file of its own",
        )
    places.lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _name(key_node, places)
            # YAML itself would silently take the last
            if key in out:
                places.lines[(*place, key)] = key_node.start_mark.line + 1
                raise PolicyError(f"{key!r} stands twice", where=places.at((*place, key)), hint="keep one of them")
            out[key] = _plain(value_node, (*place, key), places)
            places.lines[(*place, key)] = key_node.start_mark.line + 1
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*place, at), places) for at, item in enumerate(node.value)]
    return _scalar(node)


def _name(node: yaml.Node, places: Places) -> str:
    """A key as it is written: the columns `no`, `1e3` and `2020-01-01` are names, not a truth, a number and a day."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    raise PolicyError(
        "a name is expected, a list or a mapping found",
        where=f"{places.name}, line {node.start_mark.line + 1}",
        hint="write `name: value`",
    )


def _scalar(node: yaml.Node) -> Any:
    import yaml

    if node.tag == "tag:yaml.org,2002:bool" and node.value.lower() not in ("true", "false"):
        return node.value  # as YAML 1.2 has it: `show: [no, age]` shows two columns
    # by YAML's own rules for numbers and dates; the safe loader makes no objects
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node)
    finally:
        loader.dispose()


def quoted(name: str) -> str:
    """A name as YAML reads it again: `no` and `on` would be truth values, and a line break would end the line.

    >>> quoted("age"), quoted("no"), quoted("a: b")
    ('age', '"no"', '"a: b"')
    """
    if _WORD.fullmatch(name) and not _RESERVED.match(name):
        return name
    written = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in name)
    return f'"{"".join(written)}"'
