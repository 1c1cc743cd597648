"""Statements that the door runs itself: blocks, cursors, LISTEN and what else belongs to a connection.

Every command answers a Reply: its tag, and rows where it has some. COPY is run by ``copy_run``, because it takes the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lake.db.prepared import Argument, Prepared, prepare
from lake.db.result import Result
from lake.db.settings import change_setting
from lake.doors.postgres.portals import Portal, Running
from lake.doors.postgres.session import BLOCK, IDLE, Client, Command
from lake.errors import (
    DuplicateCursor,
    FeatureNotSupported,
    InvalidPreparedStatement,
    SyntaxFailure,
)
from lake.exec.context import Cancellation
from lake.late import late_pattern
from lake.storage.catalog.state import State
from lake.types import TEXT

_NAME: Final = r'(?P<name>"(?:[^"]|"")+"|\w+)'
_DECLARE: Final = late_pattern(
    rf"DECLARE\s+{_NAME}(?P<options>(?:\s+(?:BINARY|ASENSITIVE|INSENSITIVE|NO\s+SCROLL|SCROLL))*)\s+CURSOR"
    r"(?:\s+(?P<hold>WITH|WITHOUT)\s+HOLD)?\s+FOR\s+(?P<query>.*)$",
    re.I | re.S,
)
_FETCH: Final = late_pattern(
    rf"(?:FETCH|MOVE)\s+(?P<how>(?:NEXT|FORWARD(?:\s+(?:ALL|-?\d+))?|ALL|-?\d+|PRIOR|FIRST|LAST|BACKWARD(?:\s+(?:ALL|\d+))?"
    rf"|ABSOLUTE\s+-?\d+|RELATIVE\s+-?\d+)\s+)?(?:(?:FROM|IN)\s+)?{_NAME}\s*$",
    re.I,
)
ALL: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command answers: its tag, notices, and rows of a running statement, ``limit`` of them at most."""

    tag: str
    notices: tuple[tuple[str, str], ...] = ()
    running: Running | None = None
    limit: int = ALL
    is_move: bool = False
    closing: tuple[Portal, ...] = ()


AT_ONCE: Final = ("BEGIN", "START")  # neither read nor wait


def run_command(
    command: Command, client: Client, arguments: Sequence[Argument], formats: Sequence[int], cancellation: Cancellation
) -> Reply:
    """Runs a command; on a worker thread, as DECLARE starts its query, but for those of ``AT_ONCE``."""
    return COMMANDS[command.word](_Call(command.piece.bare.rstrip(";"), client, arguments, formats, cancellation))


@dataclass(frozen=True, slots=True)
class _Call:
    text: str
    client: Client
    arguments: Sequence[Argument]
    formats: Sequence[int]
    cancellation: Cancellation

    @property
    def words(self) -> list[str]:
        """The words in capitals."""
        return self.text.upper().split()


# --- transactions ----------------------------------------------------------------------------------------------------


def _begin(call: _Call) -> Reply:
    """BEGIN and START TRANSACTION; isolation levels and READ ONLY are taken, since every read sees one commit."""
    tag = "START TRANSACTION" if call.words[0] == "START" else "BEGIN"
    if not call.client.begin():
        return Reply(tag, (("25001", "there is already a transaction in progress"),))
    return Reply(tag)


def _end(call: _Call) -> Reply:
    """COMMIT, END, ROLLBACK, ABORT."""
    words = call.words
    if "PREPARED" in words:
        raise FeatureNotSupported(f"{' '.join(words[:2])} is not supported: there is no two-phase commit")
    if "TO" in words:
        call.client.session.savepoint("rollback to", _plain(call.text.split()[-1]))
        return Reply("ROLLBACK")
    if call.client.status == IDLE:
        tag = "ROLLBACK" if words[0] in ("ROLLBACK", "ABORT") else "COMMIT"
        return Reply(tag, (("25P01", "there is no transaction in progress"),))
    closing = tuple(call.client.drop_portals(keep_held=True))
    for portal in closing:
        if portal.running is not None:
            portal.running.close()
    tag = call.client.end(words[0])
    stays = (("01000", "definitions of this transaction were committed at once and stay"),)
    return Reply(tag, stays if call.client.defined and tag == "ROLLBACK" else ())


def _savepoint(call: _Call) -> Reply:
    """SAVEPOINT and RELEASE.

    25P01  outside a block
    """
    call.client.session.savepoint(call.words[0].lower(), _plain(call.text.split()[-1]))
    return Reply(call.words[0])


def _set(call: _Call) -> Reply:
    """SET TRANSACTION and its like: what they ask for holds anyway, or is refused by name."""
    if "AUTHORIZATION" in call.words[:3]:
        raise FeatureNotSupported("SET SESSION AUTHORIZATION is not supported")
    return Reply("SET CONSTRAINTS" if call.words[1] == "CONSTRAINTS" else "SET")


def _show(call: _Call) -> Reply:
    """SHOW TRANSACTION ISOLATION LEVEL."""
    level = call.client.session.settings["transaction_isolation"].value
    result = Result.table("SHOW", [("transaction_isolation", TEXT)], [(level,)])
    return Reply("SHOW", running=Running(result, "UTC", call.cancellation))


# --- cursors ---------------------------------------------------------------------------------------------------------


def _declare(call: _Call) -> Reply:
    """DECLARE c CURSOR FOR query: a portal that FETCH reads forward."""
    found = _DECLARE.match(call.text)
    if found is None:
        raise SyntaxFailure("syntax error in DECLARE CURSOR")
    name, holds = _plain(found["name"]), (found["hold"] or "").upper() == "WITH"
    if name in call.client.portals:
        raise DuplicateCursor(f'cursor "{name}" already exists')
    if not holds and call.client.status != BLOCK:
        raise FeatureNotSupported("DECLARE CURSOR can only be used in transaction blocks, or WITH HOLD")
    query = prepare(found["query"])
    if not query.is_query:
        raise SyntaxFailure("DECLARE CURSOR takes a query")
    running = Running.start(query, call.client.session, call.arguments, call.cancellation)
    formats = (1,) if "BINARY" in found["options"].upper() else ()
    call.client.portals[name] = Portal(query, tuple(call.arguments), formats, running, holds)
    return Reply("DECLARE CURSOR")


def fetched_portal(command: Command, client: Client) -> Portal | None:
    """The cursor that a FETCH reads, for describing it."""
    found = _FETCH.match(command.piece.bare.rstrip(";"))
    return client.portal(_plain(found["name"])) if found is not None and command.word == "FETCH" else None


def _fetch(call: _Call) -> Reply:
    """FETCH and MOVE, forward only."""
    found = _FETCH.match(call.text)
    if found is None:
        raise SyntaxFailure("syntax error in FETCH")
    portal = call.client.portal(_plain(found["name"]))
    if portal.running is None:
        portal.running = Running.start(_query_of(portal), call.client.session, portal.arguments, call.cancellation)
    is_move = call.words[0] == "MOVE"
    portal.running.sent = 0
    return Reply(call.words[0], running=portal.running, limit=_count((found["how"] or "NEXT").upper()), is_move=is_move)


def _query_of(portal: Portal) -> Prepared:
    if not isinstance(portal.source, Prepared):
        raise FeatureNotSupported("FETCH from a portal that is no query is not supported")
    return portal.source


def _count(how: str) -> int:
    """How many rows a FETCH asks for.

    0A000  anything but forward
    """
    words = [word for word in how.split() if word not in ("FORWARD", "NEXT")]
    if how.startswith("RELATIVE"):
        words = words[1:]
    if not words:
        return 1
    if words == ["ALL"]:
        return ALL
    if len(words) == 1 and words[0].isdigit():
        return int(words[0])
    raise FeatureNotSupported(f"FETCH {' '.join(how.split())} is not supported: cursors only go forward")


def _close(call: _Call) -> Reply:
    """CLOSE c, CLOSE ALL."""
    rest = call.text.split(None, 1)[1:] or [""]
    if rest[0].strip().upper() == "ALL":
        gone = call.client.drop_portals(keep_held=False)
        tag = "CLOSE CURSOR ALL"
    else:
        name = _plain(rest[0].strip())
        gone, tag = [call.client.portal(name)], "CLOSE CURSOR"
        del call.client.portals[name]
    for portal in gone:
        if portal.running is not None:
            portal.running.close()
    return Reply(tag)


def _plain(name: str) -> str:
    """A name as it is kept: lower case, or what quotes enclose."""
    return name[1:-1].replace('""', '"') if name[:1] == '"' else name.lower()


# --- the connection --------------------------------------------------------------------------------------------------


def _deallocate(call: _Call) -> Reply:
    """DEALLOCATE name or ALL: statements of the wire, and those of PREPARE."""
    words = [word for word in call.text.split()[1:] if word.upper() != "PREPARE"]
    if [word.upper() for word in words] == ["ALL"]:
        for name in [name for name in call.client.statements if name]:
            del call.client.statements[name]
        _of_session("DEALLOCATE ALL", call)
        return Reply("DEALLOCATE ALL")
    name = _plain(words[0]) if words else ""
    if call.client.statements.pop(name, None) is None:
        if not _of_session(call.text, call):
            raise InvalidPreparedStatement(f'prepared statement "{name}" does not exist')
    return Reply("DEALLOCATE")


def _of_session(text: str, call: _Call) -> bool:
    """Runs a statement of the session; whether it knows such statements."""
    try:
        Running.start(prepare(text), call.client.session, (), call.cancellation).close()
    except (SyntaxFailure, FeatureNotSupported):
        return False
    return True


def _discard(call: _Call) -> Reply:
    """DISCARD ALL, PLANS, SEQUENCES, TEMP."""
    what = (call.words[1:] or ["ALL"])[0]
    if what == "ALL":
        if call.client.status != IDLE:
            raise FeatureNotSupported("DISCARD ALL cannot run inside a transaction block")
        for portal in call.client.drop_portals(keep_held=False):
            if portal.running is not None:
                portal.running.close()
        for name in [name for name in call.client.statements if name]:
            del call.client.statements[name]
        change_setting(call.client.session.settings, "all", None)
    if what in ("ALL", "TEMP", "TEMPORARY"):
        call.client.session.temporary.reset(State())
    return Reply(f"DISCARD {what}")


def _nothing(call: _Call) -> Reply:
    """UNLISTEN and VACUUM: there is nothing to do."""
    return Reply(call.words[0])


def _refused(call: _Call) -> Reply:
    raise FeatureNotSupported(f"{call.words[0]} is not supported")


COMMANDS: Final[dict[str, Callable[[_Call], Reply]]] = {
    "BEGIN": _begin, "START": _begin, "COMMIT": _end, "END": _end, "ROLLBACK": _end, "ABORT": _end,
    "SAVEPOINT": _savepoint, "RELEASE": _savepoint, "SET": _set, "SHOW": _show, "DECLARE": _declare, "FETCH": _fetch,
    "MOVE": _fetch, "CLOSE": _close, "DEALLOCATE": _deallocate, "DISCARD": _discard, "UNLISTEN": _nothing,
    "VACUUM": _nothing, "LISTEN": _refused, "NOTIFY": _refused, "LOCK": _refused,
}  # fmt: skip
