"""Queries of a session that need not be run: a row by its key that is in memory, and answers that still hold.

Nothing here binds, plans or waits, so an event loop may ask.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Final

from lake.db.point import point_read
from lake.db.result import Result
from lake.db.rights.granted import Rights
from lake.sql import ast, bound
from lake.sql.bind.aggregate import NULL_ORDER_SETTING
from lake.storage.catalog.state import State
from lake.storage.tables.read import NotInMemory

if TYPE_CHECKING:
    from lake.db.session import Session

REPEATED_CHARS_MAX: Final = 16_384  # of a statement's text that is worth remembering


def recall_row(
    session: Session, query: ast.Query, text: str, parameters: Mapping[str, bound.Literal], state: State
) -> Result | None:
    """The row of a key that is in memory, where the query asks for nothing else."""
    if session.temporary:
        return None
    database = session.database
    key = (text, session.dialect, state.definitions)
    known = database.repeats.point(key, lambda: point_read(query, state, database.name))
    values = None if known is None else known.values(parameters)
    if known is None or values is None:
        return None
    try:
        found = known.peek(database.lake, state, values)
    except NotInMemory:
        return None
    if session.transaction is not None:
        session.transaction.recalled(known.table, values)
    return found


def repeat_key(
    session: Session, text: str, parameters: Mapping[str, bound.Literal], rights: Rights | None, state: State
) -> Hashable | None:
    """What a query's plan and answer depend on beside its tables; None for a text that changes too often to keep."""
    if len(text) > REPEATED_CHARS_MAX or session.temporary:
        return None
    principal, values = session.principal, session.settings.texts
    return (
        text, principal.key, None if rights is None else rights.stamp,
        tuple(sorted([(name, value.type, repr(value.value)) for name, value in parameters.items()])),
        values["timezone"], session.dialect, principal.user, principal.owner, values.get(NULL_ORDER_SETTING),
        state.definitions,
    )  # fmt: skip


def may_remember(session: Session) -> bool:
    """Whether its queries may be answered by what they answered before."""
    return session.settings.texts.get("lake.result_cache") != "off"


def remembered(
    session: Session, key: Hashable, state: State, stale_ms: int | None, bytes_max: int | None = None
) -> Result | None:
    """The answer kept under a ``repeat_key``, where it holds and has at most ``bytes_max`` bytes."""
    repeats = session.database.repeats
    planned = repeats.plan(key) if may_remember(session) else None
    if planned is None:
        return None
    oldest = None if stale_ms is None else session.database.clock.now() - stale_ms * 1_000
    known = repeats.answer(key, state, oldest)
    if known is None or (bytes_max is not None and known.nbytes > bytes_max):
        return None
    return Result(
        planned.found.names, planned.types, "SELECT", version=known.version, source=known.batches,
        encoded=known.encoded, origins=lambda: planned.origins(state),
    )  # fmt: skip
