"""All dates of a person move by the same number of days: days between them stay, dates and times of day do not."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shoal.core.errors import UsageError
from shoal.core.schema import Type
from shoal.core.vault import Vault
from shoal.masks.base import Context, Running
from shoal.masks.keyed import Keyed, digest

if TYPE_CHECKING:
    import polars as pl


class DateShift(Keyed, frozen=True, tag="date-shift"):
    """Shift dates and times by a whole number of days, between ``-days`` and ``days``, never 0, the same for all
    of a person's dates under one domain.

    Give several columns the same ``domain`` to keep the days between admission and discharge. The time of day is drawn
    anew for each moment of a person (``time: blur``): a shift of whole days alone would leave the second at which
    something happened, and that second finds the record in any other view. ``time: keep`` keeps it. ``vault`` names a
    file of salts per person: delete the salt and the shift is forgotten.

    Protects against: matching a date with an outside event.
    Does not protect against: the days between one person's dates (kept on purpose), seasons (a small shift keeps
    them), or one known date, which gives away all others of that person.
    Cost: one BLAKE2b, two for a time of day.

    >>> from shoal.core.keys import KeyRing
    >>> ring = KeyRing({"default": {1: bytes(32)}})
    >>> mask = DateShift(days=30).start(Context("seen", "date", keys=ring, subject="pid"))
    >>> first, second = (mask.one(datetime.date(2024, 5, day), "p7") for day in (1, 9))
    >>> (second - first).days, first == datetime.date(2024, 5, 1)
    (8, False)
    """

    repeatable: ClassVar[bool] = False
    attack: ClassVar[str] = "one known date of a person reveals the shift, and so all the others"

    days: int
    time: Literal["blur", "keep"] = "blur"
    vault: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.days <= 36_500:
            raise UsageError("`days` must lie between 1 and 36500", where="date-shift")

    @property
    def near(self) -> bool:
        """See :class:`Mask`."""
        return True

    def output(self, kind: Type | None) -> Type | None:
        """See :class:`Mask`."""
        if kind not in (None, "date", "datetime", "str"):
            raise UsageError(f"date-shift works on dates, and the column holds {kind}", hint="declare `type: date`")
        return kind

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        return _DateShift(self, context)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"shifted by up to {self.days} days"


class _DateShift(Running):
    needs_by = True

    def __init__(self, spec: DateShift, context: Context) -> None:
        super().__init__(spec.output(context.type), by=(context.need_subject("date-shift"),))
        self._key, self._spec, self._context = spec.derive(context), spec, context
        self._vault = Vault.at(context.folder / spec.vault) if spec.vault else None

    def one(self, value: Any, *by: Any) -> Any:
        is_text = isinstance(value, str)
        at = _parse(value) if is_text else value
        # without a person there is no shift of their own, and one for all could be found by anybody's known date
        if not isinstance(at, datetime.date) or by[0] is None:
            return "*" if self.type in (None, "str") else None
        try:
            moved = self._blurred(at, by[0]) + datetime.timedelta(days=self._shift(by[0]))
        # beyond year 9999 there is no date; the true one must not come out instead
        except OverflowError:
            return "*" if self.type in (None, "str") else None
        return moved.isoformat() if is_text else moved

    def many(self, values: pl.Series, *by: pl.Series) -> pl.Series:
        import polars as pl

        rows = zip(values.to_list(), by[0].to_list(), strict=True)
        return pl.Series(values.name, [None if v is None else self.one(v, b) for v, b in rows], dtype=values.dtype)

    def _blurred(self, at: datetime.date, person: Any) -> datetime.date:
        """The same day, at another time that says nothing about the true one."""
        if not isinstance(at, datetime.datetime) or self._spec.time == "keep":
            return at
        # drawn from the whole moment: two visits on one day get times of their own, and a replay gets the same again
        drawn = int.from_bytes(digest(self._key, ["time of day", person, at]), "big") % 86_400
        return at.replace(hour=drawn // 3600, minute=drawn // 60 % 60, second=drawn % 60, microsecond=0)

    def _shift(self, person: Any) -> int:
        parts = [person]
        if self._vault:
            parts.append(self._spec.salt(self._vault, self._context, person))
        # 2 x days values, none of them 0: a shift of nothing would publish the true date
        drawn = int.from_bytes(digest(self._key, parts), "big") % (2 * self._spec.days)
        return drawn - self._spec.days if drawn < self._spec.days else drawn - self._spec.days + 1

    def settle(self) -> None:
        if self._vault:
            self._vault.commit()


def _parse(text: str) -> datetime.date | None:
    for read in (datetime.date.fromisoformat, datetime.datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    return None
