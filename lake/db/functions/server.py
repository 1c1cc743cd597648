"""Table functions that Postgres's clients ask of its server. Source: PostgreSQL documentation, 9.26."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct

from lake.rows import Part, Predicate
from lake.sql.catalog import Settings, Table, TableColumn, TableStatistics
from lake.sql.parser import keywords, reserved_words
from lake.sql.registry import table_function
from lake.types import BOOLEAN, TEXT

KEYWORDS: Final = (
    ("word", TEXT), ("catcode", TEXT), ("barelabel", BOOLEAN), ("catdesc", TEXT), ("baredesc", TEXT),
)  # fmt: skip


@table_function("pg_get_keywords() -> TABLE", group="postgres", origin="postgres")
def pg_get_keywords(settings: Settings) -> Table:
    """The words of the language, and which of them are names only in quotes.

    >>> SELECT word, catdesc FROM pg_get_keywords() WHERE word IN ('select', 'day') ORDER BY word
    day | unreserved / select | reserved
    """
    reserved = reserved_words()
    rows = [
        (word.lower(), "R", False, "reserved", "requires AS") if word in reserved
        else (word.lower(), "U", True, "unreserved", "can be bare label")
        for word in sorted(keywords())
    ]  # fmt: skip
    arrays = [pa.array([row[place] for row in rows], type.arrow) for place, (_, type) in enumerate(KEYWORDS)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in KEYWORDS])
    columns = tuple(TableColumn(name, type) for name, type in KEYWORDS)
    return Table(("pg_get_keywords",), columns, _Rows(batch), lambda: TableStatistics(float(len(rows))))


class _Rows(Struct, frozen=True):
    batch: pa.RecordBatch

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        return [Part(None, lambda: [self.batch.select(list(columns))])]
