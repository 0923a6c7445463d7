"""``shoal warm``."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shoal.cli.terminal import progress, say
from shoal.core.errors import InputError, UsageError
from shoal.kernels.talk import ONCE

ONE = "import sys; from shoal.cli.warm import compile_for; compile_for(sys.argv[1])"
DELAYED: dict[str, Any] = {"delay": 12}


def warm(*methods: str) -> None:
    """Compile for this machine now what the first use of a method would otherwise wait for.

    Every method is run once on invented data and held to its laws, each in a process of its own, as many at a time as
    there are cores; what was done before is not done again. Where nothing may be written to the folder of
    compiled code (`XDG_CACHE_HOME`), nothing is gained.

    Parameters
    ----------
    methods
        Names of table, stream and series methods; all if none is given.
    """
    known = listed()
    for name in methods:
        if name not in known:
            raise UsageError(f"there is no method called {name!r}", where="warm", hint=f"one of: {', '.join(known)}")
    wanted = [name for name in dict.fromkeys(methods or known) if not _mark(name).exists()]
    if not wanted:
        say("everything is compiled for this machine")
        return
    with (
        progress(ONCE) as tell,
        ThreadPoolExecutor(min(len(wanted), os.cpu_count() or 1)) as pool,
    ):
        left = {pool.submit(_apart, name): name for name in wanted}
        for done in as_completed(list(left)):
            name = left.pop(done)
            if done.result():
                for other in left:
                    other.cancel()
                raise InputError(
                    f"the code of {name!r} could not be compiled", where="warm", hint=f"shoal warm {name}, alone"
                )
            _note(name)
            tell(1 - len(left) / len(wanted), f"{len(left)} of {len(wanted)} left")
    say(f"compiled for this machine: {', '.join(wanted)}")


def listed() -> list[str]:
    """The methods of this package, those that take longest first."""
    return ["local", "z-anonymity", "batches", "castle", "kapra", "fads", "topdown", "forest", "lattice", "banded",
            "microaggregation", "mondrian", "datafly", "naive", "curves"]  # fmt: skip


def _mark(name: str) -> Path:
    """A file that says that this was done, for these kernels, versions and machine."""
    from shoal.kernels.stamps import ROOM, folder, stamp

    made_of = (sys.version, version("numba"), version("numpy"), platform.platform())
    digest = hashlib.blake2b(repr(made_of).encode(), digest_size=8)
    for file in sorted(ROOM.rglob("*.py")):
        digest.update(stamp(file).encode())
    return folder(ROOM / "compile.py").parent / f"warm-{name}-{digest.hexdigest()}"


def _note(name: str) -> None:
    with suppress(OSError):  # nowhere to write: then it is done again next time
        _mark(name).parent.mkdir(parents=True, exist_ok=True)
        _mark(name).touch()


def _apart(name: str) -> int:
    """Compile for one method in a process of its own: the compiler works on one core at a time."""
    done = subprocess.run([sys.executable, "-c", ONE, name], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode


def compile_for(name: str) -> None:
    """Run a method on invented data, so that its kernels are compiled, also those that small work could do without."""
    from shoal.kernels import interpreted
    from shoal.series import SERIES_METHODS
    from shoal.tables import TABLE_METHODS

    interpreted.allowed = False
    if name in TABLE_METHODS.names():
        _table(name)
    elif name in SERIES_METHODS.names():
        from shoal.testing import check_series_method

        check_series_method(SERIES_METHODS.get(name)())
    else:
        _stream(name)


def _table(name: str) -> None:
    from shoal.api import anonymize
    from shoal.datasets.hospital import hospital
    from shoal.tables import TABLE_METHODS
    from shoal.testing import check_table_method

    quasi: dict[str, Any] = {"zip": {"use": "prefix", "length": 5}, "sex": "suppress", "age": "range"}
    shared: dict[str, Any] = {"quasi": quasi, "sensitive": ["diag"], "method": name, "k": 3, "seed": 1}
    anonymize(hospital(200, seed=1, visits=1.5), subject="pid", l=2, waive=["linked-rows"], **shared)
    check_table_method(TABLE_METHODS.get(name)())


def _stream(name: str) -> None:
    import polars as pl

    from shoal.connect.ndjson import Flat
    from shoal.core.time import SOME, micros
    from shoal.promises.kp_anonymity import KPAnonymity
    from shoal.promises.z_anonymity import ZAnonymity
    from shoal.streams import STREAM_METHODS
    from shoal.testing import check_stream_method

    check: Callable[..., None] = check_stream_method
    kind: Any = STREAM_METHODS.get(name)
    if name == "z-anonymity":
        check(kind(), promises=[ZAnonymity(3, "1h")])
        _pushes()
        Flat({"who": pl.String()}).read(b'{"who": "ada"}\n')
        _records()
        micros(pl.Series(["1.5"] * SOME))
    elif name == "curves":
        check(kind(window="10ms", every="5ms", missing="previous"), promises=[KPAnonymity(3, 2)])
    else:
        check(kind(**DELAYED))


def _records() -> None:
    """Views of JSON records, as a worker of Kafka masks them."""
    from shoal.core.schema import Column, Schema
    from shoal.masks.blur import Blur
    from shoal.views.records import FEWEST, RecordGate
    from shoal.views.role_view import RoleView

    schema = Schema({"who": Column("subject", type="str")})
    view = RoleView.resolve("role", schema, "everything", {"who": Blur(first=1)})
    RecordGate([view]).many([b'{"who": "u%d"}' % at for at in range(FEWEST)])


def _pushes() -> None:
    """Single events in Python run other code than batches of them."""
    from shoal.streams.z_stream import z_anonymity

    for hierarchy in ("path", None):
        stream = z_anonymity(z=2, window="1h", hierarchy=hierarchy)
        for at, who in enumerate(("u1", "u2", "u1")):
            stream.push(at, who, "a.b.c")
