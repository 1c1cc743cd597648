"""A lake in this process: the engine without a node.

    with lake.open("./demo") as db:
        db.sql("CREATE TABLE t (id INT)")

Where a node serves the lake already, the connection goes to that node instead, so a program need not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lake.client import ARROW_STREAM, Acknowledged, Answer, Connection, HttpConnection, encode_rows
from lake.config import Config, load
from lake.db.database import Database
from lake.db.session import Session
from lake.db.write.once import Once
from lake.roles import OWNER

if TYPE_CHECKING:
    import pyarrow as pa


def open_lake(path: str, options: Mapping[str, Any] | None = None) -> Connection:
    """A connection to the lake at ``path``: through the node that serves it, else embedded."""
    config = load(options={"lake": path, **(options or {})})
    address = Database.serving_address(config)
    if address is not None:
        return HttpConnection(f"http://{address}", token=config.token or config.admin_token)
    return EmbeddedConnection(config)


class EmbeddedConnection(Connection):
    """This process leads the lake; statements run here, with the owner's rights."""

    def __init__(self, config: Config) -> None:
        self.database = Database.open(config)
        self.database.start(None)
        self.session = Session(self.database, OWNER)

    def sql(self, text: str, /, *, job: str | None = None, **params: Any) -> Answer:
        """Runs the statements of ``text``; the last one's answer."""
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
        body, kind = encode_rows(rows)
        once = None if producer is None or seq is None else Once(producer, seq, prev)
        name = tuple(table.split("."))
        done = self.database.append(name, body, is_arrow=kind == ARROW_STREAM, once=once).result()
        return Acknowledged(done.seg, done.duplicate, done.conflict, done.row, done.ms)

    def tier(self) -> int:
        """Writes the log into Parquet files; how many rows were waiting."""
        return self.database.tier()

    def close(self) -> None:
        """Lets go of the lake: another process may lead it at once."""
        self.database.close()
