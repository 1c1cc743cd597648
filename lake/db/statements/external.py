"""CREATE EXTERNAL TABLE and COPY .. TO: files outside the lake under a name, and answers into files.

An external table is a stored view over the reader of its format, so every statement lists its place anew. Both belong to
the program that started the node. Spec: SQL, Other statements; HTTP, What the service does 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as dataset
import pyarrow.parquet as parquet

from lake.db.functions.readers import LOCAL_FILES
from lake.db.names import qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.table import make_room
from lake.db.values import json_values
from lake.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameter,
    InvalidTableDefinition,
    IoFailure,
    SyntaxFailure,
)
from lake.roles import Role
from lake.sql import ast, parser
from lake.sql.bind import bind_type
from lake.sql.quoting import quote_name, quote_text
from lake.storage.catalog.changes import Change, CreateView
from lake.storage.catalog.model import View
from lake.storage.catalog.state import State

READERS: Final = {"parquet": "read_parquet", "csv": "read_csv", "tsv": "read_csv", "json": "read_json", "ndjson": "read_json"}
CSV_OPTIONS: Final = {
    "has_header": "header", "header": "header", "delimiter": "delim", "delim": "delim", "sep": "delim", "quote": "quote",
    "escape": "escape", "null_value": "nullstr", "null_regex": "nullstr",
}  # fmt: skip
UNCOMPRESSED: Final = ("", "uncompressed", "none")
GROUP_ROWS: Final = 1 << 20  # of a Parquet file's row group


# --- external tables -------------------------------------------------------------------------------------------------


@statement(ast.CreateExternal, tag="CREATE EXTERNAL TABLE", role=Role.ADMIN, audit="ddl")
def create_external(stmt: ast.CreateExternal, run: Run) -> Result:
    """Stores a name for files; answers ``{table, files: true}``.

    42501  the caller is not the program that started the node      42601  no format or no place
    """
    _check_owner(run)
    if stmt.format is None or stmt.location is None:
        raise SyntaxFailure(f"CREATE EXTERNAL TABLE needs {'STORED AS' if stmt.format is None else 'LOCATION'}")
    text = _reading(stmt, stmt.format, stmt.location)
    database = run.database
    schema, name = qualified(stmt.name.parts, database.name)
    if stmt.if_taken is not ast.IfTaken.KEEP or run.catalog.state.find(name, schema) is None:
        query = parser.parse(text)[0]
        assert isinstance(query, ast.QueryStatement)
        run.binder().query(query.query)

    def make(state: State) -> list[Change]:
        making = make_room(state, schema, name, stmt.if_taken, "view")
        if making is None:
            return []
        return [*making, CreateView(View(state.next_id, schema, name, (), text, kind="external table"))]

    database.define(make)
    return Result.done("CREATE EXTERNAL TABLE", {"table": name, "files": True})


def _reading(stmt: ast.CreateExternal, format: str, location: str) -> str:
    """The query that reads the files.

    0A000  a format without a reader, and partitions that stand in folders' names
    """
    reader = READERS.get(format)
    if reader is None:
        raise FeatureNotSupported(f"STORED AS {format.upper()} is not supported")
    if stmt.partitions:
        raise FeatureNotSupported("PARTITIONED BY in CREATE EXTERNAL TABLE is not supported")
    if stmt.columns and len({column.name for column in stmt.columns}) < len(stmt.columns):
        raise InvalidTableDefinition("a column is named twice")
    arguments = [quote_text(str(Path(location).expanduser().absolute()))]
    arguments += [f"{name} => {value}" for name, value in _reader_options(stmt, format).items()]
    if stmt.columns:
        types = (f"{quote_name(item.name)}: {quote_text(bind_type(item.type).sql)}" for item in stmt.columns)
        arguments.append(f"columns => {{{', '.join(types)}}}")
    return f"SELECT * FROM {reader}({', '.join(arguments)})"


def _reader_options(stmt: ast.CreateExternal, format: str) -> dict[str, str]:
    """Options as the reader's arguments; those of writers are left out.

    0A000  compressed files     22023  an option of no format
    """
    made = {"delim": "'\t'"} if format == "tsv" else {}
    for option in stmt.options:
        scope, _, name = option.name.rpartition(".")
        if scope.split(".")[0] not in ("", "format", format):
            raise InvalidParameter(f'no option "{option.name}"')
        if name == "compression" and str(option.value).lower() not in UNCOMPRESSED and format != "parquet":
            raise FeatureNotSupported(f"{option.value} files of {format} are not supported")
        if READERS[format] == "read_csv" and name in CSV_OPTIONS:
            value = option.value
            made[CSV_OPTIONS[name]] = str(value).lower() if isinstance(value, bool) else quote_text(str(value))
    return made


# --- COPY .. TO ------------------------------------------------------------------------------------------------------


@statement(ast.Copy, tag="COPY", role=Role.ADMIN, audit="write")
def copy(stmt: ast.Copy, run: Run) -> Result:
    """Writes a query's rows into a file, or into a folder where the place has no extension: ``{copied, to}``.

    42501  the caller is not the program that started the node      58030  the place cannot be written
    """
    _check_owner(run)
    source = stmt.source
    if isinstance(source, ast.Name):
        source = ast.Query(ast.Select((ast.SelectItem(ast.Star()),), (ast.TableSource(source),)))
    target = Path(stmt.target).expanduser().absolute()
    format = stmt.format or target.suffix.lstrip(".").lower()
    if format not in ("parquet", "csv", "json", "ndjson", "arrow"):
        raise FeatureNotSupported(f'COPY TO a file of format "{format}" is not supported')
    if run.database.is_inside(target):
        raise InvalidParameter("COPY does not write into the lake's own folder")
    options = {option.name.rpartition(".")[2]: option.value for option in stmt.options}
    result = run.answer(*run.plan(source))
    try:
        rows = _write(result, target, format, stmt.partitions, options)
    except OSError as error:
        raise IoFailure(f'"{stmt.target}" cannot be written: {error}') from None
    return Result.done("COPY", {"copied": rows, "to": stmt.target}, count=rows)


def _write(result: Result, target: Path, format: str, partitions: tuple[str, ...], options: dict[str, Any]) -> int:
    if partitions:
        return _write_partitions(result, target, format, partitions)
    if not target.suffix or str(target).endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
        target = target / f"part-0.{format}"
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
    schema, rows = result.schema, 0
    writer = _Writer(target, schema, result, format, options)
    with writer:
        for batch in result.batches():
            writer.write(batch)
            rows += batch.num_rows
    return rows


def _write_partitions(result: Result, target: Path, format: str, partitions: tuple[str, ...]) -> int:
    table = result.arrow()
    missing = [name for name in partitions if name not in table.column_names]
    if missing:
        raise InvalidParameter(f'PARTITIONED BY names "{missing[0]}", which is no column of the answer')
    if format not in ("parquet", "csv", "arrow"):
        raise FeatureNotSupported(f"COPY of {format} into partitions is not supported")
    schema = pa.schema([table.schema.field(name) for name in partitions])
    dataset.write_dataset(
        table, target, format=format, partitioning=dataset.partitioning(schema, flavor="hive"),
        existing_data_behavior="overwrite_or_ignore",
    )  # fmt: skip
    return int(table.num_rows)


class _Writer:
    """A file being written, whatever its format."""

    def __init__(self, target: Path, schema: pa.Schema, result: Result, format: str, options: dict[str, Any]) -> None:
        self._result = result
        self._lines: Any = None
        self._inner: Any = None
        match format:
            case "parquet":
                self._inner = parquet.ParquetWriter(target, schema, compression="snappy")
            case "csv":
                kept = csv.WriteOptions(
                    include_header=options.get("has_header", options.get("header", True)) is True,
                    delimiter=str(options.get("delimiter", options.get("delim", ","))), quoting_style="needed",
                )  # fmt: skip
                self._inner = csv.CSVWriter(target, schema, write_options=kept)
            case "arrow":
                self._inner = pa.ipc.new_file(target, schema)
            case _:
                self._lines = target.open("wb")

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        (self._lines or self._inner).close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows."""
        if self._lines is None:
            self._inner.write_batch(batch)
            return
        for line in _json_lines(batch, self._result):
            self._lines.write(line)


def _json_lines(batch: pa.RecordBatch, result: Result) -> Iterator[bytes]:
    columns = [json_values(batch.column(place), type) for place, type in enumerate(result.types)]
    for row in zip(*columns, strict=True):
        yield orjson.dumps(dict(zip(result.names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)


def _check_owner(run: Run) -> None:
    if not run.settings.local_files:
        raise InsufficientPrivilege(LOCAL_FILES)
