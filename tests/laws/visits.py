"""Visits as the tests of one road read them: from a file, and from a topic."""

from __future__ import annotations

import msgspec

COLUMNS = """columns:
  time: {role: time, type: int}
  client: {role: subject, type: str}
  age: {role: quasi, type: int, hierarchy: {use: range, min: 0, max: 100}}
  site: {role: quasi, type: str, hierarchy: {use: path, depth: 2}}
  diag: {role: sensitive, type: str}
"""


def records(people: list[int]) -> list[bytes]:
    return [
        msgspec.json.encode(
            {"time": 2 * n, "client": f"p{p}", "age": p * 9, "site": f"shop.{p % 3}", "diag": "E1" + "01"[p % 2]}
        )
        for n, p in enumerate(people)
    ]
