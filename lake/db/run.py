"""One statement being run: what it may see, how it is planned and answered, where its writes go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import replace

from lake import exec as engine
from lake.db.names import qualified
from lake.db.passing import selected
from lake.db.point import point_read
from lake.db.recall import may_remember, remembered, repeat_key
from lake.db.repeats import Planned, detached, is_repeatable, tables_of, with_tables
from lake.db.result import Result
from lake.exec.context import Cancellation, Context
from lake.exec.evaluate import fold
from lake.sql import ast, bound
from lake.sql.bind import Binder, BoundQuery
from lake.sql.catalog import Settings
from lake.sql.optimizer import optimize
from lake.sql.plan import Plan
from lake.storage.catalog.changes import Change
from lake.storage.catalog.model import Table, View
from lake.storage.catalog.state import State
from lake.storage.commits.sequencer import Acknowledged, Flush

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog
    from lake.db.database import Database
    from lake.db.session import Session



@dataclass(slots=True)
class Run:
    """One statement being run: what it may see, at one commit.

    text   the statement's own text, for views and messages
    job    the id under which a write is applied once, or None
    """

    session: Session
    catalog: StatementCatalog
    settings: Settings
    parameters: Mapping[str, bound.Literal]
    text: str
    job: str | None
    cancellation: Cancellation
    stale_ms: int | None = None
    script: str = ""

    @property
    def database(self) -> Database:
        """The database the session belongs to."""
        return self.session.database

    @property
    def in_transaction(self) -> bool:
        """Whether what the statement writes waits for COMMIT."""
        return self.session.transaction is not None

    @property
    def own_state(self) -> State | None:
        """What the statement sees of its open transaction; None outside one, where the newest state counts."""
        return self.catalog.state if self.in_transaction else None

    def commit(self, flush: Flush) -> Acknowledged:
        """Commits what the statement writes, or keeps it for the transaction's COMMIT."""
        return self.session.write(flush)

    def require(self, privilege: str, relation: Table | View) -> None:
        """Returns when the caller may do this to a table or view.

        42501  it may not. Spec: SQL, Errors
        """
        if self.settings.rights is not None:
            self.settings.rights.require(privilege, relation)

    def define(self, make: Callable[[State], Sequence[Change]], temporary: ast.Name | None = None) -> bool:
        """Commits the changes that ``make`` answers; whether there are any.

        temporary  the name of what is made for this session alone
        """
        own = self.session.temporary
        if temporary is not None:
            return bool(own.define(make, self.state_for(temporary), making=True))
        done = own.define(make, self.catalog.state) if own else None
        return self.database.define(make) if done is None else done

    def make_temporary(self, flush: Flush, name: ast.Name) -> Acknowledged:
        """Takes a flush that makes a temporary table with its rows."""
        done = self.session.temporary.write(flush, self.state_for(name), making=True)
        assert done is not None, "what is made is the session's"
        return done

    def state_for(self, temporary: ast.Name | None) -> State:
        """The state by which a CREATE finds its name free or taken."""
        if temporary is None:
            return self.catalog.state
        named = qualified(temporary.parts, self.database.name)
        return self.session.temporary.for_making(self.catalog.state, *named)

    def renew(self) -> None:
        """Sees the newest state, to do the statement once more."""
        self.catalog = self.session.catalog(self.settings)

    def binder(self) -> Binder:
        """A binder of this statement."""
        return Binder(self.catalog, self.settings, self.parameters)

    def plan(self, query: ast.Query) -> tuple[BoundQuery, Plan]:
        """The query bound, and its optimised plan."""
        found = self.binder().query(query)
        return found, self.optimize(found.plan)

    def select(self, query: ast.Query) -> Result:
        """A query's rows: remembered ones where they hold, else made by a remembered plan, else from the start."""
        repeats, catalog = self.database.repeats, self.catalog
        point = self._point(query)
        if point is not None:
            return point
        session, state = self.session, catalog.state
        key = repeat_key(session, self.text, self.parameters, self.settings.rights, state)
        if key is None or self.in_transaction:
            return self.answer(*self.plan(query))
        known = remembered(session, key, state, self.stale_ms)
        if known is not None:
            return known
        planned = repeats.plan(key)
        if planned is None:
            found = self.binder().query(query)
            planned = Planned(found, self.optimize(found.plan), catalog.borrowed is None)
            if not is_repeatable(found.plan, catalog):
                return self._answer(planned)
            repeats.keep_plan(key, detached(planned))
        else:
            planned = replace(planned, plan=with_tables(planned.plan, catalog))
        result = self._answer(planned)
        if not may_remember(session):
            return result
        result.source = repeats.recording(
            key, result.source, tables_of(planned.plan), self.settings.now, catalog.version
        )
        return result

    def _point(self, query: ast.Query) -> Result | None:
        """The row of a key, where the query asks for nothing else; None for every other query."""
        settings, catalog = self.settings, self.catalog
        if settings.rights is not None or self.session.temporary:
            return None
        key = (self.text, settings.dialect, catalog.state.definitions)
        known = self.database.repeats.point(key, lambda: point_read(query, catalog.state, self.database.name))
        values = None if known is None else known.values(self.parameters)
        if known is None or values is None:
            return None
        rows = known.rows(catalog.snapshot, values)
        if self.session.transaction is not None:
            self.session.transaction.asked(catalog.snapshot, known.table, values)
        return known.result(rows, catalog.version)

    def optimize(self, plan: Plan) -> Plan:
        """The plan by which the query is run."""
        context = self.context()
        return optimize(plan, self.settings, lambda expr: fold(expr, context))

    def context(self) -> Context:
        """What the engine is given."""
        return self.database.context(self.settings, self.cancellation)

    def answer(self, found: BoundQuery, plan: Plan, tag: str = "SELECT") -> Result:
        """The running query's rows under the names the user sees."""
        return self._answer(Planned(found, plan, self.catalog.borrowed is None), tag)

    def _answer(self, planned: Planned, tag: str = "SELECT") -> Result:
        found = planned.found
        answer = engine.run(planned.plan, self.context())
        positions = [answer.columns.index(column) for column in found.columns]
        types = tuple(column.type for column in found.columns)
        batches: Iterable[pa.RecordBatch] = answer.batches()
        if positions != list(range(len(answer.columns))):
            batches = selected(batches, positions)
        return Result(
            found.names, types, tag, version=self.catalog.version, source=batches,
            origins=lambda: planned.origins(self.catalog.state),
        )  # fmt: skip
