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

from lake.arrow_names import arrow_spelling, is_spelled
from lake.db.functions.readers import LOCAL_FILES
from lake.db.names import qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.table import make_room
from lake.db.values import json_values, text_array
from lake.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameter,
    InvalidTableDefinition,
    IoFailure,
    SyntaxFailure,
    UndefinedColumn,
    near_name,
)
from lake.roles import Role
from lake.sql import ast, parser
from lake.sql.bind import bind_type
from lake.sql.quoting import quote_name, quote_text
from lake.storage.catalog.changes import Change, CreateView
from lake.storage.catalog.model import View
from lake.storage.catalog.state import State
from lake.storage.external.files import COMPRESSIONS
from lake.types import TEXT, Bytes, Interval, List, Map, Struct, Type

READERS: Final = {"parquet": "read_parquet", "csv": "read_csv", "tsv": "read_csv", "json": "read_json", "ndjson": "read_json"}
CSV_OPTIONS: Final = {
    "has_header": "header", "header": "header", "delimiter": "delim", "delim": "delim", "sep": "delim", "quote": "quote",
    "escape": "escape", "null_value": "nullstr", "null_regex": "nullstr",
}  # fmt: skip
UNCOMPRESSED: Final = ("", "uncompressed", "none")
GROUP_ROWS: Final = 1 << 20  # of a Parquet file's row group
WRITER_OPTIONS: Final = {
    "parquet": ("compression", "compression_level", "row_group_size", "max_row_group_size"),
    "csv": ("header", "has_header", "delim", "delimiter", "sep", "compression"),
    "json": ("compression",),
    "arrow": ("compression",),
}
CODECS: Final = {
    "parquet": ("snappy", "gzip", "zstd", "lz4", "brotli"), "arrow": ("lz4", "zstd"), "text": ("gzip", "bz2", "zstd", "lz4"),
}  # fmt: skip
CSV_TEXTS: Final = (List, Struct, Map, Interval, Bytes)
"""Types whose values Arrow's writer does not know: they are written as their casts to text."""


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
    """The query that reads the files; columns of PARTITIONED BY stand in the names of folders.

    0A000  a format without a reader     42703  a partition that is no column
    """
    reader = READERS.get(format)
    if reader is None:
        raise FeatureNotSupported(f"STORED AS {format.upper()} is not supported")
    if stmt.columns and len({column.name for column in stmt.columns}) < len(stmt.columns):
        raise InvalidTableDefinition("a column is named twice")
    arguments = [quote_text(str(Path(location).expanduser().absolute()))]
    arguments += [f"{name} => {value}" for name, value in _reader_options(stmt, format).items()]
    types = {item.name: f"{quote_name(item.name)}: {quote_text(_type_text(bind_type(item.type)))}" for item in stmt.columns}
    missing = [name for name in stmt.partitions if types and name not in types]
    if missing:
        raise UndefinedColumn(f'PARTITIONED BY names "{missing[0]}", which is no column of the table')
    inside = [text for name, text in types.items() if name not in stmt.partitions]
    if inside:
        arguments.append(f"columns => {{{', '.join(inside)}}}")
    if types and stmt.partitions:
        arguments.append(f"hive_types => {{{', '.join(types[name] for name in stmt.partitions)}}}")
    elif stmt.partitions:
        arguments.append("hive_partitioning => true")
    return f"SELECT * FROM {reader}({', '.join(arguments)})"


def _type_text(type: Type) -> str:
    """A column's type as the reader takes it: by SQL's name, or by Arrow's where that is another type."""
    return arrow_spelling(type) if is_spelled(type) and type != TEXT else type.sql


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
    format = stmt.format or _format_of(target)
    if format not in ("parquet", "csv", "json", "ndjson", "arrow"):
        raise FeatureNotSupported(f'COPY TO a file of format "{format}" is not supported')
    if run.database.is_inside(target):
        raise InvalidParameter("COPY does not write into the lake's own folder")
    options = _writer_options(stmt, "json" if format == "ndjson" else format)
    result = run.answer(*run.plan(source))
    try:
        rows = _write(result, target, format, stmt.partitions, options)
    except OSError as error:
        raise IoFailure(f'"{stmt.target}" cannot be written: {error}') from None
    return Result.done("COPY", {"rows": rows, "to": stmt.target}, count=rows)


def _format_of(target: Path) -> str:
    """The extension, that of a compression left aside."""
    suffixes = [suffix.lstrip(".").lower() for suffix in target.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _writer_options(stmt: ast.Copy, format: str) -> dict[str, Any]:
    """Options by their last part; those under a name of the base's engine may be any.

    22023  an option that the format has not
    """
    made: dict[str, Any] = {}
    for option in stmt.options:
        scope, _, name = option.name.rpartition(".")
        if not scope and name not in WRITER_OPTIONS[format]:
            known = ", ".join(WRITER_OPTIONS[format])
            near = near_name(name, WRITER_OPTIONS[format])
            hint = f"known options: {known}"
            raise InvalidParameter(f'COPY TO a {format} file has no option "{name}"', hint=f"{near} {hint}" if near else hint)
        made[name] = option.value
    return made


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
        self._result, self._format = result, format
        self._waiting: list[pa.RecordBatch] = []
        self._group_rows = _positive(options, ("row_group_size", "max_row_group_size"), GROUP_ROWS)
        codec = _codec(options, target, format)
        self._texts = tuple(place for place, type in enumerate(result.types) if isinstance(type, CSV_TEXTS))
        self._out: Any = None
        self._inner: Any = None
        if format == "parquet":
            level = options.get("compression_level")
            self._inner = parquet.ParquetWriter(target, schema, compression=codec or "none", compression_level=level)
            return
        plain = pa.OSFile(str(target), "wb")
        self._out = plain if codec is None or format == "arrow" else pa.CompressedOutputStream(plain, codec)
        if format == "csv":
            for place in self._texts:
                schema = schema.set(place, pa.field(schema.field(place).name, pa.string()))
            kept = csv.WriteOptions(
                include_header=_truth(options, ("has_header", "header"), True),
                delimiter=_character(options, ("delimiter", "delim", "sep"), ","), quoting_style="needed",
            )  # fmt: skip
            self._inner = csv.CSVWriter(self._out, schema, write_options=kept)
        elif format == "arrow":
            self._inner = pa.ipc.new_file(self._out, schema, options=pa.ipc.IpcWriteOptions(compression=codec))

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._flush()
        for opened in (self._inner, self._out):
            if opened is not None:
                opened.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows."""
        if self._format == "parquet":
            self._waiting.append(batch)
            if sum(item.num_rows for item in self._waiting) >= self._group_rows:
                self._flush()
        elif self._inner is None:
            self._out.write(b"".join(_json_lines(batch, self._result)))
        else:
            for place in self._texts if self._format == "csv" else ():
                texts = text_array(batch.column(place), self._result.types[place])
                batch = batch.set_column(place, batch.schema.field(place).name, texts)
            self._inner.write_batch(batch)

    def _flush(self) -> None:
        """Writes the batches that wait as row groups."""
        if self._waiting:
            rows = pa.Table.from_batches(self._waiting)
            self._inner.write_table(rows, row_group_size=self._group_rows)
            self._waiting = []


def _given(options: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((options[name] for name in names if name in options), None)


def _truth(options: dict[str, Any], names: tuple[str, ...], default: bool) -> bool:
    value = _given(options, names)
    match str(value).lower():
        case "none":
            return default
        case "true" | "on" | "1":
            return True
        case "false" | "off" | "0":
            return False
    raise InvalidParameter(f'option "{names[0]}" takes true or false, not {value!r}')


def _character(options: dict[str, Any], names: tuple[str, ...], default: str) -> str:
    value = _given(options, names)
    text = default if value is None else "\t" if value == "\\t" else str(value)
    if len(text) != 1 or not text.isascii():
        raise InvalidParameter(f'option "{names[0]}" takes one ASCII character, not {value!r}')
    return text


def _positive(options: dict[str, Any], names: tuple[str, ...], default: int) -> int:
    value = _given(options, names)
    if value is None:
        return default
    if not str(value).isdigit() or int(value) < 1:
        raise InvalidParameter(f'option "{names[0]}" takes a number above 0, not {value!r}')
    return int(value)


def _codec(options: dict[str, Any], target: Path, format: str) -> str | None:
    """The codec that is said, or that the name of a text file ends in; None for plain bytes."""
    given = _given(options, ("compression",))
    ending = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}.get(target.suffix.lower())
    if given is None:
        return "snappy" if format == "parquet" else ending
    name = str(given).lower().partition("(")[0]
    name = {"gz": "gzip", "zst": "zstd"}.get(name, name)
    if name in UNCOMPRESSED:
        return None
    known = CODECS[format if format in CODECS else "text"]
    if name not in known:
        raise InvalidParameter(f'no compression "{given}" of {format} files', hint=f"one of none, {', '.join(known)}")
    return name


def _json_lines(batch: pa.RecordBatch, result: Result) -> Iterator[bytes]:
    columns = [json_values(batch.column(place), type) for place, type in enumerate(result.types)]
    for row in zip(*columns, strict=True):
        yield orjson.dumps(dict(zip(result.names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)


def _check_owner(run: Run) -> None:
    if not run.settings.local_files:
        raise InsufficientPrivilege(LOCAL_FILES)
