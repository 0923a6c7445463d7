"""Kernels compiled in an earlier run, without the compiler: loading it costs more than most small commands.

When a kernel is compiled, its machine code is also written to a file of its own, named by the kernel's content, the
kinds of its arguments, the versions and the processor. The next process finds that file by the arguments of a call and
hands the code to the loader; the compiler is loaded only by a kernel that has no such file, or that is called often,
because to tell kinds apart costs some microseconds here and next to nothing there. What is not understood is left to
the compiler: then there is no file, or it is not used.
"""

from __future__ import annotations

import builtins
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import os
import pickle
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from shoal.kernels.stamps import ROOM, folder

PARTS = ("_helperlib", "_dynfunc", "core.runtime._nrt_python")  # what compiled code calls, without the compiler
DIGEST = 16
_lock = threading.Lock()
_forms: dict[Any, Any] = {}  # kinds of arrays, by what tells them apart


def find(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The compiled function for these arguments, if an earlier run has kept it; nothing once the compiler is loaded."""
    if "numba" in sys.modules:
        return None
    kinds = tuple([_kind(value) for value in arguments])
    if None in kinds or len(arguments) != function.__code__.co_argcount:
        return None
    with _lock:
        return _load(function, kinds)


def kept(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    """Whether an earlier run has kept a kernel for these arguments."""
    place = _place(function, tuple(_kind(value) for value in arguments))
    return place is not None and place.exists()


def keep(function: Callable[..., Any], arguments: tuple[Any, ...], compiled: Any) -> None:
    """Write what was just compiled, for :func:`find` of another process; nothing where it cannot be written."""
    kinds = tuple(_kind(value) for value in arguments)
    place = _place(function, kinds)
    if None in kinds or place is None or len(arguments) != function.__code__.co_argcount:
        return
    if _content(place) is not None:  # the compiler, too, has read what an earlier run compiled
        return
    from numba.core.intrinsics import INTR_MATH

    module = compiled.library._final_module
    environments = [compiled.environment, *compiled._find_referenced_environments()]
    content = {
        "object": compiled.library._get_compiled_object(),
        "entry": compiled.fndesc.llvm_cpython_wrapper_name,
        "environments": [(e.env_name, e.globals["__name__"], list(e.consts)) for e in environments],
        "math": sorted(INTR_MATH),
        "needs": [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")],
    }
    try:
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            whole = pickle.dumps(content)
            file.write(_digest(whole) + whole)
        os.replace(file.name, place)  # noqa: PTH105
    except (OSError, pickle.PicklingError):
        return


@cache
def _load(function: Callable[..., Any], kinds: tuple[Any, ...]) -> Callable[..., Any] | None:
    place = _place(function, kinds)
    whole = None if place is None else _content(place)
    if whole is None:
        return None
    content = pickle.loads(whole)
    engine = _engine(tuple(content["math"]))
    import llvmlite.binding as llvm

    if not all(llvm.address_of_symbol(name) for name in content["needs"]):
        return None  # the loader would end the process
    engine.add_object_file(llvm.ObjectFileRef.from_data(content["object"]))
    engine.finalize_object()
    dynfunc = _part("_dynfunc")
    environments = []
    for name, module, constants in content["environments"]:
        environment = dynfunc.Environment(vars(sys.modules[module]) if module in sys.modules else {"__name__": module})
        environment.consts[:] = constants
        ctypes.c_void_p.from_address(engine.get_global_value_address(name)).value = id(environment)
        environments.append(environment)
    entry = engine.get_function_address(content["entry"])
    made: Callable[..., Any] = dynfunc.make_function(
        sys.modules[function.__module__], function.__name__, function.__doc__, entry, environments[0], (environments,)
    )
    return made


def _content(place: Path) -> bytes | None:
    """What is written there; nothing where it is damaged: the compiler can go on, the loader would end the process."""
    try:
        written = place.read_bytes()
    except OSError:
        return None
    return written[DIGEST:] if _digest(written[DIGEST:]) == written[:DIGEST] else None


def _place(function: Callable[..., Any], kinds: tuple[Any, ...]) -> Path | None:
    file = _file(function.__code__.co_filename)
    if ROOM not in file.parents or os.environ.get("NUMBA_CACHE_DIR"):
        return None
    said = repr((kinds, _machine()))
    return folder(file) / f"{function.__name__}-{function.__code__.co_firstlineno}-{_digest(said.encode()).hex()}.ready"


@cache
def _file(name: str) -> Path:
    return Path(name).resolve()


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


@cache
def _machine() -> tuple[str, ...]:
    """What else the code depends on."""
    import llvmlite
    import llvmlite.binding as llvm
    import numpy as np

    # the compiler says its version without being loaded; to ask for the metadata of packages takes ten times as long
    numba: Any = importlib.util.find_spec("numba")
    written = Path(numba.origin).with_name("_version.py").read_text()
    said = re.search(r'"version": "([^"]+)"', written)
    versions = [said[1] if said else written, llvmlite.__version__, np.__version__]
    return (sys.version, *versions, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def _kind(value: Any) -> Any:
    """What the compiler would choose a variant by, or None where that is not known here."""
    import numpy as np

    kind = type(value)
    if kind is np.ndarray:
        form = (value.dtype, value.ndim, value.flags.num)
        if form not in _forms:  # asking for each of its flags would take longer than many a kernel
            flags = value.flags
            order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
            named = value.dtype.names is not None
            _forms[form] = None if named else (value.dtype.str, value.ndim, order, flags.writeable, flags.aligned)
        return _forms[form]
    if kind is int:
        return "int" if -(2**63) <= value < 2**63 else None
    if kind in (bool, float):
        return kind.__name__
    if isinstance(value, np.generic):
        return ("scalar", value.dtype.str) if value.dtype.kind in "biuf" else None
    if isinstance(value, tuple):
        parts = tuple(_kind(part) for part in value)
        return None if None in parts else (f"{kind.__module__}.{kind.__qualname__}", *parts)
    return None


@cache
def _engine(math: tuple[str, ...]) -> Any:
    """A loader of machine code that knows what compiled code calls."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    helpers = _part("_helperlib").c_helpers
    known = {f"numba_{name}": address for part in PARTS[:2] for name, address in _part(part).c_helpers.items()}
    for name, address in _part(PARTS[2]).c_helpers.items():
        known[name if name.startswith("_") else f"NRT_{name}"] = address
    known |= {name: helpers[name] for name in math}
    for name, thing in vars(builtins).items():
        if isinstance(thing, type) and issubclass(thing, BaseException):
            known[f"PyExc_{name}"] = id(thing)
    known["_Py_NoneStruct"] = id(None)
    known["numba_unpickle"] = ctypes.cast(_unpickle, ctypes.c_void_p).value
    for name, address in known.items():
        llvm.add_symbol(name, address)
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True, codemodel="jitdefault")
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def _unpickle(data: int, size: int, _digest: int) -> Any:
    """The class of a named tuple, or an exception: the compiler's own way would load it whole."""
    return pickle.loads(ctypes.string_at(data, size))


@cache
def _part(name: str) -> ModuleType:
    """A part of the compiler's run-time library, without the compiler."""
    folders: Any = importlib.util.find_spec("numba")
    room = Path(folders.submodule_search_locations[0]).joinpath(*name.split(".")[:-1])
    file: Any = importlib.machinery.PathFinder.find_spec(name.split(".")[-1], [str(room)])
    whole = f"numba.{name}"
    spec: Any = importlib.util.spec_from_file_location(whole, file.origin)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(whole, None)  # the compiler, if it is loaded later, shall find it in its own way
    return module
