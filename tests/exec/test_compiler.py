"""Compiling kernels: Numba is as it was before and after, and other functions of the process are compiled by it alone."""

from __future__ import annotations

import threading
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
import pytest


def doubled(values: Any, out: Any) -> None:
    """Twice each value."""
    for row in range(values.size):
        out[row] = twice_of(values[row])


def twice_of(value: Any) -> Any:
    """Called by the other, as kernels call kernels."""
    return value + value


def numba_as_it_is() -> list[object]:
    """All of Numba and llvmlite that the shortcuts change."""
    shortcuts: Any = import_module("lake.shortcuts")
    lock = import_module("llvmlite.binding.ffi").lib._lock
    return [owner.__dict__[name] for owner, name, _, _ in shortcuts._changes()] + [*lock._cblist]


def seen_by_a_compiler(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[object]]:
    """What Numba is while it compiles, by the name of the function."""
    seen: dict[str, list[object]] = {}
    compiler: Any = import_module("numba.core.dispatcher")._FunctionCompiler
    compile = compiler.compile

    def compile_and_look(self: Any, *arguments: Any) -> Any:
        seen[self.py_func.__name__] = numba_as_it_is()
        return compile(self, *arguments)

    monkeypatch.setattr(compiler, "compile", compile_and_look)
    return seen


def compile_doubled() -> None:
    """Has two kernels compiled by dispatchers that nobody else has, and that keep nothing in the cache folder."""
    compiled: Any = import_module("lake.compiler").compiled
    twice = compiled(twice_of, allocates=False, inner=True)
    function = FunctionType(doubled.__code__, {"twice_of": twice, "range": range, "__name__": __name__})
    compiled(function, allocates=False, inner=True).compile("void(int64[::1], int64[::1])")


def test_a_users_function_is_compiled_by_numba_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same Numba before a kernel is compiled and after it, and the user's function between the two."""
    numba: Any = import_module("numba")
    before = numba_as_it_is()
    seen = seen_by_a_compiler(monkeypatch)
    assert numba.njit(lambda value: value + 1)(1) == 2
    compile_doubled()
    assert numba.njit(lambda value: value + 2)(1) == 3
    assert numba_as_it_is() == before
    assert seen["<lambda>"] == before
    assert not any(now is was for now, was in zip(seen["twice_of"], before, strict=False))


def test_threads_that_compile_beside_a_kernel_see_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who compiles while a kernel is compiled waits for it, and finds Numba as it was."""
    numba: Any = import_module("numba")
    before = numba_as_it_is()
    seen = seen_by_a_compiler(monkeypatch)
    answers: list[int] = []

    def user(number: int) -> None:
        function = numba.njit(lambda value: value + number)
        answers.append(function(1))

    threads = [threading.Thread(target=user, args=(number,)) for number in range(3)]
    with import_module("lake.shortcuts").shortcuts():
        for thread in threads:
            thread.start()
        compile_doubled()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [1, 2, 3]
    assert seen["<lambda>"] == before
    assert numba_as_it_is() == before


def test_a_kernel_that_fails_leaves_numba_as_it_was() -> None:
    """What cannot be compiled says so, and nothing stays changed."""
    compiled: Any = import_module("lake.compiler").compiled
    before = numba_as_it_is()
    with pytest.raises(Exception, match="No implementation of function"):
        compiled(lambda value: value + "a", allocates=False, inner=True).compile("(int64,)")
    assert numba_as_it_is() == before


def places(numbers: Any, grid: Any, flags: Any, out: Any) -> Any:
    """Elements by places from the end, of two axes, of two kinds of integers, and variables set on one of two ways."""
    total, last = 0, -1
    for row in range(numbers.size):
        value = numbers[row]
        if flags[row]:
            kept = value * 2
            last = row
            while kept > 10:
                kept -= grid[np.uint8(row % grid.shape[0]), -1]
        else:
            kept = numbers[-row - 1]
            flags[row] = value > 3
        out[row] = kept
        total += kept
    grid[-1 - last % grid.shape[0], 0] = total
    out[-1] = grid[last % grid.shape[0], np.int8(1)]
    return total, last


@pytest.mark.parametrize("for_debugger", [0, 1])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("dtype", ["int32", "uint16", "float64"])
def test_elements_are_those_of_plain_python(
    dtype: str, step: int, for_debugger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of arrays without gaps, whose address is made here, and of others, whose address Numba makes."""
    monkeypatch.setattr(import_module("numba").config, "DEBUGINFO_DEFAULT", for_debugger)
    made = import_module("lake.compiler").compiled(places, allocates=False, inner=False)
    made._cache = import_module("numba.core.caching").NullCache()  # compiled now, by what is tested
    answers = []
    for function in (places, made):
        numbers = np.arange(40).astype(dtype)[::step]
        grid = np.arange(2, 11, dtype=np.int64).reshape(3, 3)
        flags, out = np.arange(40)[::step] % 3 == 0, np.zeros(numbers.size)
        answers.append((function(numbers, grid, flags, out), out.tolist(), grid.tolist(), flags.tolist()))
    assert answers[0] == answers[1]
