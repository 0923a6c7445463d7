"""Small work is done without the compiler, with the same result to the last bit, until compiling would have paid."""

from __future__ import annotations

import copy
import importlib
import math
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.core.hierarchy.prefix import Prefix
from shoal.core.hierarchy.range import Range
from shoal.core.hierarchy.tree import Tree
from shoal.core.schema import Schema
from shoal.core.table import code
from shoal.kernels import interpreted, ready
from shoal.kernels.compile import PLAIN, kernel
from shoal.kernels.waiting import python_of
from shoal.promises.k_anonymity import KAnonymity
from shoal.promises.l_diversity import LDiversity
from shoal.promises.t_closeness import TCloseness
from shoal.tables.datafly import Datafly
from shoal.tables.local import Local
from shoal.tables.microaggregation import Microaggregation
from shoal.tables.mondrian import Mondrian
from shoal.tables.topdown import TopDown

pytestmark = pytest.mark.skipif(PLAIN, reason="kernels are not compiled here")
QUASI = {"age": Range(), "zip": Prefix(3), "job": Tree(nodes={"office": ["clerk", "judge"], "sea": ["pilot"]})}
ROW = st.tuples(
    st.none() | st.integers(0, 400),
    st.sampled_from(["101", "102", "119", "201", "300"]),
    st.none() | st.sampled_from(["clerk", "judge", "pilot"]),
    st.sampled_from("abcd"),
    st.integers(0, 40),
)
COLUMNS = {"age": pl.Int64, "zip": pl.String, "job": pl.String, "ill": pl.String, "who": pl.Int64}
FRAMES = st.lists(ROW, min_size=30, max_size=70).map(lambda rows: pl.DataFrame(rows, schema=COLUMNS, orient="row"))
PROMISES = st.sampled_from(
    [
        [],
        [LDiversity(2, "ill")],
        [LDiversity(1.8, "ill", kind="entropy")],
        [LDiversity(2, "ill", kind="recursive", c=2.5)],
        [TCloseness(0.4, "ill"), LDiversity(2, "ill")],
    ]
)
METHODS = [
    Local(effort=30), Mondrian(), Mondrian(strict=False), TopDown(), TopDown(near="group", suppress=0.2),
    Microaggregation(), Datafly(suppress=0.1),
]  # fmt: skip

QUASI_WISHES = "quasi={'age': 'range', 'zip': {'use': 'prefix', 'length': 3}}"
WISHES = f"{QUASI_WISHES}, k=4, seed=1, method={{'use': 'local', 'effort': 'low'}}"


def same(one, other):
    if isinstance(one, tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return type(one) is type(other) and (one == other or (math.isnan(one) and math.isnan(other)))


@pytest.fixture(scope="module")
def compared():
    """Whenever a kernel is called that small work may do without, its Python function is called beside it."""
    linked = importlib.import_module("shoal.kernels.linked")
    names = set()

    def both(self, *arguments):
        if self.py_func.__code__ not in interpreted._declared:
            return linked.CPUDispatcher.__call__(self, *arguments)
        names.add(self.__name__)
        mine = copy.deepcopy(arguments)
        compiled = linked.CPUDispatcher.__call__(self, *arguments)
        assert same(interpreted.plain(self.py_func)(*mine), compiled), self.__name__
        assert same(mine, arguments), f"{self.__name__} changed its arguments otherwise"
        return compiled

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linked.Kernel, "__call__", both, raising=False)
        yield names


@given(FRAMES, PROMISES, st.booleans(), st.integers(0, 9))
@settings(max_examples=12)
def test_the_interpreter_does_what_compiled_code_does(compared, frame, promises, people, seed):
    schema = Schema.build(quasi=QUASI, sensitive=["ill"], subject="who" if people else None, weights={"age": 2.0})
    table = code(frame, schema)
    for method in METHODS:
        method.form(table, [KAnonymity(2), *promises], seed=seed)
    alone = code(frame, Schema.build(quasi={"age": Range()}))
    METHODS[0].form(alone, [KAnonymity(2)], seed=seed)


def test_every_kernel_that_says_its_steps_was_compared(compared):
    declared = {function.co_name for function in interpreted._declared if "kernels" in function.co_filename}
    assert declared - compared == set()
    assert len(declared) > 15


@given(st.floats(1e-300, 1e300), st.floats(-800, 800))
def test_logarithms_and_exponentials_are_those_of_compiled_code(number, power):
    assert same(interpreted.plain(python_of(_curved))(number, power), _curved(number, power))


@kernel
def _curved(number, power):
    return np.log(number), np.exp(power), np.log(0.0 * number)


@kernel
def _counted(number):
    return np.int64(number) + 1


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """A kernel whose work is as many steps as its number says, on a machine that has compiled nothing."""
    monkeypatch.setattr(interpreted, "_file", lambda function: tmp_path / "steps")
    monkeypatch.setattr(interpreted, "allowed", True)
    monkeypatch.setattr(interpreted, "_taken", {})
    monkeypatch.setattr(interpreted, "_declared", {})
    monkeypatch.setattr(ready, "kept", lambda function, arguments: False)
    interpreted.declare(python_of(_counted), lambda number: number)
    return python_of(_counted)


def test_small_work_is_done_until_compiling_would_have_paid(tried):
    most = int(interpreted.worth(tried))
    done = interpreted.small(tried, (most // 2,))
    assert type(done(3)) is int  # as compiled code returns it
    assert interpreted.small(tried, (most - most // 2 + 1,)) is None  # this one is too much
    assert interpreted.small(tried, (most - most // 2,)) is not None
    assert interpreted.small(tried, (1,)) is None


def test_the_next_run_goes_on_where_the_last_one_ended(tried, monkeypatch):
    most = int(interpreted.worth(tried))
    interpreted.small(tried, (most - 1,))
    interpreted._note()
    monkeypatch.setattr(interpreted, "_taken", {})
    assert interpreted.small(tried, (2,)) is None
    assert interpreted.small(tried, (1,)) is not None
    interpreted._file(tried).write_text("?")  # damaged: begun anew
    monkeypatch.setattr(interpreted, "_taken", {})
    assert interpreted.small(tried, (2,)) is not None


def test_what_was_compiled_is_used_and_warming_compiles(tried, monkeypatch):
    monkeypatch.setattr(ready, "kept", lambda function, arguments: True)
    assert interpreted.small(tried, (1,)) is None
    monkeypatch.setattr(ready, "kept", lambda function, arguments: False)
    assert interpreted.small(tried, (1,)) is not None
    monkeypatch.setattr(interpreted, "allowed", False)
    assert interpreted.small(tried, (1,)) is None


def test_a_small_release_without_improvement_needs_no_compiler_and_is_the_same(tmp_path):
    """A new machine, as far as compiled code goes; the release is that of this process, where all is compiled."""
    frame = pl.DataFrame({"age": [7 * n % 90 for n in range(120)], "zip": [f"{n % 7}1{n % 3}" for n in range(120)]})
    frame.write_csv(tmp_path / "people.csv")
    code = (
        "import sys, shoal, polars as pl\n"
        "frame = pl.read_csv('people.csv', schema_overrides={'zip': str})\n"
        f"shoal.anonymize(frame, {WISHES}).data.write_csv('released.csv')\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    known = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "empty")}
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=known, check=False).returncode == 0
    here = eval(f"shoal.anonymize(frame, {WISHES})", {"shoal": shoal, "frame": frame})
    assert here.data.write_csv() == (tmp_path / "released.csv").read_text()
    assert list((tmp_path / "empty").rglob("steps-mondrian-*"))
