"""files() and file_read: what is kept in the lake beside its tables. Spec: SQL, Function catalog (Files)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct

from lake.errors import FeatureNotSupported, ProgramLimitExceeded
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows
from lake.exec.per_row import per_row
from lake.rows import Part, Predicate, physical_array
from lake.sql.catalog import Settings, Table, TableColumn, TableStatistics
from lake.sql.registry import CallInfo, scalar, table_function
from lake.storage.files import Files
from lake.types import BIGINT, TEXT, TIMESTAMPTZ

GROUP: Final = "files"
COLUMNS: Final = {"path": TEXT, "size": BIGINT, "written": TIMESTAMPTZ}
ROWS_GUESSED: Final = 100.0
READ_BYTES_MAX: Final = 1 << 30  # of one batch of rows


@table_function("files() -> TABLE", group=GROUP, origin="spec")
@table_function("files(folder VARCHAR) -> TABLE", group=GROUP, origin="spec")
def files(settings: Settings, folder: str = "") -> Table:
    """The files kept in the lake, or those below a folder: path, size and the time they were written; no versions.

    42501  the caller may not read files

    >>> SELECT count(*) FROM files()
    0
    """
    columns = tuple(TableColumn(name, type, False) for name, type in COLUMNS.items())
    rows = _FileRows(_files_of(settings), folder or "")
    return Table(("files",), columns, rows, lambda: TableStatistics(ROWS_GUESSED))


@scalar("file_read(path VARCHAR) -> BYTEA", group=GROUP, origin="spec", volatility="volatile", takes_call=True)
@per_row
def file_read(path: Value, *, call: CallInfo) -> pa.Array:
    """The bytes of a file kept in the lake, with or without ``files/`` before its path; NULL where there is none.

    Goes row by row: a file is read whole, one at a time.

    42501  the caller may not read files      22023  no path of a file
    54000  more than fits at once

    >>> file_read(NULL)
    NULL
    """
    texts = as_array(path, call.rows)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.binary())
    kept, passed = _files_of(call.settings), 0

    def read(name: str) -> bytes | None:
        nonlocal passed
        data = kept.read(name)
        passed += len(data or b"")
        if passed > READ_BYTES_MAX:
            raise ProgramLimitExceeded(f"file_read reads at most {READ_BYTES_MAX >> 20} MiB of files at once")
        return data

    return map_rows(read, pa.binary(), texts)


def _files_of(settings: Settings | None) -> Files:
    if settings is None or settings.files is None:
        raise FeatureNotSupported("files are read by statements of a lake")
    found = settings.files()
    assert isinstance(found, Files)
    return found


class _FileRows(Struct, frozen=True):
    files: Files
    folder: str

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        return [Part(None, lambda: self._read(columns))]

    def _read(self, columns: Sequence[str]) -> Iterable[pa.RecordBatch]:
        found = self.files.listed(self.folder)
        values = {
            "path": [info.name for info in found], "size": [info.size for info in found],
            "written": [info.modified for info in found],
        }  # fmt: skip
        if not columns:
            return [pa.record_batch([pa.nulls(len(found))], ["rows"]).select([])]
        arrays = [physical_array(pa.array(values[name], COLUMNS[name].arrow), COLUMNS[name]) for name in columns]
        return [pa.RecordBatch.from_arrays(arrays, names=list(columns))]
