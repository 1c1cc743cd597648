"""A query that is asked again whenever its tables change. Spec: HTTP, Events (``/live``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lake.db.result import Result
from lake.errors import FeatureNotSupported
from lake.exec.context import Cancellation
from lake.sql import ast, bound, parser, plan
from lake.storage.tables.snapshot import TableSnapshot

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog
    from lake.db.session import Session


class LiveQuery:
    """One query of one caller.

    tables  those it reads, once it has been run; None where every commit may change its answer, as for system tables
    """

    def __init__(self, session: Session, text: str, params: Mapping[str, Any] | None) -> None:
        self._session = session
        self._text = text
        self._params = params
        self._definitions = -1
        self.tables: frozenset[int] | None = None

    def run(self, cancellation: Cancellation) -> Result:
        """The answer of this moment.

        42601  a text that cannot be read      0A000  a text that is not one query
        """
        statements = parser.parse(self._text)
        if len(statements) != 1 or not isinstance(statements[0], ast.QueryStatement):
            raise FeatureNotSupported("only a query can be live: SELECT, VALUES or WITH, one of them")
        query = statements[0].query

        def note(catalog: StatementCatalog, bound_plan: plan.Plan) -> None:
            self.tables = None if catalog.has_asked else _tables(bound_plan, catalog)

        result, self._definitions = self._session.run_live(
            query, self._text, self._params, cancellation, note, self._definitions
        )
        return result


def _tables(bound_plan: plan.Plan, catalog: StatementCatalog) -> frozenset[int] | None:
    """The tables whose rows of now a plan reads."""
    found: set[int] = set()
    for node in plan.walk(bound_plan):
        if isinstance(node, plan.Scan):
            rows = node.table.rows
            if not isinstance(rows, TableSnapshot):
                return None
            if rows.upto is None:
                found.add(rows.table.id)
        for expr in plan.expressions_of(node):
            for inner in bound.walk(expr):
                if isinstance(inner, bound.ScalarSubquery | bound.Exists | bound.Quantified):
                    more = _tables(inner.plan, catalog)
                    if more is None:
                        return None
                    found |= more
    return frozenset(found)
