"""A session: settings, and the way from a statement's text to its answer.

    Session.execute("SELECT 1; INSERT INTO t VALUES (2)")      statements run in order, the answer is the last one's

``execute`` blocks: doors call it on a worker thread, and nothing below it is a coroutine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lake.db.accounted import NOWHERE, Accounted
from lake.db.names import qualified
from lake.db.passing import expression_of, watched
from lake.db.recall import recall_row, remembered, repeat_key
from lake.db.result import Result
from lake.db.rights.granted import Rights
from lake.db.run import Run
from lake.db.sequences import SessionSequences
from lake.db.settings import SessionSettings
from lake.db.statements import STATEMENTS, Handler
from lake.db.temporary import NOTHING, Temporary
from lake.db.write.transaction import Transaction
from lake.errors import (
    FailedTransaction,
    FeatureNotSupported,
    LakeError,
    NoActiveTransaction,
    SyntaxFailure,
    UndefinedTable,
)
from lake.exec.context import Cancellation
from lake.exec.evaluate import fold
from lake.roles import OWNER, Principal, Role
from lake.sql import ast, bound, parser
from lake.sql.bind import Binder, literal_of
from lake.sql.catalog import Settings
from lake.sql.plan import Plan
from lake.storage.catalog.state import display_name
from lake.storage.commits.sequencer import Acknowledged, Flush

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog
    from lake.db.database import Database
    from lake.db.system.pg_catalog_names import PgNames

FAILED: Final = "current transaction is aborted, commands ignored until end of transaction block"
COUNTING: Final = ("nextval", "setval")  # functions that write

__all__ = ["Run", "Session"]


class Session:
    """A caller's settings over a database. Statements of one session run one after another.

    lasts   whether it outlives the statements of one request
    """

    def __init__(self, database: Database, principal: Principal = OWNER, *, lasts: bool = True) -> None:
        self.database = database
        self.principal = principal
        self.settings = SessionSettings()
        self.origin = NOWHERE
        self.prepared: dict[str, Any] = {}
        self.transaction: Transaction | None = None
        self.lasts = lasts
        self.temporary = Temporary(database.temporary_space)
        self.numbers: dict[int, int] = {}  # what nextval gave last, by sequence
        self.last_sequence = 0
        self._lock = threading.Lock()

    def caller(self) -> tuple[Principal, Rights | None]:
        """The caller as it is at this moment, and what it was granted; None where its role says everything.

        28000  the user was dropped
        """
        return self.database.caller(self.principal)

    # --- transactions ------------------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Opens a transaction on the state of this moment; False where one is open."""
        if self.transaction is not None:
            return False
        self.transaction = Transaction(self.database, self.temporary)
        self.database.opened(self)
        return True

    def commit(self) -> bool:
        """Commits the open transaction as one; False where it had failed, and then nothing is committed.

        40001  another commit changed a row that this transaction changes; nothing is committed
        """
        ended, self.transaction = self.transaction, None
        if ended is None:
            return True
        if ended.failed:
            ended.rollback()
            return False
        ended.commit()
        return True

    def rollback(self) -> None:
        """Forgets the open transaction, if there is one."""
        ended, self.transaction = self.transaction, None
        if ended is not None:
            ended.rollback()

    def close(self) -> None:
        """Ends the session behind the statement that runs: its transaction is rolled back, its temporary tables go."""
        with self._lock:
            self.end()

    def end(self) -> None:
        """Takes back what is not committed, and the temporary tables; an answer that is being read is not touched."""
        self.rollback()
        if self.temporary:
            self.temporary.reset(NOTHING)

    def catalog(self, settings: Settings | None = None, *, reads: bool = True) -> StatementCatalog:
        """What a statement that starts at this moment can name, own tables first; ``reads``: whether rows are read too."""
        settings = settings or self.statement_settings()
        snapshot = None if self.transaction is None else self.transaction.snapshot(reads=reads)
        if self.temporary:
            state = self.database.lake.state if snapshot is None else snapshot.state
            snapshot = self.database.lake.snapshot(self.temporary.over(state))
        return self.database.catalog(settings, snapshot)

    def savepoint(self, kind: str, name: str) -> None:
        """SAVEPOINT, RELEASE or ROLLBACK TO ``name`` of the open transaction.

        25P01  none is open      25P02  it has failed, and this does not go back      3B001  no such savepoint
        """
        open_ = self.transaction
        if open_ is None:
            raise NoActiveTransaction(f"{kind.upper()} can only be used in transaction blocks")
        self._check_idle(open_)
        if open_.ended or (open_.failed and kind != "rollback to"):
            raise FailedTransaction(FAILED)
        try:
            match kind:
                case "savepoint":
                    open_.savepoint(name)
                case "release":
                    open_.release(name)
                case _:
                    open_.roll_back_to(name)
        except LakeError:
            open_.failed = True
            raise

    def write(self, flush: Flush) -> Acknowledged:
        """Commits a flush, or keeps it for the transaction's COMMIT; what is for temporary tables is done at once."""
        if self.temporary:
            state = self.database.lake.state if self.transaction is None else self.transaction.state
            done = self.temporary.write(flush, self.temporary.over(state))
            if done is not None:
                return done
        return self.database.commit(flush) if self.transaction is None else self.transaction.write(flush)

    def _check_transaction(self, stmt: ast.Statement, handler: Handler) -> None:
        """What a transaction refuses.

        25P02  it has failed, or was rolled back since it was idle too long      0A000  definitions
        """
        open_ = self.transaction
        if open_ is None or isinstance(stmt, ast.Transaction):
            return
        self._check_open(open_)
        if handler.audit == "ddl" and not self.defines_own(stmt):
            raise FeatureNotSupported(f"{handler.tag} inside a transaction is not supported")

    def defines_own(self, stmt: ast.Statement) -> bool:
        """Whether a definition is of temporary tables or views, which transactions take back."""
        match stmt:
            case ast.CreateTable(temporary=True) | ast.CreateView(temporary=True):
                return True
            case ast.Drop(names=names):
                named = [qualified(name.parts, self.database.name) for name in names]
                return all(name in self.temporary.state.names for name in named)
            case _:
                return False

    def _check_open(self, open_: Transaction) -> None:
        """25P02 of a transaction that takes no statement any more."""
        self._check_idle(open_)
        if open_.failed:
            raise FailedTransaction(FAILED)

    def _check_idle(self, open_: Transaction) -> None:
        """Rolls back a transaction that nobody used for too long; what is left to its session is ROLLBACK."""
        now = self.database.clock.monotonic()
        if now - open_.used_at > self.database.config.txn_idle_secs and not open_.ended:
            open_.failed = open_.ended = True
            open_.rollback()
        open_.used_at = now

    def end_idle(self) -> None:
        """Rolls the open transaction back if nobody used it for too long; not while a statement runs."""
        if self._lock.acquire(blocking=False):
            try:
                open_ = self.transaction
                if open_ is not None and not open_.ended:
                    used_at = open_.used_at
                    self._check_idle(open_)
                    open_.used_at = used_at
            finally:
                self._lock.release()

    def _watched(self, run: Callable[[], Result]) -> Result:
        """A statement's result; in a transaction its failure, now or while its rows are read, fails the transaction."""
        open_ = self.transaction
        if open_ is None:
            return run()
        try:
            result = run()
        except BaseException:
            open_.failed = True
            raise
        result.source = watched(result.source, open_)
        return result

    # --- statements --------------------------------------------------------------------------------------------------

    def execute(
        self,
        text: str,
        params: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        job: str | None = None,
        cancellation: Cancellation | None = None,
        stale_ms: int | None = None,
    ) -> Result:
        """Runs the statements of ``text`` in order and answers the last one's result.

        params    values of ``$name``, or a sequence for ``$1``, ``$2``; a value is bound, never pasted
        job       a write retried under the same id is applied once
        stale_ms  a remembered answer up to this old will do
        42601 and every other error of the statements; those before the failed one stay done.
        Spec: HTTP, Query; SQL, What the service does.
        """
        try:
            literals = self._literals(params)
            dialect = self.dialect
            statements = parser.parse(text, dialect)
        except LakeError:
            if self.transaction is not None:
                self.transaction.failed = True
            raise
        result = Result.done("EMPTY", {})
        with self._lock:
            try:
                for number, stmt in enumerate(statements):
                    result.run_through()
                    if self.dialect != dialect:
                        dialect = self.dialect
                        stmt = parser.parse(text, dialect)[number]
                    step = job if job is None or len(statements) == 1 else f"{job}:{number}"
                    result = self._execute_one(stmt, text, literals, step, cancellation or Cancellation(), stale_ms)
            finally:
                if not self.lasts:
                    self.end()
        return result

    def recall(
        self, text: str, params: Mapping[str, Any] | None, stale_ms: int | None, bytes_max: int = 1 << 20
    ) -> Result | None:
        """As ``recall_statement``, of a text that was asked before."""
        if any(isinstance(value, dict | list) for value in (params or {}).values()):
            return None
        statements = parser.parse_known(text, self.dialect)
        if statements is None or len(statements) != 1 or not isinstance(statements[0], ast.QueryStatement):
            return None
        try:
            return self.recall_statement(statements[0], text, self._literals(params), stale_ms, bytes_max)
        except LakeError:
            return None

    def recall_statement(
        self,
        stmt: ast.QueryStatement,
        text: str,
        parameters: Mapping[str, bound.Literal],
        stale_ms: int | None = None,
        bytes_max: int = 1 << 16,
    ) -> Result | None:
        """The answer of a query that is remembered, of at most ``bytes_max`` bytes, or is a row in memory found by its key.

        None where it has to be run. It neither blocks nor waits: an event loop may call it. Whatever is wrong is for
        ``execute`` to say.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            caller, rights = self.caller()
            caller.require(Role.READ)
            own = text[stmt.span.start : stmt.span.end] if stmt.span else text
            accounted = Accounted(self, stmt, own)
            open_ = self.transaction
            if open_ is not None:
                self._check_open(open_)
            state = self.database.lake.state if open_ is None else open_.state
            found = None if rights is not None else recall_row(self, stmt.query, own, parameters, state)
            if found is None and open_ is not None:
                return None
            if found is None:
                key = repeat_key(self, own, parameters, rights, state)
                found = None if key is None else remembered(self, key, state, stale_ms, bytes_max)
                if found is None:
                    return None
            accounted.end(found.count_at_hand, found.version)
            return found
        except LakeError:
            return None
        finally:
            self._lock.release()

    def run_statement(
        self, stmt: ast.Statement, text: str, parameters: Mapping[str, bound.Literal], cancellation: Cancellation
    ) -> Result:
        """Runs one parsed statement of ``text`` with bound parameters: what a door does with a prepared statement."""
        with self._lock:
            return self._execute_one(stmt, text, parameters, None, cancellation)

    def run_live(
        self,
        query: ast.Query,
        text: str,
        params: Mapping[str, Any] | None,
        cancellation: Cancellation,
        note: Callable[[StatementCatalog, Plan], None],
        known: int,
    ) -> tuple[Result, int]:
        """A live query's answer, and the definitions it was bound under.

        note   told the bound plan, where those are not ``known``
        """
        self.principal.require(Role.READ)
        literals = self._literals(params)
        with self._lock:
            settings = self.statement_settings()
            catalog = self.catalog(settings)
            run = Run(self, catalog, settings, literals, text, None, cancellation, script=text)
            if catalog.state.definitions != known:
                note(catalog, run.binder().query(query).plan)
            return run.select(query), catalog.state.definitions

    def writes(self, text: str) -> bool:
        """Whether a statement of ``text`` needs more than the right to read.

        42601  a text that is no statements
        """
        statements = parser.parse(text, self.dialect)
        handlers = (STATEMENTS.get(type(stmt)) for stmt in statements)
        if any(handler is not None and handler.role is not Role.READ for handler in handlers):
            return True
        return any(word in text.lower() for word in COUNTING) and any(map(_counts, statements))

    def _literals(self, params: Mapping[str, Any] | Sequence[Any] | None) -> dict[str, bound.Literal]:
        if params is None:
            return {}
        if not isinstance(params, Mapping):
            params = {str(number): value for number, value in enumerate(params, 1)}
        return {str(name).removeprefix("$"): self._literal(value) for name, value in params.items()}

    def _literal(self, value: Any) -> bound.Literal:
        """A parameter's value; ``{"sql": text}`` is a constant expression. Spec: HTTP, Query."""
        expr = expression_of(value)
        if expr is None:
            return literal_of(value)
        settings = self.statement_settings()
        binder = Binder(self.catalog(settings), settings)
        return fold(binder.constant(expr, "parameters"), self.database.context(settings, Cancellation()))

    def insert_query(self, table: tuple[str, ...], text: str, job: str | None) -> Result:
        """Writes the rows of a query to a table, made if absent. Spec: HTTP, POST /insert.

        42601  a text that is not one query
        """
        statements = parser.parse(text, self.dialect)
        if len(statements) != 1 or not isinstance(statements[0], ast.QueryStatement):
            raise SyntaxFailure("the body of an insert is one query")
        stmt = ast.Insert(ast.Name(table), (), statements[0].query)
        with self._lock:
            return self._execute_one(stmt, text, {}, job, Cancellation())

    def _execute_one(
        self,
        stmt: ast.Statement,
        text: str,
        parameters: Mapping[str, bound.Literal],
        job: str | None,
        cancellation: Cancellation,
        stale_ms: int | None = None,
    ) -> Result:
        own = text[stmt.span.start : stmt.span.end] if stmt.span else text
        accounted = Accounted(self, stmt, own)
        try:
            return accounted.follow(self._run(stmt, text, own, parameters, job, cancellation, stale_ms, accounted))
        except LakeError as error:
            accounted.fail(error)
            if error.hint is not None:
                self._drop_hint(error)
            raise

    def _run(
        self,
        stmt: ast.Statement,
        text: str,
        own: str,
        parameters: Mapping[str, bound.Literal],
        job: str | None,
        cancellation: Cancellation,
        stale_ms: int | None,
        accounted: Accounted,
    ) -> Result:
        handler = self._handler(stmt)
        settings = self.statement_settings()
        if settings.rights is not None:
            accounted.turn = self.database.quotas.enter(settings.rights.user, cancellation)

        def run() -> Result:
            self._check_transaction(stmt, handler)
            catalog = self.catalog(settings)
            return handler.run(
                stmt, Run(self, catalog, settings, parameters, own, job, cancellation, stale_ms, script=text)
            )

        return self._watched(run)

    def _drop_hint(self, error: LakeError) -> None:
        """Takes a hint away that offers a relation which the caller is not shown."""
        if self.principal.id and error.hint is not None and error.sqlstate == UndefinedTable.sqlstate:
            shown = {display_name(*name) for name in self.catalog().shown.state.names}
            if not any(f'"{name}"' in error.hint for name in shown):
                error.hint = None

    def run_inner(self, stmt: ast.Statement, text: str, values: Mapping[str, bound.Literal], outer: Run) -> Result:
        """A statement that ``outer`` runs in its own place, with values for its parameters."""
        return self._handler(stmt).run(stmt, replace(outer, parameters=values, text=text))

    def _handler(self, stmt: ast.Statement) -> Handler:
        """What runs ``stmt``, if the caller may run it.

        0A000  no handler     42501  a role that may not
        """
        handler = STATEMENTS.get(type(stmt))
        if handler is None:
            raise FeatureNotSupported(f"{type(stmt).__name__} statements are not supported yet")
        caller, rights = self.caller()
        # A user that is no superuser writes where it was granted to: the handler asks table by table.
        if rights is None or handler.role is not Role.WRITE:
            caller.require(handler.role)
        return handler

    @property
    def dialect(self) -> str:
        """``spark`` or ``postgres``: how text is read and which function a name means."""
        found = self.settings["datafusion.sql_parser.dialect"].value.lower()
        return "spark" if found in ("spark", "databricks") else "postgres"

    def statement_settings(self) -> Settings:
        """The settings a statement that starts at this moment sees."""
        values = self.settings.texts
        caller, rights = self.caller()
        return Settings(
            now=self.database.clock.now(),
            time_zone=values["timezone"],
            dialect=self.dialect,
            user=self.principal.user,
            superuser=caller.superuser,
            rights=rights,
            database=self.database.name,
            local_files=self.principal.owner,
            session=values,
            names=self._names,
            config=self.database.config,
            enums=self.database.enum,
            sequences=lambda: SessionSequences(self.database, self),
            files=lambda: self.database.files(self.principal, Role.READ),
        )

    def _names(self) -> PgNames:
        """What the functions of pg_catalog look up."""
        from lake.db.system.pg_catalog_names import PgNames
        return PgNames(self, self.catalog().shown)


def _counts(stmt: ast.Statement) -> bool:
    """Whether a statement takes numbers of a sequence, which is a commit."""
    return any(isinstance(node, ast.Call) and node.name.last in COUNTING for node in ast.walk(stmt))
