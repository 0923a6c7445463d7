"""``shoal attack``."""

from __future__ import annotations

from shoal.cli.terminal import File, Json, Names, Separator, answer, as_json, names, split_by
from shoal.core.errors import UsageError


def attack(
    released: File,
    register: str,
    *,
    on: Names = None,
    policy: str | None = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """Join a release with a register on the columns both have: whom does an attacker find?

    Example: `shoal attack released.csv census.csv --on zip,age,sex`.

    Parameters
    ----------
    released
        The released table.
    register
        What the attacker has: exact values, one row per person.
    on
        The columns to join on.
    policy
        A policy whose hierarchies the attacker knows, too.
    separator
        The CSV separator, if it is not a comma.
    json
        Figures as JSON.
    """
    from shoal.connect import files
    from shoal.face import attack as join

    if not on:
        raise UsageError("no columns to join on", where="--on", hint="name columns that both tables have")
    separator = split_by(separator)
    known = None
    if policy is not None:
        from shoal.policy.load import load

        known = load(policy).schema
        if not set(names(on)) & set(known.columns):
            raise UsageError("has no effect: it declares none of these columns", where="--policy", hint="leave it out")
    found = join(
        files.read(released, separator=separator), files.read(register, separator=separator), names(on), schema=known
    )
    if json:
        answer(as_json(found))
        return
    answer(
        f"{found.unique:,} of {found.rows:,} released rows match exactly one person of the register; "
        f"{found.none:,} match nobody\n"
        f"guessing evenly, an attacker names {found.expected:,.1f} of them rightly; "
        f"the fewest matches of a row: {found.smallest:,}"
    )
