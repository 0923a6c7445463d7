"""Styles, scripts and the icon: files of this package, and the style that reports have, too."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shoal.report.page import FISH, rules

KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
MADE = {
    "page.css": lambda: "html,body{margin:0;padding:0}" + rules(),
    "fish.svg": lambda: (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 25 16"><path fill="#2463c4" d="{FISH}"/></svg>'
    ),
}
KEPT = ("studio.css", "studio.js", "upload.js", "task.js", "borders.js", "live.js")


@cache
def text(name: str) -> str:
    """One of the files; there are no others, whatever a name says."""
    if name in MADE:
        return MADE[name]()
    if name not in KEPT:
        raise KeyError(name)
    return files("shoal.web").joinpath("static", name).read_text(encoding="utf-8")


async def serve(request: Request) -> Response:
    """Answer with a file."""
    name = request.path_params["name"]
    try:
        body = text(name)
    except KeyError:
        raise HTTPException(404) from None
    kind = KINDS[name[name.rfind(".") :]]
    return Response(body, media_type=f"{kind}; charset=utf-8")
