"""Characters become Xs, some may stay (Allgöwer 2023, Figure 3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.masks.base import Context, Mask, Running, as_text, text_of

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.lines import Bytes, Numbers
    from shoal.masks.base import Chosen

EMAIL = re.compile("[^@]*@[A-Za-z0-9.-]+")  # what follows the @ stays: only if it can be nothing but a domain


class Blur(Mask, frozen=True, tag="blur"):
    """Replace characters by ``char``; keep the ``first`` and ``last`` few in clear.

    ``length: same`` keeps the number of characters, a number replaces the blurred part by that many. A value too short
    to hide anything between its kept ends is blurred whole, to the full width, so a fixed length tells nothing about
    length. ``form: email`` keeps what follows the ``@`` and blurs what precedes it. Everything blurred to length one
    with ``*`` is suppression.

    Protects against: reading the blurred characters.
    Does not protect against: guessing from those that stay; with ``length: same``, the length.
    Cost: a few slices.

    >>> Blur(last=3).start(Context()).one("4556123409871357")
    'XXXXXXXXXXXXX357'
    >>> Blur(first=1, length=3, form="email").start(Context()).one("f.ott@example.org")
    'fXXX@example.org'
    """

    attack: ClassVar[str] = "guessing: the kept characters and the length narrow the candidates down"

    first: int = 0
    last: int = 0
    char: str = "X"
    length: int | Literal["same"] = "same"
    form: Literal["text", "email"] = "text"

    def __post_init__(self) -> None:
        if self.first < 0 or self.last < 0:
            raise UsageError("`first` and `last` must not be negative", where="blur")
        if len(self.char) != 1:
            raise UsageError("`char` must be one character", where="blur")
        if self.length != "same" and not 1 <= self.length <= 1000:
            raise UsageError("`length` must be `same` or a number from 1 to 1000", where="blur")

    @property
    def constant(self) -> bool:
        """See :class:`Mask`."""
        return not self.first and not self.last and self.length != "same" and self.form == "text"

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        return _Blur(self, context.type)

    def describe(self) -> str:
        """See :class:`Mask`."""
        kept = " … ".join(f"{n} {side}" for n, side in ((self.first, "first"), (self.last, "last")) if n)
        return f"blurred{f', {kept} kept' if kept else ''}{', domain kept' if self.form == 'email' else ''}"


class _Blur(Running):
    pure = alike = True

    def __init__(self, spec: Blur, kind: Type | None) -> None:
        super().__init__("str")
        self._kind = kind
        self._spec = spec
        self._first, self._last = spec.first, spec.last
        self._middle = None if spec.length == "same" else spec.char * spec.length
        # what a text too short to hide anything reads as: as long as the others, so that its length tells nothing
        self._whole = None if spec.length == "same" else spec.char * (spec.first + spec.length + spec.last)
        # a character that JSON writes otherwise is written by an encoder
        if kind == "str" and spec.form == "text" and spec.char.isascii() and spec.char.isprintable():
            self.written = self._written if spec.char not in '"\\' else None

    def _written(self, data: Bytes, begins: Numbers, lengths: Numbers) -> tuple[Bytes, Numbers, Chosen]:
        import numpy as np

        from shoal.kernels.shared.blur import blurred

        spec = self._spec
        middle = -1 if spec.length == "same" else spec.length
        inside = int(np.maximum(lengths, 0).sum()) if middle < 0 else len(lengths) * (spec.first + middle + spec.last)
        out = np.empty(inside + 2 * len(lengths), np.uint8)
        ends, read = np.zeros(len(lengths) + 1, np.int64), np.zeros(len(lengths), np.bool_)
        size = blurred(data, begins, lengths, spec.first, spec.last, ord(spec.char), middle, out, ends, read)
        return out[:size], ends, read

    def one(self, value: Any, *by: Any) -> Any:
        text = value if type(value) is str else text_of(value)
        if self._spec.form == "email" and EMAIL.fullmatch(text):
            local, _, domain = text.partition("@")
            return f"{self._text(local)}@{domain}"
        return self._text(text)

    def _text(self, text: str) -> str:
        hidden = len(text) - self._first - self._last
        if self._middle is None:
            if hidden <= 0:
                return self._spec.char * len(text)
            return text[: self._first] + self._spec.char * hidden + text[len(text) - self._last :]
        if hidden <= 0:
            return str(self._whole)
        return text[: self._first] + self._middle + text[len(text) - self._last :]

    def expression(self, column: pl.Expr, *by: pl.Expr) -> pl.Expr:
        import polars as pl

        text = as_text(column, self._kind)
        if self._spec.form == "text":
            return self._express(text)
        parts = text.str.split_exact("@", 2)
        # \A and \z, not ^ and $: a line break in the text would let half an address pass as a whole one
        is_email = text.str.contains(rf"\A{EMAIL.pattern}\z")
        blurred = self._express(parts.struct.field("field_0")) + "@" + parts.struct.field("field_1")
        return pl.when(is_email).then(blurred).otherwise(self._express(text))

    def _express(self, text: pl.Expr) -> pl.Expr:
        import polars as pl

        size = text.str.len_chars().cast(pl.Int64)
        head = text.str.slice(0, self._first)
        tail = text.str.slice((size - self._last).clip(0))
        if self._middle is None:
            middle = text.str.slice(self._first, (size - self._first - self._last).clip(0))
            # in a replacement `$` begins the name of a group
            star = self._spec.char if self._spec.char != "$" else "$$"
            parts = [head, middle.str.replace_all("(?s).", star), tail]
            whole = text.str.replace_all("(?s).", star)
        else:
            parts = [head, pl.lit(self._middle), tail]
            whole = pl.lit(self._whole)
        if not self._last:
            parts.pop()
        if not self._first:
            parts.pop(0)
        joined = parts[0] if len(parts) == 1 else pl.concat_str(parts)
        # nothing would be left to hide between the two ends: such a text is hidden whole
        short = size <= self._first + self._last
        return pl.when(text.is_null()).then(None).when(short).then(whole).otherwise(joined)
