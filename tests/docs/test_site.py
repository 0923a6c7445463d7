"""The site builds without a warning and without the network; whoever searches for a name finds its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli import COMMANDS
from shoal.core.hierarchy import HIERARCHIES
from shoal.masks import MASKS
from shoal.promises import PROMISES
from shoal.series import SERIES_METHODS
from shoal.streams import STREAM_METHODS
from shoal.tables import TABLE_METHODS

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = (HIERARCHIES, MASKS, PROMISES, SERIES_METHODS, STREAM_METHODS, TABLE_METHODS)
NAMES = [*(f"shoal {name}" for name in COMMANDS), *(name for family in FAMILIES for name in family.names())]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.slow
def test_a_search_finds_every_command_method_mask_and_promise(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    titles = {entry["title"].lower() for entry in index}
    assert not [name for name in NAMES if name.lower() not in titles]


@pytest.mark.parametrize("room", ["tutorials", "how-to", "methods"])
def test_every_page_shows_real_output(room: str) -> None:
    for page in (ROOT / "docs" / room).glob("*.md"):
        pictures = re.findall(r"!\[[^\]]+\]\((\S+)\)", page.read_text())
        assert pictures, f"{page.name} shows no picture"
        assert not [p for p in pictures if not (page.parent / p).is_file()], page.name


def test_a_page_of_a_method_says_what_it_keeps_and_when_to_choose_it() -> None:
    for page in (ROOT / "docs" / "methods").glob("*.md"):
        text = page.read_text()
        for words in ("keeps", "protects against", "does not protect against", "cost", "choose it"):
            assert f"| {words} |" in text or page.stem == "worked-curves", f"{page.name}: {words}"


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    pages = [p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "decisions"]
    assert not [str(p) for p in pages if str(p.relative_to(ROOT / "docs")) not in listed]


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+href="https?:', text), page
        assert ":class:`" not in text
        assert "@import" not in text
