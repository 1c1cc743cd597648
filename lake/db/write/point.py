"""The one row that an UPDATE or DELETE of a key changes, found without the engine.

    UPDATE t SET a = a + 1 WHERE id = 7

    Project: _place, _row_id, .., a + 1          the look-up of 7, and the expressions over the row that it answers
    └─ Filter: id = 7
       └─ Scan: t

Of 6 ms that such a statement takes, planning and dealing out a pipeline of one row took 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lake.exec.evaluate import Program, fold
from lake.exec.operators.base import column_name
from lake.rows import Predicate
from lake.sql import bound, plan
from lake.sql.bound import Cast, Column, Compare, Expr, Literal
from lake.storage.tables.snapshot import TableSnapshot
from lake.types import Integer, Text

if TYPE_CHECKING:
    from lake.db.run import Run

SUBQUERIES: Final = (bound.ScalarSubquery, bound.Exists, bound.Quantified)


def changed_row(run: Run, found: plan.Plan, source: TableSnapshot) -> list[pa.RecordBatch] | None:
    """The rows that a bound plan of this very form answers, its outputs in order; None of every other plan.

    Errors are those of the expressions.
    """
    match found:
        case plan.Project(exprs=exprs, input=plan.Filter(conjuncts=tests, input=plan.Scan(filters=()) as scan)):
            pass
        case _:
            return None
    rows = scan.table.rows
    if not isinstance(rows, TableSnapshot) or rows.table is not source.table or rows.snapshot is not source.snapshot:
        return None
    if any(isinstance(node, SUBQUERIES) for each in exprs for node in bound.walk(each)):
        return None
    key = _key(run, tests, scan, source)
    if key is None:
        return None
    names = [column_name(column) for column in scan.outputs]
    outputs = [column_name(column) for column in found.columns]
    program = Program(exprs, run.context())
    read = [batch.rename_columns(names) for part in source.parts(scan.names, key) for batch in part.read()]
    return [pa.RecordBatch.from_arrays(program.run(batch), names=outputs) for batch in read]


def _key(run: Run, tests: Sequence[Expr], scan: plan.Scan, source: TableSnapshot) -> list[Predicate] | None:
    """The key that conjuncts ask for; None where they ask for more or less."""
    names = {column.id: name for column, name in zip(scan.outputs, scan.names, strict=True)}
    open_ = {column.name for column in source.table.key}
    key: list[Predicate] = []
    for test in tests:
        match test:
            case Compare(op="=", left=Column(type=Integer() | Text(), id=id), right=Literal() as value):
                pass
            case Compare(op="=", left=Column(type=Integer() | Text(), id=id), right=Cast(operand=Literal()) as given):
                value = fold(given, run.context())
            case _:
                return None
        name = names.get(id, "")
        if name not in open_ or value.value is None:
            return None
        open_.remove(name)
        key.append(Predicate(name, "=", value.value))
    return key if key and not open_ else None
