"""Kernels that a wheel carries half made: finished instead of compiled, and passed over where anything is not as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from lake import prepared

FEW = """
import sys
from importlib import import_module
from pathlib import Path
from lake import prepared
from lake.compiled import kept_code
from lake.exec.kernels import preparing, warming
few = [rehearse for rehearse in warming.rehearsals() if rehearse.__module__.rpartition(".")[2] in ("search", "gammas", "tuples")]
warming.rehearsals = lambda: few
file = Path(sys.argv[1])
"""
WRITE = f"{FEW}\npreparing.prepare(file, 2)"
USE = f"""{FEW}
prepared.FILE = file
compilers = import_module("numba.core.dispatcher")._FunctionCompiler
compile, compiled = compilers.compile, []
def counted(self, *arguments):
    compiled.append(self.py_func.__name__)
    return compile(self, *arguments)
compilers.compile = counted
warming.warm(processes=2)
from tests.exec.test_prepared import check_answers
check_answers()
print(len(compiled), kept_code().made)
"""


def check_answers() -> None:
    """Two kernels, one that makes arrays, answer what they answer in plain Python."""
    from lake.exec.kernels import search, tuples

    rng = np.random.default_rng(5)
    values = np.sort(rng.integers(0, 50, 400))
    wanted = rng.integers(-5, 55, 60)
    lows, highs = np.zeros(60, np.int64), np.full(60, 400, np.int64)
    amounts = rng.integers(-(10**15), 10**15, 60)
    answers: list[Any] = []
    for plain in (False, True):
        found, offsets = np.zeros(60, np.int64), np.zeros(61, np.int32)
        made = np.zeros(60 * tuples.NUMERIC_BYTES_MAX, np.uint8)
        searching, writing = search.search_ranges, tuples.write_numerics
        (searching.py_func if plain else searching)(values, wanted, lows, highs, False, found)
        (writing.py_func if plain else writing)(amounts, np.zeros(0, np.uint8), 2, offsets, made)
        answers.append((found.tolist(), offsets.tolist(), made.tobytes()))
    assert answers[0] == answers[1]


def run(text: str, file: Path, folder: Path) -> list[int]:
    """What a process prints, whose kernels are kept in a folder."""
    command = [sys.executable, "-c", text, str(file)]
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return [int(word) for word in ended.stdout.split()]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three modules' kernels, prepared."""
    folder = tmp_path_factory.mktemp("prepared")
    assert run(WRITE, folder / "prepared.zip", folder) == []
    assert sorted(path.name for path in folder.iterdir()) == ["prepared.zip"], "nothing else is left or kept"
    return folder / "prepared.zip"


def test_prepared_kernels_are_finished_once(file: Path, tmp_path: Path) -> None:
    """The first process compiles nothing and makes machine code; the next one reads it."""
    compiled, made = run(USE, file, tmp_path)
    assert compiled == 0 and made > 0
    assert run(USE, file, tmp_path) == [0, 0]


def test_what_was_prepared_of_another_source_is_passed_over(file: Path, tmp_path: Path) -> None:
    """Kernels are compiled from the source that is there; so they are where the file is damaged."""
    other = tmp_path / "other.zip"
    with ZipFile(file) as kept, ZipFile(other, "w") as changed:
        about = json.loads(kept.read(prepared.ABOUT))
        for name in set(kept.namelist()) - {prepared.ABOUT}:
            changed.writestr(name, kept.read(name))
        changed.writestr(prepared.ABOUT, json.dumps({**about, "source": "0" * 64}))
    compiled, made = run(USE, other, tmp_path / "one")
    assert compiled > 0 and made > 0
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(file.read_bytes()[:-100])
    compiled, made = run(USE, damaged, tmp_path / "two")
    assert compiled > 0 and made > 0


@pytest.mark.parametrize("what", ["source", "python", "machine", "numba", "llvmlite", "numpy"])
def test_all_must_be_as_it_was(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of other versions, or of another kind of machine, is not opened."""
    prepared.packed(tmp_path, tmp_path / "prepared.zip")
    now = prepared.surroundings()
    monkeypatch.setattr(prepared, "surroundings", lambda: now)
    assert prepared.opened.__wrapped__(tmp_path / "prepared.zip") is not None
    monkeypatch.setattr(prepared, "surroundings", lambda: {**now, what: "another"})
    assert prepared.opened.__wrapped__(tmp_path / "prepared.zip") is None
    assert prepared.opened.__wrapped__(tmp_path / "none.zip") is None


def test_a_damaged_kernel_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read is not there; what was kept under another name is not found."""
    key = (("int64",), ("processor", "features"), ("code", ""))
    with prepared.kept_in(tmp_path):
        assert prepared.add("kernel", key, ["half made"])
        assert prepared.find("kernel", key) is None, "nothing is read while kernels are prepared"
    prepared.packed(tmp_path, tmp_path / "prepared.zip")
    monkeypatch.setattr(prepared, "FILE", tmp_path / "prepared.zip")
    assert prepared.find("kernel", (("int64",), ("another", "processor"), ("code", ""))) == ["half made"]
    assert prepared.find("kernel", (("int32",), *key[1:])) is None
    assert prepared.find("another", key) is None
    with ZipFile(tmp_path / "prepared.zip") as kept:
        end = kept.start_dir  # where the last one's bytes end
    whole = (tmp_path / "prepared.zip").read_bytes()
    (tmp_path / "damaged.zip").write_bytes(whole[: end - 6] + b"HALF" + whole[end - 2 :])
    monkeypatch.setattr(prepared, "FILE", tmp_path / "damaged.zip")
    assert prepared.find("kernel", key) is None


def test_a_file_that_is_not_finished_does_not_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of one that fails, and kernels compiled later are not kept."""

    def interrupted() -> dict[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared, "surroundings", interrupted)
    with pytest.raises(KeyboardInterrupt), prepared.kept_in(tmp_path):
        prepared.packed(tmp_path, tmp_path / "prepared.zip")
    assert not list(tmp_path.iterdir())
    assert not prepared.is_preparing()
