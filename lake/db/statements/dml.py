"""INSERT. Spec: SQL, Tables; Constraints and defaults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.db.statements.dml_change import changed
from lake.db.statements.table import create_as
from lake.db.write.change import written_table
from lake.db.write.identity import identity_columns, refuse_given_identity
from lake.db.write.incoming import Incoming
from lake.db.write.once import Once, once_of_job
from lake.db.write.path import cut, prepared, write_rows
from lake.db.write.plain import few_values, plain_values
from lake.db.write.row import inserted_rows
from lake.errors import FeatureNotSupported
from lake.roles import Role
from lake.sql import ast, parser
from lake.sql.bind import BoundQuery
from lake.storage.catalog.model import TEMPORARY_IDS, Table


@statement(ast.Insert, tag="INSERT 0", role=Role.WRITE, audit="write")
def insert(stmt: ast.Insert, run: Run) -> Result:
    """Writes rows in one commit: few ones to the log, many straight to Parquet; answers ``{rows: N}``.

    INSERT .. SELECT makes the table if it is not there. With a job id that was applied: ``{duplicate: true}``.
    42501  the caller may not write to the table
    42703, 42701  a column the table has not, or named twice      42601  not as many values as columns
    """
    once = once_of_job(run.job)
    if once is not None and once.is_known(run.catalog.state):
        return _done(None)
    schema, name = qualified(stmt.table.parts, run.database.name)
    if run.catalog.state.find(name, schema) is None and stmt.conflict is None and _is_select(stmt):
        assert stmt.query is not None
        if stmt.returning:
            raise FeatureNotSupported("RETURNING of an INSERT that makes its table is not supported")
        if run.settings.rights is not None:
            run.session.caller()[0].require(Role.ADMIN)
        return _done(create_as(run, stmt.table, stmt.query, once=once))
    table = find_table(run.catalog.state, stmt.table, run.database.name)
    run.require("insert", table)
    if stmt.conflict is not None:
        return changed(stmt, run, "INSERT 0")
    return _insert_into(stmt, table, run, once)


def _insert_into(stmt: ast.Insert, table: Table, run: Run, once: Once | None) -> Result:
    few = inserted_rows(stmt, table, run.parameters)
    batches = _batches(stmt, table, run) if few is None else [few]
    if stmt.returning:
        return _returning(stmt, table, run, once, list(batches))
    as_log = _stays_in_log(table, run)
    written = write_rows(run.database, table, batches, once, commit=run.commit, state=run.own_state, as_log=as_log)
    return _done(None if written.acknowledged.duplicate else written.rows)


def _batches(stmt: ast.Insert, table: Table, run: Run) -> Iterable[pa.RecordBatch]:
    """The rows of an INSERT, bound and run."""
    columns = run.catalog.columns_of(table)
    defaults = {column.name: parser.parse_expression(column.default) for column in table.columns if column.default}
    plain = plain_values(stmt, columns) if stmt.overriding != "user" else None
    if plain is not None:
        stmt, incoming = plain
    source = run.binder().insert(stmt, columns, defaults, identity_columns(table))
    refuse_given_identity(stmt, table, source.given)
    rules = run.database.rules(table, run)
    names = tuple(column.name for column in columns)
    few = few_values(source.plan, run.context()) if plain is None else None
    if few is not None:
        types = dict(zip(names, (column.type for column in source.columns), strict=True))
        incoming = Incoming(len(few[0]), dict(zip(names, few, strict=True)), types)
    if few is not None or plain is not None:
        return cut(rules.prepare(incoming))
    answer = run.answer(BoundQuery(source.plan, source.columns, names), run.optimize(source.plan))
    return prepared(answer.source, names, answer.types, rules)


def _returning(stmt: ast.Insert, table: Table, run: Run, once: Once | None, batches: list[pa.RecordBatch]) -> Result:
    """The rows written, as RETURNING asks for them; they are made before anything is committed."""
    source, rows = written_table(table, run.catalog.columns_of(table))
    rows.batches = batches
    found = run.binder().returning(stmt.returning, stmt.table, None, source)
    result = run.answer(found, run.optimize(found.plan), "INSERT 0")
    answered = list(result.source)
    as_log = _stays_in_log(table, run)
    written = write_rows(run.database, table, batches, once, commit=run.commit, state=run.own_state, as_log=as_log)
    if written.acknowledged.duplicate:
        return _done(None)
    return replace(result, count=written.rows, source=answered)


def _stays_in_log(table: Table, run: Run) -> bool:
    return table.id >= TEMPORARY_IDS or (bool(table.design.key) and run.in_transaction)


def _is_select(stmt: ast.Insert) -> bool:
    return stmt.query is not None and not stmt.columns and not isinstance(stmt.query.body, ast.Values)


def _done(rows: int | None) -> Result:
    if rows is None:
        return Result.done("INSERT 0", {"duplicate": True}, count=0)
    return Result.done("INSERT 0", {"rows": rows}, count=rows)
