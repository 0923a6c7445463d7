"""The report of all papers: what is the same, what differs and why. The checked-in CSV is held to the table of
deviations; small parts are computed anew; all of it only with the mark `slow`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import polars as pl
import pytest

from shoal.experiments import z_data
from shoal.experiments.report import examples, others, thesis
from shoal.experiments.report.claim import VERDICTS, Claim, number, ratio, shape
from shoal.experiments.report.deviations import DEVIATIONS, reason_of
from shoal.experiments.report.whole import COLUMNS, report_page, run
from shoal.experiments.z_streams import hidden

CHECKED_IN = Path(__file__).parents[2] / "docs" / "papers" / "report.csv"
PAPERS = {"Bacconi 2021", "Jha et al. 2020", "Minutoli et al. 2021", "Allgöwer 2023", "Garai 2019"}


@pytest.fixture(scope="module")
def report() -> pl.DataFrame:
    return pl.read_csv(CHECKED_IN, infer_schema=False).fill_null("")


def claims(table: pl.DataFrame) -> list[Claim]:
    return [Claim(*row) for row in table.select(COLUMNS).rows()]


def judged_again(claim: Claim) -> str:
    """The verdict on a number, from its text and its stated tolerance."""
    published, ours = (float(text.replace(",", "")) for text in (claim.published, claim.ours))
    within = claim.tolerance.removeprefix("±")
    room = float(within[:-1]) / 100 * abs(published) if within.endswith("%") else float(within)
    return "same" if abs(published - ours) <= room * 1.01 + 0.005 * abs(ours) else "differs"


def test_all_five_papers_are_there_and_every_verdict_follows_from_its_numbers(report):
    assert set(report["paper"]) == PAPERS
    assert not report.select("item", "what").is_duplicated().any()
    for claim in claims(report):
        assert claim.verdict in VERDICTS
        if claim.verdict == "same":
            assert judged_again(claim) == "same", claim


def test_every_deviation_has_its_reason_and_every_reason_its_deviation(report):
    differs = [claim for claim in claims(report) if claim.verdict == "differs"]
    for claim in differs:
        assert reason_of(claim), f"no reason is given for: {claim.key}"
        assert claim.reason == reason_of(claim)
    for pattern, reason in DEVIATIONS:
        assert any(re.fullmatch(pattern, claim.key) for claim in differs), f"nothing differs any more: {pattern}"
        assert len(reason.text) > 20
        hidden = [c for c in claims(report) if c.verdict != "differs" and re.fullmatch(pattern, c.key)]
        assert not hidden, f"listed, and the same: {hidden[0].key}"


def test_published_tables_of_levels_are_within_three_points(report):
    """Bacconi 2021, Tables 4.1 to 4.3: 56 numbers."""
    part = [c for c in claims(report) if c.item in ("Table 4.1", "Table 4.2", "Table 4.3")]
    assert len(part) == 56
    assert sum(c.verdict == "same" for c in part) >= 50


def test_parts_that_cost_little_say_what_the_checked_in_report_says(report, tmp_path):
    known = {c.key: c for c in claims(report)}
    again = [c for c in others.z_model() if c.item != "Figure 7"]
    again += list(others.role_views())
    for claim in again:
        assert claim.verdict == known[claim.key].verdict, claim
        if claim.tolerance.startswith("±"):
            ours = [float(text.replace(",", "")) for text in (claim.ours, known[claim.key].ours)]
            assert ours[0] == pytest.approx(ours[1], abs=0.02)


def test_a_verdict_is_only_as_good_as_its_tolerance():
    assert number("p", "t", "x", 10, 12, 2).verdict == "same"
    assert number("p", "t", "x", 10, 12.1, 2).verdict == "differs"
    assert ratio("p", "t", "x", 100, 104, 0.05).verdict == "same"
    assert ratio("p", "t", "x", 100, 106, 0.05).verdict == "differs"
    assert shape("p", "t", "x", "rises", True, "").verdict == "same shape"
    assert shape("p", "t", "x", "rises", False, "").verdict == "differs"
    assert reason_of(shape("p", "nowhere", "x", "rises", False, "")) == ""


def test_the_page_shows_every_line(report):
    html = report_page(report)
    assert html.count("<tr") >= report.height
    assert "differs" in html


def test_a_worked_example_names_a_test_that_is_there(report):
    """Every table and figure without a number stands on the page, with the test that does it again."""
    known = {(c.paper, c.item) for c in claims(report)}
    for claim in examples.examples():
        assert (claim.paper, claim.item) in known
        if claim.verdict == "worked example":
            file, _, name = claim.ours.partition("::")
            text = (CHECKED_IN.parents[2] / file).read_text()
            assert not name or f"\ndef {name}(" in text, claim.ours


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("SHOAL_LONG") != "1", reason="some minutes; SHOAL_LONG=1 runs it")
def test_the_whole_report_comes_out_again(report, tmp_path):
    """Everything that needs no data of others; verdicts only, because generated curves stand for the real ones."""
    made = {c.key: c for c in claims(run(tmp_path))}
    for claim in claims(report):
        if claim.paper in ("Bacconi 2021", "Jha et al. 2020", "Allgöwer 2023"):
            assert made[claim.key].verdict == claim.verdict, (made[claim.key], claim)
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_noise_is_measured_at_the_z_of_each_hour(monkeypatch):
    monkeypatch.setattr(z_data, "SHRINK", 0.05)
    found = list(thesis.noise())
    assert {c.item for c in found} == {f"Table 6.{n}" for n in range(1, 6)}
    assert all(c.verdict == "same shape" for c in found if c.item in ("Table 6.1", "Table 6.2") and c.what[-1] != "%")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "z"), [("ecommerce", 12), ("domains", 4), ("positions", 8)])
def test_at_one_z_noise_hides_nothing_more_and_leaves_more(monkeypatch, name, z):
    """Tables 6.3 to 6.5: the z of an hour hangs on noise a little; at one z both sentences are exact."""
    monkeypatch.setattr(z_data, "SHRINK", 0.05)
    frame = thesis.with_lead(name)
    before = hidden(frame, frame["value"])[1]
    made = thesis.noisy(frame, True, (0.0, 1 / 6, 1 / 5, 1 / 4), before, z)
    assert len({anonymized for anonymized, _, _ in made}) == 1
    assert [left for _, _, left in made] == sorted(left for _, _, left in made)
    assert [volume for _, volume, _ in made] == sorted(volume for _, volume, _ in made)
