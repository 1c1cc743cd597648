"""Every change of a lake as a value, and the commit that holds them; ``fold`` makes a lake of them.

    commit 41   [CreateTable(flights), Advance("loader", 1)]
    commit 42   [AppendRows(flights, 1000 rows, inline 0), Advance("loader", 2)]
    commit 43   [Tiered(flights, upto=42, files=[..])]
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
import pyarrow as pa
from msgspec import Struct

from lake.storage.catalog.access import User
from lake.storage.catalog.model import (
    Column,
    Constraint,
    DataFile,
    Design,
    Manifest,
    Schema,
    Table,
    View,
)
from lake.storage.catalog.objects import Object

Rows: TypeAlias = pa.RecordBatch | bytes | memoryview


class CreateSchema(msgspec.Struct, frozen=True, tag="create schema"):
    """A schema is there from here on."""

    schema: Schema


class DropSchema(msgspec.Struct, frozen=True, tag="drop schema"):
    """An empty schema goes."""

    name: str


class CreateTable(msgspec.Struct, frozen=True, tag="create table"):
    """A table is there, empty; its ``id`` is the state's ``next_id``."""

    table: Table


class AlterTable(msgspec.Struct, frozen=True, tag="alter table", omit_defaults=True):
    """A table is defined anew; its rows and files stay."""

    table: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    constraints: tuple[Constraint, ...]
    options: dict[str, str]
    comment: str | None
    next_column: int
    design: Design = Design()


class DropTable(msgspec.Struct, frozen=True, tag="drop table", omit_defaults=True):
    """A table goes; its files follow when nobody can be reading them, or with ``keep`` when its past is over."""

    table: int
    keep: bool = False


class UndropTable(msgspec.Struct, frozen=True, tag="undrop table"):
    """A table that was dropped is there again, with all it had."""

    table: int


class CloneTable(msgspec.Struct, frozen=True, tag="clone table"):
    """A table is there that has the rows of ``source``, in the same files; its ``id`` is the state's ``next_id``."""

    table: Table
    source: int


class CreateView(msgspec.Struct, frozen=True, tag="create view"):
    """A view is there; its ``id`` is the state's ``next_id``."""

    view: View


class DropView(msgspec.Struct, frozen=True, tag="drop view"):
    """A view goes."""

    view: int


class PutUser(msgspec.Struct, frozen=True, tag="put user"):
    """A user or role is there, or is as this says."""

    user: User


class DropUser(msgspec.Struct, frozen=True, tag="drop user"):
    """A user or role goes, and its name from the roles of others."""

    name: str


class PutSigningKey(msgspec.Struct, frozen=True, tag="put signing key"):
    """The key that signs sessions of users, in hex."""

    key: str


class AlterView(msgspec.Struct, frozen=True, tag="alter view"):
    """The view of that id is defined anew, under its name."""

    view: View


class AlterSchema(msgspec.Struct, frozen=True, tag="alter schema"):
    """The schema of that name is defined anew."""

    schema: Schema


class CreateObject(msgspec.Struct, frozen=True, tag="create object"):
    """A sequence, type or index is there; its ``id`` is the state's ``next_id``."""

    object: Object


class AlterObject(msgspec.Struct, frozen=True, tag="alter object"):
    """The sequence, type or index of that id is defined anew."""

    object: Object


class DropObject(msgspec.Struct, frozen=True, tag="drop object"):
    """A sequence, type or index goes."""

    object: int


class AdvanceSequence(msgspec.Struct, frozen=True, tag="advance sequence", omit_defaults=True):
    """A block of numbers is taken from a sequence, or it is set."""

    sequence: int
    next: int
    called: bool = True
    ended: bool = False


class AppendRows(msgspec.Struct, frozen=True, tag="append", omit_defaults=True):
    """Rows join a table's tail: piece ``inline`` of the commit's body, or a segment."""

    table: int
    rows: int
    row_id: int
    inline: int = -1
    segment: str | None = None
    checksum: int = 0


class AddFiles(msgspec.Struct, frozen=True, tag="add files"):
    """Rows that were written to files at once, past the tail; ``sketches`` are of all these files, by column id."""

    table: int
    files: tuple[DataFile, ...]
    sketches: dict[int, bytes]


Placed = dict[str, tuple[bytes, bytes]]


class Tiered(msgspec.Struct, frozen=True, tag="tiered", omit_defaults=True):
    """The tail up to commit ``upto`` is in these files.

    placed  where its deleted rows are, by path: rows and commits, as ``deletes.encode_numbers``; None where the files
            hold all rows in their order
    """

    table: int
    upto: int
    files: tuple[DataFile, ...]
    sketches: dict[int, bytes]
    placed: Placed | None = None


class DeleteRows(msgspec.Struct, frozen=True, tag="delete", omit_defaults=True):
    """Versions of rows are gone: rows of files, by path, and rows of the tail, both counted from the first.

    layout  the table's, when the places were found; the values are ``deletes.encode_numbers``
    """

    table: int
    layout: int
    files: dict[str, bytes] = {}
    tail: bytes = b""


class ReplaceFiles(msgspec.Struct, frozen=True, tag="replace files", omit_defaults=True):
    """Files give way to others that hold the same rows, at the place of the first of them.

    dropped   rows of removed files that were deleted at commit ``horizon`` and that the new files leave out
    manifest  the manifest that lists the removed files, where the table entry does not; ``resealed`` takes its place
    placed    as of ``Tiered``
    """

    table: int
    removed: tuple[str, ...]
    files: tuple[DataFile, ...]
    dropped: dict[str, bytes] = {}
    horizon: int = 0
    manifest: str = ""
    resealed: Manifest | None = None
    counts: dict[str, int] = {}
    placed: Placed | None = None


class SealFiles(msgspec.Struct, frozen=True, tag="seal files"):
    """Files leave the table entry for a manifest, which also takes over older manifests."""

    table: int
    sealed: tuple[str, ...]
    manifest: Manifest
    replaced: tuple[str, ...]


class Truncate(msgspec.Struct, frozen=True, tag="truncate", omit_defaults=True):
    """A table is empty; a tiering job that began before it is refused by its epoch.

    keep  its rows stay as an earlier table, for AT, RESTORE and feeds
    """

    table: int
    keep: bool = False


class ForgetPast(msgspec.Struct, frozen=True, tag="forget past", omit_defaults=True):
    """The time of what was kept is over.

    tables    tables of the past that go for good
    horizons  by table: the oldest commit at which it can be read from here on
    """

    tables: tuple[int, ...] = ()
    horizons: dict[int, int] = {}


class ForgetProducers(msgspec.Struct, frozen=True, tag="forget producers"):
    """Producers that have sent nothing since ``before``, microseconds, are as if they never had."""

    before: int


class Advance(msgspec.Struct, frozen=True, tag="advance"):
    """A producer has come to ``seq``."""

    producer: str
    seq: int


class Elected(msgspec.Struct, frozen=True, tag="elected"):
    """A leader's first act."""

    term: int
    address: str


class Forget(msgspec.Struct, frozen=True, tag="forget"):
    """Garbage is removed from the store and need not be listed any longer."""

    paths: tuple[str, ...]


Change = (
    CreateSchema | DropSchema | CreateTable | AlterTable | DropTable | UndropTable | CloneTable | CreateView | DropView
    | AlterView | AlterSchema | CreateObject | AlterObject | DropObject | AdvanceSequence
    | AppendRows | AddFiles | DeleteRows | Tiered | ReplaceFiles | SealFiles | Truncate | ForgetPast | ForgetProducers
    | Advance | Elected | Forget | PutUser | DropUser | PutSigningKey
)  # fmt: skip

DEFINITIONS: Final = (
    CreateSchema, DropSchema, CreateTable, AlterTable, DropTable, UndropTable, CloneTable, CreateView, DropView,
    PutUser, DropUser,
    CreateObject, AlterObject, DropObject,
    AlterView, AlterSchema,
)  # fmt: skip


class Commit(Struct, frozen=True):
    """One entry of the log.

    time    microseconds since the epoch
    writer  nonce of the leader that wrote it: what tells one's own commit from another's after a lost reply
    rows    pieces that AppendRows name by position: batches on the way in, encoded on the way back
    """

    number: int
    time: int
    term: int
    writer: str
    changes: tuple[Change, ...]
    rows: tuple[Rows, ...] = ()
