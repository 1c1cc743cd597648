"""UPDATE, DELETE and MERGE. Spec: SQL, Tables; reference: row statements."""

from __future__ import annotations

from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.write.change import ChangeStatement, change
from lake.db.write.once import once_of_job
from lake.roles import Role
from lake.sql import ast


@statement(ast.Update, tag="UPDATE", role=Role.WRITE, audit="write")
def update(stmt: ast.Update, run: Run) -> Result:
    """New versions of the rows for which WHERE holds; a row that several rows of FROM match takes one of them.

    42701  a column set twice      23502, 23514, 22P02  a new row that the table refuses
    """
    return changed(stmt, run, "UPDATE")


@statement(ast.Delete, tag="DELETE", role=Role.WRITE, audit="write")
def delete(stmt: ast.Delete, run: Run) -> Result:
    """Deletes the rows for which WHERE holds, each once."""
    return changed(stmt, run, "DELETE")


@statement(ast.Merge, tag="MERGE", role=Role.WRITE, audit="write")
def merge(stmt: ast.Merge, run: Run) -> Result:
    """Updates, deletes and inserts by a join with a source; the first clause of its kind that applies is taken.

    21000  a row of the table matches more than one source row
    """
    return changed(stmt, run, "MERGE")


def changed(stmt: ChangeStatement, run: Run, tag: str) -> Result:
    """The answer of a statement that changes rows: four counters, or what RETURNING asks for."""
    once = once_of_job(run.job)
    if once is not None and once.is_known(run.catalog.state):
        return Result.done(tag, {"duplicate": True}, count=0)
    found, returning = change(run, stmt, once)
    if returning is None:
        return Result.done(tag, found.outcome(), count=found.rows)
    types = tuple(column.type for column in returning.columns)
    return Result(returning.names, types, tag, count=found.rows, version=run.database.version, source=found.returned)
