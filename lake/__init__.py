"""A database made of a folder.

    import lake

    db = lake.open("./demo")                            # embedded: this process runs the engine
    db.sql("SELECT * FROM t WHERE id = $id", id=7).rows()

    db = lake.connect("http://127.0.0.1:8080")          # the same over HTTP

Reading order of the package: ``errors``, ``types``, ``rows``, ``config`` (the foundation); ``storage`` (what is kept);
``sql`` (what the text means); ``exec`` (the engine); ``db`` (being a database); ``net`` (the node); ``doors`` (how they
ask); ``cli``, ``shell``, ``client``, ``embedded`` (the program).
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lake.connection import Connection

__version__ = "0.1.0"


def open(path: str | PathLike[str], **options: Any) -> Connection:
    """A connection to the lake in a folder, made if it is not there.

    Where a node serves the folder, statements go to that node; else this process leads the lake until ``close``.
    options  settings by name, as the program's flags call them: ``memory_gb=2``, ``tier_secs=0``
    """
    from lake.embedded import open_lake

    return open_lake(str(path), options)


def connect(url: str, *, token: str | None = None, timeout: float = 300.0, ca: str | None = None) -> Connection:
    """A connection to a node over HTTP; ``ca`` is a PEM file of the authorities that its certificate is checked by.

    28000  no token or a wrong one; raised by the first statement
    """
    from lake.client import HttpConnection

    return HttpConnection(url, token=token, timeout=timeout, ca=ca)
