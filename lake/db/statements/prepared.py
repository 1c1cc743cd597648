"""PREPARE, EXECUTE and DEALLOCATE: statements a session keeps under a name, with places for values."""

from __future__ import annotations

from msgspec import Struct

from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.errors import DuplicatePreparedStatement, InvalidPreparedStatement, UndefinedParameter, near_name
from lake.exec.evaluate import fold
from lake.roles import Role
from lake.sql import ast, bound
from lake.sql.ast import walk
from lake.sql.bind import bind_type
from lake.types import Type


class Prepared(Struct, frozen=True):
    """A statement under a name; ``types`` are those its values are cast to, as far as they were given."""

    statement: ast.Statement
    types: tuple[Type, ...]
    text: str


@statement(ast.Prepare, tag="PREPARE", role=Role.READ, audit="misc")
def prepare(stmt: ast.Prepare, run: Run) -> Result:
    """Keeps a statement until DEALLOCATE or the session's end.

    42P05  the name is taken
    """
    kept = run.session.prepared
    if stmt.name in kept:
        raise DuplicatePreparedStatement(f'prepared statement "{stmt.name}" already exists')
    span = stmt.statement.span
    text = run.script[span.start : span.end] if span is not None else run.text
    kept[stmt.name] = Prepared(stmt.statement, tuple(bind_type(item) for item in stmt.types), text)
    return Result.done("PREPARE", {"prepared": stmt.name})


@statement(ast.Execute, tag="EXECUTE", role=Role.READ, audit="misc")
def execute(stmt: ast.Execute, run: Run) -> Result:
    """Runs a kept statement with values for ``$1``, ``$2``.

    26000  no such statement      42P02  fewer values than the statement has places for      22P02  values it does not take
    """
    found = _prepared(run, stmt.name)
    values: dict[str, bound.Literal] = {}
    for place, expr in enumerate(stmt.arguments, 1):
        if place <= len(found.types):
            expr = ast.Cast(expr, ast.TypeName(found.types[place - 1].sql))
        values[str(place)] = fold(run.binder().constant(expr, "EXECUTE"), run.context())
    wanted = {node.name for node in walk(found.statement) if isinstance(node, ast.Parameter)}
    numbers = [int(name) for name in wanted if name.isdigit()]
    count = max(len(found.types), *numbers) if numbers else len(found.types)
    if len(stmt.arguments) != count:
        raise UndefinedParameter(
            f'prepared statement "{stmt.name}" takes {count} values, {len(stmt.arguments)} are given'
        )
    return run.session.run_inner(found.statement, found.text, values, run)


@statement(ast.Deallocate, tag="DEALLOCATE", role=Role.READ, audit="misc")
def deallocate(stmt: ast.Deallocate, run: Run) -> Result:
    """Forgets a kept statement, or all.

    26000  no such statement
    """
    if stmt.name is None:
        run.session.prepared.clear()
    else:
        _prepared(run, stmt.name)
        del run.session.prepared[stmt.name]
    return Result.done("DEALLOCATE", {"deallocated": stmt.name or "all"})


def _prepared(run: Run, name: str) -> Prepared:
    found: Prepared | None = run.session.prepared.get(name)
    if found is None:
        hint = near_name(name, run.session.prepared)
        raise InvalidPreparedStatement(f'prepared statement "{name}" does not exist', hint=hint)
    return found
