"""What one statement can name: the lake's tables and views at one commit, system tables, files for the owner.

The planner sees it as ``sql.catalog.Catalog``: names, types, statistics. Rows stay behind a RowSource that the engine
opens. All tables of a statement are read at the commit at which the statement began.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from lake import exec as engine
from lake.db.functions.readers import open_file
from lake.db.names import qualified
from lake.db.rights.granted import Rights, refusal
from lake.db.rights.shown import shown_state
from lake.db.system import SYSTEM_SCHEMAS, SYSTEM_TABLES
from lake.db.write.unique import unique_rules
from lake.errors import FeatureNotSupported, InvalidParameter, LakeError, UndefinedTable
from lake.exec.cast import cast
from lake.exec.constants import physical_values
from lake.exec.context import Cancellation
from lake.exec.evaluate import fold
from lake.exec.kernels import views
from lake.sql import ast, bound, parser
from lake.sql.bind import Binder
from lake.sql.catalog import Settings, TableColumn
from lake.sql.catalog import Table as PlanTable
from lake.sql.catalog import View as PlanView
from lake.sql.optimizer import optimize
from lake.sql.plan import Plan
from lake.storage.catalog.model import DELETED, TEMPORARY_IDS, Column, Table, View
from lake.storage.catalog.objects import Sequence
from lake.storage.catalog.state import State, display_name
from lake.types import BIGINT, DOUBLE, TEXT, TIMESTAMPTZ, Type

if TYPE_CHECKING:
    from lake.db.database import Database
    from lake.storage.tables.snapshot import Snapshot, TableSnapshot


PAST_KINDS: Final = {"version": BIGINT, "timestamp": TIMESTAMPTZ, "offset": DOUBLE}


class StatementCatalog:
    """The names one statement can use, at one commit."""

    def __init__(self, database: Database, settings: Settings, snapshot: Snapshot | None = None) -> None:
        self._database = database
        self._settings = settings
        self.snapshot: Snapshot = snapshot or database.lake.snapshot()
        self.state: State = self.snapshot.state
        self._found: dict[tuple[str, ...], PlanTable | PlanView] = {}
        self.has_asked = False
        self.borrowed: str | None = None  # a view that is read with the rights of whoever made it
        self._shown: StatementCatalog | None = None
        self._is_shown = settings.rights is None

    @property
    def settings(self) -> Settings:
        """The statement's settings."""
        return self._settings

    @property
    def rights(self) -> Rights | None:
        """What the caller was granted; None where its role says everything."""
        rights: Rights | None = self._settings.rights
        return rights

    @property
    def shown(self) -> StatementCatalog:
        """The catalog with what the caller may read and nothing else: what listings and hints come from."""
        if self._is_shown:
            return self
        if self._shown is None:
            assert self.rights is not None
            self._shown = copy.copy(self)
            self._shown._is_shown = True
            self._shown.state = shown_state(self.state, self.rights)
        return self._shown

    def with_settings(self, settings: Settings) -> StatementCatalog:
        """The same names under other settings."""
        return StatementCatalog(self._database, settings, self.snapshot)

    @property
    def unlimited(self) -> StatementCatalog:
        """The same catalog for whom no grant is asked: what a view's query sees."""
        if self.rights is None:
            return self
        return self.with_settings(replace(self._settings, rights=None))

    @property
    def version(self) -> int:
        """The commit that is read."""
        return self.state.number

    @property
    def lake(self) -> str:
        """The lake's name."""
        return self._database.name

    @property
    def keep_secs(self) -> float:
        """How long the past of a table without a ``retention`` is kept."""
        return self._database.lake.options.keep_secs

    def last_number(self, sequence: Sequence) -> int | None:
        """The last number that a sequence gave, None where it gave none."""
        return self._database.sequences.last(sequence)

    def columns_of_view(self, view: View) -> list[tuple[str, Type]]:
        """Names and types of what a view answers; none where its tables have gone."""
        whole = self.unlimited
        stored = whole.state.views.get(view.id, view)
        try:
            found = Binder(whole, whole.settings, {}).query(_query_of(stored))
        except LakeError:
            return []
        names = (*view.columns, *found.names[len(view.columns) :])
        refused = {} if self.rights is None else self.rights.refused(view, names)
        columns = [(name, column.type) for name, column in zip(names, found.columns, strict=True)]
        return [(name, type) for name, type in columns if name not in refused]

    def find(self, name: tuple[str, ...], at: tuple[str, object] | None) -> PlanTable | PlanView:
        """The relation of that name.

        at     a kind of time travel and its value: a commit, microseconds, or seconds from now
        42P01  there is none, with a near name as the hint      0A000  the past of a view
        22023  a commit that is to come or no longer kept
        """
        if at is not None:
            return self._find_past(name, *at)
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._find(name)
        return known

    def find_file(self, path: str) -> PlanTable:
        """A file or a glob as a table; the reader is chosen by the extension.

        42501  the caller is not the program that started the node. Spec: HTTP, What the service does 9.
        """
        return open_file(path, self._settings)

    def ask(self, node: Plan, column: bound.Column) -> list[tuple[object, str]]:
        """The values of a column of a plan that is run at once, each as it is in a Literal and as text."""
        self.has_asked = True
        context = self._database.context(self._settings, Cancellation())
        answer = engine.run(optimize(node, self._settings, fold), context)
        found: list[tuple[object, str]] = []
        for batch in answer.batches():
            values = batch.column(answer.columns.index(column))
            texts = views.plain(cast(views.plain(values), column.type, TEXT)).to_pylist()
            found += zip(physical_values(values, column.type), texts, strict=True)
        return found

    def _find(self, name: tuple[str, ...]) -> PlanTable | PlanView:
        schema, last = qualified(name, self._database.name)
        found = self.state.find(last, schema)
        if found is None and len(name) == 1 and ("pg_catalog", last) in SYSTEM_TABLES:
            schema = "pg_catalog"
        if schema in SYSTEM_SCHEMAS and (system := SYSTEM_TABLES.get((schema, last))) is not None:
            return system.table(self.shown)
        if found is None:
            shown = display_name(schema, last)
            raise UndefinedTable(f'relation "{shown}" does not exist', hint=self.shown.state.hint(last, schema))
        if self.rights is not None:
            self.rights.require_some(found)
        return self._table(found) if isinstance(found, Table) else self._view(found)

    def _find_past(self, name: tuple[str, ...], kind: str, value: object) -> PlanTable:
        schema, last = qualified(name, self._database.name)
        if (schema in SYSTEM_SCHEMAS and (schema, last) in SYSTEM_TABLES) or isinstance(self.state.find(last, schema), View):
            raise FeatureNotSupported(f'AT reads the past of a table, and "{display_name(schema, last)}" is none')
        table = self.state.table(last, schema)
        if self.rights is not None:
            self.rights.require_some(table)
        rows = self.past(table, kind, value)
        was = msgspec.structs.replace(table, columns=tuple(rows.columns))
        return PlanTable((schema, last), (*self.columns_of(was), *self.hidden_columns(was)), rows, rows.statistics)

    def past(
        self, table: Table, kind: str, value: object, columns: tuple[Column, ...] | None = None
    ) -> TableSnapshot:
        """The rows of a table as they were, under ``columns``, by default those it had.

        kind, value  ``version`` and a commit, ``timestamp`` and microseconds, ``offset`` and seconds from now
        22023  a moment that is to come, no longer kept, or not a constant      42P01  the table was not there
        0A000  a table that keeps only the newest row of each key
        """
        if table.id >= TEMPORARY_IDS:
            raise FeatureNotSupported(f'temporary table "{table.name}" has no past')
        if table.kind != "append":
            raise FeatureNotSupported(f'table "{table.name}" keeps only the newest row of each key: it has no past')
        if isinstance(value, bound.Expr):
            type = PAST_KINDS[kind]
            value = value if value.type == type else bound.Cast(type, value)
            value = fold(value, self._database.context(self._settings, Cancellation()))
            value = value.value if isinstance(value, bound.Literal) else None
        if not isinstance(value, int | float):
            raise InvalidParameter(f"AT ({kind.upper()}) takes a constant")
        lake, now = self._database.lake, self._settings.now
        if kind == "offset":
            value = now + round(value * 1_000_000)
        number = int(value) if kind == "version" else min(lake.number_at(int(value)), self.state.number)
        secs = table.retention_secs(lake.options.keep_secs)
        oldest = min(self.state.number_at(now - int(secs * 1e6)), self.state.number)
        if table.born <= number < oldest:
            raise InvalidParameter(
                f'the retention of table "{table.name}" is over at commit {number}',
                hint=f"the oldest commit it can be read at is {max(oldest, table.horizon)}",
            )
        return self.snapshot.table_by_id(table.id).at(number, columns)

    def columns_of(self, table: Table) -> list[TableColumn]:
        """A table's columns as the planner sees them, each with the reason where the caller may not read it."""
        refused = self._refused(table)
        return [
            TableColumn(column.name, column.type, not column.not_null, refusal=refused.get(column.name, ""))
            for column in table.columns
        ]

    def hidden_columns(self, table: Table) -> list[TableColumn]:
        """The columns that every table has; whoever may not read all others does not read these."""
        refused = bool(self._refused(table))
        return [
            TableColumn(name, type, name == DELETED, True, refusal("select", table, name) if refused else "")
            for name, type in table.hidden_columns.items()
        ]

    def _refused(self, table: Table) -> dict[str, str]:
        if self.rights is None:
            return {}
        return self.rights.refused(table, [column.name for column in table.columns])

    def _view(self, view: View) -> PlanView:
        """A view, whose tables are read with the rights of whoever made it."""
        if self.rights is None:
            return PlanView((view.schema, view.name), view.columns, _query_of(view))
        self.borrowed = display_name(view.schema, view.name)
        names = [name for name, _ in self.unlimited.columns_of_view(view)]
        refused = self.rights.refused(view, names)
        return PlanView((view.schema, view.name), view.columns, _query_of(view), refused, self.unlimited)

    def _table(self, table: Table) -> PlanTable:
        columns = self.columns_of(table) + self.hidden_columns(table)
        rows = self.snapshot.table_by_id(table.id)
        keys = [tuple(column.name for column in table.key)] if table.key else []
        unique = (*keys, *(rule.columns for rule in unique_rules(table)))
        return PlanTable((table.schema, table.name), tuple(columns), rows, rows.statistics, unique)


def _query_of(view: View) -> ast.Query:
    stmt = parser.parse(view.query)[0]
    assert isinstance(stmt, ast.QueryStatement), "a view's text is a query"
    return stmt.query
