"""Every example is run as its page says, in a copy of its folder."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.in_process import call

ROOT = Path(__file__).resolve().parents[2]
KEY = "ab" * 32
EXAMPLES = [p.parent.name for p in sorted(ROOT.glob("examples/*/README.md")) if p.parent.name != "plugin"]


def test_the_examples_are_those_that_were_promised():
    assert {"hospital", "visits", "shop", "positions", "sales", "growing", "database", "notebook"} <= set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_does_what_its_page_says(name, tmp_path):
    folder = tmp_path / name
    shutil.copytree(ROOT / "examples" / name, folder)
    text = (folder / "README.md").read_text()
    lines = re.findall(r"^\$ (.*)$", text, re.M)
    assert lines
    assert "What to look for" in text
    for line in lines:
        words = shlex.split(line)
        if words[0] == "python":
            subprocess.run([sys.executable, *words[1:]], cwd=folder, check=True, capture_output=True)
            continue
        assert words[0] == "shoal"
        done = call(words[1:], folder, environment={"SHOAL_KEY": KEY, "SHOAL_KEY_BILLING": KEY})
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    named = re.findall(r"`([a-z_]+\.(?:csv|html|ndjson|yaml))`", text)
    assert not [file for file in named if not (folder / file).exists()], "a page names files that are not there"


def test_the_notebook_runs(tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(ROOT / "examples" / "notebook" / "release.ipynb", as_version=4)
    made = nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [o for c in made.cells for o in c.get("outputs", [])]
    assert any("Verified" in str(o.get("data", {}).get("text/html", "")) for o in shown)
