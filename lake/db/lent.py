"""What a request brings along: views and tables that its statements may name, and that are gone behind it.

    {"sql": "SELECT * FROM recent JOIN names USING (id)",
     "views": {"recent": "SELECT * FROM orders WHERE day > DATE '2024-01-01'"},
     "tables": {"names": [{"id": 1, "name": "Ann"}]}}

They are temporary relations of the session for as long as the request runs: they hide relations of the lake of the
same name, take no right but those of the caller's query, and their types are what the values say.
Spec: HTTP, Query (views, tables).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct, field

from lake.db.run import Run
from lake.db.session import Session
from lake.db.statements import STATEMENTS
from lake.errors import DuplicateObject, FeatureNotSupported, InvalidParameter
from lake.exec.context import Cancellation
from lake.sql import bound, parser
from lake.sql.bind import literal_of
from lake.sql.quoting import quote_name
from lake.storage.catalog.changes import DropTable, DropView
from lake.storage.catalog.model import PUBLIC

COUNT_MAX: Final = 100  # views and tables of a request
COLUMNS_MAX: Final = 1_000  # of such a table


class Lent(Struct, frozen=True):
    """The views of a request by name, each a query's text; its tables, each a list of rows as objects."""

    views: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @contextmanager
    def to(self, session: Session) -> Iterator[None]:
        """The session with these relations.

        42P07  the session has a temporary relation of that name      22023  a table without rows, or too many of them
        0A000  an open transaction, which would keep them
        """
        if session.transaction is not None:
            raise FeatureNotSupported("views and tables of a request inside a transaction are not supported")
        names = [*self.tables, *self.views]
        if len(names) > COUNT_MAX:
            raise InvalidParameter(f"a request has at most {COUNT_MAX} views and tables")
        for name in names:
            if names.count(name) > 1 or (PUBLIC, name) in session.temporary.state.names:
                raise DuplicateObject(f'temporary relation "{name}" already exists')
        try:
            for name, rows in self.tables.items():
                _make(session, *_table(name, rows))
            for name, query in self.views.items():
                _make(session, f"CREATE TEMPORARY VIEW {quote_name(name)} AS {query}", {})
            yield
        finally:
            _take_back(session, names)


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, bound.Literal]]:
    """The statement that makes a table of rows, and its parameters: the values of each column as a list."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if not 1 <= len(columns) <= COLUMNS_MAX:
        raise InvalidParameter(f'table "{name}" of a request has 1 to {COLUMNS_MAX} columns, and a row that names them')
    items = ", ".join(f"unnest($c{place}) AS {quote_name(column)}" for place, column in enumerate(columns))
    values = {f"c{place}": literal_of([row.get(column) for row in rows]) for place, column in enumerate(columns)}
    return f"CREATE TEMPORARY TABLE {quote_name(name)} AS SELECT {items}", values


def _make(session: Session, text: str, parameters: dict[str, bound.Literal]) -> None:
    """Runs a definition, whatever role the caller has: what it makes is nobody else's, and goes with the request.

    42601  a view's text that is not one query
    """
    statements = parser.parse(text, session.dialect)
    if len(statements) != 1:
        raise InvalidParameter("a view of a request is one query")
    settings = session.statement_settings()
    run = Run(session, session.catalog(settings), settings, parameters, text, None, Cancellation(), script=text)
    STATEMENTS[type(statements[0])].run(statements[0], run)


def _take_back(session: Session, names: Sequence[str]) -> None:
    """Removes what is still there."""
    own = session.temporary
    found = [id for id in (own.state.names.get((PUBLIC, name)) for name in names) if id is not None]
    if found:
        changes = [DropTable(id) if id in own.state.tables else DropView(id) for id in found]
        own.define(lambda state: changes, own.state)
