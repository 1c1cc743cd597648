"""What the binder's tests share: a small catalog, and binding a text over it."""

from __future__ import annotations

import lake.exec.functions  # noqa: F401  (fills the registry)
from lake.errors import UndefinedTable
from lake.sql import ast
from lake.sql.bind import Binder, BoundQuery, literal_of
from lake.sql.bound import Expr
from lake.sql.catalog import Settings, Table, TableColumn, TableStatistics, View
from lake.sql.parser import parse
from lake.sql.plan import Project
from lake.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TEXT, TIMESTAMP, TIMESTAMPTZ, Decimal, List
from tests.sql.printer import plan_text, text

TABLES: dict[str, tuple[TableColumn, ...]] = {
    "t": (
        TableColumn("a", BIGINT),
        TableColumn("b", TEXT),
        TableColumn("d", DATE),
        TableColumn("x", Decimal(15, 2)),
        TableColumn("f", DOUBLE),
        TableColumn("l", List(BIGINT)),
    ),
    "s": (TableColumn("a", BIGINT, nullable=False), TableColumn("c", INT), TableColumn("_row_id", BIGINT, hidden=True)),
    "e": (TableColumn("ts", TIMESTAMP), TableColumn("tz", TIMESTAMPTZ), TableColumn("ok", BOOLEAN)),
    "orders": (TableColumn("id", BIGINT), TableColumn("amount", Decimal(10, 2)), TableColumn("Mixed", INT)),
}
VIEWS = {
    "v": "SELECT a, count(*) AS n FROM t GROUP BY a",
    "w": "SELECT a + 1 FROM v",
    "broken": "SELECT nothing FROM t",
    "loop": "SELECT * FROM loop",
}


class Names:
    """A catalog of ``TABLES`` and ``VIEWS`` in the schema ``public``; ``asked`` keeps the time travel of the last look-up."""

    def __init__(self) -> None:
        self.asked: tuple[str, object] | None = None

    def find(self, name: tuple[str, ...], at: tuple[str, object] | None) -> Table | View:
        """The table or view."""
        self.asked = at
        if name[-1] in VIEWS:
            columns = ("first",) if name[-1] == "w" else ()
            return View(("public", name[-1]), columns, query_of(VIEWS[name[-1]]))
        if name[-1] not in TABLES:
            raise UndefinedTable(f'relation "{".".join(name)}" does not exist')
        return table(name[-1])

    def find_file(self, path: str) -> Table:
        """A file of one column."""
        return Table((path,), (TableColumn("line", TEXT),), NoRows(), lambda: TableStatistics(0))


class NoRows:
    """Rows of a table that is never read."""

    def parts(self, columns: object, predicates: object) -> tuple[()]:
        """None."""
        return ()


def table(name: str) -> Table:
    """A table of ``TABLES``."""
    return Table(("public", name), TABLES[name], NoRows(), lambda: TableStatistics(0))


def query_of(sql: str) -> ast.Query:
    """The one query of a text."""
    statement = parse(sql)[0]
    assert isinstance(statement, ast.QueryStatement)
    return statement.query


def bind(sql: str, **parameters: object) -> BoundQuery:
    """The query bound over the small catalog."""
    literals = {name.removeprefix("p_"): literal_of(value) for name, value in parameters.items()}
    return Binder(Names(), Settings(now=0), literals).query(query_of(sql))


def tree(sql: str, **parameters: object) -> str:
    """The plan of a query as text, without the Project that only names its columns."""
    return plan_text(bind(sql, **parameters).plan)


def types(sql: str) -> list[str]:
    """The types of a query's columns."""
    return [column.type.sql for column in bind(sql).columns]


def expr(sql: str, source: str = "t") -> str:
    """An expression over a table, bound, as text."""
    return text(expr_of(sql, source))


def expr_of(sql: str, source: str = "t") -> Expr:
    """An expression over a table, bound."""
    plan = bind(f"SELECT {sql} FROM {source}").plan
    assert isinstance(plan, Project)
    return plan.exprs[0]


def type_of(sql: str, source: str = "t") -> str:
    """The type of an expression over a table."""
    return expr_of(sql, source).type.sql
