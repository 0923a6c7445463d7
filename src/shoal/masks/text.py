"""Free text without the people in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import InputError, UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Plain, Running, text_of
from shoal.masks.detect import KINDS, Found, Kind, detect
from shoal.masks.people import WORD
from shoal.masks.recognizer import Model, model, together
from shoal.masks.words import NOT_NAMES


class Text(Mask, frozen=True, tag="text"):
    """Mail addresses, telephone numbers, account and card numbers, national ids, dates, addresses and names in a text
    become ``[mail 1]``, ``[name 2]`` …: the same one the same number within one text, nothing in common between texts.

    ``find`` says which kinds (all unless given); ``words`` lists further words, ``file`` names a file of them, one per
    line: the names of your own patients, wards, projects. Cards, accounts and ids must have right check digits, dates a
    day that exists. Names are found by titles, words for people (the patient, my daughter), labels, lists, and by two
    capitalised words that are no common ones; ``doubt: keep`` leaves out the last. ``model: presidio`` asks Presidio,
    too (the extra ``text``, and a model of spaCy for ``language``).

    Protects against: reading what it finds. `docs/concepts/masks.md` has the measured recall and precision.
    Does not protect against: what it does not find. It does not read sentences: a single name that nothing announces,
    a name in small letters or in a script without capitals, a nickname, "the mayor's daughter", a rare disease stay.
    Use it to make leaks fewer, never as a promise that a text is anonymous; show free text to nobody who must not know
    the people in it.
    Cost: about eight passes over each distinct text.

    >>> Text().start(Context()).one("Frau Ott (f.ott@example.org) came on 2024-02-29; Ott is well.")
    'Frau [name 1] ([mail 1]) came on [date 1]; [name 1] is well.'
    """

    attack: ClassVar[str] = "what it misses: names nothing announces, nicknames, descriptions; and what the rest tells"

    find: tuple[Kind, ...] = KINDS
    words: tuple[str, ...] = ()
    file: str | None = None
    doubt: Literal["hide", "keep"] = "hide"
    model: Model | None = None
    language: str = "en"

    def __post_init__(self) -> None:
        # a blank word would be found between any two others
        if not self.find or any(not word.strip() for word in self.words):
            raise UsageError("`find` and `words` must not be empty", where="text")

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if kind not in (None, "str"):
            raise UsageError(f"text works on texts, and the column holds {kind}", where="text")
        return "str"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        listed = (*self.words, *(_lines(context.folder / self.file) if self.file else ()))
        kinds, sure = frozenset(self.find), self.doubt == "keep"
        ask = model(self.model, self.language) if self.model is not None else None

        def without_people(value: Any) -> str:
            # surrogates alone are no text that RE2 could read
            text = text_of(value).encode("utf-8", "replace").decode()
            found = detect(text, kinds, listed, sure=sure)
            if ask is not None:
                more = ask(text)
                # the model failed, so nobody knows what the text holds
                if more is None:
                    return SUPPRESSED
                found = together(text, found, [f for f in more if f.kind in kinds])
            return masked(text, found)

        return Plain(self.output(context.type), without_people)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return "text without the people found in it"


def masked(text: str, found: Sequence[Found]) -> str:
    """The text with everything found replaced, and people who were named once wherever they are named again."""
    whose = _parts(text, found)
    if whose:  # who was named whole may be called by a part of the name elsewhere
        covered = bytearray(len(text))
        for f in found:
            covered[f.start : f.end] = b"\1" * (f.end - f.start)
        again = [
            Found(m.start(), m.end(), "name")
            for m in WORD.finditer(text)
            if m.group() in whose and not covered[m.start()]
        ]
        found = sorted([*found, *again])
    known: dict[tuple[str, str], int] = {}
    count: dict[str, int] = {}
    out, at = [], 0
    for start, end, kind in found:
        there = text[start:end]
        # Anna Ott, Ms Ott and Anna get one number: that of the family name
        key = (kind, whose.get(last_word(there), there.casefold()) if kind == "name" else there.casefold())
        if key not in known:
            known[key] = count[kind] = count.get(kind, 0) + 1
        out += [text[at:start], f"[{kind} {known[key]}]"]
        at = end
    return "".join([*out, text[at:]])


def _parts(text: str, found: Sequence[Found]) -> dict[str, str]:
    """The words of each name, and the family name they stand for."""
    whose: dict[str, str] = {}
    for f in found:
        if f.kind == "name":
            words = [m.group() for m in WORD.finditer(text[f.start : f.end])]
            for word in words:
                # initials and common words stand everywhere, for others than this person
                if len(word) > 2 and word[0].isupper() and word.casefold() not in NOT_NAMES:
                    whose.setdefault(word, words[-1].casefold())
    # a family name stands for itself, whoever else has it as a given name
    whose.update(
        {
            last_word(text[f.start : f.end]): last_word(text[f.start : f.end]).casefold()
            for f in found
            if f.kind == "name"
        }
    )
    return whose


def last_word(name: str) -> str:
    """The last word of a name.

    >>> last_word("Anna van Berg")
    'Berg'
    """
    words = WORD.findall(name)
    return words[-1] if words else name


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the list of words ({type(error).__name__})", where=str(path)) from None
