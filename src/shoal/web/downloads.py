"""The files a person takes away: the release, its report, its policy."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from shoal.core.errors import PromiseError
from shoal.web.project import Project

ENDINGS = (".csv", ".parquet", ".ndjson")


def download(project: Project, file: str) -> Response:
    """A file by its name; nothing that was not verified."""
    made = project.release
    if file == "policy.yaml":
        text = project.released_as or project.chosen.policy()
        return _text(text, "application/yaml", file)
    if made is None:
        raise HTTPException(404)
    if not made.report.verified:
        raise PromiseError("the release breaks its promise and is not handed out", where=project.name)
    if file in ("report.html", "report.json", "report.txt"):
        return _text(made.page(file), "text/html" if file.endswith("html") else "text/plain", file)
    ending = file.removeprefix("released")
    if file.startswith("released") and ending in ENDINGS:
        return FileResponse(project.written(ending), filename=file, media_type="application/octet-stream")
    raise HTTPException(404)


def _text(text: str, kind: str, file: str) -> Response:
    kept = {"content-disposition": f'attachment; filename="{file}"'}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=kept)
