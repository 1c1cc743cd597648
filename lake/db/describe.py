"""What a prepared statement takes and answers, before it has values.

    describe(prepare("SELECT name FROM t WHERE id = $1"), session, {})
        Description(parameters=(BIGINT,), names=("name",), types=(TEXT,), origins=((16391, 2),))

A parameter's type is the one its door was told, else what the binder casts it to, else text.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from msgspec import Struct

from lake.db.names import find_table, qualified
from lake.db.origins import NOWHERE, Origin, origins_of
from lake.db.prepared import Prepared
from lake.db.recall import repeat_key
from lake.db.repeats import is_repeatable
from lake.db.session import Session
from lake.db.write.change import bound_change, defaults_of, written_table
from lake.db.write.identity import identity_columns
from lake.exec.context import Cancellation
from lake.roles import Role
from lake.sql import ast, bound
from lake.sql.bind import Binder, BoundQuery
from lake.storage.catalog.state import State
from lake.types import NULL, TEXT, Type


class Description(Struct, frozen=True):
    """What a statement takes and answers; ``names`` is None where it answers no rows.

    origins   the table and column of each, by Postgres's numbers
    """

    parameters: tuple[Type, ...]
    names: tuple[str, ...] | None
    types: tuple[Type, ...]
    origins: tuple[Origin, ...] = ()


class _Unbound(dict[str, bound.Literal]):
    """Parameters before they have values: each is made when the binder meets it."""

    def __bool__(self) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> bound.Literal:
        return self.setdefault(name, bound.Unknown(NULL, None))


def describe(prepared: Prepared, session: Session, known: Mapping[int, Type]) -> Description:
    """What the statement takes and answers, without running it; ``known`` are types of parameters by number.

    Statements that only show something are run, because their rows are made at once anyway.
    """
    key = _key(prepared, session, known)
    unbound = _Unbound({str(number): bound.Literal(type, None) for number, type in known.items()})
    (names, types, origins), repeats = _answer(prepared, session, unbound)
    found = tuple(_type_of(number, known, unbound) for number in range(1, prepared.parameters + 1))
    made = Description(found, names, types, origins)
    if key is not None and repeats:
        session.database.repeats.descriptions.put(key, made)
    return made


def recall_description(prepared: Prepared, session: Session, known: Mapping[int, Type]) -> Description | None:
    """What ``describe`` answered before, as long as no definition has changed: an event loop may ask."""
    key = _key(prepared, session, known)
    return None if key is None else session.database.repeats.descriptions.get(key)


def _key(prepared: Prepared, session: Session, known: Mapping[int, Type]) -> Hashable | None:
    """What a query's description depends on; None where that is more than can be said here."""
    if session.transaction is not None or not isinstance(prepared.statement, ast.QueryStatement):
        return None
    caller, rights = session.caller()
    caller.require(Role.READ)
    given = {str(number): bound.Literal(type, None) for number, type in known.items()}
    return repeat_key(session, prepared.text, given, rights, session.database.lake.state)


def _type_of(number: int, known: Mapping[int, Type], unbound: Mapping[str, bound.Literal]) -> Type:
    if number in known:
        return known[number]
    met = unbound.get(str(number))
    return met.seen[0] if isinstance(met, bound.Unknown) and met.seen else TEXT


_Answer = tuple[tuple[str, ...] | None, tuple[Type, ...], tuple[Origin, ...]]
NO_ROWS: Final[_Answer] = (None, (), ())


def _answer(prepared: Prepared, session: Session, unbound: Mapping[str, bound.Literal]) -> tuple[_Answer, bool]:
    """The columns, and whether they are the same as long as no definition changes."""
    settings = session.statement_settings()
    session.caller()[0].require(Role.READ)
    catalog = session.catalog(settings, reads=False)
    binder = Binder(catalog, settings, unbound)
    match prepared.statement:
        case ast.QueryStatement(query):
            asked = binder.query(query)
            return _columns(asked, catalog.state), is_repeatable(asked.plan, catalog)
        case ast.Explain():
            return (("plan_type", "plan"), (TEXT, TEXT), (NOWHERE, NOWHERE)), False
        case ast.Insert() | ast.Update() | ast.Delete() | ast.Merge() as stmt:
            if catalog.state.find(*reversed(qualified(stmt.table.parts, session.database.name))) is None:
                return NO_ROWS, False  # An INSERT that makes its table, or a failure that running it will tell.
            table = find_table(catalog.state, stmt.table, session.database.name)
            columns = catalog.columns_of(table)
            if isinstance(stmt, ast.Insert) and stmt.conflict is None:
                binder.insert(stmt, columns, defaults_of(table), identity_columns(table))
            else:
                bound_change(stmt, table, catalog, binder)
            if not stmt.returning:
                return NO_ROWS, False
            alias = None if isinstance(stmt, ast.Insert) else stmt.alias
            found = binder.returning(stmt.returning, stmt.table, alias, written_table(table, columns)[0])
            return _columns(found, catalog.state), False
        case (
            ast.Describe() | ast.ShowObjects() | ast.ShowColumns() | ast.ShowCreate() | ast.ShowSetting() | ast.Summarize()
        ) as stmt:
            result = session.run_statement(stmt, prepared.text, {}, Cancellation())
            result.close()
            return (result.names, result.types, (NOWHERE,) * len(result.types)), False
        case _:
            return NO_ROWS, False


def _columns(found: BoundQuery, state: State) -> _Answer:
    return found.names, tuple(column.type for column in found.columns), origins_of(found, state)
