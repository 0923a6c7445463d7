"""A studio in this process, and a visitor who came in by its link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from shoal.web.app import studio_app
from shoal.web.gate import Gate
from shoal.web.studio import Studio
from tests.web.forms import BASE, HOST


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    folder = tmp_path / "private"
    folder.mkdir()
    made = Studio(folder, largest=1 << 20)
    yield made
    for project in made.projects.values():
        for task in project.tasks.values():
            task.cancel()
            task.wait(60)


@pytest.fixture
def gate(studio: Studio) -> Gate:
    return Gate(studio_app(studio), [HOST])


@pytest.fixture
def stranger(gate: Gate) -> Iterator[TestClient]:
    """Someone without the link."""
    with TestClient(gate, base_url=BASE, headers={"origin": BASE}, follow_redirects=False) as client:
        yield client


@pytest.fixture
def visitor(stranger: TestClient, gate: Gate) -> TestClient:
    """Someone who came by the link."""
    assert stranger.get(gate.link()).status_code == 200
    return stranger
