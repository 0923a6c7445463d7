"""How kernels are built: the compiler comes with the first call, one variant serves all integers, parts are linked."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest

from shoal.kernels.compile import PLAIN, kernel, light
from shoal.kernels.talk import compiling

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


def test_the_first_wait_is_announced_once_where_somebody_looks(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    compiling.cache_clear()
    monkeypatch.setattr(sys, "stderr", screen)
    compiling()
    compiling()
    assert screen.getvalue().count("compiling for this machine, once") == 1
    compiling.cache_clear()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    compiling()
    assert not sys.stderr.getvalue()


@pytest.mark.parametrize("work", ["import shoal.release.job", "import shoal.cli.verify, shoal.verifier"])
def test_no_compiler_is_loaded_by_what_runs_no_kernel(work):
    code = f"import sys; {work}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_small_release_is_judged_without_the_compiler(tmp_path):
    (tmp_path / "released.csv").write_text("age,diag\n*,a\n*,b\n*,a\n")
    code = (
        "import sys\nfrom shoal.cli import main\n"
        "try:\n    main(['verify', 'released.csv', '--quasi', 'age', '--sensitive', 'diag', '--k', '3', '--l', '2'])\n"
        "except SystemExit as done:\n    sys.exit(done.code or 10 * ('numba' in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0
