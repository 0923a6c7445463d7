"""The studio in a real browser: the whole journey, by mouse and by keyboard, in light and dark, wide and narrow.

Screenshots of every step are left in out/studio for whoever wants to look.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.connect import files
from shoal.datasets.hospital import hospital
from tests.cli.in_process import call

pytestmark = pytest.mark.system

OUT = Path(__file__).resolve().parents[2] / "out" / "studio"
PATIENCE = 180_000  # milliseconds: compiled code may have to be made first


def studio() -> tuple[subprocess.Popen[str], str]:
    """A studio of its own process, and its link."""
    started = subprocess.Popen(
        [sys.executable, "-m", "shoal", "studio", "--no-browser"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": ""},
    )
    assert started.stderr is not None
    link = re.search(r"http\S+", started.stderr.readline())
    assert link is not None
    threading.Thread(target=started.stderr.read, daemon=True).start()
    return started, link[0]


class Visit:
    """A page, and everything that went wrong on it."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.wrong: list[str] = []
        self.page.on("console", lambda m: m.type == "error" and self.wrong.append(m.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def shot(self, name: str) -> None:
        """Keep a picture; nothing hangs over the edge."""
        OUT.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(OUT / f"{name}.png"), full_page=True)
        wide = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{name} scrolls sideways"


@pytest.fixture(scope="module")
def open_studio(browser: Any) -> Iterator[tuple[Any, str]]:
    started, link = studio()
    context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("text=Hide in numbers")
    page.close()
    yield context, link.partition("/enter")[0]
    context.close()
    started.terminate()
    started.wait(60)
    started.stderr.close()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def patients(open_studio: tuple[Any, str]) -> str:
    """The address of the bundled table, opened once."""
    context, base = open_studio
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(base)
    page.click("text=2,000 invented patients")
    page.wait_for_url("**/data")
    place = str(page.url.rpartition("/")[0])
    page.close()
    return place


def saved(visit: Visit, words: str, folder: Path) -> Path:
    """Click a link that hands out a file."""
    with visit.page.expect_download() as waited:
        visit.page.click(f"text={words}")
    place = folder / waited.value.suggested_filename
    waited.value.save_as(place)
    return place


def strangers_table(folder: Path) -> Path:
    """A table that is not ours where there is one, else invented patients."""
    place = folder / "people.csv"
    adult = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult" / "adult_arx_30162.csv.gz"
    frame = files.read(str(adult)).head(900) if adult.exists() else hospital(600, seed=5)
    frame.write_csv(place)
    return place


def test_a_stranger_gets_from_a_file_to_a_verified_release(open_studio: tuple[Any, str], tmp_path: Path) -> None:
    context, base = open_studio
    visit = Visit(context)
    page = visit.page
    page.goto(base)
    visit.shot("1-home")
    table = strangers_table(tmp_path)
    page.set_input_files("#file", str(table))
    page.wait_for_url("**/data")
    visit.shot("2-data")
    page.click("text=Next: Roles")
    page.wait_for_selector("h1:has-text('give away')")
    page.select_option("tr:has(strong:text-is('age')) select", "quasi")
    page.wait_for_load_state("networkidle")
    visit.shot("3-roles")
    page.click("tr:has(strong:text-is('age')) a")
    page.select_option("select[name=use]", "intervals")
    page.wait_for_selector(".handles g")
    before = page.input_value("input[name=borders]")
    page.focus(".handles g:first-child")
    page.keyboard.press("ArrowRight")
    moved = page.input_value("input[name=borders]")
    assert int(moved.split(",")[0]) == int(before.split(",")[0]) + 1
    knob = page.locator(".handles g:last-child rect").bounding_box()
    page.mouse.move(knob["x"] + 5, knob["y"] + 8)
    page.mouse.down()
    page.mouse.move(knob["x"] + 60, knob["y"] + 8, steps=4)
    page.mouse.up()
    assert page.input_value("input[name=borders]").split(",")[-1] != moved.split(",")[-1]
    visit.shot("4-borders")
    page.click("button:text-is('Save')")
    page.wait_for_selector("text=Level by level")
    page.click("nav.steps >> text=Promise")
    page.wait_for_selector("text=Risk before")
    page.fill("input[name=k]", "4")
    page.click("text=Save promises")
    page.wait_for_load_state("networkidle")
    visit.shot("5-promise")
    page.click("text=Next: Choose")
    page.wait_for_selector("text=Make the release")
    page.select_option("select[name=method]", "mondrian")
    page.fill("input[name=seed]", "11")
    page.focus("button:text-is('Make the release')")
    page.keyboard.press("Enter")  # by keyboard, too
    page.wait_for_selector(".stamp, .failed")
    assert "Verified" in page.inner_text(".stamp"), page.inner_text("main")
    visit.shot("6-release")
    made, policy = saved(visit, "Release (csv)", tmp_path), saved(visit, "Policy (yaml)", tmp_path)
    saved(visit, "Report (html)", tmp_path)
    command = page.inner_text("pre code")
    assert f"--policy {policy.name}" in command
    again = tmp_path / "again.csv"
    words = [*command.split()[1:-1], again.name]
    done = call(words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == made.read_bytes()
    for tab in ("rows", "groups", "attack"):
        page.goto(page.url.partition("?")[0] + f"?tab={tab}")
        visit.shot(f"7-{tab}")
    page.set_input_files("[data-upload] input", str(table))
    page.wait_for_selector("text=match exactly one person")
    assert "0 of" in page.inner_text(".attacks")
    assert visit.wrong == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1200, "light")])
def test_every_page_fits_and_reads_well(
    browser: Any, open_studio: tuple[Any, str], patients: str, width: int, scheme: str
) -> None:
    state = open_studio[0].storage_state()
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme, storage_state=state)
    try:
        visit = Visit(context)
        visit.page.goto(open_studio[1])
        visit.shot(f"home-{width}-{scheme}")
        for step in ("data", "roles", "column/4", "promise", "choose", "release", "views"):
            visit.page.goto(f"{patients}/{step}")
            visit.shot(f"{step.replace('/', '-')}-{width}-{scheme}")
            unnamed = visit.page.evaluate(
                "[...document.querySelectorAll('input:not([type=hidden]), select, button')].filter(e => "
                "!e.labels?.length && !e.ariaLabel && !e.textContent.trim()).map(e => e.outerHTML)"
            )
            assert unnamed == [], "every field has a name for those who do not see it"
        assert visit.wrong == []
    finally:
        context.close()


def test_a_choice_made_before_the_script_came_counts(open_studio: tuple[Any, str], patients: str) -> None:
    visit = Visit(open_studio[0])
    page = visit.page
    held: list[Any] = []

    def first_waits(route: Any) -> None:
        held.append(route)
        if len(held) > 1:
            route.continue_()

    page.route("**/studio.js", first_waits)
    page.goto(f"{patients}/column/4", wait_until="commit")
    page.select_option("select[name=use]", "intervals")
    while not held:  # the browser asks for it in its own time
        page.wait_for_timeout(50)
    held[0].continue_()
    page.wait_for_selector(".handles g")
    assert visit.wrong == []


def test_a_stopped_server_is_said(browser: Any) -> None:
    started, link = studio()
    context = browser.new_context()
    try:
        visit = Visit(context)
        visit.page.goto(link)
        visit.page.click("text=2,000 invented patients")
        visit.page.wait_for_url("**/data")
        visit.page.goto(visit.page.url.replace("/data", "/choose"))
        visit.page.select_option("select[name=effort]", "high")
        visit.page.click("text=Make the release")
        visit.page.wait_for_selector("[data-task]")
        # a page whose script has not come yet cannot say anything
        visit.page.wait_for_selector("[data-task] .seconds:not(:empty)")
        started.terminate()
        visit.page.wait_for_selector("text=Shoal does not answer")
    finally:
        context.close()
        started.terminate()
        started.wait(60)
        started.stderr.close()  # type: ignore[union-attr]
