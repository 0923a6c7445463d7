"""``shoal policy``."""

from __future__ import annotations

from typing import Literal

from shoal.cli.terminal import answer, as_json


def policy(what: Literal["schema"]) -> None:
    """Print the JSON Schema of policies, so that an editor completes and checks them.

    Example: `shoal policy schema > shoal.schema.json`.

    Parameters
    ----------
    what
        `schema` is all there is for now.
    """
    from shoal.policy.schema import schema

    answer(as_json(schema()))
