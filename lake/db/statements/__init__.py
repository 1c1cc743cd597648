"""What each statement does: one handler for a class of the syntax tree, found in STATEMENTS.

    @statement(ast.Truncate, tag="TRUNCATE TABLE", role=Role.WRITE, audit="write")
    def truncate(stmt: ast.Truncate, run: Run) -> Result: ...

The row also says which role may run it, which class of the audit log it belongs to and its command tag, so a statement
cannot reach a door without any of these. ``Session`` looks handlers up, which imports the module that has them.

Reading order: ``query``, ``dml``, ``table``, ``session``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from lake.late import LateTable
from lake.roles import Role
from lake.sql import ast

if TYPE_CHECKING:
    from lake.db.result import Result
    from lake.db.session import Run

H = TypeVar("H", bound=Callable[..., Any])


class Handler(Struct, frozen=True):
    """A row of STATEMENTS.

    role      the least role that may run the statement; None where the handler decides by what it is given
    audit     class of the audit log: read, write, ddl, misc
    """

    run: Callable[[Any, Run], Result]
    tag: str
    role: Role
    audit: str


MODULES: Final = (
    "query", "dml", "session", "table", "table_alter", "table_or_alter", "table_past", "transaction", "access",
    "dml_change", "enum_type", "external", "grants", "index", "object", "prepared", "sequence",
)  # fmt: skip
STATEMENTS: Final = LateTable[type[ast.Statement], Handler](single=True)
STATEMENTS.fill_from(*(f"{__name__}.{name}" for name in MODULES))


def statement(node: type[ast.Statement], *, tag: str, role: Role, audit: str) -> Callable[[H], H]:
    """Registers the handler of a class of statements."""

    def register(run: H) -> H:
        assert STATEMENTS.registered(node) is None, f"{node.__name__} has a handler"
        STATEMENTS[node] = Handler(run, tag, role, audit)
        return run

    return register
