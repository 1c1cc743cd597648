"""The hold on a folder: of the processes of one machine, at most one leads the lake in it.

    hold = Hold.take("./demo")        57P03 while another process has it
    hold.let_go()                     or the end of the process, however it comes

It is a lock of the operating system on ``cluster/hold``, which also tells the holder's process id. What keeps two leaders
from both writing is the commit log; the hold keeps a second process from taking the lead where nobody meant it to.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from lake.errors import IoFailure, NotLeading

try:
    import fcntl
except ImportError:  # a system without these locks: the commit log alone decides there
    fcntl = None  # type: ignore[assignment]

HOLD_FILE: Final = "cluster/hold"


class Hold:
    """A held folder."""

    def __init__(self, file: int) -> None:
        self._file = file

    @classmethod
    def take(cls, folder: str) -> Hold:
        """Holds the lake in ``folder``.

        57P03  another process holds it      58030  the folder cannot be written
        """
        path = Path(folder) / HOLD_FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise IoFailure(f"cannot write to {folder}: {error.strerror}") from None
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(file, 32, 0).decode("ascii", "replace").strip()
                os.close(file)
                raise NotLeading(
                    f"process {holder or 'of another program'} has the lake at {folder} open for writing",
                    hint="close it there, or let it serve: lake serve",
                ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        return cls(file)

    def let_go(self) -> None:
        """Lets another process have it."""
        with contextlib.suppress(OSError):
            os.close(self._file)
