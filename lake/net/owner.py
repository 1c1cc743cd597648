"""The owner's key of a node: whoever started it may read files of the machine through it.

    lake serve ./demo                                   makes a key and leaves it where only this user reads it
    lake sql ./demo "SELECT * FROM 'flights.csv'"       finds it there, and is the owner

The key is made anew each time a node starts. It lies in the user's own folder of settings, not in the lake.
Spec: HTTP, What the service does 9.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lake import log
from lake.config import Config


def leave_owner_key(config: Config, address: str) -> Path | None:
    """Writes the key of the node at ``address`` for its owner; the file, or None where there is no place for it."""
    path = _path(config, address)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "w", encoding="ascii") as out:  # noqa: PTH123
            out.write(config.owner_key)
    except OSError as error:
        log.warn("no place for the owner's key: files of this machine cannot be read through the node", error=error)
        return None
    return path


def find_owner_key(config: Config, address: str) -> str | None:
    """The key of the node at ``address``, where this user started it."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _path(config, address).read_text(encoding="ascii")
    return None


def _path(config: Config, address: str) -> Path:
    return Path(config.config_dir) / "owner" / address.replace(":", "_").replace("/", "_")
