"""A command line called in this process, with standard input, output and errors of its own.

Which options a command has is worked out of its signature once, not at every call: that took most of a short one.
"""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from unittest import mock

from cyclopts import App
from cyclopts.argument import Argument, ArgumentCollection

from shoal.cli import main

_assemble = App.assemble_argument_collection
_known: dict[tuple[Any, ...], ArgumentCollection] = {}


def _assembled(app: App, **how: Any) -> ArgumentCollection:
    """The options of a command without a word given to them yet."""
    key = (app.default_command, *sorted(how.items()))
    if key not in _known:
        _known[key] = _assemble(app, **how)
    made: dict[int, Argument] = {}

    def fresh(one: Argument) -> Argument:
        if id(one) not in made:
            made[id(one)] = new = copy.copy(one)
            new.tokens = []
            new.children = ArgumentCollection(fresh(child) for child in one.children)
        return made[id(one)]

    return ArgumentCollection(fresh(one) for one in _known[key])


App.assemble_argument_collection = _assembled  # type: ignore[method-assign,assignment]


@contextlib.contextmanager
def _streams(given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Files in place of descriptors 0, 1, 2 and of Python's three streams: data may leave by either road."""
    kept = [os.dup(number) for number in (0, 1, 2)]
    for number, file in enumerate((given, out, err)):
        os.dup2(file.fileno(), number)
    stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - flushed below, while the descriptors are ours
    stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - flushed below, while the descriptors are ours
    stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - flushed below, while the descriptors are ours
    try:
        with mock.patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stderr):
            yield
        for stream in (stdout, stderr):
            with contextlib.suppress(OSError, ValueError):  # closed, or its disk is full: the command has said so
                stream.flush()
    finally:
        for number, old in enumerate(kept):
            os.dup2(old, number)
            os.close(old)


def call(
    words: list[str], folder: Path, stdin: str | bytes | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` of the same command line in `folder` returns."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before, code = Path.cwd(), 0
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin if isinstance(stdin, bytes) else (stdin or "").encode())
        given.seek(0)
        try:
            os.chdir(folder)
            with mock.patch.dict(os.environ, environment or {}), _streams(given, out, err):
                try:
                    main(words)
                except SystemExit as done:
                    code = int(done.code or 0)
        finally:
            os.chdir(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode().replace("\r\n", "\n"))
    return subprocess.CompletedProcess(words, code, *said)
