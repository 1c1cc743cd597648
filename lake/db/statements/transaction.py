"""BEGIN, COMMIT, ROLLBACK and savepoints of a session. Spec: reference, Transactions."""

from __future__ import annotations

from lake.db.result import Result
from lake.db.session import Run
from lake.db.statements import statement
from lake.roles import Role
from lake.sql import ast


@statement(ast.Transaction, tag="TRANSACTION", role=Role.READ, audit="misc")
def transaction(stmt: ast.Transaction, run: Run) -> Result:
    """Opens or ends the session's transaction; COMMIT of a failed one rolls it back, as the tag tells. Savepoints.

    40001  another commit changed a row that this transaction changes
    25P01  a savepoint outside a transaction      3B001  no savepoint of that name
    """
    session = run.session
    if stmt.name is not None:
        session.savepoint(stmt.kind, stmt.name)
        return _done("ROLLBACK" if stmt.kind == "rollback to" else stmt.kind.upper(), None)
    if stmt.kind == "begin":
        return _done("BEGIN", None if session.begin() else "there is already a transaction in progress")
    if session.transaction is None:
        return _done(stmt.kind.upper(), "there is no transaction in progress")
    if stmt.kind == "commit" and session.commit():
        return _done("COMMIT", None)
    session.rollback()
    return _done("ROLLBACK", None)


def _done(tag: str, notice: str | None) -> Result:
    result = Result.done(tag, {"transaction": tag.lower()})
    result.notices = () if notice is None else (notice,)
    return result
