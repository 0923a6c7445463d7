"""A name that says only: the same one as before."""

from __future__ import annotations

from typing import Any, ClassVar

from shoal.core.cells import SUPPRESSED
from shoal.core.errors import UsageError
from shoal.core.time import period, scale
from shoal.core.vault import Vault
from shoal.masks.base import Context, Running
from shoal.masks.keyed import Keyed, fingerprint


class Pseudonym(Keyed, frozen=True, tag="pseudonym"):
    """A keyed hash of 128 bits, ``v<epoch>:<hex digits>``; with ``rotate`` a new one every period of event time.

    Equal values of one role read alike, within one period; different roles, columns, epochs and periods have nothing in
    common. ``vault`` names a SQLite file of salts, one per person: delete the salt (`shoal keys forget-person`) and
    nobody, not even the key's holder, can ever tell again whose pseudonym it was.

    Protects against: reading or recomputing the value without the key; following a person across roles or periods.
    Does not protect against: counting (whoever visits most often is the commonest pseudonym) and patterns of behaviour
    within a period. It is a name, not anonymity: promises still count people behind it.
    Cost: one BLAKE2b.

    >>> from shoal.core.keys import KeyRing
    >>> ring = KeyRing({"default": {1: bytes(32)}})
    >>> ward, lab = (Pseudonym().start(Context("pid", "str", role, ring)) for role in ("ward", "lab"))
    >>> ward.one("p7") == ward.one("p7"), ward.one("p7") == lab.one("p7"), len(ward.one("p7"))
    (True, False, 35)
    """

    attack: ClassVar[str] = "frequency and behaviour: the most active pseudonym is the most active person"

    rotate: str | None = None
    vault: str | None = None

    def __post_init__(self) -> None:
        if self.rotate is not None:
            period(self.rotate, where="pseudonym")

    def start(self, context: Context) -> Running:
        """See :class:`Mask`."""
        if self.rotate is not None and context.time is None:
            raise UsageError(
                "`rotate` needs event time", where=context.column, hint="declare a column with `role: time`"
            )
        return _Pseudonym(self, context)

    def describe(self) -> str:
        """See :class:`Mask`."""
        return f"pseudonym{f', new every {self.rotate}' if self.rotate else ''}"


class _Pseudonym(Running):
    def __init__(self, spec: Pseudonym, context: Context) -> None:
        super().__init__("str", by=(context.time,) if spec.rotate and context.time else ())
        self._spec, self._context = spec, context
        self._of = fingerprint(spec.derive(context))
        self._prefix = f"v{context.keys.current(spec.key)}:"
        self._period = period(spec.rotate, where="pseudonym") if spec.rotate else 0
        self._read = scale(context.unit)
        self._vault = Vault.at(context.folder / spec.vault) if spec.vault else None
        self.alike = not self._period and self._vault is None

    def one(self, value: Any, *by: Any) -> str:
        parts = [value]
        if self._period:
            at = self._read(by[0])
            # without a time there is no period: a pseudonym for all of them would never rotate
            if at < 0:
                return SUPPRESSED
            parts.append(at // self._period)
        if self._vault:
            parts.append(self._spec.salt(self._vault, self._context, value))
        return self._prefix + self._of(*parts).hex()

    def settle(self) -> None:
        if self._vault:
            self._vault.commit()
