"""Every family against its slow checkers, with fresh random cases until the time is up.

    make fuzz SECONDS=3600 SEED=5

The laws of ``tests/laws`` compare each family with slow, obvious twins. `make test` runs them with the same cases every
time; here Hypothesis draws new ones, round after round, each from a seed of its own. A failure prints the seed and the
command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAWS = "tests/laws"
FAMILIES = {
    "state": ("test_sealed_state.py", "test_continuous_laws.py"),
    "tables": ("test_table_methods.py", "test_local_laws.py", "test_anonymize.py", "test_promises.py"),
    "z": ("test_z_oracle.py", "test_z_tuning.py"),
    "groups": ("test_stream_groups.py", "test_stream_times.py", "test_stream_utility.py"),
    "windows": ("test_window_laws.py",),
    "views": ("test_view_laws.py", "test_mask_laws.py"),
    "policies": ("test_widening_laws.py",),
    "files": ("test_reading_laws.py", "test_hierarchies.py"),
    "curves": ("test_series_laws.py",),
}


def main() -> int:
    """Run rounds; 1 at the first failure."""
    asked = argparse.ArgumentParser(description="Fuzz every family for a time.")
    asked.add_argument("--seconds", type=float, default=600)
    asked.add_argument("--seed", type=int, default=None, help="the first seed; random if not given")
    asked.add_argument("--family", choices=sorted(FAMILIES), default=None)
    given = asked.parse_args()
    seed = int.from_bytes(os.urandom(4), "big") if given.seed is None else given.seed
    end = time.monotonic() + given.seconds
    ended: list[tuple[str, int]] = []
    names = [given.family] if given.family else list(FAMILIES)
    print(f"fuzzing {', '.join(names)} for {given.seconds:,.0f} s from seed {seed}", flush=True)
    while time.monotonic() < end:
        name = names[len(ended) % len(names)]
        examples = _run(name, seed + len(ended), end)
        if examples is None:
            break
        if examples < 0:
            return 1
        ended.append((name, examples))
    print(summary(names, ended))
    return 0


def summary(names: Sequence[str], ended: Sequence[tuple[str, int]]) -> str:
    """What was tried to its end: families, examples, whole rounds of all families.

    >>> summary(["z", "files"], [("z", 200)])
    '1 of 2 families ended (z), 200 examples, no whole round; not tried to the end: files; nothing found'
    >>> summary(["z"], [])
    '0 of 1 families ended, 0 examples, no whole round; not tried to the end: z; nothing can be said'
    """
    done = [name for name in names if name in {family for family, _ in ended}]
    told = f" ({', '.join(done)})" if done else ""
    rounds = len(ended) // len(names)
    text = f"{len(done)} of {len(names)} families ended{told}, "
    text += f"{sum(examples for _, examples in ended):,} examples, "
    text += f"whole rounds: {rounds:,}" if rounds else "no whole round"
    missed = [name for name in names if name not in done]
    text += f"; not tried to the end: {', '.join(missed)}" if missed else ""
    return f"{text}; {'nothing found' if ended else 'nothing can be said'}"


def passed(said: str) -> int:
    """The examples that passed, from the statistics of Hypothesis."""
    return sum(int(count) for count in re.findall(r"^ +- (\d+) passing", said, re.MULTILINE))


def _run(name: str, seed: int, end: float) -> int | None:
    """One family with one seed: how many examples passed, -1 for a failure, nothing if the time was up."""
    files = [f"{LAWS}/{file}" for file in FAMILIES[name] if (ROOT / LAWS / file).exists()]
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}", *files]
    began = time.monotonic()
    run = subprocess.Popen(
        [*words, "--hypothesis-show-statistics"],
        cwd=ROOT,
        env={**os.environ, "SHOAL_FUZZ": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        said = run.communicate(timeout=max(1.0, end - began))[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        run.kill()
        run.communicate()
        print(f"{name}, seed {seed}: time was up before its end", flush=True)
        return None
    if run.returncode:
        print(said)
        print(f"{name} failed. To repeat it: SHOAL_FUZZ=1 {' '.join(words[1:])}", flush=True)
        return -1
    examples = passed(said)
    print(f"{name}, seed {seed}: {examples:,} examples, {time.monotonic() - began:,.0f} s", flush=True)
    return examples


if __name__ == "__main__":
    sys.exit(main())
