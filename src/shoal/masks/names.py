"""Invented people for :class:`shoal.masks.substitute.Substitute`: syllables put together, so that nobody is meant."""

from __future__ import annotations

_GIVEN = ("Ba", "Do", "Ely", "Fen", "Gri", "Ili", "Kor", "Lum", "Mae", "Nob", "Or", "Pel", "Quin", "Ro", "Syl", "Tam")
_END = ("ra", "lin", "do", "wick")
_FAMILY = ("Ash", "Birk", "Clov", "Dray", "Fern", "Glim", "Hol", "Larch", "Moor", "Nettle", "Reed", "Thorn")
_PLACE = ("brook", "field", "holt", "mere", "stead")

NAMES: tuple[str, ...] = tuple(
    f"{given}{end} {family}{place}" for given in _GIVEN for end in _END for family in _FAMILY for place in _PLACE
)
