"""How Numba compiles kernels: only the passes they need, which is most of a node's first start on a machine.

Five sixths of the time go into Numba's own Python, not into LLVM. ``lake.compiled`` imports this with Numba itself, when
the first kernel runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import FunctionType
from typing import Any, Final, cast

import numba
from llvmlite import ir
from llvmlite.binding import ffi
from numba.core import typed_passes, types, untyped_passes
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager

from lake.primitives import prefetch

PASSES: Final = (
    untyped_passes.TranslateByteCode, untyped_passes.FixupArgs, untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites, untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference, typed_passes.PreLowerStripPhis, typed_passes.IRLegalization,
    typed_passes.NativeLowering, typed_passes.NoPythonBackend,
)  # fmt: skip
"""Numba's own order without closures, ``with``, ``literal_unroll``, branches on types and fused array expressions."""

PLAIN: Final = (types.Number, types.Boolean, types.Array)


class Passes(CompilerBase):
    """The passes over a kernel."""

    def define_pipelines(self) -> list[Any]:
        """The one pipeline there is."""
        passes = cast(Any, PassManager)("kernel")
        for made in PASSES:
            passes.add_pass(made, made.__name__)
        passes.finalize()
        return [passes]


def compiled(function: FunctionType, *, allocates: bool, inner: bool) -> Any:
    """Numba's dispatcher of a kernel; an ``inner`` one is called by kernels only.

    Without Numba's runtime no array's holders are counted, atomically, at each call from kernel to kernel: a LIKE by two of
    them took 70 ns a row so, and 11 without. What lets C and Python call a function takes as long as a fifth of it.
    """
    jit: Any = numba.njit
    return jit(
        nogil=True, cache=True, boundscheck=False, error_model="numpy", _nrt=allocates, no_cfunc_wrapper=True,
        no_cpython_wrapper=inner, pipeline_class=Passes,
    )(function)  # fmt: skip


def _remember_types(of: Any) -> None:
    """What an operator answers for numbers and arrays is found once for their types, not at each place where it stands.

    Numba tries every overload of ``+`` at each sum, those for texts and sets too: a quarter of its Python calls.
    """
    found: dict[tuple[Any, ...], Any] = {}
    search: Callable[..., Any] = of.get_call_type

    def get_call_type(self: Any, context: Any, arguments: Any, named: Any) -> Any:
        if named or not all(isinstance(argument, PLAIN) for argument in arguments):
            return search(self, context, arguments, named)
        key = (self, *arguments)
        if key not in found:
            found[key] = search(self, context, arguments, named)
        return found[key]

    of.get_call_type = get_call_type


_remember_types(types.BaseFunction)
with suppress(AttributeError):  # no part of llvmlite's documented interface: without it compiling takes a tenth longer
    for _entered, _left in tuple(ffi.lib._lock._cblist):
        # Numba's clocks of how long LLVM is waited for: 200,000 events that nobody listens to.
        ffi.unregister_lock_callback(_entered, _left)


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
