"""Pictures of what commands print, for the pages that show them: ``python docs/pictures/terminal.py [name …]``.

Each scene runs in a folder of its own, with the real program; its last commands and their output are drawn.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path

WIDE, HIGH = 104, 30  # characters and lines of a picture; what is longer ends with a dot line
KEY = "ab" * 32
SAID = ' class="said"'
HOSPITAL = Path(__file__).parents[2] / "examples" / "hospital"
PATIENTS = "shoal generate hospital --rows 400 --seed 3 -o patients.csv"
PROMISED = "--quasi zip,sex,age --sensitive diag --k 5 --l 2"
ODD = """code,born,weight,smoker
007,31.12.1961,"71,5",no
012,24.01.1958,"80,2",?
113,30.06.1970,"64,0",yes
114,17.03.1971,"90,9",no
"""
BROKEN = """from shoal.core.errors import ShoalError
from shoal.core.hierarchy.custom import Custom
from shoal.testing import check_hierarchy

try:
    check_hierarchy(Custom(lambda year, level: str(year % 10**level), levels=3), [1789, 1848, 1849])
except ShoalError as error:
    print(error)
"""
LOAD = """import sqlite3

import polars as pl

rows, base = pl.read_csv("patients.csv"), sqlite3.connect("clinic.db")
base.execute(f"CREATE TABLE patients ({','.join(rows.columns)})")
base.executemany(f"INSERT INTO patients VALUES ({','.join('?' * rows.width)})", rows.rows())
base.commit()
"""
DELAYED = """dataset: patients
columns:
  pid: {{role: subject}}
  zip: {{role: quasi, type: str, hierarchy: {{use: prefix, length: 5}}}}
  age: {{role: quasi, type: int, hierarchy: {{use: range, min: 0, max: 120}}}}
  diag: {{role: sensitive}}
views:
  research:
    show: [zip, age, diag]
    promises: [{{use: k-anonymity, k: 3}}]
    method: {{use: {method}, delay: 100}}
"""
WAITING = ("batches", "castle", "fads")  # methods of streams that may wait
GROWING = "--quasi sex,age --hierarchy age=range:0:120 --sensitive diag --k 5 --append state"
SCENES: dict[str, tuple[list[str], list[str]]] = {  # what is prepared in silence, what is shown
    "first-policy": ([PATIENTS], ["shoal init patients.csv"]),
    "reading": ([], ["shoal init odd.csv"]),
    "tuning": (
        [PATIENTS, "shoal init patients.csv -o policy.yaml"],
        ["shoal tune policy.yaml patients.csv --max-loss 0.5 --methods local,mondrian --seed 1"],
    ),
    "bigger-than-memory": (
        ["shoal generate hospital --rows 80000 --seed 3 -o visits.csv"],
        [f"shoal anonymize visits.csv {PROMISED} --method mondrian --memory 300MB -o released.csv"],
    ),
    "later-rows": (
        [
            PATIENTS,
            f"shoal anonymize patients.csv {PROMISED} -o released.csv --save-model patients.model",
            "shoal generate hospital --rows 40 --seed 8 -o monday.csv",
        ],
        ["shoal anonymize monday.csv --model patients.model -o monday_released.csv"],
    ),
    "certificate": (
        [
            PATIENTS,
            "shoal init patients.csv -o policy.yaml",
            "shoal keys new certificate --ring keys.json",
            "shoal anonymize patients.csv --policy policy.yaml -o released.csv --certificate certificate.json",
        ],
        ["shoal verify released.csv --policy policy.yaml --certificate certificate.json"],
    ),
    "databases": (
        [
            PATIENTS,
            f"{sys.executable} load.py",
            f"shoal anonymize sqlite:clinic.db#patients {PROMISED} --into sqlite:clinic.db#release",
        ],
        [
            f"shoal verify sqlite:clinic.db#release {PROMISED}",
            "shoal measure sqlite:clinic.db#patients --quasi zip,sex,age",
        ],
    ),
    "streams": (
        ["shoal generate domains --scale 0.002 --seed 1 -o visits.csv"],
        [
            "shoal stream visits.csv --z 5 --window 1h -o released.ndjson --withheld withheld.ndjson",
            "head -3 withheld.ndjson",
        ],
    ),
    **{
        method: (
            [PATIENTS],
            [f"shoal stream patients.csv --policy {method}.yaml -o released.ndjson", "head -4 released.ndjson"],
        )
        for method in WAITING
    },
    "z_anonymity": (
        ["shoal generate domains --scale 0.01 --seed 1 -o visits.csv"],
        ["shoal stream visits.csv --z 5 --window 1h --hierarchy path -o released.csv", "tail -4 released.csv"],
    ),
    "continuous": (
        [PATIENTS, f"shoal anonymize patients.csv {GROWING} -o first.csv"],
        [
            "shoal generate hospital --rows 300 --seed 2 -o tuesday.csv",
            f"shoal anonymize tuesday.csv {GROWING} -o second.csv",
        ],
    ),
    "plugins": ([], ["python broken.py"]),
    "kafka": ([], ["shoal explain policy.yaml"]),
    "roles": ([], ["shoal check policy.yaml patients.csv"]),
    "kafka-tools": ([], ["shoal generate hospital --rows 4 --seed 3"]),
}
FILES = {
    "odd.csv": ODD,
    "broken.py": BROKEN,
    "load.py": LOAD,
    **{f"{method}.yaml": DELAYED.format(method=method) for method in WAITING},
    "policy.yaml": (HOSPITAL / "policy.yaml").read_text(),
    "patients.csv": (HOSPITAL / "patients.csv").read_text(),
}


def played(name: str) -> list[str]:
    """The lines of one scene, as a terminal shows them."""
    prepared, shown = SCENES[name]
    keys = {"SHOAL_KEY": KEY, "SHOAL_KEY_BILLING": KEY}
    with tempfile.TemporaryDirectory() as folder:
        for file, text in FILES.items():
            (Path(folder) / file).write_text(text)
        ring = {"SHOAL_KEYS": str(Path(folder) / "keys.json")} if name == "certificate" else keys
        environment = {**os.environ, **ring, "NO_COLOR": "1", "COLUMNS": str(WIDE)}
        lines: list[str] = []
        for command in [*prepared, *shown]:
            words = shlex.split(command)
            words[:1] = [sys.executable, "-m", "shoal"] if words[0] == "shoal" else words[:1]
            words[:1] = [sys.executable] if words[0] == "python" else words[:1]
            done = subprocess.run(
                words,
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if command in shown:
                lines += [f"$ {command}", *done.stdout.rstrip().replace(folder, "").splitlines(), ""]
            elif done.returncode:
                raise SystemExit(f"{name}: {command}\n{done.stdout}")
    return lines[:-1]


def wrapped(lines: list[str]) -> list[str]:
    """No line wider than the picture, nor more of them than it holds."""
    out = []
    for line in lines:
        out += textwrap.wrap(line, WIDE, subsequent_indent="    ", drop_whitespace=False) or [""]
    return out if len(out) <= HIGH else [*out[: HIGH - 1], "…"]


def drawn(title: str, lines: list[str]) -> str:
    """An SVG of lines in a terminal; it reads in light and dark alike."""
    row, wide = 18, 8 * max(60, *(len(line) for line in lines)) + 36
    rows = [
        f'<text x="18" y="{34 + row * at}"{SAID if line.startswith("$ ") else ""}>{escape(line)}</text>'
        for at, line in enumerate(lines)
        if line
    ]
    high = 34 + row * len(lines)
    style = (
        "text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d6deeb;white-space:pre}"
        ".said{fill:#7fc8ff;font-weight:600}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        f'role="img"><title>{escape(title)}</title><style>{style}</style>'
        f'<rect width="{wide}" height="{high}" rx="10" fill="#16202c"/>{"".join(rows)}</svg>\n'
    )


def main(names: list[str]) -> None:
    """Draw these scenes, or all."""
    for name in names or SCENES:
        lines = wrapped(played(name))
        Path(__file__).with_name(f"terminal-{name}.svg").write_text(drawn(f"What the terminal shows: {name}", lines))
        print("\n".join([f"== {name}", *lines]))


if __name__ == "__main__":
    main(sys.argv[1:])
