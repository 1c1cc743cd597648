"""How Numba compiles kernels: only what they need of it, which is most of a node's first start on a machine.

Half of the time goes into Numba's own Python, the rest into LLVM. ``lake.compiled`` imports this with Numba itself, when
the first kernel runs. What is changed of Numba itself is so only while a kernel is compiled: ``lake.shortcuts``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any, Final, cast

import numba
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import typed_passes, types, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass

from lake.lowering import LowerKernel
from lake.prepared import is_preparing
from lake.primitives import prefetch
from lake.shortcuts import shortcuts


class CountingLibrary(JITCodeLibrary):
    """The machine code of a kernel that makes arrays, as Numba makes it; and what it was before LLVM, if asked for."""

    kind = "counting"
    _unoptimised: bytes | None = None

    def _optimize_final_module(self) -> None:
        if is_preparing():
            self._unoptimised = self._final_module.as_bitcode()
        self._optimize()

    def _optimize(self) -> None:
        cast(Any, super())._optimize_final_module()

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """What is kept of the code."""
        if self._unoptimised is not None:
            return self.name, self.kind, self._unoptimised
        kept: tuple[str, str, Any] = cast(Any, super()).serialize_using_object_code()
        return kept


class KernelLibrary(CountingLibrary):
    """The machine code of a kernel that makes no arrays.

    Numba has LLVM go over each function, then over the module to bring the counts of who holds an array together, and then
    over the module again. Where nothing is counted the last is enough.
    """

    kind = "kernel"

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize(self) -> None:
        passes, builder = cast(Any, self)._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class InnerLibrary(JITCodeLibrary):
    """The code of a kernel that only kernels call: they link it in and optimise it with their own, so it is never run."""

    class _Nowhere:
        """Where the code would be loaded."""

        @staticmethod
        def set_env(name: str, environment: object) -> None:
            """Code that is not loaded has no place that tells of its environment."""

    @property
    def codegen(self) -> Any:
        """What loads the code, if anybody asks."""
        return self._Nowhere

    def get_pointer_to_function(self, name: str) -> int:
        """Where a function is: nowhere."""
        return 0

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Left to the callers: LLVM inlines less well what it went over lightly (GROUP BY of a text: 1.5 times as long)."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


@cast(Any, register_pass)(mutates_CFG=False, analysis_only=True)
class ChooseLibrary(LoweringPass):
    """Says which of the libraries takes a kernel's code."""

    _name = "choose_library"

    def __init__(self) -> None:
        cast(Any, LoweringPass).__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Makes the library."""
        lean = InnerLibrary if state.flags.no_cpython_wrapper else KernelLibrary
        kind = CountingLibrary if state.flags.nrt else lean
        state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


FRONT: Final = (
    untyped_passes.TranslateByteCode, untyped_passes.FixupArgs, untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites, untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference, typed_passes.PreLowerStripPhis,
)  # fmt: skip
"""Numba's own order without closures, ``with``, ``literal_unroll``, branches on types and fused array expressions."""

COUNTING: Final = (typed_passes.IRLegalization, ChooseLibrary, typed_passes.NativeLowering, typed_passes.NoPythonBackend)
"""The rest for a kernel that makes arrays: where variables end, who counts nothing need not know."""

LEAN: Final = (ChooseLibrary, LowerKernel, typed_passes.NoPythonBackend)


class Passes(CompilerBase):
    """The passes over a kernel."""

    def define_pipelines(self) -> list[Any]:
        """The one pipeline there is."""
        passes = cast(Any, PassManager)("kernel")
        for made in (*FRONT, *(COUNTING if self.state.flags.nrt else LEAN)):
            passes.add_pass(made, made.__name__)
        passes.finalize()
        return [passes]


def compiled(function: FunctionType, *, allocates: bool, inner: bool) -> Any:
    """Numba's dispatcher of a kernel; an ``inner`` one is called by kernels only, and kept in their code alone.

    Without Numba's runtime no array's holders are counted, atomically, at each call from kernel to kernel: a LIKE by two of
    them took 70 ns a row so, and 11 without. What lets C and Python call a function takes as long as a fifth of it.
    """
    jit: Any = numba.njit
    made = jit(
        nogil=True, cache=not inner or allocates, boundscheck=False, error_model="numpy", _nrt=allocates,
        no_cfunc_wrapper=True, no_cpython_wrapper=inner, pipeline_class=Passes,
    )(function)  # fmt: skip
    compile = made.compile

    def compile_quickly(signature: object) -> Any:
        with shortcuts():
            return compile(signature)

    made.compile = compile_quickly
    return made


def finished(prepared: Any) -> Any:
    """What Numba keeps of a kernel whose machine code is made here, of what ``lake.prepared`` kept before LLVM."""
    (name, kind, code), *rest = prepared
    codegen: Any = import_module("numba.core.registry").cpu_target.target_context.codegen()
    with shortcuts():
        library = cast(Any, KernelLibrary if kind == KernelLibrary.kind else CountingLibrary)(codegen, name)
        library._final_module = module = cast(Any, llvm).parse_bitcode(code)
        library._optimize()
        return (name, "object", (codegen._tm.emit_object(module), module.as_bitcode())), *rest


# --- memory ----------------------------------------------------------------------------------------------------------

PREFETCH: Final = "llvm.prefetch.p0i8"


def _type_prefetch(_context: Any) -> Callable[[Any, Any], Any]:
    return lambda array, index: types.void


def _lower_prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """LLVM's ``prefetch`` of the bytes at ``index`` steps of the first axis: to read, kept in all caches, data."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    index = context.cast(builder, arguments[1], signature.args[1], types.intp)
    step = builder.extract_value(array.strides, 0)
    word, place = ir.IntType(32), ir.IntType(8).as_pointer()
    function = builder.module.globals.get(PREFETCH)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [place, word, word, word]), PREFETCH)
    at = builder.gep(builder.bitcast(array.data, place), [builder.mul(index, step)])
    builder.call(function, [at, word(0), word(3), word(1)])
    return context.get_dummy_value()


extending: Any = import_module("numba.extending")
extending.type_callable(prefetch)(_type_prefetch)
extending.lower_builtin(prefetch, types.Array, types.Integer)(_lower_prefetch)
