"""The addresses of the studio, and what answers at each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from shoal.core.errors import ShoalError
from shoal.report.chart.svg import clean
from shoal.web import static
from shoal.web.actions import ACTIONS, version_of, with_tree
from shoal.web.downloads import download
from shoal.web.hierarchies import imported
from shoal.web.pages import choose, data, home, layout, promise, release, roles
from shoal.web.pages.column import column
from shoal.web.pages.views import views
from shoal.web.project import Project, StaleError
from shoal.web.registers import attacked
from shoal.web.studio import Studio, TooLargeError
from shoal.web.views import of_policy

LONGEST_NAME = 200


def studio_app(studio: Studio) -> Starlette:
    """The whole app; whoever serves it stands a gate before it."""
    site = Site(studio)
    return Starlette(
        routes=[
            Route("/", site.home),
            Route("/upload", site.upload, methods=["PUT"]),
            Route("/example", site.example, methods=["POST"]),
            Route("/table", site.table, methods=["POST"]),
            Route("/close", site.close, methods=["POST"]),
            Route("/static/{name}", static.serve),
            Route("/p/{id}", site.front),
            Route("/p/{id}/tasks/{task}", site.watch),
            Route("/p/{id}/tasks/{task}/cancel", site.cancel, methods=["POST"]),
            Route("/p/{id}/download/{file}", site.download),
            Route("/p/{id}/roleviews", site.role_views, methods=["PUT"]),
            Route("/p/{id}/attack", site.attack, methods=["PUT"]),
            Route("/p/{id}/column/{at:int}", site.column),
            Route("/p/{id}/tree/{at:int}", site.tree, methods=["PUT"]),
            Route("/p/{id}/{step}", site.page, methods=["GET"]),
            Route("/p/{id}/{action:path}", site.act, methods=["POST"]),
        ],
        exception_handlers={ShoalError: _wrong, HTTPException: _http, Exception: _defect},
    )


class Site:
    """Handlers: they read a request, ask the studio in a thread of its own, and answer with a page."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def project(self, request: Request) -> Project:
        """The project of an address."""
        return self.studio.project(request.path_params["id"])

    async def home(self, request: Request) -> Response:
        """The first page."""
        return HTMLResponse(home.home(self.studio))

    async def upload(self, request: Request) -> Response:
        """Take a file."""

        def opened(path: Path, name: str) -> str:
            return f"/p/{self.studio.open(str(path), name).id}"

        return await self._received(request, opened, keep=True)

    async def attack(self, request: Request) -> Response:
        """Take a register and join it with the release."""
        project = self.project(request)

        def joined(path: Path, name: str) -> str:
            attacked(project, path, name, request.query_params.getlist("on"))
            return f"/p/{project.id}/release?tab=attack"

        return await self._received(request, joined)

    async def role_views(self, request: Request) -> Response:
        """Take a policy, and look at the table through the eyes of its roles."""
        project = self.project(request)

        def looked(path: Path, name: str) -> str:
            of_policy(project, path, name)
            return f"/p/{project.id}/views"

        return await self._received(request, looked, text=True)

    async def tree(self, request: Request) -> Response:
        """Take a tree that another tool wrote for one column."""
        project, at = self.project(request), request.path_params["at"]

        def planted(path: Path, name: str) -> str:
            with_tree(project, at, version_of(dict(request.query_params)), imported(path, name))
            return f"/p/{project.id}/column/{at}"

        return await self._received(request, planted)

    async def _received(
        self, request: Request, use: Callable[[Path, str], str], *, keep: bool = False, text: bool = False
    ) -> Response:
        """Take the file that a request brings, and say where to go on, or what is wrong with it."""
        name = clean(request.query_params.get("name", "").replace("\\", "/").rpartition("/")[2][:LONGEST_NAME])
        path: Path | None = None
        try:
            path = await self.studio.receive(name, _length(request), request.stream(), text=text)
            go = await run_in_threadpool(use, path, name)
        except ClientDisconnect:
            return Response(status_code=400)
        except ShoalError as error:
            if path is not None:
                path.unlink(missing_ok=True)
            return _said(error)
        if not keep:
            path.unlink(missing_ok=True)
        return JSONResponse({"go": go})

    async def example(self, request: Request) -> Response:
        """Open bundled data."""
        sent = await _form(request)
        project = await run_in_threadpool(self.studio.example, sent.get("name", ""))
        return RedirectResponse(f"/p/{project.id}", 303)

    async def table(self, request: Request) -> Response:
        """Open a table of a database."""
        sent = await _form(request)
        try:
            project = await run_in_threadpool(self.studio.open_table, sent.get("address", ""))
        except ShoalError as error:
            return HTMLResponse(home.home(self.studio, error), 422)
        return RedirectResponse(f"/p/{project.id}", 303)

    async def close(self, request: Request) -> Response:
        """Forget a project."""
        self.studio.close((await _form(request)).get("id", ""))
        return RedirectResponse("/", 303)

    async def front(self, request: Request) -> Response:
        """Where a project begins: while it is read, its progress."""
        project = self.project(request)
        task = project.tasks["load"]
        if task.state == "done":
            return RedirectResponse(f"/p/{project.id}/data", 303)
        if task.state == "running":
            body = [
                layout.heading(project.name, "It stays on this machine."),
                layout.running(project, task, "Reading the file"),
            ]
            return HTMLResponse(layout.document(project.name, body))
        error = task.error or ShoalError("cancelled", where=project.name)
        self.studio.close(project.id)
        return HTMLResponse(home.home(self.studio, error), 422)

    async def page(self, request: Request) -> Response:
        """One of the five steps."""
        project, step, asked = self.project(request), request.path_params["step"], request.query_params
        if project.tasks["load"].state != "done":
            return RedirectResponse(f"/p/{project.id}", 303)
        at = int(asked.get("page", "0")) if asked.get("page", "0").isdigit() else 0
        steps: dict[str, Callable[[], str]] = {
            "data": lambda: data.data(project, at),
            "roles": lambda: roles.roles(project),
            "promise": lambda: promise.promise(project),
            "choose": lambda: choose.choose(project),
            "views": lambda: views(project),
            "release": lambda: release.release(project, asked.get("tab", "report"), at),
        }
        if step not in steps:
            raise HTTPException(404)
        return HTMLResponse(await run_in_threadpool(steps[step]))

    async def column(self, request: Request) -> Response:
        """The hierarchy of one column."""
        project = self.project(request)
        return HTMLResponse(
            await run_in_threadpool(column, project, request.path_params["at"], dict(request.query_params))
        )

    async def act(self, request: Request) -> Response:
        """Change something, then show the page it belongs to; what is wrong is said there."""
        project, path = self.project(request), request.path_params["action"]
        name, _, rest = path.partition("/")
        if name not in ACTIONS:
            raise HTTPException(404)
        sent = await _form(request)
        answer = await run_in_threadpool(ACTIONS[name], project, rest, sent)
        return RedirectResponse(answer, 303) if answer.startswith("/") else HTMLResponse(answer, 422)

    async def watch(self, request: Request) -> Response:
        """How a task goes, as events: a browser that lost the connection asks again by itself."""
        project, name = self.project(request), request.path_params["task"]
        if name not in project.tasks:
            raise HTTPException(404)

        async def told() -> AsyncIterator[bytes]:
            seen = -1
            while True:
                task = project.tasks[name]
                if task.changed != seen or task.state == "running":
                    seen = task.changed
                    yield b"data: " + msgspec.json.encode(task.progress()) + b"\n\n"
                if task.state != "running":
                    return
                await asyncio.sleep(0.25)

        return StreamingResponse(told(), media_type="text/event-stream")

    async def cancel(self, request: Request) -> Response:
        """Stop a task at its next step."""
        project, name = self.project(request), request.path_params["task"]
        if name in project.tasks:
            project.tasks[name].cancel()
            await run_in_threadpool(project.tasks[name].wait, 5.0)
        return RedirectResponse("/" if name == "load" else f"/p/{project.id}/choose", 303)

    async def download(self, request: Request) -> Response:
        """A file to keep."""
        return await run_in_threadpool(download, self.project(request), request.path_params["file"])


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; of several with one name, all, parted by line ends."""
    form = await request.form(max_files=0, max_fields=4000)
    return {name: "\n".join(str(v) for v in form.getlist(name)) for name in form}


def _length(request: Request) -> int | None:
    text = request.headers.get("content-length", "")
    return int(text) if text.isdigit() else None


def _said(error: ShoalError) -> Response:
    told: dict[str, Any] = {"message": error.message, "hint": error.hint, "where": error.where}
    return JSONResponse(told, 413 if isinstance(error, TooLargeError) else 422)


def _page(status: int, error: ShoalError) -> Response:
    body = [el_error(error)]
    return HTMLResponse(layout.document("Something is wrong", body), status)


def el_error(error: ShoalError) -> Any:
    """An error with a way back."""
    from shoal.web.html import el, join

    return join(
        [layout.heading("This did not work", ""), layout.failed(error), el("p", el("a", "Back to the start", href="/"))]
    )


async def _wrong(request: Request, error: Exception) -> Response:
    assert isinstance(error, ShoalError)
    return _page(409 if isinstance(error, StaleError) else 422, error)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {404: "there is no such page", 405: "this cannot be done here"}.get(error.status_code, "this cannot be done")
    return _page(error.status_code, ShoalError(told, hint="go back to the start"))


async def _defect(request: Request, error: Exception) -> Response:
    """Nobody foresaw it: its own message could quote a person."""
    return _page(500, ShoalError(f"an unexpected {type(error).__name__}: this is a defect, please report it"))
