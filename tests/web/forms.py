"""What visitors of a studio do in the tests."""

from __future__ import annotations

from starlette.testclient import TestClient

from shoal.web.project import Project
from shoal.web.studio import Studio

HOST = "127.0.0.1:4000"
BASE = f"http://{HOST}"


def opened(visitor: TestClient, studio: Studio, name: str, content: bytes) -> Project:
    """A project of an uploaded file, read to its end."""
    answer = visitor.put("/upload", params={"name": name}, content=content)
    assert answer.status_code == 200, answer.text
    project = studio.project(answer.json()["go"].rpartition("/")[2])
    project.tasks["load"].wait(60)
    return project


def post(visitor: TestClient, project: Project, action: str, **sent: object) -> int:
    """Send a form as the page that shows the newest version does; what came back."""
    return visitor.post(f"/p/{project.id}/{action}", data={"version": project.version, **sent}).status_code
