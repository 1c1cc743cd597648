"""Loops in memory and on disk, and the thread that compiles them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lake.exec.fused import compiler
from lake.exec.fused.compiler import Loop, make_loop
from lake.exec.fused.shape import Plan

SUM = Plan((("within", 0, 0, False),), (), (("sum", ("column", 0), None),), 2, 0)
KINDS = ("int64",)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setattr(compiler, "code_folder", lambda: str(tmp_path))
    return tmp_path / "fused"


def total(loop: Loop) -> int:
    """The sum of those of 0 .. 9999 that are in 5 .. 8000."""
    values = np.arange(10_000)
    adds = np.zeros((1, 1, 3), np.int64)
    pointers, numbers = np.array([values.ctypes.data, 0], np.uintp), np.array([5, 8_000, 0])
    assert loop(len(values), pointers, numbers, adds, np.zeros((1, 1, 0), np.int64))
    return int(adds[0, 0, 1] + (adds[0, 0, 2] << 32))


EXPECTED = sum(range(5, 8_001))


def refuse(text: str) -> bytes:
    """A compiler that must not be asked."""
    raise AssertionError("compiled once more")


def test_code_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What was compiled once is read by the next program."""
    assert total(make_loop(SUM, KINDS)) == EXPECTED
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr(compiler, "_compiled", refuse)
    assert total(make_loop(SUM, KINDS)) == EXPECTED


@pytest.mark.parametrize("damage", [b"", b"x" * 10, None])
def test_damaged_files_are_compiled_again(folder: Path, damage: bytes | None) -> None:
    """A file that was cut or changed is written anew."""
    make_loop(SUM, KINDS)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-100] + b"?" * 100 if damage is None else damage)
    assert total(make_loop(SUM, KINDS)) == EXPECTED
    assert compiler._read(file) is not None


def test_another_processor_has_its_own_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Code made for one processor is not found by another."""
    make_loop(SUM, KINDS)
    name, features = compiler._processor()
    monkeypatch.setattr(compiler, "_processor", lambda: (name, features + ",-nothing"))
    assert total(make_loop(SUM, KINDS)) == EXPECTED
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Loops are made all the same."""
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(compiler, "code_folder", lambda: str(tmp_path / "file"))
    assert total(make_loop(SUM, KINDS)) == EXPECTED


def test_files_are_limited(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Of too many files the older half goes."""
    monkeypatch.setattr(compiler, "FILES_MAX", 4)
    for number in range(5):
        compiler._write(folder / f"{number}.o", b"code")
    assert len(list(folder.iterdir())) == 3
    assert compiler._read(folder / "4.o") == b"code"


def test_the_thread_compiles_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits: those who ask first get nothing, and later ones the loop; few wait at a time, and few are kept."""
    may_go = threading.Event()

    ready: Any = object()

    def slowly(plan: Any, kinds: Any) -> Any:
        may_go.wait(30)
        return ready

    monkeypatch.setattr(compiler, "make_loop", slowly)
    monkeypatch.setattr(compiler, "WAITING_MAX", 2)
    monkeypatch.setattr(compiler, "LOOPS_MAX", 1)
    loops = compiler._Loops()
    keys = [(SUM, (kind,)) for kind in ("int8", "int16", "int32")]
    assert loops.get(keys[0], compiler.ROWS_MIN - 1) is None and not loops._waiting
    assert [loops.get(key, compiler.ROWS_MIN) for key in keys] == [None, None, None]
    assert loops._waiting == set(keys[:2])
    may_go.set()
    assert loops._thread is not None
    loops._thread.shutdown(wait=True)
    assert list(loops._known) == keys[1:2] and loops.get(keys[1], 1) is ready


def test_a_loop_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told in the program's log, and not tried again."""
    monkeypatch.setattr(compiler, "emit", refuse)
    loops = compiler._Loops()
    assert loops.get((SUM, KINDS), compiler.ROWS_MIN) is None
    assert loops._thread is not None
    loops._thread.shutdown(wait=True)
    assert loops._known == {(SUM, KINDS): None} and loops.get((SUM, KINDS), compiler.ROWS_MIN) is None
    assert "no loop was compiled" in capsys.readouterr().err
