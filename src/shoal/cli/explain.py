"""``shoal explain``."""

from __future__ import annotations

import sys

from shoal.cli.options import Flag, only_with
from shoal.cli.terminal import Json, answer, as_json


def explain(policy: str, *, attacks: Flag = False, json: Json = False) -> None:
    """Show what each role sees: rows are columns, columns are roles; ⇄ marks what roles can compare with each other.

    Example: `shoal explain policy.yaml`.

    Parameters
    ----------
    policy
        The policy.
    attacks
        Also what each mask falls to.
    json
        As JSON, with the type of every cell.
    """
    from shoal.policy.load import load
    from shoal.views.explain import LINKS
    from shoal.views.explain import explain as explained

    only_with(not json, "a table: the JSON always has them", attacks=attacks)
    made = explained(load(policy))
    if json:
        answer(as_json(made))
        return
    from rich.console import Console
    from rich.table import Table

    header, *rows = made.rows()
    table = Table(show_edge=False)
    for name in header:
        table.add_column(name, overflow="fold")
    for at, row in enumerate(rows):
        table.add_row(*row, end_section=at == len(rows) - 2)
    Console(file=sys.stdout).print(table)
    for column, roles in made.linkable():
        answer(f"{LINKS} {column}: {', '.join(roles)} can compare it")
    if attacks:
        for role, seen in made.views.items():
            for column, sight in seen.items():
                if sight.attack:
                    answer(f"{role}.{column} ({sight.text}) falls to {sight.attack}")
