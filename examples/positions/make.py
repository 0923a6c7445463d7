"""Invented positions of people who walk around two squares: ``python make.py`` writes ``events.ndjson``."""

import json
import random
from pathlib import Path

PLACES = ((52.5219, 13.4132), (52.5163, 13.3777))


def events(people: int = 80, steps: int = 40) -> list[dict[str, object]]:
    """Every minute each of them is somewhere near one of the places."""
    draw = random.Random(7)
    out: list[dict[str, object]] = []
    for step in range(steps):
        for person in range(people):
            latitude, longitude = PLACES[person % len(PLACES)]
            where = f"{latitude + draw.gauss(0, 0.002):.5f},{longitude + draw.gauss(0, 0.003):.5f}"
            out.append({"time": 60 * step + draw.random() * 60, "person": f"p{person}", "place": where})
    return sorted(out, key=lambda event: float(str(event["time"])))


if __name__ == "__main__":
    Path("events.ndjson").write_text("".join(json.dumps(event) + "\n" for event in events()))
