"""Free text without the people in it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from shoal.core.errors import InputError, UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Plain, Running, text_of
from shoal.masks.detect import KINDS, Kind, detect


class Text(Mask, frozen=True, tag="text"):
    """Mail addresses, telephone numbers, account and card numbers, national ids, dates, addresses and names in a text
    become ``[mail 1]``, ``[name 2]`` …: the same one the same number within one text, nothing in common between texts.

    ``find`` says which kinds (all unless given); ``words`` lists further words, ``file`` names a file of them, one per
    line: the names of your own patients, wards, projects. Cards, accounts and ids must have right check digits.

    Protects against: reading what it finds. `docs/concepts/masks.md` has the measured recall and precision.
    Does not protect against: what it does not find. It knows patterns and lists, not sentences: a name it does not
    list without a title before it, a nickname, "the mayor's daughter", a rare disease stay. Use it to make leaks fewer,
    never as a promise that a text is anonymous; show free text to nobody who must not know the people in it.
    Cost: about ten passes over each distinct text.

    >>> Text().start(Context()).one("Frau Ott (f.ott@example.org) came on 2024-02-29; Ott is well.")
    'Frau [name 1] ([mail 1]) came on [date 1]; [name 1] is well.'
    """

    attack: ClassVar[str] = "what it misses: unlisted names, nicknames, descriptions; and what the rest tells"

    find: tuple[Kind, ...] = KINDS
    words: tuple[str, ...] = ()
    file: str | None = None

    def __post_init__(self) -> None:
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
        kinds = frozenset(self.find)
        return Plain(self.output(context.type), lambda value: masked(text_of(value), kinds, listed))

    def describe(self) -> str:
        """See :class:`Mask`."""
        return "text without the people found in it"


def masked(text: str, kinds: frozenset[Kind], listed: tuple[str, ...]) -> str:
    """The text with everything found replaced."""
    # surrogates alone are no text that RE2 could read
    text = text.encode("utf-8", "replace").decode()
    found = detect(text, kinds, listed)
    family = {text[f.start : f.end].split()[-1] for f in found if f.kind == "name"}
    if family:  # who was named whole once may be called by the family name after that
        again = detect(text, {"listed"}, tuple(sorted(word for word in family if len(word) > 2)) or ("\0",))
        alone = [f._replace(kind="name") for f in again if text[f.start : f.end] in family]
        found = sorted([*found, *(f for f in alone if all(f.end <= g.start or g.end <= f.start for g in found))])
    known: dict[tuple[str, str], int] = {}
    count: dict[str, int] = {}
    out, at = [], 0
    for start, end, kind in found:
        key = (kind, text[start:end].split()[-1].casefold() if kind == "name" else text[start:end].casefold())
        if key not in known:
            known[key] = count[kind] = count.get(kind, 0) + 1
        out += [text[at:start], f"[{kind} {known[key]}]"]
        at = end
    return "".join([*out, text[at:]])


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the list of words ({type(error).__name__})", where=str(path)) from None
