"""Prepared statements: parsed once, run with bound values; ``describe`` tells of them before they have any.

    statement = prepare("SELECT name FROM t WHERE id = $1")
    run(statement, session, [Argument(7)], cancellation)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from lake.db.result import Result
from lake.db.session import Session
from lake.db.statements import STATEMENTS
from lake.errors import LakeError, UndefinedParameter
from lake.exec.context import Cancellation
from lake.exec.evaluate import fold
from lake.roles import Role
from lake.sql import ast, bound, parser
from lake.sql.bind import literal_of
from lake.sql.bind.coerce import cast
from lake.types import Type

PARSED_MAX: Final = 512
TEXT_BYTES_MAX: Final = 16 << 10  # a longer text is a load, not a statement that comes again


class Prepared(Struct, frozen=True):
    """A parsed statement; ``parameters`` is the greatest number of a ``$n`` in it."""

    text: str
    statement: ast.Statement | None
    parameters: int

    @property
    def is_query(self) -> bool:
        """Whether it is a SELECT or its like, which may be run to be described."""
        return isinstance(self.statement, ast.QueryStatement)

    @property
    def writes(self) -> bool:
        """Whether it needs more than the right to read."""
        handler = STATEMENTS.get(type(self.statement)) if self.statement is not None else None
        return handler is not None and handler.role is not Role.READ

    @property
    def defines(self) -> bool:
        """Whether it changes what exists, which no transaction takes back."""
        handler = STATEMENTS.get(type(self.statement)) if self.statement is not None else None
        is_own = isinstance(self.statement, ast.CreateTable | ast.CreateView) and self.statement.temporary
        return handler is not None and handler.audit == "ddl" and not is_own


class Argument(Struct, frozen=True):
    """A parameter's value: a Python value, and the type it is cast to, if any."""

    value: Any
    type: Type | None = None


def prepare(text: str, dialect: str = "postgres") -> Prepared:
    """The one statement of ``text``; an empty text is a statement that does nothing.

    dialect  how the text is read, the session's

    42601  a text that is no statement, or several
    """
    return _parse_kept(text, dialect) if len(text) <= TEXT_BYTES_MAX else _parse(text, dialect)


def _parse(text: str, dialect: str) -> Prepared:
    statements = parser.parse(text, dialect)
    assert len(statements) <= 1, "doors cut scripts into statements"
    if not statements:
        return Prepared(text, None, 0)
    nodes = ast.walk(statements[0]) if "$" in text or "?" in text else ()
    numbers = [int(item.name) for item in nodes if isinstance(item, ast.Parameter) and item.name.isdigit()]
    return Prepared(text, statements[0], max(numbers, default=0))


_parse_kept = lru_cache(PARSED_MAX)(_parse)


def run(prepared: Prepared, session: Session, arguments: Sequence[Argument], cancellation: Cancellation) -> Result:
    """Runs the statement. Errors are the statement's.

    42P02  fewer arguments than parameters
    """
    if prepared.statement is None:
        return Result.done("EMPTY", {})
    if len(arguments) < prepared.parameters:
        raise UndefinedParameter(f"there is no parameter ${len(arguments) + 1}")
    literals = {str(number): _literal(item, session) for number, item in enumerate(arguments, 1)}
    return session.run_statement(prepared.statement, prepared.text, literals, cancellation)


def recall(prepared: Prepared, session: Session, arguments: Sequence[Argument]) -> Result | None:
    """The answer of a query that is at hand without waiting (``Session.recall_statement``); None where it has to be run."""
    statement = prepared.statement
    if not isinstance(statement, ast.QueryStatement) or len(arguments) < prepared.parameters:
        return None
    try:
        literals = {str(number): _literal(item, session) for number, item in enumerate(arguments, 1)}
        return session.recall_statement(statement, prepared.text, literals)
    except LakeError:
        return None


def _literal(argument: Argument, session: Session) -> bound.Literal:
    """The constant an argument stands for.

    22P02  a text that is no value of its type
    """
    literal = literal_of(argument.value)
    if argument.type is None:
        return literal
    settings = session.statement_settings()
    made = cast(literal, argument.type, time_zone=settings.time_zone)
    if isinstance(made, bound.Literal):
        return made
    return fold(made, session.database.context(settings, Cancellation()))
