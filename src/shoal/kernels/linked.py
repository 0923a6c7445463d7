"""Kernels that call kernels: what is only called from compiled code gets no machine code and no wrapper of its own.

Left alone, the compiler makes a whole library of every function that a kernel calls: translated into machine code and
kept on disk, with wrappers that unpack dozens of arrays for callers in Python who never come, and once more for every
constant and every width of integer that it is called with. Half of the first minute on a machine went into that.
"""

from __future__ import annotations

from typing import Any

from numba import typeof
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher

from shoal.kernels import disk_cache as disk_cache  # where this module is loaded, kernels are kept by content
from shoal.kernels.interpreted import small
from shoal.kernels.ready import keep
from shoal.kernels.waiting import waiting


class WholeLibrary(JITCodeLibrary):
    """The code of a kernel and of all it calls."""

    def _optimize_functions(self, module: Any) -> None:
        """The same passes as the compiler's own, but not anew for everything that is only declared."""
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class PartLibrary(WholeLibrary):
    """The code of a function as others link it in: optimised (or what links it in is slow), but not translated."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True  # not handed to the engine, which would translate it

    @property
    def codegen(self) -> Any:
        """Parts have no place in the engine where an environment could be set: the whole gets it."""
        return Placeless()


def _without_wrapper(self: Any) -> None:
    """Callers in C get no entry into a part either, as the compiler's own functions would."""
    if not isinstance(self.library, PartLibrary):
        _wrap(self)


_wrap, Lower.create_cfunc_wrapper = Lower.create_cfunc_wrapper, _without_wrapper


class Placeless:
    """Stands for the engine where a part asks for it."""

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to do."""


class WholeCompiler(Compiler):
    """Compiles a kernel; everything that it makes on the way, the compiler's own functions too, is a part."""

    def compile_extra(self, function: Any) -> Any:
        """Compile from a Python function."""
        codegen = self.state.targetctx.codegen()
        self.state.library = WholeLibrary(codegen, function.__qualname__)
        self.state.library.enable_object_caching()
        codegen._library_class = PartLibrary
        waiting.begin(function)
        try:
            return super().compile_extra(function)
        finally:
            del codegen._library_class
            waiting.end(function)


class PartCompiler(Compiler):
    """Compiles up to the code that others link in."""

    def compile_extra(self, function: Any) -> Any:
        """Compile from a Python function."""
        flags = self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        self.state.library = PartLibrary(self.state.targetctx.codegen(), function.__qualname__)
        made = super().compile_extra(function)
        waiting.part(function)
        return made


class Part(CPUDispatcher):
    """A kernel as other kernels see it."""

    def add_overload(self, compiled: Any) -> None:
        """Make a signature known to callers; there is no entry for Python, so a token stands for it."""
        compiled = compiled._replace(entry_point=object())
        self.targetctx.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
        self.overloads[tuple(compiled.signature.args)] = compiled


class Kernel(CPUDispatcher):
    """A compiled function: whole for callers in Python, a part of other kernels for those."""

    whole = True  # it may be compiled for callers in Python

    def __init__(self, py_func: Any, targetoptions: dict[str, Any]) -> None:
        super().__init__(py_func, None, {"no_cfunc_wrapper": True, **targetoptions}, pipeline_class=WholeCompiler)
        self._part = Part(py_func, None, dict(targetoptions), pipeline_class=PartCompiler)
        self._cached = False

    def compile(self, sig: Any) -> Any:
        """Compile for callers in Python, or load what was compiled; only what they call looks for its folder."""
        if not self._cached:
            self._cached = True
            self.enable_caching()
        return super().compile(sig)

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Compile for these arguments, and keep what was compiled for runs without the compiler.

        What is returned is called with the arguments: small work may be done by the Python function.
        """
        done = small(self.py_func, arguments)
        if done is not None:
            return done
        known = set(self.overloads)
        compiler: Any = super()
        found = compiler._compile_for_args(*arguments, **named)
        self._keep(known, arguments)
        return found

    def entry(self, *example: Any) -> Any:
        """The code for arguments of the kinds of ``example``, past the choice between kinds."""
        known = set(self.overloads)
        found = self.compile(tuple(typeof(value) for value in example))
        self._keep(known, example)
        return found

    def _keep(self, known: set[Any], arguments: tuple[Any, ...]) -> None:
        made: dict[Any, Any] = self.overloads
        for kinds in set(made) - known:
            if made[kinds].library._compiled_object is not None:  # as it is when it was loaded
                keep(self.py_func, arguments, made[kinds])

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The types of a call from another kernel."""
        return self._part.get_call_template(
            tuple(widened(kind) for kind in args), {name: widened(kind) for name, kind in kws.items()}
        )

    def get_overload(self, signature: Any) -> Any:
        """What another kernel links in."""
        return self._part.get_overload(signature)

    def add_overload(self, compiled: Any) -> None:
        """Make a signature known, and give the parts in it their environments, as loading from the cache does."""
        super().add_overload(compiled)
        for environment in compiled._find_referenced_environments():
            compiled.library.codegen.set_env(environment.env_name, environment)


class Light(Kernel):
    """A kernel that Python runs as Python."""

    whole = False

    def __call__(self, *arguments: Any) -> Any:
        """Run it without compiling it."""
        return self.py_func(*arguments)


def widened(kind: Any) -> Any:
    """One type for all signed integers and all constants: a variant of a kernel for each would cost seconds."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.name.startswith("int") else kind
