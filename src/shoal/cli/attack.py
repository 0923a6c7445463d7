"""``shoal attack``."""

from __future__ import annotations

from shoal.cli.options import Reading, read_table
from shoal.cli.terminal import File, Json, Names, answer, as_json, names
from shoal.core.errors import UsageError


def attack(
    released: File,
    register: str,
    *,
    on: Names = None,
    policy: str | None = None,
    representatives: str | None = None,
    reading: Reading = Reading(),
    json: Json = False,
) -> None:
    """Join a release with a register on the columns both have: whom does an attacker find?

    Example: `shoal attack released.csv census.csv --on zip,age,sex`.

    Parameters
    ----------
    released
        The released table.
    register
        What the attacker has: exact values, one row per person. --type speaks of its columns.
    on
        The columns to join on.
    policy
        A policy whose hierarchies the attacker knows, too.
    representatives
        Of released curves: their means, published beside them, which narrow the envelopes.
    json
        Figures as JSON.
    """
    from shoal.api import attack as join
    from shoal.connect import files

    if not on:
        raise UsageError("no columns to join on", where="--on", hint="name columns that both tables have")
    known, types = None, {}
    if policy is not None:
        from shoal.policy.load import load

        loaded = load(policy)
        known, types = loaded.schema, loaded.types()
        if not set(names(on)) & set(known.columns):
            raise UsageError("has no effect: it declares none of these columns", where="--policy", hint="leave it out")
    shown = files.read(released, separator=reading.split)
    means = None if representatives is None else files.read(representatives, separator=reading.split)
    people = read_table(register, reading, names(on), types)
    found = join(shown, people, names(on), schema=known, representatives=means)
    answer(as_json(found) if json else str(found))
