"""A server for one person: on this machine, with a link that works once, in a folder that is wiped."""

from __future__ import annotations

import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.connect.formats import file_of
from shoal.connect.sql.address import is_address
from shoal.core.errors import OutputError, UsageError
from shoal.web.folder import private_folder
from shoal.web.gate import Gate

if TYPE_CHECKING:
    from shoal.web.studio import Studio

GRACE = 2  # seconds that open answers have when the server stops


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)  # whoever has the link is heard from now on
    except OSError as error:
        made.close()
        raise OutputError(
            f"cannot listen there ({error.strerror})", where=f"{host}:{port}", hint="another port, or :0"
        ) from None
    return made


def names_of(host: str, port: int) -> list[str]:
    """The ``Host`` headers that mean this server: never one that a stranger could make lead here.

    >>> names_of("127.0.0.1", 80)
    ['127.0.0.1:80', 'localhost:80']
    """
    shown = f"[{host}]" if ":" in host else host
    names = [f"{shown}:{port}"]
    return [*names, f"localhost:{port}"] if is_loopback(host) else names


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: Any, made: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until stopped; what is still answered has a moment to end."""
    uvicorn = library()

    class Server(uvicorn.Server):  # type: ignore[misc,name-defined]
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready()

    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        lifespan="off",
    )
    server = Server(config)
    with _stopping(server):
        server.run(sockets=[made])


@contextmanager
def _stopping(server: Any) -> Iterator[None]:
    """Signals end the server, not the process: what was uploaded must still be wiped."""

    def asked(*_: object) -> None:
        server.should_exit = True

    names = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.signal(name, asked) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def run(data: str | None, host: str, port: int, largest: int, tell: Callable[[str], None]) -> None:
    """The studio, until stopped."""
    library()
    from shoal.web.app import studio_app
    from shoal.web.studio import Studio

    with private_folder() as folder, listening(host, port) as made:
        studio = Studio(folder, largest=largest)
        if data is not None:
            _open(studio, data)
        gate = Gate(studio_app(studio), names_of(host, int(made.getsockname()[1])))
        serve(gate, made, lambda: tell(gate.link()))


def _open(studio: Studio, data: str) -> None:
    """Open what the command line named, where it lies."""
    if is_address(data):
        studio.open_table(data)
        return
    place = Path(file_of(data))
    if not place.is_file():
        raise UsageError("there is no such file", where=data, hint="give one CSV, Parquet, NDJSON or Excel file")
    studio.open(data, place.name, shown_as=data)


def library() -> Any:
    """The server's library, or an error that says how to get it."""
    try:
        import python_multipart  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise UsageError(
            "pages are served by an extra package", where="studio", hint="pip install 'shoal[web]'"
        ) from None
    return uvicorn
