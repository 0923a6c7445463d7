"""The JSON Schema of a policy, so that editors complete it. Made from the specs themselves."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from shoal.core.derive import DERIVATIONS
from shoal.core.hierarchy import HIERARCHIES
from shoal.core.schema import LossScale, Role, Type
from shoal.core.spec import Family
from shoal.masks import MASKS
from shoal.policy.document import WAIVERS
from shoal.policy.load import METHODS
from shoal.promises import PROMISES

FAMILIES: dict[str, tuple[Family[Any], ...]] = {
    "hierarchy": (HIERARCHIES,),
    "derive": (DERIVATIONS,),
    "promise": (PROMISES,),
    "mask": (MASKS,),
    "method": METHODS,
}
NOT_IN_A_FILE = {"custom"}  # carries code


def schema() -> dict[str, Any]:
    """A JSON Schema (2020-12) of the whole document. Loads every family.

    >>> sorted(schema()["properties"])
    ['columns', 'dataset', 'source', 'views']
    """
    definitions: dict[str, Any] = {}
    one_of: dict[str, Any] = {}
    for noun, families in FAMILIES.items():
        classes = [f.get(n) for f in families for n in f.names() if n not in NOT_IN_A_FILE]
        refs, parts = msgspec.json.schema_components(classes, ref_template=f"#/$defs/{noun}_{{name}}")
        definitions |= {f"{noun}_{name}": part for name, part in parts.items()}
        names = sorted(n for f in families for n in f.names() if n not in NOT_IN_A_FILE)
        # a spec without options may be written as its name alone
        one_of[noun] = {"anyOf": [{"enum": names}, *refs]}
    definitions |= one_of
    definitions["column"] = _column()
    definitions["view"] = _view()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Shoal policy",
        "type": "object",
        "required": ["columns"],
        # as in the loader: a misspelt key would leave something shown or not promised
        "additionalProperties": False,
        "properties": {
            "dataset": {"type": "string", "description": "what the data are called"},
            "source": {"type": "object", "description": "where the data come from: use file, kafka, sql or stdin"},
            "columns": {"type": "object", "additionalProperties": {"$ref": "#/$defs/column"}, "minProperties": 1},
            "views": {"type": "object", "additionalProperties": {"$ref": "#/$defs/view"}},
        },
        "$defs": definitions,
    }


def _column() -> dict[str, Any]:
    roles = {"enum": list(get_args(Role)), "description": "what the column gives away"}
    return {
        "anyOf": [
            roles,
            {
                "type": "object",
                "required": ["role"],
                "additionalProperties": False,
                "properties": {
                    "role": roles,
                    "type": {"enum": list(get_args(Type))},
                    "format": {"type": "string", "description": "the form of its texts: %d.%m.%Y, ms, or a comma"},
                    "hierarchy": {"$ref": "#/$defs/hierarchy"},
                    "derive": {"$ref": "#/$defs/derive"},
                    "weight": {"type": "number", "exclusiveMinimum": 0},
                    "loss": {"enum": list(get_args(LossScale)), "description": "how the loss of numbers is measured"},
                    "at_most": {"type": "integer", "minimum": 0, "description": "the highest level it is published at"},
                    "missing": {"enum": ["value", "suppress"]},
                    "unit": {"enum": ["s", "ms", "us", "ns"]},
                    "late": {"type": "string"},
                    "ahead": {"type": "string"},
                },
            },
        ]
    }


def _view() -> dict[str, Any]:
    masks = {"anyOf": [{"$ref": "#/$defs/mask"}, {"type": "array", "items": {"$ref": "#/$defs/mask"}}]}
    names = {"type": "array", "items": {"type": "string"}}
    return {
        "type": "object",
        "required": ["show"],
        "additionalProperties": False,
        "properties": {
            "users": names,
            "show": {"anyOf": [{"const": "everything"}, names], "description": "an allow-list"},
            "masks": {"type": "object", "additionalProperties": masks},
            "promises": {"type": "array", "items": {"$ref": "#/$defs/promise"}},
            "method": {"$ref": "#/$defs/method"},
            "service": {"type": "object"},
            "sample": {
                "type": "number",
                "exclusiveMinimum": 0,
                "exclusiveMaximum": 1,
                "description": "the share of people whose rows are shown at all, drawn with the key",
            },
            "hidden": {"enum": ["star", "null", "drop"], "description": "how a suppressed column reads"},
            "waive": {"type": "array", "items": {"enum": list(WAIVERS)}, "description": "risks that are accepted"},
        },
    }
