"""Statements that answer rows of a query: SELECT, EXPLAIN, DESCRIBE, SUMMARIZE."""

from __future__ import annotations

from lake import exec as engine
from lake.arrow_names import arrow_spelling
from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.errors import FeatureNotSupported, InsufficientPrivilege
from lake.roles import Role
from lake.sql import ast, parser
from lake.sql.catalog import Table
from lake.sql.explain import explain
from lake.types import TEXT, Decimal, Float, Integer, Type


@statement(ast.QueryStatement, tag="SELECT", role=Role.READ, audit="read")
def select(stmt: ast.QueryStatement, run: Run) -> Result:
    """The query's rows, made as they are read. Spec: SQL, Queries."""
    return run.select(stmt.query)


@statement(ast.Explain, tag="EXPLAIN", role=Role.READ, audit="read")
def explain_statement(stmt: ast.Explain, run: Run) -> Result:
    """The plan with expected rows; ANALYZE runs the query and adds rows and time of every operator.

    0A000  a statement that is not a query
    42501  a query through a view, for a user that is no superuser: the plan shows what the view reads
    """
    inner = stmt.statement
    if not isinstance(inner, ast.QueryStatement):
        raise FeatureNotSupported("EXPLAIN of a statement that is not a query is not supported yet")
    _, plan = run.plan(inner.query)
    if run.catalog.borrowed is not None:
        raise InsufficientPrivilege(f"permission denied: EXPLAIN shows what {run.catalog.borrowed} reads")
    profile = None
    if stmt.analyze:
        answer = engine.run(plan, run.context())
        for _ in answer.batches():
            pass
        profile = answer.profile()
    kind = "Plan with Metrics" if stmt.analyze else "logical_plan"
    return Result.table("EXPLAIN", [("plan_type", TEXT), ("plan", TEXT)], [(kind, explain(plan, profile))])


@statement(ast.Describe, tag="DESCRIBE", role=Role.READ, audit="read")
def describe(stmt: ast.Describe, run: Run) -> Result:
    """A row for each column: its name, Arrow type and whether it may be NULL; hidden columns are left out."""
    return Result.table("DESCRIBE", DESCRIBED, _described(stmt.target, run))


@statement(ast.ShowColumns, tag="SHOW", role=Role.READ, audit="read")
def show_columns(stmt: ast.ShowColumns, run: Run) -> Result:
    """SHOW COLUMNS FROM t: as DESCRIBE t."""
    return Result.table("SHOW", DESCRIBED, _described(stmt.table, run))


DESCRIBED: list[tuple[str, Type]] = [("column_name", TEXT), ("data_type", TEXT), ("is_nullable", TEXT)]


def _described(target: ast.Name | ast.Query, run: Run) -> list[tuple[str, str, str]]:
    if isinstance(target, ast.Name):
        target = _all_of(target, run)
    found = run.binder().query(target)
    return [
        (name, arrow_spelling(column.type), "YES" if column.nullable else "NO")
        for name, column in zip(found.names, found.columns, strict=True)
    ]


def _all_of(name: ast.Name, run: Run) -> ast.Query:
    """All columns of a relation that the caller may read."""
    found = run.catalog.find(name.parts, None)
    if isinstance(found, Table):
        refused = [column.name for column in found.columns if column.refusal and not column.hidden]
    else:
        refused = list(found.refusals)
    star = ast.Star(exclude=tuple(ast.Name((column,)) for column in refused))
    return ast.Query(ast.Select((ast.SelectItem(star),), (ast.TableSource(name),)))


@statement(ast.Summarize, tag="SUMMARIZE", role=Role.READ, audit="read")
def summarize(stmt: ast.Summarize, run: Run) -> Result:
    """A row for each column: type, min, max, approximate distinct, mean, spread, quartiles, count and share of NULLs.

    Spec: SQL, Queries.
    """
    target = _all_of(stmt.target, run) if isinstance(stmt.target, ast.Name) else stmt.target
    found = run.binder().query(target)
    columns = [(name, column.type) for name, column in zip(found.names, found.columns, strict=True)]
    body = parser.parse(" UNION ALL ".join(_summary(number, name, type) for number, (name, type) in enumerate(columns)))[0]
    assert isinstance(body, ast.QueryStatement)
    cte = ast.Cte("summarized", tuple(f"c{number}" for number in range(len(columns))), target, materialized=True)
    return run.answer(*run.plan(ast.Query(body.query, ctes=(cte,))), tag="SUMMARIZE")


def _summary(number: int, name: str, type: Type) -> str:
    """The row of SUMMARIZE for one column, as a query over ``summarized``."""
    column = f"c{number}"
    value = f"{column}::DOUBLE" if isinstance(type, Integer | Float | Decimal) else "NULL::DOUBLE"
    mean, spread = f"avg({value})", f"stddev({value})"
    q25, q50, q75 = (f"percentile_cont({value}, {share})" for share in (0.25, 0.5, 0.75))
    text = "'" + name.replace("'", "''") + "'"
    return (
        f"SELECT {text} AS column_name, '{type.sql}' AS column_type, min({column})::VARCHAR AS min, "
        f"max({column})::VARCHAR AS max, approx_distinct({column})::BIGINT AS approx_unique, {mean} AS avg, "
        f"{spread} AS std, {q25} AS q25, {q50} AS q50, {q75} AS q75, count(*) AS count, "
        f"CASE WHEN count(*) = 0 THEN NULL ELSE 100.0::DOUBLE * (count(*) - count({column})) / count(*) END "
        f"AS null_percentage FROM summarized"
    )
