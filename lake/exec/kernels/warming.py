"""Kernels made ready before they are needed, compiled in as many processes as there are cores.

    warm(progress, processes=2)

Compiling them all takes half a minute of a core, once a machine, and half of that where the wheel carries them prepared
(``lake.prepared``); reading them from the cache folder takes two seconds. Where the first rehearsal finds nothing there,
other processes help: each takes the next number of a rehearsal from a pipe that all share, compiles into the cache folder,
and says the number in another pipe. This process does the same, and then reads what the others made for as long as one of
them is at work: the rest is read when it is first used. What a helper leaves undone is compiled here, so a machine that
cannot start one only takes longer. A helper outlives a starter that is killed by one rehearsal: then nobody hears what it
says.
"""

from __future__ import annotations

import gc
import os
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final

from lake.compiled import code_folder, kept_code
from lake.exec.kernels import BELOW, KERNELS, MODULES, REHEARSALS

PROCESSES_MAX: Final = 4
"""Each takes 300 MB, and a second for importing what it needs."""

NUMBERS_MAX: Final = 256
"""A number is a byte."""

HELPER_SECS: Final = 60.0
"""So long a helper is waited for that says nothing; a rehearsal takes a few seconds."""

OBJECTS_PER_COLLECTION: Final = 100_000
"""Looking for garbage in what Numba makes, nearly all of which stays, takes 6 % of the time; so seldom, 2 %."""


def warm(progress: Callable[[int, int], None] | None = None, *, processes: int = 1) -> None:
    """Compiles the kernels, or reads them from the cache folder, by rehearsing their use.

    progress   told how many rehearsals are done, and of how many, when there are more
    processes  that compile at once, this one among them, where there is much to compile
    """
    every, ready, mine = rehearsals(), set[int](), set[int]()

    def tell(numbers: Iterable[int]) -> None:
        before = len(ready)
        ready.update(numbers)
        if progress is not None and len(ready) > before:
            progress(len(ready), len(every))

    def rehearse(number: int) -> None:
        every[number]()
        mine.add(number)
        tell([number])

    with little_collected():
        rehearse(0)
        helpers = min(processes, PROCESSES_MAX) - 1 if has_compiled() else 0
        with helped(every, helpers, [__name__, code_folder()]) as (queue, words):
            for number in taken(queue):
                rehearse(number)
                tell(heard(words))
            while len(ready) < len(every):
                if unread := ready - mine:
                    rehearse(min(unread))
                    tell(heard(words))
                elif said := heard(words, HELPER_SECS):
                    tell(said)
                else:
                    break
        for number in range(len(every)):
            if number not in ready:
                rehearse(number)


def rehearsals() -> list[Callable[[], None]]:
    """All of them: a short one, then the longest ones first, so that processes that share them end together."""
    for name in (*BELOW, *(f"lake.exec.kernels.{name}" for name in MODULES)):
        import_module(name)
    kernels = Counter(made.py_func.__module__ for made in KERNELS.values())
    *longest, shortest = sorted(REHEARSALS, key=lambda rehearse: -kernels[rehearse.__module__])
    return [shortest, *longest]


def has_compiled() -> bool:
    """Whether this process made a kernel's machine code, which the cache folder did not have."""
    made: int = kept_code().made
    return made > 0


@contextmanager
def little_collected() -> Iterator[None]:
    """Has Python look for cycles seldom."""
    before = gc.get_threshold()
    gc.set_threshold(OBJECTS_PER_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def helped(
    every: Sequence[Callable[[], None]], helpers: int, program: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Pipes of the numbers to take, all but the first, and of those that helpers have done; they end with the block.

    program   the module that a helper runs, and its arguments before the names of the rehearsals
    """
    queue, fill = os.pipe()
    words, say = os.pipe()
    os.write(fill, bytes(range(1, len(every))))
    os.close(fill)
    os.set_blocking(words, False)
    names = [f"{rehearse.__module__}:{rehearse.__name__}" for rehearse in every]
    command = [sys.executable, "-m", *program, *names]
    started: list[subprocess.Popen[bytes]] = []
    try:
        with suppress(OSError):
            for _ in range(helpers):
                started.append(subprocess.Popen(command, stdin=queue, stdout=say, stderr=subprocess.DEVNULL))
        os.close(say)  # Their ends alone are left: when all are closed, nobody says anything any more.
        yield queue, words
    finally:
        for helper in started:
            helper.kill()
            helper.wait()
        for end in (queue, words):
            os.close(end)


def taken(queue: int) -> Iterator[int]:
    """The numbers that no other process has taken."""
    while number := os.read(queue, 1):
        yield number[0]


def heard(words: int, secs: float = 0.0) -> bytes:
    """The numbers that helpers have done since the last look; waits for the next, so long. None where all are gone."""
    select.select([words], [], [], secs)
    with suppress(BlockingIOError):
        return os.read(words, NUMBERS_MAX)
    return b""


def help_warming(folder: str, names: Sequence[str]) -> None:
    """What a helper does: its standard input is the queue, its standard output is heard."""
    import_module("numba").config.CACHE_DIR = folder
    with little_collected():
        for number in taken(sys.stdin.fileno()):
            module, _, name = names[number].partition(":")
            getattr(import_module(module), name)()
            os.write(sys.stdout.fileno(), bytes([number]))


if __name__ == "__main__":
    help_warming(sys.argv[1], sys.argv[2:])
