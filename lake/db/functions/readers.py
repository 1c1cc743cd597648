"""read_parquet, read_csv, read_json, read_xlsx, and FROM 'file.ext'. Spec: SQL, Function catalog, table functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lake.arrow_names import parse_arrow_name
from lake.errors import FeatureNotSupported, InsufficientPrivilege, InvalidParameter, near_name
from lake.sql.catalog import Settings, Table, TableColumn, TableStatistics
from lake.sql.registry import table_function
from lake.storage.external.arrow import open_arrow
from lake.storage.external.files import ExternalTable, expand, reader_of
from lake.storage.external.hive import with_keys
from lake.storage.external.parquet import open_parquet
from lake.storage.external.text import NULL_SPELLINGS, CsvOptions, open_csv, open_json
from lake.storage.external.xlsx import open_xlsx
from lake.types import Type

LOCAL_FILES: Final = "a file on the node's disk is read only by the program that started the node"
ROWS_GUESSED: Final = 100_000.0  # of a text file, which does not tell
FILE_OPTIONS: Final = ("hive_partitioning", "union_by_name", "columns", "hive_types")
CSV_OPTIONS: Final = (
    "header", "delim", "sep", "delimiter", "quote", "escape", "comment", "new_line", "nullstr", *FILE_OPTIONS,
)  # fmt: skip
NEW_LINES: Final = {"\\r": "\r", "\r": "\r", "\\n": "\n", "\n": "\n", "\\r\\n": "\n", "\r\n": "\n"}


def open_file(path: str, settings: Settings) -> Table:
    """A file, a folder or a glob as a table; the reader is chosen by the extension.

    42501  the caller is not the program that started the node. Spec: HTTP, What the service does 9.
    """
    _check_owner(settings)
    paths = expand(path)
    match reader_of(paths[0]):
        case "parquet":
            return _table(path, open_parquet(paths))
        case "csv":
            return _table(path, open_csv(paths, CsvOptions()))
        case "arrow":
            return _table(path, open_arrow(paths))
        case "xlsx":
            return _table(path, open_xlsx(_only(paths)))
        case _:
            return _table(path, open_json(paths))


@table_function("read_parquet(path ANY) -> TABLE", group="readers", origin="spec", aliases=("parquet_scan",))
def read_parquet(settings: Settings, path: Any, **options: Any) -> Table:
    """Parquet files as a table: a path, a glob, a folder or a list of them.

    union_by_name      columns of all files, not only of the first
    columns            types to read columns as, by name: {name: 'BIGINT'}
    hive_partitioning  keys in the paths as columns: region=eu/part-0.parquet
    hive_types         types of such keys: {region: 'VARCHAR'}
    """
    given = _Given("read_parquet", settings, options, FILE_OPTIONS)
    paths = expand(path)
    found = open_parquet(paths, columns=given.types("columns"), by_name=given.flag("union_by_name"))
    return _table(path, given.with_hive_keys(found, paths))


@table_function("read_csv(path ANY) -> TABLE", group="readers", origin="spec", aliases=("read_csv_auto",))
def read_csv(settings: Settings, path: Any, **options: Any) -> Table:
    """CSV files as a table: a path, a glob, a folder or a list of them.

    header (true)      the first line names the columns
    delim, sep or delimiter, quote, escape      one character each; NULL or '' for no quotes or escapes
    comment            lines that begin with it are skipped
    new_line           '\\r' for files whose lines end with a carriage return alone
    nullstr            what stands for NULL beside an empty value
    columns            names and types by position: {name: 'BIGINT'}
    union_by_name, hive_partitioning, hive_types      as of read_parquet
    """
    given = _Given("read_csv", settings, options, CSV_OPTIONS)
    paths = expand(path)
    written = CsvOptions(
        header=given.flag("header", True),
        delimiter=given.character("delim") or given.character("sep") or given.character("delimiter"),
        quote='"' if "quote" not in options else given.character("quote") or "",
        escape=given.character("escape"),
        comment=given.text("comment"),
        new_line=given.new_line(),
        null=_nulls(options.get("nullstr")),
        columns=given.types("columns"),
    )
    return _table(path, given.with_hive_keys(open_csv(paths, written, by_name=given.flag("union_by_name")), paths))


@table_function(
    "read_json(path ANY) -> TABLE", group="readers", origin="spec", aliases=("read_json_auto", "read_ndjson")
)
def read_json(settings: Settings, path: Any, **options: Any) -> Table:
    """Files of newline-delimited JSON as a table: a path, a glob, a folder or a list of them.

    columns, union_by_name, hive_partitioning, hive_types      as of read_parquet
    """
    given = _Given("read_json", settings, options, FILE_OPTIONS)
    paths = expand(path)
    found = open_json(paths, columns=given.types("columns"), by_name=given.flag("union_by_name"))
    return _table(path, given.with_hive_keys(found, paths))


@table_function("read_xlsx(path VARCHAR) -> TABLE", group="readers", origin="duckdb")
def read_xlsx(settings: Settings, path: Any, **options: Any) -> Table:
    """A sheet of an Excel workbook as a table.

    sheet          the sheet's name; the first one without
    header (true)  the first row names the columns
    """
    given = _Given("read_xlsx", settings, options, ("sheet", "header"))
    found = open_xlsx(_only(expand(path)), sheet=given.text("sheet"), header=given.flag("header", True))
    return _table(path, found)


class _Given:
    """The options of one call.

    42501  the caller is not the program that started the node      22023  an unknown option, or a value it does not take
    """

    def __init__(self, function: str, settings: Settings, options: Mapping[str, Any], known: Sequence[str]) -> None:
        _check_owner(settings)
        self._function, self._options = function, options
        for name in options:
            if name not in known:
                near = near_name(name, known)
                listed = f"known options: {', '.join(known)}"
                raise InvalidParameter(f'{function} has no option "{name}"', hint=f"{near} {listed}" if near else listed)

    def flag(self, name: str, default: bool = False) -> bool:
        """A truth."""
        value = self._options.get(name, default)
        match value.lower() if isinstance(value, str) else value:
            case bool(truth):
                return truth
            case "true" | "on" | 1:
                return True
            case "false" | "off" | 0:
                return False
        raise self._refused(name, value, "true or false")

    def text(self, name: str) -> str | None:
        """A text that is not empty; None for an option that is not there, NULL or empty."""
        value = self._options.get(name)
        if value is not None and not isinstance(value, str):
            raise self._refused(name, value, "a text")
        return value or None

    def character(self, name: str) -> str | None:
        """One character, ``\\t`` for a tabulator."""
        value = self.text(name)
        value = "\t" if value == "\\t" else value
        if value is not None and (len(value) > 1 or not value.isascii()):
            raise self._refused(name, value, "one ASCII character")
        return value

    def new_line(self) -> str | None:
        """What ends a line, if it is said."""
        value = self.text("new_line")
        if value is not None and value not in NEW_LINES:
            raise self._refused("new_line", value, "'\\r', '\\n' or '\\r\\n'")
        return None if value is None else NEW_LINES[value]

    def types(self, name: str) -> dict[str, Type]:
        """Types by name."""
        value = self._options.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self._refused(name, value, "a struct of names and types: {name: 'BIGINT'}")
        return {str(key): parse_arrow_name(str(type)) for key, type in value.items()}

    def with_hive_keys(self, found: ExternalTable, paths: Sequence[str]) -> ExternalTable:
        """The table with the keys of its paths, where they are asked for."""
        types = self.types("hive_types")
        if not types and not self.flag("hive_partitioning"):
            return found
        sources = [found.rows.single(place) for place in range(len(paths))]  # type: ignore[attr-defined]
        return with_keys(found, paths, sources, types)

    def _refused(self, name: str, value: Any, wanted: str) -> InvalidParameter:
        return InvalidParameter(f'option "{name}" of {self._function} takes {wanted}, not {value!r}')


def _only(paths: Sequence[str]) -> str:
    """The one workbook that is read."""
    if len(paths) > 1:
        raise FeatureNotSupported("several workbooks as one table are not supported")
    return paths[0]


def _check_owner(settings: Settings) -> None:
    if not settings.local_files:
        raise InsufficientPrivilege(LOCAL_FILES)


def _nulls(given: Any) -> tuple[str, ...]:
    """The spellings of NULL: those given in place of the usual ones; an empty value is one always."""
    if given is None:
        return NULL_SPELLINGS
    return ("", *([given] if isinstance(given, str) else given))


def _table(path: str | Sequence[str], found: ExternalTable) -> Table:
    columns = tuple(TableColumn(name, type) for name, type in found.columns)
    rows = float(found.count) if found.count is not None else ROWS_GUESSED
    title = path if isinstance(path, str) else path[0]
    return Table((Path(title).stem or title,), columns, found.rows, lambda: TableStatistics(rows))
