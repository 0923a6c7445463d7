"""Every family against its slow checkers, with fresh random cases until the time is up.

    make fuzz SECONDS=3600 SEED=5

The laws of ``tests/laws`` and ``tests/attacks`` compare each family with slow, obvious twins. `make test` runs them
with the same cases every time; here Hypothesis draws new ones, round after round, each from a seed of its own. A
failure prints the seed and the command that repeats it, and the exit code is 1; it is 2 if nothing was tried.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LAWS = "tests"
FAMILIES = {
    "state": ("laws/test_sealed_state.py", "laws/test_continuous_laws.py"),
    "tables": (
        "laws/test_table_methods.py",
        "laws/test_local_laws.py",
        "laws/test_anonymize.py",
        "laws/test_promises.py",
        "laws/test_blind.py",
        "laws/test_foreign_promises.py",
        "attacks/test_adversary.py",
        "attacks/test_earlier_releases.py",
    ),
    "z": (
        "laws/test_z_oracle.py",
        "laws/test_z_tuning.py",
        "laws/test_zero_laws.py",
        "laws/test_tuner_twins.py",
        "laws/test_watching.py",
    ),
    "groups": (
        "laws/test_stream_groups.py",
        "laws/test_stream_times.py",
        "laws/test_stream_utility.py",
        "laws/test_reused_boxes.py",
        "laws/test_beside.py",
        "laws/test_poison.py",
    ),
    "windows": ("laws/test_window_laws.py", "laws/test_time_laws.py", "attacks/test_masks_beside_each_other.py"),
    "views": (
        "laws/test_view_laws.py",
        "laws/test_mask_laws.py",
        "laws/test_gate_laws.py",
        "laws/test_derived_laws.py",
        "laws/test_one_road_kafka.py",
        "attacks/test_what_roles_link.py",
    ),
    "policies": ("laws/test_widening_laws.py", "laws/test_one_road.py"),
    "files": ("laws/test_reading_laws.py", "laws/test_hierarchies.py"),
    "curves": ("laws/test_series_laws.py", "laws/test_pattern_laws.py", "laws/test_stream_curves.py"),
}


def families() -> dict[str, tuple[str, ...]]:
    """The families, and under ``others`` every file of random laws that no family names."""
    listed = {file for files in FAMILIES.values() for file in files}
    tests = ROOT / LAWS
    found = (file for room in ("laws", "attacks") for file in sorted((tests / room).glob("test_*.py")))
    rest = [str(file.relative_to(tests)) for file in found if "@given" in file.read_text()]
    others = tuple(file for file in rest if file not in listed)
    return {**FAMILIES, "others": others} if others else dict(FAMILIES)


class Ended(NamedTuple):
    """A family that was run: how many examples passed, and whether all its laws were tried."""

    family: str
    examples: int
    whole: bool = True


def main() -> int:
    """Run rounds; 1 at the first failure, 2 if nothing was tried."""
    asked = argparse.ArgumentParser(description="Fuzz every family for a time.")
    asked.add_argument("--seconds", type=float, default=600)
    asked.add_argument("--seed", type=int, default=None, help="the first seed; random if not given")
    asked.add_argument("--family", choices=sorted(families()), default=None)
    given = asked.parse_args()
    seed = int.from_bytes(os.urandom(4), "big") if given.seed is None else given.seed
    end = time.time() + given.seconds
    ended: list[Ended] = []
    names = [given.family] if given.family else random.Random(seed).sample(sorted(families()), len(families()))
    print(f"fuzzing {', '.join(names)} for {given.seconds:,.0f} s from seed {seed}", flush=True)
    while time.time() < end:
        name = names[len(ended) % len(names)]
        done = _run(name, seed + len(ended), end)
        if done is None:
            return 1
        ended.append(done)
    print(summary(names, ended))
    return 0 if any(done.examples for done in ended) else 2


def summary(names: Sequence[str], ended: Sequence[Ended]) -> str:
    """What was tried: families, examples, whole rounds of all families.

    >>> summary(["z"], [Ended("z", 200)])
    '1 of 1 families ended (z), 200 examples (z 200), whole rounds: 1; nothing found'
    >>> summary(["z"], [])
    '0 of 1 families ended, 0 examples (z 0), no whole round; not tried to the end: z; nothing can be said'
    """
    done = [name for name in names if name in {e.family for e in ended if e.whole}]
    told = f" ({', '.join(done)})" if done else ""
    rounds = sum(e.whole for e in ended) // len(names)
    examples = sum(e.examples for e in ended)
    each = ", ".join(f"{name} {sum(e.examples for e in ended if e.family == name):,}" for name in names)
    text = f"{len(done)} of {len(names)} families ended{told}, {examples:,} examples ({each}), "
    text += f"whole rounds: {rounds:,}" if rounds else "no whole round"
    missed = [name for name in names if name not in done]
    text += f"; not tried to the end: {', '.join(missed)}" if missed else ""
    return f"{text}; {'nothing found' if examples else 'nothing can be said'}"


def passed(said: str) -> int:
    """The examples that passed, from the statistics of Hypothesis."""
    return sum(int(count) for count in re.findall(r"^ +- (\d+) passing", said, re.MULTILINE))


def _run(name: str, seed: int, end: float) -> Ended | None:
    """One family with one seed, its laws in an order of that seed; nothing for a failure.

    When the time is up, no further law is begun; one that is running has as long again to end.
    """
    files = [f"{LAWS}/{file}" for file in families()[name]]
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", *files]
    told = {"SHOAL_FUZZ": "1", "SHOAL_FUZZ_SEED": str(seed)}
    began = time.time()
    run = subprocess.Popen(
        [*words, "--hypothesis-show-statistics", "-rs"],
        cwd=ROOT,
        env={**os.environ, **told, "SHOAL_FUZZ_UNTIL": str(end)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        said = run.communicate(timeout=max(60.0, 2 * (end - began)))[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        run.kill()
        run.communicate()
        print(f"{name}, seed {seed}: time was up before the first law had ended", flush=True)
        return Ended(name, 0, whole=False)
    if run.returncode:
        print(said)
        again = " ".join([*(f"{key}={value}" for key, value in told.items()), "python", *words[1:]])
        print(f"{name} failed. To repeat it: {again}", flush=True)
        return None
    done = Ended(name, passed(said), whole="time is up" not in said)
    cut = "" if done.whole else ", cut short"
    print(f"{name}, seed {seed}: {done.examples:,} examples, {time.time() - began:,.0f} s{cut}", flush=True)
    return done


if __name__ == "__main__":
    sys.exit(main())
