"""What exists in a lake, as frozen values: tables and their columns, views, schemas, files, producers.

    Lake ── Schema ── Table ── Column, Constraint
                        │  └── DataFile ── ColumnRange        Parquet, up to 128 listed here
                        │  └── Manifest                       more files, sealed in an object
                        └──────Tail                           rows that are not in files yet (``lake.storage.tail``)

Values are msgspec structs: they compare by value, and their JSON is what commits and checkpoints hold. A field added
later has a default, so that older commits stay readable; a field is never given another meaning.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from lake.arrow_names import arrow_spelling, is_spelled, parse_arrow_name
from lake.errors import UndefinedObject
from lake.late import late_pattern
from lake.types import BIGINT, BOOLEAN, TIMESTAMPTZ, List, Map, Struct, Type, parse_type_name

INTERNAL: Final = "lake$"  # the schema of the lake's own tables, which no statement names
PUBLIC: Final = "public"  # the schema of names without one
TEMPORARY_IDS: Final = 1 << 48  # ids of sessions' own tables and views begin here; a lake never comes so far
FILES_MAX: Final = 128  # data files a table entry lists before older ones are sealed

# The columns every table has without being asked, left out of ``*``.
ROW_ID, VERSION, CREATED_AT, UPDATED_AT = "_row_id", "_version", "_created_at", "_updated_at"
SYSTEM_COLUMNS: Final[dict[str, Type]] = {
    ROW_ID: BIGINT,
    VERSION: BIGINT,
    CREATED_AT: TIMESTAMPTZ,
    UPDATED_AT: TIMESTAMPTZ,
}

DELETED = "_deleted"  # of keyed tables: NULL for a row as it was inserted, false after an UPDATE, true for a marker
RESERVED_COLUMNS: Final = frozenset((*SYSTEM_COLUMNS, DELETED, "_change_type"))

RangeValue = bool | int | float | str | None


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column of a table.

    id       unlike every other column's of the table, for ever; statistics are kept by it
    name     what SQL calls it
    stored   what files and log segments call it; a re-added name is stored under another
    default  SQL text, or None
    merge    of a merge table's value: ``sum``, ``count``, ``min`` or ``max``, which combines those of one key
    identity ``always`` or ``by default``: its values come from a sequence of its own, which the default names
    enum     id of the type whose labels its texts are, or 0; ``labels`` of a type that has no name
    arrow    the name of the Arrow type it was made with, where that is not the SQL type's own
    missing  the value that rows have which were written before it was added (``columns.encode_value``); empty: NULL
    """

    id: int
    name: str
    sql_type: str
    not_null: bool = False
    default: str | None = None
    stored: str = ""
    comment: str | None = None
    merge: str = ""
    arrow: str = ""
    identity: str = ""
    enum: int = 0
    labels: tuple[str, ...] = ()
    missing: bytes = b""

    @staticmethod
    def of(id: int, name: str, type: Type, *, not_null: bool = False, default: str | None = None) -> Column:
        """A column whose stored name is its name."""
        arrow = arrow_spelling(type) if is_spelled(type) else ""
        return Column(id, name, type.sql, not_null, default, name, arrow=arrow)

    @property
    def type(self) -> Type:
        """The SQL type."""
        return parse_arrow_name(self.arrow) if self.arrow else parse_sql_type(self.sql_type)


class Constraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule of a table.

    kind      ``primary key``, ``unique``, ``check`` or ``foreign key``
    text      a check's condition as SQL
    enforced  whether rows must hold it; if not, it is a fact for tools
    target    of a foreign key: schema and name of the table it refers to, and ``target_columns`` of that
    """

    kind: str
    name: str
    columns: tuple[str, ...] = ()
    text: str = ""
    enforced: bool = True
    target: tuple[str, str] = ("", "")
    target_columns: tuple[str, ...] = ()


class Design(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a table keeps its rows; columns by id, 0 for none. Spec: SQL, Table options.

    key        the key's columns in its order; none: every row is kept
    sequence   whose greatest value wins among rows of one key; without it the last arrival does
    ttl        the time after which, and ``ttl_secs``, a row disappears
    partition  of which a file holds one value, or one ``unit``: ``year``, ``month``, ``day`` or ``hour``
    cluster    by which the rows of files are ordered
    retention  seconds for which the past is kept, or None for the lake's setting
    """

    key: tuple[int, ...] = ()
    sequence: int = 0
    ttl: int = 0
    ttl_secs: int = 0
    partition: int = 0
    unit: str = ""
    cluster: tuple[int, ...] = ()
    retention: int | None = None


class ColumnRange(msgspec.Struct, frozen=True, array_like=True):
    """Least and greatest value in physical form, and the NULLs; both None where nothing is known or all is NULL."""

    low: RangeValue
    high: RangeValue
    nulls: int


class DataFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Parquet file of a table.

    groups        rows of each row group
    ranges        by column id; columns without an entry have no known range
    dictionaries  stored names of text columns with few values, read as codes
    has_system    whether the system columns are in the file; if not, row ``i`` has id ``row_id + i`` and all rows have
                  ``version`` and ``created``, which the commit that adds the file fills in
    row_id_high, version_high   greatest of the file
    generation    of a keyed table: files of one share no key, a greater one is newer
    markers       rows that say that a key is gone
    """

    path: str
    rows: int
    bytes: int
    groups: tuple[int, ...] = ()
    ranges: dict[int, ColumnRange] = {}
    dictionaries: tuple[str, ...] = ()
    has_system: bool = False
    row_id: int = -1
    row_id_high: int = -1
    version: int = 0
    version_high: int = 0
    created: int = 0
    generation: int = 0
    markers: int = 0


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Files sealed in an object of their own, with what a query needs to know before it opens that object."""

    path: str
    files: int
    rows: int
    bytes: int
    ranges: dict[int, ColumnRange] = {}
    row_id: int = 0
    row_id_high: int = 0
    version: int = 0
    version_high: int = 0


class Definition(msgspec.Struct, frozen=True, array_like=True):
    """The columns that a table had up to commit ``upto``."""

    upto: int
    columns: tuple[Column, ...]


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table, without its tail.

    folder       where its files are, below ``data/``; kept through a rename
    files        newest files, in order of arrival; older ones are in ``manifests``
    tiered       commit up to which rows are in files
    epoch        counts the times that TRUNCATE emptied it
    written      rows ever written
    sketches     distinct-count sketch of files, by column id
    layout       counts the times that rows moved to other files: a place of a row is good for one layout
    born         the commit that made the table
    horizon      the oldest commit at which the table can still be read: what was deleted before it may be gone
    changed      the newest commit that deleted or replaced rows
    gone         stored names of dropped columns, which no other column may take
    kind         ``append``, ``upsert`` (the newest row of each key is kept) or ``merge`` (rows of a key combine)
    history      the columns it had before each ALTER that changed them, oldest first, as far back as it can be read
    earlier      id of the table in ``State.past`` that has its rows from before the last TRUNCATE, or 0
    family       id of the table that this one and its clones come from: their files may be the same; 0 without clones
    lost         the commit that dropped or emptied it, for a table in ``State.past``; 0 while it is there
    lost_at      when that was, microseconds
    owner        id of the table whose earlier rows these are; 0 for a table that was dropped
    """

    id: int
    schema: str
    name: str
    columns: tuple[Column, ...]
    folder: str
    kind: str = "append"
    constraints: tuple[Constraint, ...] = ()
    options: dict[str, str] = {}
    comment: str | None = None
    files: tuple[DataFile, ...] = ()
    manifests: tuple[Manifest, ...] = ()
    tiered: int = 0
    epoch: int = 0
    written: int = 0
    created: int = 0
    next_column: int = 0
    sketches: dict[int, bytes] = {}
    layout: int = 0
    born: int = 0
    horizon: int = 0
    changed: int = 0
    gone: tuple[str, ...] = ()
    design: Design = Design()
    history: tuple[Definition, ...] = ()
    earlier: int = 0
    family: int = 0
    lost: int = 0
    lost_at: int = 0
    owner: int = 0

    def column(self, name: str) -> Column | None:
        """The column that SQL calls ``name``, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def column_by_id(self, id: int) -> Column:
        """The column with that id."""
        return next(column for column in self.columns if column.id == id)

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns of the key, in its order; none of a table that keeps every row."""
        return tuple(self.column_by_id(id) for id in self.design.key)

    def retention_secs(self, default: float) -> float:
        """How long its past, or itself once dropped, stays readable. Spec: SQL, Table options."""
        return default if self.design.retention is None else float(self.design.retention)

    @property
    def keeps_past(self) -> bool:
        """Whether anything stays of what it deletes, empties or is dropped with."""
        return self.design.retention != 0

    def columns_at(self, number: int) -> tuple[Column, ...]:
        """The columns it had at a commit, each in the newest type it was given: files and tails hold values of that."""
        found = next((item.columns for item in self.history if number <= item.upto), self.columns)
        definitions = (*(item.columns for item in self.history), self.columns)
        types = {column.id: column.sql_type for columns in definitions for column in columns}
        return tuple(
            msgspec.structs.replace(column, sql_type=types.get(column.id, column.sql_type)) for column in found
        )

    @property
    def stored_columns(self) -> tuple[Column, ...]:
        """The columns that files written anew hold: its own, and those dropped which its past still shows."""
        found = {column.stored: column for column in self.columns}
        for item in reversed(self.history):
            for column in item.columns:
                found.setdefault(column.stored, column)
        return tuple(found.values())

    @property
    def hidden_columns(self) -> dict[str, Type]:
        """The columns that files and the tail hold after the table's own."""
        return {DELETED: BOOLEAN, **SYSTEM_COLUMNS} if self.design.key else SYSTEM_COLUMNS

    @property
    def file_rows(self) -> int:
        """Rows in files."""
        return sum(file.rows for file in self.files) + sum(manifest.rows for manifest in self.manifests)

    @property
    def file_bytes(self) -> int:
        """Bytes of files."""
        return sum(file.bytes for file in self.files) + sum(manifest.bytes for manifest in self.manifests)

    @property
    def file_count(self) -> int:
        """Files, sealed ones too."""
        return len(self.files) + sum(manifest.files for manifest in self.manifests)


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored query, as SQL text; ``columns`` renames its outputs where it is not empty.

    kind   ``view``, or ``external table``: a name for files
    """

    id: int
    schema: str
    name: str
    columns: tuple[str, ...]
    query: str
    created: int = 0
    comment: str | None = None
    kind: str = "view"


class Schema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A namespace of tables and views."""

    name: str
    created: int = 0
    comment: str | None = None


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a producer has come: its last ``seq``, the commit that has it, and when."""

    seq: int
    number: int
    at: int


class Garbage(msgspec.Struct, frozen=True, array_like=True):
    """An object that no current table names, kept for readers until ``retain_secs`` have passed since ``at``.

    number   the commit that let go of it
    sealed   it is a manifest, whose files go with it
    """

    path: str
    number: int
    at: int
    sealed: bool = False


_TYPE_FORM: Final = late_pattern(r"([^(]+?)\s*(?:\(([\d,\s]*)\))?")


@lru_cache(maxsize=4_096)
def parse_sql_type(text: str) -> Type:
    """The type whose ``sql`` is ``text``.

    >>> parse_sql_type("DECIMAL(15,2)[]")
    List(of=Decimal(precision=15, scale=2))
    """
    if text.endswith("[]"):
        return List(parse_sql_type(text[:-2]))
    if text.startswith("STRUCT(") and text.endswith(")"):
        return Struct(tuple(_parse_field(part) for part in _split_fields(text[len("STRUCT(") : -1])))
    if text.startswith("MAP(") and text.endswith(")"):
        key, value = _split_fields(text[len("MAP(") : -1])
        return Map(parse_sql_type(key), parse_sql_type(value))
    form = _TYPE_FORM.fullmatch(text.strip())
    if form is None:
        raise UndefinedObject(f'type "{text}" does not exist')
    numbers = tuple(int(part) for part in (form[2] or "").split(",") if part.strip())
    return parse_type_name(form[1], numbers)


def _split_fields(text: str) -> list[str]:
    """The parts between commas outside parentheses and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for index, char in enumerate(text):
        quoted ^= char == '"'
        if quoted:
            continue
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _parse_field(text: str) -> tuple[str, Type]:
    found = _FIELD_FORM.fullmatch(text)
    assert found is not None, f"not a field: {text}"
    name = found[1] if found[1] is not None else found[2].replace('""', '"')
    return name, parse_sql_type(found[3])


_FIELD_FORM: Final = late_pattern(r'(?:(\w+)|"((?:[^"]|"")*)")\s+(.+)', re.DOTALL)
