"""Shortcuts through Numba and llvmlite, in force only while a kernel of the lake is compiled.

    with shortcuts():
        dispatcher.compile(signature)

Numba's own code is changed, for the whole process: so it is changed under Numba's compiler lock, which every thread that
compiles takes, and put back before another one has it. A program that embeds a lake has its own functions compiled by the
Numba that it knows. None of the shortcuts changes what is compiled; each leaves out what a kernel has no use for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from typing import Any, Final, cast

from llvmlite.binding import ffi
from numba.core import base, errors, postproc, transforms, types
from numba.core.base import BaseContext
from numba.core.compiler_lock import global_compiler_lock
from numba.core.interpreter import Interpreter
from numba.core.typing import context

PLAIN: Final = (types.Number, types.Boolean, types.Array)
PLAIN_OWNERS: Final = (types.Array, types.Module, types.NumberClass)
RARE_FORMS: Final = ("peep_hole_delete_with_exit", "peep_hole_fuse_dict_add_updates")


def _remembering_calls(search: Callable[..., Any]) -> Callable[..., Any]:
    """What a function answers for numbers and arrays is found once for their types, not at each place where it stands.

    Numba tries every overload of ``+`` at each sum, those for texts and sets too: a quarter of its Python calls.
    """
    found: dict[tuple[Any, ...], Any] = {}

    def resolve_function_type(self: Any, function: Any, arguments: Any, named: Any) -> Any:
        if (
            named
            or isinstance(function, types.Dispatcher)
            or not all(isinstance(argument, PLAIN) for argument in arguments)
        ):
            return search(self, function, arguments, named)
        key = (self, function, *arguments)
        if found.get(key) is None:
            found[key] = search(self, function, arguments, named)
        return found[key]

    return resolve_function_type


def _remembering_members(search: Callable[..., Any]) -> Callable[..., Any]:
    """The same for the attributes of arrays, modules and types of numbers."""
    found: dict[tuple[Any, ...], Any] = {}

    def resolve_getattr(self: Any, owner: Any, name: str) -> Any:
        if not isinstance(owner, PLAIN_OWNERS):
            return search(self, owner, name)
        key = (self, owner, name)
        if found.get(key) is None:
            found[key] = search(self, owner, name)
        return found[key]

    return resolve_getattr


def _remembering_sizes(ask: Callable[..., int]) -> Callable[..., int]:
    """The bytes of a type: llvmlite writes and reads a module to ask LLVM, at every array that is indexed."""
    found: dict[tuple[Any, str], int] = {}

    def size_of(self: Any, type: Any) -> int:
        key = (self.target_data, str(type))
        if key not in found:
            found[key] = ask(self, type)
        return found[key]

    return size_of


def _without_lifetimes(run: Callable[..., None]) -> Callable[..., None]:
    """Where variables live, which is found after each of the passes, is asked at the last one, if at all."""

    def run_lightly(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        if emit_dels or self.func_ir.is_generator:
            run(self, emit_dels, extend_lifetimes)
            return
        blocks = cast(Any, transforms).canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.blocks = blocks
        self.func_ir.variable_lifetime = cast(Any, postproc).VariableLifetime(blocks)
        self.func_ir.generator_info = None

    return run_lightly


def _without_rare_forms(run: Callable[..., Any]) -> Callable[..., Any]:
    """No kernel has a ``with`` or writes a dictionary, which Numba looks for in every statement, several times."""

    def post_process(self: Any, forms: Sequence[Any], function: Any) -> Any:
        return run(self, [form for form in forms if form.__name__ not in RARE_FORMS], function)

    return post_process


def _once(refresh: Callable[..., None]) -> Callable[..., None]:
    """Functions that were registered since are looked for once for a kernel, not at each call that is not found at once."""

    def refresh_once(self: Any) -> None:
        if self not in _refreshed:
            _refreshed.add(self)
            refresh(self)

    return refresh_once


def _without_catching(_: object) -> Callable[..., Any]:
    """Warnings are not caught, to be told later at the right line, around each of a function's expressions."""
    return lambda *_, **__: nullcontext()


@cache
def _changes() -> tuple[tuple[Any, str, Any, Any], ...]:
    """Of whom, which attribute, what it is and what it becomes."""
    wanted: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (context.BaseContext, "resolve_function_type", _remembering_calls),
        (context.BaseContext, "resolve_getattr", _remembering_members),
        (base, "_has_loc", cache),
        (BaseContext, "refresh", _once),
        (Interpreter, "post_process", _without_rare_forms),
        (BaseContext, "get_abi_sizeof", _remembering_sizes),
        (BaseContext, "get_abi_alignment", _remembering_sizes),
        (postproc.PostProcessor, "run", _without_lifetimes),
        (cast(Any, errors).WarningsFixer, "catch_warnings", _without_catching),
    ]
    return tuple((owner, name, owner.__dict__[name], change(owner.__dict__[name])) for owner, name, change in wanted)


_refreshed: Final = set[Any]()
_depth = 0  # how many kernels, one within the other, the holder of the compiler lock is compiling


@contextmanager
def shortcuts() -> Iterator[None]:
    """Puts the shortcuts in force, for a thread that compiles; they end with the outermost block."""
    global _depth
    with global_compiler_lock:
        _depth += 1
        if _depth > 1:
            try:
                yield
            finally:
                _depth -= 1
            return
        before = [(owner, name, owner.__dict__[name]) for owner, name, _, _ in _changes()]
        try:
            for owner, name, _, changed in _changes():
                setattr(owner, name, changed)
            with _silent_lock():
                yield
        finally:
            _depth -= 1
            _refreshed.clear()
            for owner, name, own in before:
                setattr(owner, name, own)


@contextmanager
def _silent_lock() -> Iterator[None]:
    """Takes off Numba's clocks of how long LLVM is waited for: 200,000 events that nobody listens to.

    They are no part of llvmlite's documented interface: where they are not found, compiling takes a tenth longer.
    """
    lock: Any = None
    kept: list[Any] = []
    with suppress(AttributeError):
        lock = ffi.lib._lock
        with lock._lock:
            kept, lock._cblist = lock._cblist, []
    try:
        yield
    finally:
        if kept:
            with lock._lock:
                lock._cblist = kept + lock._cblist
