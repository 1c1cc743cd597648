"""Loops ready to be called, in memory and on disk, and the thread that compiles those that are missing.

    loop_of((plan, ("int16", "int32?")), 262_144)   None; once a million rows have asked the thread begins; then the loop

Compiling takes 50 to 100 ms, in which the interpreter's lock is free but for a fifth. Machine code is kept in the folder of
compiled kernels in a file named by the intermediate code, the compiler's version and the processor, so that a file fits
wherever it is found; one that is damaged is compiled again.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import llvmlite
from llvmlite import binding

from lake.compiled import code_folder
from lake.exec.fused.emit import NAME, emit
from lake.exec.fused.shape import Plan
from lake.log import error as log_error

LOOPS_MAX: Final = 256
"""Loops kept in memory, of about 20 KB each."""
ROWS_MIN: Final = 1_000_000
"""So many rows, of however many queries, have asked for a loop before it is compiled, which takes as long as 2 to 20 million
rows take in the plain way."""
ASKING_MAX: Final = 4_096
"""Loops of which it is known how many rows have asked; beyond them it is forgotten of all."""
WAITING_MAX: Final = 8
"""Loops that wait to be compiled; one that is asked for beyond them is asked for again by its query's next batch."""
FILES_MAX: Final = 1_024
DIGEST_BYTES: Final = 32

Key = tuple[Plan, tuple[str, ...]]


class Loop:
    """Machine code of one plan and its columns' kinds; calling it frees the interpreter's lock."""

    def __init__(self, code: bytes) -> None:
        self._engine: Any = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int64, *[ctypes.c_void_p] * 4)
        self._call = kind(self._engine.get_function_address(NAME))

    def __call__(self, rows: int, *arrays: Any) -> bool:
        """Runs over a batch: pointers, numbers, adds, leasts (``emit``); False where anything overflowed."""
        return not self._call(rows, *(array.ctypes.data for array in arrays))


class _Loops:
    """The loops in memory, those used last at the end; None for one that could not be made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Key, Loop | None] = OrderedDict()
        self._asking: dict[Key, int] = {}
        self._waiting: set[Key] = set()
        self._thread: ThreadPoolExecutor | None = None

    def get(self, key: Key, rows: int) -> Loop | None:
        """The loop, if it is there, for so many rows."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            if len(self._asking) >= ASKING_MAX:
                self._asking.clear()
            self._asking[key] = self._asking.get(key, 0) + rows
            if self._asking[key] >= ROWS_MIN and key not in self._waiting and len(self._waiting) < WAITING_MAX:
                self._waiting.add(key)
                if self._thread is None:
                    self._thread = ThreadPoolExecutor(1, "lake-compiler")
                self._thread.submit(self._make, key)
            return None

    def _make(self, key: Key) -> None:
        loop = None
        try:
            loop = make_loop(*key)
        except Exception as failure:  # of the compiler: queries go on without
            log_error("no loop was compiled", failure)
        finally:
            with self._lock:
                self._waiting.discard(key)
                self._asking.pop(key, None)
                self._known[key] = loop
                while len(self._known) > LOOPS_MAX:
                    self._known.popitem(last=False)


_LOOPS: Final = _Loops()
loop_of = _LOOPS.get


def make_loop(plan: Plan, kinds: tuple[str, ...]) -> Loop:
    """The loop from its file, or compiled and written to it."""
    text = emit(plan, kinds)
    cpu, features = _processor()
    named = "\0".join((text, llvmlite.__version__, cpu, features, binding.get_process_triple()))
    path = Path(code_folder()) / "fused" / f"{sha256(named.encode()).hexdigest()}.o"
    code = _read(path)
    if code is None:
        code = _compiled(text)
        with suppress(OSError):
            _write(path, code)
    return Loop(code)


def _compiled(text: str) -> bytes:
    machine = _machine()
    module = binding.parse_assembly(text)
    module.verify()
    # Loops interleaved and unrolled are no faster here, and take 1.6 times as long to compile.
    tuning = binding.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.loop_interleaving = tuning.loop_unrolling = tuning.slp_vectorization = False
    passes = binding.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    code: bytes = machine.emit_object(module)
    return code


@cache
def _processor() -> tuple[str, str]:
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def _machine() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    cpu, features = _processor()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="jitdefault", jit=True)


def _read(path: Path) -> bytes | None:
    """What was written to a file; None where there is none, or other bytes than were written."""
    try:
        kept = path.read_bytes()
    except OSError:
        return None
    code = kept[DIGEST_BYTES:]
    return code if sha256(code).digest() == kept[:DIGEST_BYTES] else None


def _write(path: Path, code: bytes) -> None:
    """Writes a file at once; of too many files the oldest half goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = list(path.parent.glob("*.o"))
    if len(files) >= FILES_MAX:
        for old in sorted(files, key=lambda file: file.stat().st_mtime)[: FILES_MAX // 2]:
            old.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(sha256(code).digest() + code)
    Path(name).replace(path)
