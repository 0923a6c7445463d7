"""Families of specs: members of this package and of others, by name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from shoal.core import spec
from shoal.core.errors import PolicyError
from shoal.core.hierarchy.prefix import Prefix


class Soundex(Prefix, frozen=True, tag="soundex"):
    """A hierarchy of another package."""


def test_a_member_of_another_package_is_named_and_decoded_like_our_own(monkeypatch):
    plugin = SimpleNamespace(name="soundex", load=lambda: Soundex)
    asked = []
    monkeypatch.setattr(spec, "entry_points", lambda group: asked.append(group) or [plugin])
    family = spec.Family("hierarchies", "shoal.core.hierarchy", {"prefix": "prefix:Prefix"})
    assert family.names() == ["prefix", "soundex"]
    assert family.decode({"use": "soundex", "length": 4}) == Soundex(length=4)
    assert family.decode({"use": "prefix", "length": 4}) == Prefix(length=4)
    with pytest.raises(PolicyError, match="'metaphone'") as told:
        family.get("metaphone", "columns.name")
    assert told.value.hint == "one of: prefix, soundex"
    assert asked == ["shoal.hierarchies"]  # once: looking through all packages is slow
