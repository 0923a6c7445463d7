"""Every family against its slow checkers, with fresh random cases until the time is up.

    make fuzz SECONDS=3600 SEED=5

The laws of ``tests/laws``, ``tests/attacks`` and ``tests/unit`` compare each family with slow, obvious twins.
`make test` runs them with the same cases every time; here Hypothesis draws new ones, turn after turn, each from a seed
of its own. The time is CPU time: an hour on a busy machine tries as much as an hour on a quiet one. The family that had
the least of it has the next turn, and goes on with the laws that it has not tried in its round. A run too short for
turns, as that of CI, has all families in one process: a law of each, then another of each. A failure prints the seed
and the command that repeats it, and the exit code is 1; it is 2 if a family was not tried.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LAWS = "tests"
ROOMS = ("laws", "attacks", "unit")
TURN = 90.0  # CPU seconds of a family at a time: long beside the seconds that loading everything costs
SHORTEST = 20.0  # below this a family would spend much of its turn on loading: all share one process
FAMILIES = {
    "state": ("laws/test_sealed_state.py", "laws/test_continuous_laws.py"),
    "tables": (
        "laws/test_table_methods.py",
        "laws/test_local_laws.py",
        "laws/test_local_beside_others.py",
        "laws/test_local_rest.py",
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
    found = (file for room in ROOMS for file in sorted((tests / room).glob("test_*.py")))
    rest = [str(file.relative_to(tests)) for file in found if "@given" in file.read_text()]
    others = tuple(file for file in rest if file not in listed)
    return {**FAMILIES, "others": others} if others else dict(FAMILIES)


class Ended(NamedTuple):
    """A turn of a family: the laws it tried, the examples that passed, CPU seconds, whether its round is whole now."""

    family: str
    examples: int
    whole: bool = True
    cpu: float = 0.0
    laws: frozenset[str] = frozenset()
    failed: bool = False


def main() -> int:
    """Take turns; 1 at the first failure, 2 if a family was not tried."""
    asked = argparse.ArgumentParser(description="Fuzz every family for a time.")
    asked.add_argument("--seconds", type=float, default=600, help="CPU seconds, of all laws together")
    asked.add_argument("--wall", type=float, default=None, help="end after so many seconds of the clock, in any case")
    asked.add_argument("--seed", type=int, default=None, help="the first seed; random if not given")
    asked.add_argument("--family", choices=sorted(families()), default=None)
    asked.add_argument("--jobs", type=int, default=1, help="families that run beside each other")
    asked.add_argument("--go-on", action="store_true", help="a broken law does not end the run")
    given = asked.parse_args()
    seed = int.from_bytes(os.urandom(4), "big") if given.seed is None else given.seed
    names = [given.family] if given.family else random.Random(seed).sample(sorted(families()), len(families()))
    print(f"fuzzing {', '.join(names)} for {given.seconds:,.0f} CPU s from seed {seed}", flush=True)
    end = time.time() + (given.wall or 40 * given.seconds + 600)
    if len(names) > 1 and 0 < given.seconds < SHORTEST * len(names):
        ended = together(names, seed, given.seconds, end)
    else:
        ended = take_turns(names, seed, given.seconds, given.jobs, end, go_on=given.go_on)
    print(summary(names, ended))
    tried = {turn.family for turn in ended if turn.examples}
    return 1 if any(turn.failed for turn in ended) else 0 if tried == set(names) else 2


def take_turns(
    names: Sequence[str], seed: int, seconds: float, jobs: int, end: float, *, go_on: bool = False
) -> list[Ended]:
    """Turns of the families until CPU seconds or the clock are used up, or a law is broken."""
    ended: list[Ended] = []
    running: dict[Future[Ended], str] = {}
    tried: dict[str, frozenset[str]] = dict.fromkeys(names, frozenset())
    longest = min(TURN, seconds / len(names))  # so that every family has one
    drawn = 0
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            left = seconds - sum(turn.cpu for turn in ended) - longest * len(running)
            free = [name for name in names if name not in running.values()]
            fresh = seconds > 0 and {*free} - {turn.family for turn in ended}  # each has its turn
            over = (left <= 0 and not fresh) or time.time() > end or (not go_on and any(turn.failed for turn in ended))
            if not over and free and len(running) < jobs:
                name = min(free, key=lambda name: sum(turn.cpu for turn in ended if turn.family == name))
                running[pool.submit(_run, name, seed + drawn, tried[name], min(longest, left), end)] = name
                drawn += 1
            elif running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    turn = future.result()
                    tried[turn.family] = frozenset() if turn.whole else tried[turn.family] | turn.laws
                    ended.append(turn)
                    del running[future]
            else:
                return ended


def summary(names: Sequence[str], ended: Sequence[Ended]) -> str:
    """What was tried: families, laws, examples and CPU of each, whole rounds of all families.

    >>> summary(["z"], [Ended("z", 200, cpu=90.0)])
    '1 of 1 families ended (z), 200 examples in 1.5 CPU minutes (z 200 in 1.5), whole rounds: 1; nothing found'
    >>> summary(["z"], [])
    '0 of 1 families ended, 0 examples in 0.0 CPU minutes (z 0 in 0.0), no whole round; not tried to the end: z; nothing can be said'
    """  # noqa: E501 (one line is what is printed)
    done = [name for name in names if name in {turn.family for turn in ended if turn.whole}]
    told = f" ({', '.join(done)})" if done else ""
    rounds = min((sum(turn.whole for turn in ended if turn.family == name) for name in names), default=0)

    def figures(turns: Sequence[Ended], of: str = "") -> str:
        return f"{sum(turn.examples for turn in turns):,}{of} in {sum(turn.cpu for turn in turns) / 60:,.1f}"

    each = ", ".join(f"{name} {figures([turn for turn in ended if turn.family == name])}" for name in names)
    text = f"{len(done)} of {len(names)} families ended{told}, {figures(ended, ' examples')} CPU minutes ({each}), "
    text += f"whole rounds: {rounds:,}" if rounds else "no whole round"
    missed = [name for name in names if name not in done]
    text += f"; not tried to the end: {', '.join(missed)}" if missed else ""
    broken = [turn.family for turn in ended if turn.failed]
    if broken:
        return f"{text}; broken: {', '.join(broken)}"
    return f"{text}; {'nothing found' if any(turn.examples for turn in ended) else 'nothing can be said'}"


def passed(said: str) -> int:
    """The examples that passed, from the statistics of Hypothesis."""
    return sum(int(count) for count in re.findall(r"^ +- (\d+) passing", said, re.MULTILINE))


def laws(said: str) -> frozenset[str]:
    """The laws that were tried, from the same statistics."""
    return frozenset(re.findall(r"^(\S+\.py::.+):$", said, re.MULTILINE))


def together(names: Sequence[str], seed: int, seconds: float, end: float) -> list[Ended]:
    """One turn of all families in one process; its CPU time is told in equal parts, nobody measures it by law."""
    said, code, cpu = _process(names, seed, frozenset(), seconds, end)
    if code is None:
        return []
    family = {f"{LAWS}/{file}": name for name in names for file in families()[name]}
    parts = dict.fromkeys(names, "")
    for law, text in re.findall(r"^(\S+\.py::.+:\n)((?:\n| .*\n)*)", said, re.MULTILINE):
        parts[family[law.partition("::")[0]]] += law + text
    told = {family.get(file) for file in re.findall(r"^(?:FAILED|ERROR) ([^:\s]+)", said, re.MULTILINE)}
    broken = set[str]() if code == 0 else told & {*names} or {*names}
    whole = code == 0 and "time is up" not in said
    return [
        Ended(name, passed(part), whole, cpu / len(names), laws(part), failed=name in broken)
        for name, part in parts.items()
    ]


def _run(name: str, seed: int, tried: frozenset[str], seconds: float, end: float) -> Ended:
    """A turn of one family, without the laws it has tried in this round."""
    said, code, cpu = _process([name], seed, tried, seconds, end)
    if code is None:
        return Ended(name, 0, whole=False, cpu=cpu)
    return Ended(name, passed(said), code == 0 and "time is up" not in said, cpu, laws(said), failed=code != 0)


def _process(
    names: Sequence[str], seed: int, tried: frozenset[str], seconds: float, end: float
) -> tuple[str, int | None, float]:
    """Laws of families in an order of the seed: what was said, the exit code (none: it was killed), CPU seconds.

    When the CPU seconds are used up, no further law is begun, but the first of every family; one that is running ends.
    """
    name = names[0] if len(names) == 1 else "all families"
    files = {f"{LAWS}/{file}": of for of in names for file in families()[of]}
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
    told = {"SHOAL_FUZZ": "1", "SHOAL_FUZZ_SEED": str(seed)}
    began = time.time()
    with tempfile.NamedTemporaryFile("w+", errors="replace") as known, tempfile.TemporaryFile() as out:
        json.dump({"tried": sorted(tried), "families": files, "seconds": seconds}, known)
        known.flush()
        run = subprocess.Popen(
            [*words, *files, "--hypothesis-show-statistics", "-rsfE"],
            cwd=ROOT,
            env={**os.environ, **told, "SHOAL_FUZZ_TURN": known.name},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        code, cpu = _ended(run, max(end, began + 60) + 60)
        out.seek(0)
        said = out.read().decode(errors="replace")
    if code is None:
        print(f"{name}, seed {seed}: time was up before its turn had ended, {cpu:,.0f} CPU s", flush=True)
    elif code:
        print(said)
        again = " ".join([*(f"{key}={value}" for key, value in told.items()), "python", *words[1:], *files])
        print(f"{name} failed. To repeat it: {again}", flush=True)
    else:
        cut = ", to be continued" if "time is up" in said else ""
        took = f"{cpu:,.0f} CPU s, {time.time() - began:,.0f} s"
        print(f"{name}, seed {seed}: {len(laws(said))} laws, {passed(said):,} examples, {took}{cut}", flush=True)
    return said, code, cpu


def _ended(run: subprocess.Popen[bytes], end: float) -> tuple[int | None, float]:
    """The exit code (nothing if it had to be killed) and the CPU seconds of a process and its children."""
    killed = False
    while True:
        pid, status, used = os.wait4(run.pid, os.WNOHANG)
        if pid:
            run.returncode = os.waitstatus_to_exitcode(status)
            return None if killed else run.returncode, used.ru_utime + used.ru_stime
        if time.time() > end and not killed:
            run.kill()
            killed = True
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
