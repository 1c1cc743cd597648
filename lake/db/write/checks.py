"""What a table demands of its rows: DEFAULT, casts, NOT NULL, CHECK. The one place that every row passes on its way in.

    rows of a door or a query  ->  Rules.prepare  ->  batches in table order, stored names, physical types

Spec: SQL, Constraints and defaults 1, 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from lake.db.values import text_values
from lake.db.write.enums import Labels, enums_of
from lake.db.write.incoming import Incoming, of_column
from lake.errors import (
    CheckViolation,
    FeatureNotSupported,
    InvalidTableDefinition,
    LakeError,
    NotNullViolation,
    UndefinedColumn,
)
from lake.exec import decimals
from lake.exec.cast import cast
from lake.exec.context import Context
from lake.exec.evaluate import Program
from lake.exec.operators.base import column_name
from lake.sql import bound, parser
from lake.sql.bind import Binder
from lake.sql.optimizer.expressions import is_volatile
from lake.storage.catalog.model import Column, Table
from lake.storage.catalog.state import State
from lake.types import BOOLEAN, NULL, Decimal, Type


class _Check(Struct, frozen=True):
    name: str
    program: Program


class Rules:
    """A table's demands, bound once for a version of its definition.

    Defaults are evaluated for each row: ``DEFAULT now()`` is the statement's time, ``DEFAULT random()`` each row's own.
    """

    def __init__(self, table: Table, binder: Binder, context: Context, enums: Mapping[str, Labels]) -> None:
        self.table = table
        self._enums = enums
        self._inputs = tuple(
            bound.Column(column.type, number, column.name, not column.not_null)
            for number, column in enumerate(table.columns)
        )
        self._context = context
        self._defaults = {
            column.name: Program((_default(column, binder),), context) for column in table.columns if column.default
        }
        self._checks = tuple(
            _Check(item.name, Program((_condition(item.text, table.name, self._inputs, binder),), context))
            for item in table.constraints
            if item.kind == "check" and item.enforced
        )

    def prepare(self, incoming: Incoming) -> pa.RecordBatch:
        """The rows with every column of the table, cast and checked, under stored names in physical types.

        42703  a column the table has not      22P02, 22003  a value that does not cast
        23502  NULL in a NOT NULL column       23514  a row for which a CHECK is false
        """
        for name in incoming.arrays:
            if self.table.column(name) is None:
                known = ", ".join(column.name for column in self.table.columns)
                raise UndefinedColumn(
                    f'column "{name}" of relation "{self.table.name}" does not exist', hint=f"columns: {known}"
                )
        arrays = [self._column(column, incoming) for column in self.table.columns]
        self._check(arrays, incoming.rows)
        return pa.RecordBatch.from_arrays(arrays, names=[column.stored for column in self.table.columns])

    def _column(self, column: Column, incoming: Incoming) -> pa.Array:
        type = column.type
        given = incoming.arrays.get(column.name)
        if given is None:
            values = self._default_values(column, incoming.rows)
        else:
            try:
                values = to_type(given, incoming.types[column.name], type, self._context)
            except LakeError as error:
                raise of_column(error, column.name) from None
            missing = incoming.missing.get(column.name)
            if missing is not None and column.default:
                values = pc.if_else(missing, self._default_values(column, incoming.rows), _plain(values))
        labels = self._enums.get(column.name)
        if labels is not None:
            labels.check(_plain(values), column, self.table)
        if column.not_null and values.null_count:
            raise NotNullViolation(
                f'null value in column "{column.name}" of relation "{self.table.name}" violates not-null constraint',
                about=about(self.table, column=column.name),
            )
        return _plain(values)

    def _default_values(self, column: Column, rows: int) -> pa.Array:
        program = self._defaults.get(column.name)
        if program is None:
            return pa.nulls(rows, column.type.physical)
        return program.run(pa.record_batch([pa.nulls(rows)], ["none"]))[0]

    def _check(self, arrays: Sequence[pa.Array], rows: int) -> None:
        if not self._checks or not rows:
            return
        batch = pa.RecordBatch.from_arrays(list(arrays), names=[column_name(column) for column in self._inputs])
        for check in self._checks:
            held = check.program.run(batch)[0]
            failed = pc.fill_null(pc.invert(held), False)
            if pc.any(failed).as_py():
                row = int(np.flatnonzero(failed.to_numpy(zero_copy_only=False))[0])
                raise CheckViolation(
                    f'new row for relation "{self.table.name}" violates check constraint "{check.name}"',
                    detail=f"Failing row contains ({_shown(self.table, batch, row)}).",
                    about=about(self.table, constraint=check.name),
                )


def check_definition(table: Table, binder: Binder, context: Context, state: State) -> None:
    """Binds every DEFAULT and CHECK of a new table and runs each once, so that what cannot hold is refused at CREATE.

    What answers something else each time, such as nextval, is bound and not run.
    22P02  a DEFAULT that does not cast to its column's type      42804  a CHECK that is not a condition
    """
    enums = enums_of(state, table)
    rules = Rules(table, binder, context, enums)
    for column in table.columns:
        if column.default and not is_volatile(_default(column, binder)):
            values = rules._default_values(column, 1)
            if column.name in enums:
                enums[column.name].check(_plain(values), column, table)


def value_for_all(column: Column, binder: Binder, context: Context) -> pa.Array | None:
    """The one value that a column's DEFAULT gives to rows that are there already, as an array of one; None without DEFAULT.

    ``now()`` is the statement's time.
    0A000  a DEFAULT that is another for each row, such as random()
    """
    if not column.default:
        return None
    expr = _default(column, binder)
    if is_volatile(expr):
        raise FeatureNotSupported(
            f"ADD COLUMN .. DEFAULT {column.default} is not supported, each row would have its own: no file is rewritten",
            hint="add the column, then UPDATE it and ALTER COLUMN",
        )
    return _plain(Program((expr,), context).run(pa.record_batch([pa.nulls(1)], ["none"]))[0])


def about(table: Table, **names: str) -> dict[str, str]:
    """What an error about a table's rows is about: ``column`` or ``constraint`` beside the table."""
    return {"schema": table.schema, "table": table.name, **names}


def to_type(array: pa.Array, source: Type, target: Type, context: Context) -> pa.Array:
    """``array`` as ``target``, in physical form; text codes stay codes."""
    if source == target:
        return array
    if source == NULL:
        return pa.nulls(len(array), target.physical)
    values = cast(array, source, target, settings=context.settings)
    return decimals.widen(values, target) if isinstance(target, Decimal) else values


def _default(column: Column, binder: Binder) -> bound.Expr:
    assert column.default is not None, "only columns with a default have one"
    expr = binder.constant(parser.parse_expression(column.default), "DEFAULT expressions")
    return expr if expr.type == column.type else bound.Cast(column.type, expr)


def _condition(text: str, table: str, columns: Sequence[bound.Column], binder: Binder) -> bound.Expr:
    expr = binder.expression(parser.parse_expression(text), columns, table)
    if expr.type not in (BOOLEAN, NULL):
        raise InvalidTableDefinition(f"CHECK ({text}) is of type {expr.type}, not BOOLEAN")
    return expr


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _shown(table: Table, batch: pa.RecordBatch, row: int) -> str:
    values = [text_values(batch.column(i).slice(row, 1), column.type)[0] for i, column in enumerate(table.columns)]
    return ", ".join("null" if value is None else value for value in values)
