"""Kernels are ready before they are needed: alone, with helpers, and where no helper can be started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lake.exec import kernels
from lake.exec.kernels import warming

ALONE = "import sys; from lake.exec.kernels.warming import has_compiled, rehearsals\n"
TWO = "[r for r in rehearsals() if r.__module__.rpartition('.')[2] in ('search', 'partition', 'gammas')]"
SHARED = f"""{ALONE}
from lake.exec.kernels import warming
every = {TWO}
warming.rehearsals = lambda: every
told = []
warming.warm(lambda *done: told.append(done), processes=2)
assert told[-1] == (3, 3), told
"""
READ = f"{ALONE}\nfor rehearse in {TWO}: rehearse()\nsys.exit(has_compiled())"


def run(text: str, folder: Path) -> None:
    """A process whose kernels are kept in a folder."""
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", text], env=environ, check=True, timeout=300)


def test_warming_calls_every_kernel_module() -> None:
    """After warming up every module's kernels have machine code, and progress was told."""
    told: list[tuple[int, int]] = []
    warming.warm(lambda done, total: told.append((done, total)))
    assert told == [(number, told[-1][1]) for number in range(1, len(told) + 1)] and len(told) >= len(kernels.MODULES)
    compiled = {name.split(".")[0] for name, made in kernels.KERNELS.items() if made.jitted.signatures}
    assert compiled >= set(kernels.MODULES)


def test_two_processes_fill_one_folder(tmp_path: Path) -> None:
    """A third process compiles nothing."""
    run(SHARED, tmp_path)
    run(READ, tmp_path)


def test_without_helpers_this_process_does_it_all(tmp_path: Path) -> None:
    """A machine that starts no process, or one that ends at once, only takes longer."""
    for program in ("/nothing/here", "/bin/false"):
        run(SHARED.replace("every =", f"sys.executable = {program!r}\nevery ="), tmp_path / Path(program).name)


def test_what_a_helper_leaves_undone_is_compiled_here(tmp_path: Path) -> None:
    """One that takes a number and dies without a word is missed when it is gone, and its rehearsal made up for."""
    program = tmp_path / "helper"
    program.write_text("#!/bin/sh\nhead -c 1 >/dev/null\nexit 1\n")
    program.chmod(0o755)
    run(SHARED.replace("every =", f"sys.executable = {str(program)!r}\nevery ="), tmp_path / "kernels")
    run(READ, tmp_path / "kernels")


def test_helper_ends_when_nobody_hears(tmp_path: Path) -> None:
    """A helper takes numbers until it has nobody to tell: at most one rehearsal after its starter's end."""
    queue, fill = os.pipe()
    words, say = os.pipe()
    os.write(fill, bytes([0] * 10))
    os.close(words)
    command = [sys.executable, "-m", warming.__name__, str(tmp_path), "lake.exec.kernels.gammas:_rehearse"]
    ended = subprocess.run(command, stdin=queue, stdout=say, stderr=subprocess.DEVNULL, check=False, timeout=300)
    assert ended.returncode != 0
    assert len(os.read(queue, 20)) == 9
    for end in (queue, fill, say):
        os.close(end)
