"""read_parquet, read_csv, read_json, and FROM 'file.ext'. Spec: SQL, Function catalog, table functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lake.arrow_names import parse_arrow_name
from lake.errors import InsufficientPrivilege, InvalidParameter
from lake.sql.catalog import Settings, Table, TableColumn, TableStatistics
from lake.sql.registry import table_function
from lake.storage.external.files import ExternalTable, expand, reader_of
from lake.storage.external.parquet import open_parquet
from lake.storage.external.text import NULL_SPELLINGS, CsvOptions, open_csv, open_json
from lake.types import Type

LOCAL_FILES: Final = "a file on the node's disk is read only by the program that started the node"
ROWS_GUESSED: Final = 100_000.0  # of a text file, which does not tell
CSV_OPTIONS: Final = ("header", "delim", "sep", "delimiter", "quote", "escape", "nullstr", "columns")
PARQUET_OPTIONS: Final = ("columns", "union_by_name")
JSON_OPTIONS: Final = ("columns",)


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
        case _:
            return _table(path, open_json(paths))


@table_function("read_parquet(path ANY) -> TABLE", group="readers", origin="spec", aliases=("parquet_scan",))
def read_parquet(settings: Settings, path: Any, **options: Any) -> Table:
    """Parquet files as a table: a path, a glob, a folder or a list of them."""
    _check_owner(settings)
    _check_options("read_parquet", options, PARQUET_OPTIONS)
    by_name = bool(options.get("union_by_name", False))
    return _table(str(path), open_parquet(expand(path), columns=_types(options.get("columns")), by_name=by_name))


@table_function("read_csv(path ANY) -> TABLE", group="readers", origin="spec", aliases=("read_csv_auto",))
def read_csv(settings: Settings, path: Any, **options: Any) -> Table:
    """CSV files as a table: a path, a glob, a folder or a list of them."""
    _check_owner(settings)
    _check_options("read_csv", options, CSV_OPTIONS)
    given = CsvOptions(
        header=bool(options.get("header", True)),
        delimiter=options.get("delim") or options.get("sep") or options.get("delimiter"),
        quote=options.get("quote", '"'),
        escape=options.get("escape"),
        null=_nulls(options.get("nullstr")),
        columns=_types(options.get("columns")),
    )
    return _table(str(path), open_csv(expand(path), given))


@table_function(
    "read_json(path ANY) -> TABLE", group="readers", origin="spec", aliases=("read_json_auto", "read_ndjson")
)
def read_json(settings: Settings, path: Any, **options: Any) -> Table:
    """Files of newline-delimited JSON as a table: a path, a glob, a folder or a list of them."""
    _check_owner(settings)
    _check_options("read_json", options, JSON_OPTIONS)
    return _table(str(path), open_json(expand(path), columns=_types(options.get("columns"))))


def _check_owner(settings: Settings) -> None:
    if not settings.local_files:
        raise InsufficientPrivilege(LOCAL_FILES)


def _check_options(function: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise InvalidParameter(f'{function} has no option "{name}"', hint=f"known options: {', '.join(known)}")


def _nulls(given: Any) -> tuple[str, ...]:
    """The spellings of NULL: those given in place of the usual ones; an empty value is one always."""
    if given is None:
        return NULL_SPELLINGS
    return ("", *([given] if isinstance(given, str) else given))


def _types(columns: Any) -> dict[str, Type]:
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise InvalidParameter("columns is a struct of names and types: {name: 'BIGINT'}")
    return {str(name): parse_arrow_name(str(type)) for name, type in columns.items()}


def _table(path: str, found: ExternalTable) -> Table:
    columns = tuple(TableColumn(name, type) for name, type in found.columns)
    rows = float(found.count) if found.count is not None else ROWS_GUESSED
    return Table((Path(path).stem or path,), columns, found.rows, lambda: TableStatistics(rows))
