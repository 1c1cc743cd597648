"""Rows of VALUES as columns: of a long list without an expression for each value, of a short one without the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from lake.arrow_names import is_spelled
from lake.db.write.incoming import Incoming
from lake.errors import LakeError
from lake.exec.cast import cast
from lake.exec.context import Context
from lake.exec.evaluate import Program
from lake.exec.operators.values import Values
from lake.sql import ast, bound, plain_rows, plan
from lake.sql.catalog import TableColumn
from lake.sql.plain_rows import PlainRows
from lake.types import BOOLEAN, DOUBLE, TEXT, TIMESTAMP, Date, Decimal, Integer, Text, Type

# The kinds of values that a column of a type takes as they are written.
WHOLE: Final = {plain_rows.NULL, plain_rows.INTEGER}
EXACT: Final = {*WHOLE, plain_rows.DECIMAL}
NUMBERS: Final = {*EXACT, plain_rows.FLOAT}
TEXTS: Final = {plain_rows.NULL, plain_rows.TEXT, plain_rows.QUOTED}
TRUTHS: Final = {plain_rows.NULL, plain_rows.TRUE, plain_rows.FALSE}
ROWS_FEW: Final = 16


def plain_values(stmt: ast.Insert, columns: Sequence[TableColumn]) -> tuple[ast.Insert, Incoming] | None:
    """The statement with its first row alone, to be bound, and all rows; None where values need the binder.

    columns  the table's that may be written
    """
    if stmt.query is None or not isinstance(stmt.query.body, ast.Values):
        return None
    rows = stmt.query.body.rows
    if not isinstance(rows, PlainRows) or len(rows.first) > len(columns):
        return None
    by_name = {column.name.lower(): column for column in columns}
    targets = [by_name.get(name.lower()) for name in stmt.columns] if stmt.columns else list(columns[: len(rows.first)])
    if len(targets) != len(rows.first) or len(by_name) < len(columns):
        return None
    arrays: dict[str, pa.Array] = {}
    types: dict[str, Type] = {}
    for place, target in enumerate(targets):
        array = None if target is None else _array(rows, place, target.type)
        if target is None or array is None or target.name in arrays:
            return None
        arrays[target.name], types[target.name] = array, target.type
    first = replace(stmt.query, body=ast.Values((rows.first,)))
    return replace(stmt, query=first), Incoming(len(rows), arrays, types)


def few_values(rows: plan.Plan, context: Context) -> list[pa.Array] | None:
    """The columns of a bound INSERT of a few rows of values; None of every other, and where a value is refused.

    Planning and running a query of one row takes five times as long as its values do.
    """
    match rows:
        case plan.Project(exprs=exprs, input=plan.Values(rows=given, outputs=outputs)) if len(given) <= ROWS_FEW:
            pass
        case _:
            return None
    if any(_takes_engine(node) for expr in (*exprs, *(item for row in given for item in row)) for node in bound.walk(expr)):
        return None
    try:
        batch = Values(outputs, given, tuple(range(len(outputs)))).batch(given, context)
        return Program(exprs, context).run(batch)
    except LakeError:
        return None  # what is wrong is for the engine to say


def _takes_engine(node: bound.Expr) -> bool:
    match node:
        case bound.Call(function=function):
            return function.volatility == "volatile"
        case bound.ScalarSubquery() | bound.Exists() | bound.Quantified():
            return True
        case _:
            return False


def _array(rows: PlainRows, place: int, type: Type) -> pa.Array | None:
    """The values of a column in physical form; None where they are not of its own kind, or not in its range."""
    if is_spelled(type) and not isinstance(type, Text):
        return None
    kinds = rows.kinds_of(place)
    try:
        match type:
            case Integer() if kinds <= WHOLE:
                return pc.cast(_texts(rows, place), type.arrow)
            case Text() if type == TEXT and kinds <= TEXTS:
                return _texts(rows, place)
            case Decimal() if kinds <= EXACT:
                return cast(_texts(rows, place), TEXT, type)
            case Date() if kinds <= TEXTS:
                return cast(_texts(rows, place), TEXT, type)
            case _ if type == TIMESTAMP and kinds <= TEXTS:
                return cast(_texts(rows, place), TEXT, type)
            case _ if type == DOUBLE and kinds <= NUMBERS:
                return pc.add(pc.cast(_texts(rows, place), pa.float64()), 0.0)  # -0.0 is the number 0 with a sign before it
            case _ if type == BOOLEAN and kinds <= TRUTHS:
                written = rows.kinds[:, place]
                return pa.array(written == plain_rows.TRUE, mask=written == plain_rows.NULL)
    except (LakeError, pa.ArrowInvalid):
        pass  # which value it is, and where it stands, is for the binder to say
    return None


def _texts(rows: PlainRows, place: int) -> pa.Array:
    offsets, data = rows.texts(place)
    is_there = rows.kinds[:, place] != plain_rows.NULL
    valid = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(rows), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
