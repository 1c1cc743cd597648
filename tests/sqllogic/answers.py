"""Statements on a fresh lake, in this process or over HTTP; both answer in the node's ``typed`` format.

    with fresh_lake(over_http=True) as lake:
        lake.run("SELECT 1 AS one")      Typed(types=(Integer(bits=64),), rows=[[1]], count=None)
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from lake.arrow_names import parse_arrow_name
from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.doors.http import encode
from lake.errors import LakeError
from lake.net.owner import find_owner_key
from lake.roles import OWNER
from lake.types import Type
from tests.cluster import Wire, running_node
from tests.engines import Failure

PAGE_ROWS: Final = 100_000  # as many as a node answers at once
ANSWER_SECS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Typed:
    """What a statement answered: types and rows of a query, or how many rows a statement wrote."""

    types: tuple[Type, ...] = ()
    rows: list[list[Any]] | None = None
    count: int | None = None


class Lake(Protocol):
    """What a file runs on."""

    def run(self, text: str, connection: str = "") -> Typed:
        """The answer of a statement on a named connection; a Failure where it is refused."""
        ...


class _InProcess:
    """A database of this process, with a session for each connection."""

    def __init__(self, folder: Path) -> None:
        self.database = Database.open(load(options={"lake": str(folder), "tier_secs": "0"}))
        self.database.start(None)
        self._sessions: dict[str, Session] = {}

    def run(self, text: str, connection: str = "") -> Typed:
        """The answer of a statement."""
        session = self._sessions.setdefault(connection, Session(self.database, OWNER))
        try:
            result = session.execute(text)
            if not result.is_query:
                return Typed(count=(result.outcome or {}).get("rows"))
            kept = encode.Kept(result.names, result.types, result.arrow())
            return _typed(json.loads(encode.typed(kept, 0, kept.table.num_rows, None)))
        except LakeError as error:
            raise Failure(str(error), error.sqlstate) from error
        except TimeoutError:
            raise
        except Exception as error:  # what a node answers as XX000
            raise Failure(f"internal error: {type(error).__name__}: {error}", "XX000") from error


class _OverHttp:
    """A node, with a session for each connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._wire = Wire(port, ANSWER_SECS)
        # Files beside the records are read by whoever started the node.
        self._owner = find_owner_key(load(), f"127.0.0.1:{port}") or ""

    def run(self, text: str, connection: str = "") -> Typed:
        """The answer of a statement."""
        body = self._ask("POST", f"/sql?format=typed&rows={PAGE_ROWS}", text, f"sqllogictest-{connection}")
        answer = _typed(body)
        while answer.rows is not None and len(answer.rows) < body["total"]:
            path = f"/sql/pages/{body['pages']}?from={len(answer.rows)}&rows={PAGE_ROWS}"
            answer.rows.extend(self._ask("GET", path, "", f"sqllogictest-{connection}")["rows"])
        return answer

    def _ask(self, method: str, path: str, text: str, session: str) -> Any:
        """The body of an answer; after a broken connection the next statement has another one."""
        try:
            reply = self._wire.send(method, path, text, x_lake_session=session, x_lake_owner=self._owner)
        except (OSError, TimeoutError):
            self._wire.close()
            self._wire = Wire(self._port, ANSWER_SECS)
            raise
        if reply.status != 200:
            headers = {name.lower(): value for name, value in reply.headers.items()}
            raise Failure(reply.body.decode(errors="replace"), headers.get("x-lake-sqlstate", ""))
        return reply.json()


def _typed(body: Any) -> Typed:
    """The answer as the node writes it: columns with Arrow's type names and rows; or the outcome of a statement."""
    if not isinstance(body, Mapping) or "columns" not in body:
        return Typed(count=body.get("rows") if isinstance(body, Mapping) else None)
    types = tuple(parse_arrow_name(column["type"]) for column in body["columns"])
    return Typed(types, body["rows"])


@contextmanager
def fresh_lake(*, over_http: bool) -> Iterator[Lake]:
    """An empty lake that goes at the end: in this process, or behind a node of its own."""
    scratch = Path(tempfile.mkdtemp(prefix="lake-slt-"))
    try:
        if over_http:
            with running_node(scratch / "lake") as node:
                yield _OverHttp(node.port)
        else:
            lake = _InProcess(scratch / "lake")
            try:
                yield lake
            finally:
                lake.database.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
