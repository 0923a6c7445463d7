"""What a tuned stream says of its goal on the terminal: the measured share, and what cannot be reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.cli.live import goal_said
from shoal.streams.tuning import Decision
from shoal.streams.z_stream import z_anonymity


def decision(**more: Any) -> Decision:
    made: dict[str, Any] = {"time": 0, "effect": 1, "z": 9, "p": 0.774, "reached": False, "people": 50, "rows": 90}
    return Decision(**made | {"evaluations": 3, "expected": 0.91} | more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"reached": True}, "p 0.77"),
        ({}, "p 0.77 (goal not reached)"),
        ({"reachable": False, "near": False}, "p 0.77 (goal not reachable, at best 0.91)"),
        (
            {"reached": True, "near": False, "lower": 0.7},
            "p 0.77 (within .02 of the goal not reachable: 0.70 or 0.91 to come, swings by 0.00)",
        ),
        (
            {"near": False, "swing": 0.031},
            "p 0.77 (within .02 of the goal not reachable: 0.91 to come, swings by 0.03)",
        ),
    ],
)
def test_what_cannot_be_reached_is_said_with_what_can(more: dict[str, Any], words: str) -> None:
    assert goal_said(decision(**more)) == words


def test_a_stream_that_jumps_over_its_goal_says_between_which_shares() -> None:
    """Values of their own: with z = 1 everybody stands alone, with 2 nobody shows anything."""
    stream = z_anonymity(1, "1h", key=bytes(32), tune={"goal": {"k": 2, "probability": 0.5}, "every": "10m"})
    stream.push_many(np.arange(1000) * 10.0, [f"u{i % 50}" for i in range(1000)], [f"v{i % 50}" for i in range(1000)])
    said = goal_said(stream.decisions[-1])
    assert "within .02 of the goal not reachable: 0.00 or 1.00 to come" in said
