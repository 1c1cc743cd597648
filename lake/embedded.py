"""A lake in this process: the engine without a node.

    with lake.open("./demo") as db:
        db.sql("CREATE TABLE t (id INT)")

Where a node serves the lake already, the connection goes to that node instead, so a program need not know. Otherwise this
process reads the lake, and leads it from the first statement that writes until it closes; another process may read it
meanwhile. Connections of one process to one lake share the engine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lake.config import Config, load
from lake.connection import ARROW_STREAM, Acknowledged, Answer, Connection, encode_rows
from lake.db.database import Database
from lake.db.feed import Feed
from lake.db.live import LiveQuery
from lake.db.session import Session
from lake.db.values import json_objects
from lake.db.write.once import Once
from lake.errors import ObjectNotInState
from lake.exec.context import Cancellation
from lake.roles import OWNER

if TYPE_CHECKING:
    import pyarrow as pa

LOOK_SECS: Final = 1.0  # a stream that has nothing to say looks so often whether its connection was closed


def open_lake(path: str, options: Mapping[str, Any] | None = None) -> Connection:
    """A connection to the lake at ``path``: through the node that serves it, else embedded."""
    config = load(options={"lake": path, **(options or {})})
    address = Database.serving_address(config)
    if address is not None:
        from lake.client import connect_owner

        connection = connect_owner(config, address)
        if connection is not None:
            return connection
    return EmbeddedConnection(config)


class _Shared:
    """Databases that this process has open, by folder; each closes with its last connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Database, int]] = {}

    def take(self, config: Config) -> tuple[str, Database]:
        """The database of the configuration's folder, opened by the first who asks."""
        assert config.lake is not None
        key = config.lake if "://" in config.lake else str(Path(config.lake).resolve())
        with self._lock:
            database, count = self._open.get(key) or (Database.open(config), 0)
            self._open[key] = (database, count + 1)
        return key, database

    def give_back(self, key: str) -> None:
        """Closes the database if nobody else has it."""
        with self._lock:
            database, count = self._open.pop(key)
            if count > 1:
                self._open[key] = (database, count - 1)
            else:
                database.close()


_SHARED: Final = _Shared()


class EmbeddedConnection(Connection):
    """Statements run in this process, with the owner's rights."""

    def __init__(self, config: Config) -> None:
        self._key: str | None
        self._key, self.database = _SHARED.take(config)
        self.session = Session(self.database, OWNER)

    def sql(self, text: str, /, *, job: str | None = None, **params: Any) -> Answer:
        """Runs the statements of ``text``; the last one's answer.

        57P03  a statement that writes, while another process leads the lake
        """
        self._ready(writes=not self.database.leads and self.session.writes(text))
        result = self.session.execute(text, params, job=job)
        return Answer(result.names, result.types, result.tag, result.arrow(), result.outcome, result.notices)

    def append(
        self,
        table: str,
        rows: pa.Table | Iterable[Mapping[str, Any]],
        *,
        producer: str | None = None,
        seq: int | None = None,
        prev: int | None = None,
    ) -> Acknowledged:
        """Appends rows; durable when it returns."""
        self._ready(writes=True)
        body, kind = encode_rows(rows)
        once = None if producer is None or seq is None else Once(producer, seq, prev)
        name = tuple(table.split("."))
        done = self.database.append(name, body, is_arrow=kind == ARROW_STREAM, once=once).result()
        return Acknowledged(done.seg, done.duplicate, done.conflict, done.row, done.ms)

    def watch(self, table: str, after: int | None = None, changes: bool = False) -> Iterator[dict[str, Any]]:
        """A table's new rows, or with ``changes`` all that happens to them, read from the lake itself."""
        self._ready(writes=False)
        feed = Feed.of(self.database, tuple(table.split(".")), old=changes)
        position = feed.start(after)
        while True:
            for batch in feed.read(position):
                yield from json_objects(batch.rows, batch.rows.schema.names, batch.types)
                self._position = position = batch.upto
            self._wait_beyond(position)

    def live(self, query: str, /, *, every_ms: int = 100, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """A query's rows, again after each commit that changes them."""
        self._ready(writes=False)
        asked, clock = LiveQuery(self.session, query, params), self.database.clock
        before: list[dict[str, Any]] | None = None
        while True:
            started, result = clock.monotonic(), asked.run(Cancellation())
            version = result.version
            rows = [row for batch in result.batches() for row in json_objects(batch, result.names, result.types)]
            if rows != before:
                before = rows
                yield rows
            clock.sleep(max(0.0, started + every_ms / 1_000 - clock.monotonic()))
            self._wait_beyond(version)

    def _wait_beyond(self, number: int) -> None:
        """Returns when a commit after ``number`` is seen, of this process or of another."""
        while self.database.version <= number:
            if self.database.leads:
                self.database.lake.wait_for(number + 1, LOOK_SECS)
            else:
                self.database.clock.sleep(LOOK_SECS / 10)
            self._ready(writes=False)

    def tier(self) -> int:
        """Writes the log into Parquet files; how many rows were waiting."""
        self._ready(writes=True)
        return self.database.tier()

    def close(self) -> None:
        """Lets go of the lake: another process may lead it at once."""
        key, self._key = self._key, None
        if key is not None:
            _SHARED.give_back(key)

    def _ready(self, *, writes: bool) -> None:
        """Leads the lake if it must be written, else reads on what others wrote."""
        if self._key is None:
            raise ObjectNotInState("this connection is closed")
        if not self.database.leads:
            if writes:
                self.database.start(None)
            else:
                self.database.refresh()
