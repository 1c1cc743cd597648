"""INSERT. Spec: SQL, Tables; Constraints and defaults."""

from __future__ import annotations

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.table import create_as
from lake.db.write.incoming import Incoming
from lake.db.write.once import Once, once_of_job
from lake.db.write.path import prepared, write_rows
from lake.errors import DuplicateColumn, UndefinedColumn
from lake.roles import Role
from lake.sql import ast
from lake.storage.catalog.model import Column, Table


@statement(ast.Insert, tag="INSERT 0", role=Role.WRITE, audit="write")
def insert(stmt: ast.Insert, run: Run) -> Result:
    """Writes rows in one commit: few ones to the log, many straight to Parquet; answers ``{rows: N}``.

    INSERT .. SELECT makes the table if it is not there. With a job id that was applied: ``{duplicate: true}``.
    42703, 42701  a column the table has not, or named twice
    """
    once = once_of_job(run.job)
    if once is not None and once.is_known(run.catalog.state):
        return _done(None)
    schema, name = qualified(stmt.table.parts, run.database.name)
    if run.catalog.state.find(name, schema) is None and _is_select(stmt):
        assert stmt.query is not None
        return _done(create_as(run, stmt.table, stmt.query, once=once))
    table = find_table(run.catalog.state, stmt.table, run.database.name)
    return _done(_insert_into(stmt, table, run, once))


def _insert_into(stmt: ast.Insert, table: Table, run: Run, once: Once | None) -> int | None:
    """How many rows were written; None where the job was applied before."""
    rules = run.database.rules(table, run)
    if stmt.query is None:
        batches = iter([rules.prepare(Incoming(1, {}, {}))])
    else:
        targets = _targets(stmt, table)
        source = run.binder().insert_source(
            stmt.query, [(column.name, column.type, column.default) for column in targets], by_name=stmt.by_name
        )
        answer = run.answer(source.query, run.optimize(source.query.plan))
        batches = prepared(answer.source, source.targets, answer.types, rules)
    written = write_rows(run.database, table, batches, once)
    return None if written.acknowledged.duplicate else written.rows


def _targets(stmt: ast.Insert, table: Table) -> list[Column]:
    """The columns an INSERT names, or all of the table's."""
    if not stmt.columns:
        return list(table.columns)
    found: list[Column] = []
    for name in stmt.columns:
        column = table.column(name)
        if column is None:
            known = ", ".join(item.name for item in table.columns)
            raise UndefinedColumn(
                f'column "{name}" of relation "{table.name}" does not exist', hint=f"columns: {known}"
            )
        if column in found:
            raise DuplicateColumn(f'column "{name}" specified more than once')
        found.append(column)
    return found


def _is_select(stmt: ast.Insert) -> bool:
    return stmt.query is not None and not stmt.columns and not isinstance(stmt.query.body, ast.Values)


def _done(rows: int | None) -> Result:
    if rows is None:
        return Result.done("INSERT 0", {"duplicate": True}, count=0)
    return Result.done("INSERT 0", {"rows": rows}, count=rows)
