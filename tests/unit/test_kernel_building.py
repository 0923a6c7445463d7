"""How kernels are built: the compiler comes with the first call, one variant serves all integers, parts are linked."""

from __future__ import annotations

import gc
import io
import itertools
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from shoal.cli.terminal import progress
from shoal.kernels import lazy, ready, talk
from shoal.kernels.compile import PLAIN, kernel, light
from shoal.kernels.waiting import Waiting

pytestmark = pytest.mark.skipif(PLAIN, reason="kernels are not compiled here")


@kernel
def _shifted(array, by):
    if by < 0:
        return -1
    return array[0] + by


@kernel
def _twice(array, few):
    return _shifted(array, 1) + _shifted(array, few) + _shifted(array, len(array))


@light
def _is_long(array):
    return array.shape[0] > 2


@kernel
def _long(array):
    return _is_long(array)


def test_one_variant_serves_constants_and_integers_of_every_width():
    assert _twice(np.array([3, 4], np.int64), np.int32(2)) == 4 + 5 + 5
    numba = pytest.importorskip("numba")
    _twice._part.compile((numba.int64[::1], numba.int64))  # the whole may have come from the cache, a part never does
    assert len(_shifted._part.overloads) == 1
    assert not _shifted.overloads  # nobody called it from Python: no machine code of its own
    assert _shifted(np.array([3, 4], np.int64), 2) == 5  # and now somebody does


def test_a_light_kernel_is_python_for_python_and_compiled_for_kernels():
    assert _is_long(np.zeros(3))
    assert not _is_long.overloads
    assert _long(np.zeros(3))
    assert not _long(np.zeros(2))


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.setattr(talk, "_said", False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # another test may have started a notebook
    return monkeypatch


def test_the_first_wait_is_announced_once_where_somebody_looks(unsaid):
    screen = Screen()
    unsaid.setattr(sys, "stderr", screen)
    for left in (2, 1):
        talk.show(1 - left / 3, left)
    talk.show(1.0, 0)
    assert screen.getvalue().count("compiling for this machine, once") == 1
    assert "about 2 parts left" in screen.getvalue()
    assert screen.getvalue().endswith(" \r")  # the bar is gone, and what comes next begins a line
    unsaid.setattr(sys, "stderr", io.StringIO())
    talk.show(0.5, 1)
    assert not sys.stderr.getvalue()


def test_a_notebook_is_told_of_the_wait(unsaid):
    unsaid.setattr(sys, "stderr", io.StringIO())
    unsaid.setitem(sys.modules, "ipykernel", sys)
    talk.show(0.5, 1)
    assert "compiling for this machine, once" in sys.stderr.getvalue()


def test_what_is_left_falls_to_nothing_and_the_bar_never_goes_back(unsaid):
    told = []
    waits = Waiting(lambda: [_plain(_twice), _plain(_long)])
    functions = [_plain(_shifted), _plain(_twice)]
    with talk.listening(lambda share, words: told.append((share, words))):
        waits.begin(functions[1])
        assert not gc.isenabled()
        waits.part(functions[0])
        waits.end(functions[1])
        waits.begin(_plain(_long))
        waits.end(_plain(_long))
    assert gc.isenabled()
    shares = [share for share, words in told if words]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] > 0.5
    assert [words for _, words in told] == ["about 6 parts left", "about 5 parts left", "", "about 3 parts left", ""]


def _plain(value):
    return value.__wrapped__ if isinstance(value, lazy.Lazy) else value.py_func


def test_the_bar_of_a_command_shows_the_wait_and_hides_it_again(unsaid):
    screen = Screen()
    unsaid.setattr(sys, "stderr", screen)
    unsaid.setenv("TERM", "xterm")
    unsaid.setenv("COLUMNS", "100")
    with progress("anonymizing") as tell:
        tell(0.1, "opening tuples")
        talk.show(0.5, 7)
        assert talk._listeners
    assert not talk._listeners


@pytest.mark.parametrize("work", ["import shoal.release.job", "import shoal.cli.verify, shoal.verifier"])
def test_no_compiler_is_loaded_by_what_runs_no_kernel(work):
    code = f"import sys; {work}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_small_release_is_judged_without_the_compiler(tmp_path):
    (tmp_path / "released.csv").write_text("age,diag\n*,a\n*,b\n*,a\n")
    code = (
        "import sys\nfrom shoal.cli import main\n"
        "try:\n    main(['verify', 'released.csv', '--quasi', 'age', '--sensitive', 'diag', '--k', '3', '--l', '2'])\n"
        "except SystemExit as done:\n"
        "    others = {'shoal.release.stream', 'shoal.release.curves', 'shoal.tables.local'} & {*sys.modules}\n"
        "    sys.exit(done.code or 10 * ('numba' in sys.modules) + len(others))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0


def test_single_events_are_pushed_without_the_compiler():
    code = (
        "import sys, shoal\n"
        "shoal.z_anonymity(z=2, window='1h', hierarchy='path').push(0, 'u1', 'a.b.c')\n"
        "sys.exit(10 * ('numba' in sys.modules))\n"
    )
    once, again = (subprocess.run([sys.executable, "-c", code], check=False).returncode for _ in range(2))
    assert once in (0, 10)  # nobody may have compiled it here before
    assert again == 0


BOXES = """
import sys
import numpy as np
from shoal.kernels import interpreted
from shoal.kernels.shared.boxes import group_boxes
interpreted.allowed = False  # so little work would be done without compiling
codes, labels = np.array([[1, 2], [3, 4], [5, 0]], np.int32), np.array([0, 0, 1], np.int32)
low, high = group_boxes(codes, labels, 2)
first = "numba" in sys.modules
assert low.tolist() == [[1, 2], [5, 0]] and high.tolist() == [[3, 4], [5, 0]]
turned, _ = group_boxes(np.asfortranarray(codes), labels, 2)  # another kind of array is another variant
assert turned.tolist() == low.tolist()
again, _ = group_boxes(codes, labels, 2)
assert again.tolist() == low.tolist()
sys.exit(10 + first)
"""


def test_what_was_compiled_before_runs_without_the_compiler(tmp_path):
    def run(first=""):
        known = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        return subprocess.run([sys.executable, "-c", first + BOXES], env=known, check=False).returncode - 10

    assert run() == 1
    kept = sorted(tmp_path.rglob("group_boxes*.ready"))
    assert len(kept) == 2
    written = [file.stat().st_mtime_ns for file in kept]
    assert run() == 0
    assert run("import numba") == 1  # where the compiler is loaded, it reads its own files,
    assert [file.stat().st_mtime_ns for file in kept] == written  # and what is whole is not written again
    for file in kept:
        file.write_bytes(file.read_bytes()[:-9])
    assert run() == 1  # a damaged file is not used


class _Pair(NamedTuple):
    first: object
    second: object


def test_kinds_tell_apart_whatever_the_compiler_tells_apart():
    numba = pytest.importorskip("numba")
    grid = np.zeros((4, 4), np.int32)
    still = grid.copy()
    still.flags.writeable = False
    arrays = [grid, still, grid.T[1:], grid[:, ::2], grid[0], np.zeros(3), np.zeros(3, np.int64), np.zeros(3, bool)]
    arrays += [np.asfortranarray(np.zeros((2, 3), np.int32)), np.zeros(9, np.uint8)[1:].view(np.int64)]
    values = [*arrays, 1, -5, True, 1.5, np.int32(3), np.int64(3), np.float64(2), np.bool_(True), np.uint64(1)]
    values += [(1, 2), (1, 2.0), _Pair(grid, 1), _Pair(grid, 1.0), _Pair(still, 1), (grid, 1)]
    assert None not in [ready._kind(value) for value in values]
    for one, other in itertools.combinations_with_replacement(values, 2):
        if ready._kind(one) == ready._kind(other):
            assert numba.typeof(one) == numba.typeof(other)
    assert ready._kind([1]) is ready._kind(None) is ready._kind("a") is ready._kind(2**63) is None


def test_a_kernel_that_was_compiled_never_loads_the_compiler_however_often_it_is_called():
    """Loading it takes most of a second: a stream would stand still for so long, after thousands of batches."""
    asked, made = [], []

    def found(function, arguments):
        asked.append(arguments)
        return function

    def work(number):
        return number + 1

    often = lazy.Lazy(work, lambda: made.append(1), found)
    assert [often(number) for number in range(3000)] == list(range(1, 3001))
    assert len(asked) == 3000
    assert not made
