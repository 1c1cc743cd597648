"""How a table keeps its rows, from the words of CREATE TABLE and ALTER TABLE: key, MERGE, clauses, options.

    PRIMARY KEY (id) .. PARTITION BY day(ts) TTL ts + INTERVAL '1 hour' WITH (order_by = 'seen')   ->   model.Design

A clause and the option that says the same are one thing said in two ways; both together are refused. Every refusal names
what it refuses. Spec: SQL, Table kinds; Tables; Table options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from lake.errors import (
    FeatureNotSupported,
    InvalidParameter,
    InvalidTableDefinition,
    LakeError,
    UndefinedColumn,
    near_name,
)
from lake.sql import ast, parser
from lake.sql.literals import parse_interval
from lake.sql.unparse import unparse
from lake.storage.catalog.model import Column, Table
from lake.storage.tables.keys import can_be_key, can_order
from lake.types import Date, Decimal, Float, Integer, Interval, List, Map, Struct, Timestamp

UNITS: Final = ("year", "month", "day", "hour")
FUNCTIONS: Final = ("sum", "count", "min", "max")
FORMATS: Final = ("delta", "iceberg")
OPTIONS: Final = ("partition_by", "cluster_by", "ttl", "order_by", "merge", "publish", "retention")
FILL_FACTOR: Final = "fillfactor"  # Postgres's room for updates in place: pgbench asks for it, and it changes no answer
CLAUSES: Final = {"partition by": "partition_by", "cluster by": "cluster_by", "sequence by": "order_by", "ttl": "ttl"}
DAY_SECS: Final = 86_400

Value = str | int | float | bool | tuple[str, ...]


def designed(
    table: Table,
    key: Sequence[str],
    clauses: Sequence[ast.LayoutClause],
    options: Sequence[ast.Option],
) -> Table:
    """A new table with its key, kind and layout.

    table  with its columns, MERGE functions of clauses in them
    42P16  what the table cannot be      42703  a column it has not      22023  an option or value that is none
    """
    given = _options(options)
    for clause in clauses:
        if CLAUSES[clause.kind] in given:
            raise InvalidTableDefinition(f"{clause.kind.upper()} and the option {CLAUSES[clause.kind]} are both given")
    table = _with_merges(table, given.pop("merge", None))
    table = _with_key(table, key)
    for name, value in given.items():
        table = _SETTERS[name](table, value)
    for clause in clauses:
        table = with_clause(table, clause)
    return table


def with_clause(table: Table, clause: ast.LayoutClause) -> Table:
    """The table with another layout clause."""
    match clause.kind:
        case "partition by":
            assert clause.expr is not None, "PARTITION BY has an expression"
            return _partitioned(table, clause.expr)
        case "cluster by":
            return _clustered(table, clause.columns)
        case "sequence by":
            return _sequenced(table, clause.columns[0])
        case _:
            assert clause.expr is not None, "TTL has an expression"
            return _expiring(table, *_ttl_parts(clause.expr))


def with_options(table: Table, options: Sequence[ast.Option]) -> Table:
    """The table with options set anew: ``ALTER TABLE t SET (retention = '30 days')``.

    42P16  what cannot be changed later
    """
    for name, value in _options(options).items():
        if name in ("partition_by", "merge"):
            raise InvalidTableDefinition(f"{name} of a table cannot be changed later")
        table = _SETTERS[name](table, value)
    return table


def with_layout(table: Table, clause: ast.LayoutClause) -> Table:
    """As ``with_clause``, of a table that is there: ``ALTER TABLE t CLUSTER BY (a)``."""
    if clause.kind == "partition by":
        raise InvalidTableDefinition("PARTITION BY of a table cannot be changed later")
    return with_clause(table, clause)


def key_of(stmt: ast.CreateTable) -> tuple[str, ...]:
    """The columns of the PRIMARY KEY that a statement makes, none where it makes none.

    42P16  two of them
    """
    rules: list[tuple[tuple[str, ...], ast.TableConstraint]]
    rules = [((column.name,), rule) for column in stmt.columns for rule in column.rules]
    rules += [(rule.columns, rule) for rule in stmt.constraints]
    keys = [(columns, rule) for columns, rule in rules if rule.kind == "primary key"]
    if len(keys) > 1:
        raise InvalidTableDefinition(f'multiple primary keys for table "{stmt.name.last}" are not allowed')
    return keys[0][0] if keys and not keys[0][1].not_enforced else ()


def uses_of(table: Table, id: int) -> str | None:
    """What a column is to its table's design, as errors say it; None where it is nothing."""
    design = table.design
    found = [
        (id in design.key, "PRIMARY KEY"),
        (id == design.partition, "PARTITION BY"),
        (id == design.sequence, "SEQUENCE BY"),
        (id == design.ttl, "TTL"),
        (id in design.cluster, "CLUSTER BY"),
    ]
    return next((word for is_used, word in found if is_used), None)


def merging(column: Column, function: str) -> Column:
    """The column with a MERGE function.

    42P16  another function, or one that the column's type has not
    """
    if function not in FUNCTIONS:
        known = ", ".join(FUNCTIONS)
        raise InvalidTableDefinition(f'MERGE function "{function}" of column "{column.name}" is not one of {known}')
    fits = Integer | Decimal | Float if function == "sum" else Integer
    if function in ("sum", "count") and not isinstance(column.type, fits):
        raise InvalidTableDefinition(f'MERGE {function} does not take column "{column.name}" of type {column.type}')
    if isinstance(column.type, List | Struct | Map | Interval):
        raise InvalidTableDefinition(f'MERGE {function} does not take column "{column.name}" of type {column.type}')
    return msgspec.structs.replace(column, merge=function)


# --- the key ----------------------------------------------------------------------------------------------------------


def _with_merges(table: Table, option: Value | None) -> Table:
    """MERGE functions of the option ``'amount:sum, n:count'``."""
    if option is None:
        return table
    if any(column.merge for column in table.columns):
        raise InvalidTableDefinition("MERGE and the option merge are both given")
    for pair in _words("merge", option):
        name, sign, function = (part.strip() for part in pair.partition(":"))
        if not sign:
            raise InvalidParameter(f'merge is written "column:function", not "{pair}"')
        table = _with_column(table, merging(_column(table, name), function))
    return table


def _with_key(table: Table, key: Sequence[str]) -> Table:
    merged = [column for column in table.columns if column.merge]
    if not key:
        if merged:
            raise InvalidTableDefinition(f'MERGE of column "{merged[0].name}" needs a PRIMARY KEY')
        return table
    ids = []
    for name in key:
        column = _column(table, name)
        if column.id in ids:
            raise InvalidTableDefinition(f'column "{name}" is in the PRIMARY KEY twice')
        if not can_be_key(column.type):
            raise InvalidTableDefinition(f'column "{name}" of type {column.type} cannot be in a PRIMARY KEY')
        if column.merge:
            raise InvalidTableDefinition(f'column "{name}" of the PRIMARY KEY takes no MERGE function')
        ids.append(column.id)
        table = _with_column(table, msgspec.structs.replace(column, not_null=True))
    for column in table.columns:
        if merged and column.id not in ids and not column.merge:
            raise InvalidTableDefinition(f'column "{column.name}" of a merge table needs a MERGE function')
    return msgspec.structs.replace(
        table,
        kind="merge" if merged else "upsert",
        design=msgspec.structs.replace(table.design, key=tuple(ids)),
    )


# --- clauses ----------------------------------------------------------------------------------------------------------


def _partitioned(table: Table, expr: ast.Expr) -> Table:
    name, unit = _partition_parts(expr)
    column = _column(table, name)
    if unit and not isinstance(column.type, Timestamp | Date):
        raise InvalidTableDefinition(f'PARTITION BY {unit}("{name}") needs a timestamp or a date, not {column.type}')
    if unit == "hour" and isinstance(column.type, Date):
        raise InvalidTableDefinition(f'PARTITION BY hour("{name}") needs a timestamp, not {column.type}')
    if not unit and isinstance(column.type, List | Struct | Map | Interval):
        raise InvalidTableDefinition(f'PARTITION BY does not take column "{name}" of type {column.type}')
    return _redesigned(table, partition=column.id, unit=unit)


def _partition_parts(expr: ast.Expr) -> tuple[str, str]:
    """Column and unit of ``c``, ``days(ts)``, ``date(ts)``, ``timestamp_trunc(ts, day)``, ``date_trunc('day', ts)``."""
    column: ast.Expr | None = None
    unit = ""
    match expr:
        case ast.Column():
            column = expr
        case ast.Call(ast.Name(("date",)), (ast.Argument(argument),)):
            column, unit = argument, "day"
        case ast.Call(ast.Name(("date_trunc",)), (ast.Argument(ast.Literal(str(word))), ast.Argument(argument))):
            column, unit = argument, word.lower()
        case ast.Call(ast.Name(("timestamp_trunc",)), (ast.Argument(argument), ast.Argument(ast.Column(word)))):
            column, unit = argument, word.last
        case ast.Call(ast.Name((function,)), (ast.Argument(argument),)):
            column, unit = argument, function.removesuffix("s")
    if isinstance(column, ast.Column) and len(column.name.parts) == 1 and (column is expr or unit in UNITS):
        return column.name.last, unit
    raise InvalidTableDefinition(
        f"PARTITION BY takes a column, or year, month, day or hour of a timestamp column, not {unparse(expr)}"
    )


def _clustered(table: Table, names: Sequence[str]) -> Table:
    ids: list[int] = []
    for name in names:
        column = _column(table, name)
        if isinstance(column.type, List | Struct | Map | Interval):
            raise InvalidTableDefinition(f'CLUSTER BY does not take column "{name}" of type {column.type}')
        if column.id in ids:
            raise InvalidTableDefinition(f'CLUSTER BY names column "{name}" twice')
        ids.append(column.id)
    return _redesigned(table, cluster=tuple(ids))


def _sequenced(table: Table, name: str) -> Table:
    column = _column(table, name)
    if table.kind != "upsert":
        raise InvalidTableDefinition(f'SEQUENCE BY "{name}" needs a table with a PRIMARY KEY and without MERGE')
    if column.id in table.design.key:
        raise InvalidTableDefinition(f'SEQUENCE BY "{name}" is a column of the key')
    if not can_order(column.type):
        raise InvalidTableDefinition(f'SEQUENCE BY does not take column "{name}" of type {column.type}')
    return _redesigned(table, sequence=column.id)


def _ttl_parts(expr: ast.Expr) -> tuple[str, int]:
    """Column and seconds of ``seen + INTERVAL '1 hour'``."""
    match expr:
        case ast.Binary("+", ast.Column(ast.Name((name,))), ast.IntervalLiteral(text, unit)):
            return name, _seconds("TTL", text, unit)
        case _:
            raise InvalidTableDefinition(f"TTL is written column + INTERVAL '1 hour', not {unparse(expr)}")


def _seconds(what: str, text: str, unit: str | None = None) -> int:
    """Whole seconds of an interval without months.

    22023  it is no such time
    """
    try:
        months, days, nanoseconds = parse_interval(text, unit)
    except LakeError:
        raise InvalidParameter(f'{what} "{text}" is not a time such as \'7 days\' or \'12 hours\'') from None
    seconds = days * DAY_SECS + nanoseconds // 1_000_000_000
    if months or seconds < 0:
        raise InvalidParameter(f'{what} "{text}" is not a time in seconds, minutes, hours, days or weeks')
    return seconds


def _expiring(table: Table, name: str, seconds: int) -> Table:
    column = _column(table, name)
    if table.kind != "upsert":
        raise InvalidTableDefinition(f'TTL of "{name}" needs a table with a PRIMARY KEY and without MERGE')
    if not isinstance(column.type, Timestamp | Date):
        raise InvalidTableDefinition(f'TTL needs a time, and column "{name}" is of type {column.type}')
    return _redesigned(table, ttl=column.id, ttl_secs=seconds)


# --- options ----------------------------------------------------------------------------------------------------------


def _options(options: Sequence[ast.Option]) -> dict[str, Value]:
    """Values by name, lower case.

    22023  a name that is none, or given twice
    """
    given: dict[str, Value] = {}
    for option in options:
        name = option.name.lower()
        if name == FILL_FACTOR:
            continue
        if name not in OPTIONS:
            words = f'unknown table option "{option.name}"; the options are {", ".join(OPTIONS)}'
            raise InvalidParameter(words, hint=near_name(name, OPTIONS))
        if name in given:
            raise InvalidParameter(f'table option "{name}" is given twice')
        given[name] = option.value
    return given


def _words(name: str, value: Value) -> list[str]:
    """The words of ``'a, b'`` or ``(a, b)``."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, str):
        raise InvalidParameter(f"{name} is a text, not {value}")
    return [word.strip() for word in value.split(",") if word.strip()]


def _word(name: str, value: Value) -> str:
    match _words(name, value):
        case [word]:
            return word
        case words:
            raise InvalidParameter(f'{name} is one column, not "{", ".join(words)}"')


def _set_partition(table: Table, value: Value) -> Table:
    text = value if isinstance(value, str) else _word("partition_by", value)
    try:
        expr = parser.parse_expression(text)
    except LakeError:
        raise InvalidTableDefinition(f'partition_by "{text}" is not a column or a unit of one') from None
    return _partitioned(table, expr)


def _set_ttl(table: Table, value: Value) -> Table:
    name, sign, seconds = (part.strip() for part in _word("ttl", value).partition(":"))
    if not sign or not seconds.isdigit():
        raise InvalidParameter(f'ttl is written "column:seconds", not "{value}"')
    return _expiring(table, name, int(seconds))


def _set_retention(table: Table, value: Value) -> Table:
    if not isinstance(value, str):
        raise InvalidParameter(f"retention \"{value}\" is not a time such as '7 days' or '12 hours'")
    made = _redesigned(table, retention=_seconds("retention", value))
    return msgspec.structs.replace(made, options={**made.options, "retention": value})


def _set_publish(table: Table, value: Value) -> Table:
    for word in _words("publish", value):
        if word.lower() not in (*FORMATS, "none"):
            raise InvalidParameter(f'publish format "{word}" is not one of {", ".join(FORMATS)}')
        if word.lower() != "none":
            raise FeatureNotSupported(f"publish = {word.lower()} is not supported yet")
    return table


_SETTERS: Final[dict[str, Callable[[Table, Value], Table]]] = {
    "partition_by": _set_partition,
    "cluster_by": lambda table, value: _clustered(table, _words("cluster_by", value)),
    "order_by": lambda table, value: _sequenced(table, _word("order_by", value)),
    "ttl": _set_ttl,
    "retention": _set_retention,
    "publish": _set_publish,
}


# --- tables -----------------------------------------------------------------------------------------------------------


def _column(table: Table, name: str) -> Column:
    found = table.column(name)
    if found is None:
        hint = near_name(name, (known.name for known in table.columns))
        raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist', hint=hint)
    return found


def _with_column(table: Table, changed: Column) -> Table:
    columns = tuple(changed if column.id == changed.id else column for column in table.columns)
    return msgspec.structs.replace(table, columns=columns)


def _redesigned(table: Table, **changes: object) -> Table:
    return msgspec.structs.replace(table, design=msgspec.structs.replace(table.design, **changes))
