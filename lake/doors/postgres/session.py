"""What a connection keeps between messages: its session, statements and portals, its transaction, its settings told.

    I   idle, each statement commits by itself        T   in a block        E   in a block that failed

Spec: SQL, Transactions; Doors, Postgres door.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lake.db.describe import Description
from lake.db.prepared import Prepared, prepare
from lake.db.session import Session
from lake.doors.postgres.messages import encode
from lake.doors.postgres.portals import Portal
from lake.doors.postgres.split import Piece, split
from lake.errors import (
    DuplicatePreparedStatement,
    FailedTransaction,
    InvalidCursorName,
    InvalidPreparedStatement,
    SyntaxFailure,
    TooManyRequests,
)

if TYPE_CHECKING:
    from lake.doors.postgres.burst import Burst

IDLE, BLOCK, FAILED = "I", "T", "E"
READY: Final = {status: encode("ReadyForQuery", status) for status in (IDLE, BLOCK, FAILED)}
NAMED_MAX: Final = 10_000  # statements, and portals, of one connection
REPORTED: Final = {
    "server_version": "server_version", "server_encoding": "server_encoding", "client_encoding": "client_encoding",
    "application_name": "application_name", "datestyle": "DateStyle", "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone", "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings", "search_path": "search_path",
}  # fmt: skip
ENDS: Final = ("COMMIT", "END", "ROLLBACK", "ABORT")
# First words of what the door does itself; every other statement is the session's.
DOOR_WORDS: Final = frozenset(
    "BEGIN START COMMIT END ROLLBACK ABORT SAVEPOINT RELEASE DISCARD CLOSE DECLARE FETCH MOVE LISTEN UNLISTEN NOTIFY"
    " DEALLOCATE COPY SET SHOW VACUUM LOCK".split()
)


@dataclass(frozen=True, slots=True)
class Command:
    """A statement that the door runs itself."""

    piece: Piece

    @property
    def word(self) -> str:
        """Its first word."""
        return self.piece.word


@dataclass(slots=True)
class Statement:
    """A prepared statement of the wire: what runs, the types the client declared, and what it was told of them."""

    source: Prepared | Command
    oids: tuple[int, ...] = ()
    inferred: tuple[int, ...] | None = None
    told: Description | None = None
    definitions: int = -1  # of the lake when its columns were told
    is_at_hand: bool = False  # whether its answer was in memory the last time
    burst: Burst | None = None  # the form of the messages that ran it last
    bursts: int = 0  # how many forms there were

    def oid(self, number: int) -> int:
        """The type oid of parameter ``number``, from 1: declared, else told by Describe, else 0."""
        declared = self.oids[number - 1] if number <= len(self.oids) else 0
        if declared or self.inferred is None or number > len(self.inferred):
            return declared
        return self.inferred[number - 1]


@dataclass(slots=True)
class Client:
    """A signed-in client's state."""

    session: Session
    writes: int = 0  # statements of the open block that wrote
    defined: bool = False  # whether the open block made definitions, which stay
    statements: dict[str, Statement] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)  # settings, as the client knows them
    told_of: Mapping[str, str] | None = None  # the settings they were told of

    # --- statements and portals --------------------------------------------------------------------------------------

    def keep_statement(self, name: str, statement: Statement) -> None:
        """Keeps a statement; an unnamed one takes the place of the one before it."""
        if name and name in self.statements:
            raise DuplicatePreparedStatement(f'prepared statement "{name}" already exists')
        if len(self.statements) >= NAMED_MAX:
            raise TooManyRequests(f"a connection keeps at most {NAMED_MAX} statements")
        self.statements[name] = statement

    def statement(self, name: str) -> Statement:
        """The statement of that name."""
        found = self.statements.get(name)
        if found is None:
            shown = f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
            raise InvalidPreparedStatement(shown)
        return found

    def portal(self, name: str) -> Portal:
        """The portal or cursor of that name."""
        found = self.portals.get(name)
        if found is None:
            raise InvalidCursorName(f'{"cursor" if name else "portal"} "{name}" does not exist')
        return found

    def drop_portals(self, *, keep_held: bool) -> list[Portal]:
        """Forgets portals at the end of a transaction, and answers them for closing."""
        gone = {name: portal for name, portal in self.portals.items() if not (keep_held and portal.holds)}
        for name in gone:
            del self.portals[name]
        return list(gone.values())

    @property
    def status(self) -> str:
        """The status byte of ReadyForQuery."""
        open_ = self.session.transaction
        return IDLE if open_ is None else FAILED if open_.failed else BLOCK

    # --- transactions ------------------------------------------------------------------------------------------------

    def check_may_run(self, source: Prepared | Command) -> None:
        """25P02 in a failed block, of anything but its end."""
        if self.status == FAILED and not (isinstance(source, Command) and source.word in ENDS):
            raise FailedTransaction(
                "current transaction is aborted, commands ignored until end of transaction block"
            )

    def fail(self) -> None:
        """A statement failed: a block around it has failed."""
        if self.session.transaction is not None:
            self.session.transaction.failed = True

    def begin(self) -> bool:
        """Opens a block; False where one is open."""
        if not self.session.begin():
            return False
        self.writes, self.defined = 0, False
        return True

    def end(self, word: str) -> str:
        """Ends the block; the tag that tells how: COMMIT of a failed one rolls back.

        40001  another commit changed a row that this transaction changes
        """
        if word in ("ROLLBACK", "ABORT"):
            self.session.rollback()
            return "ROLLBACK"
        return "COMMIT" if self.session.commit() else "ROLLBACK"


def parse_script(text: str, dialect: str) -> list[tuple[Piece, Prepared | Command]]:
    """The statements of a script, all parsed before any runs.

    42601  one of them is no statement; the position counts from the script's start
    """
    return [(piece, parse_piece(piece, dialect)) for piece in split(text)]


def parse_one(text: str, dialect: str) -> Prepared | Command:
    """The statement of a Parse message.

    42601  several statements
    """
    pieces = split(text)
    if not pieces:
        return prepare("")
    if len(pieces) > 1:
        raise SyntaxFailure("cannot insert multiple commands into a prepared statement")
    return parse_piece(pieces[0], dialect)


def parse_piece(piece: Piece, dialect: str) -> Prepared | Command:
    """One statement, the door's or the session's."""
    if piece.word in DOOR_WORDS and is_of_door(piece):
        return Command(piece)
    try:
        return prepare(piece.text, dialect)
    except SyntaxFailure as error:
        if error.position is not None:
            error.position += piece.start
        raise


def is_of_door(piece: Piece) -> bool:
    """Whether a statement that starts with one of DOOR_WORDS is the door's."""
    words = piece.bare.upper().replace("(", " ( ").split()
    match piece.word:
        case "COPY":
            return any(word in ("STDIN", "STDOUT") for word in words)
        case "SET":
            following = words[1:4]
            return following[:1] in (["TRANSACTION"], ["CONSTRAINTS"]) or following[:2] in (
                ["SESSION", "CHARACTERISTICS"], ["LOCAL", "TRANSACTION"], ["SESSION", "AUTHORIZATION"],
            )  # fmt: skip
        case "SHOW":
            return words[1:3] == ["TRANSACTION", "ISOLATION"]
        case "START":
            return words[1:2] == ["TRANSACTION"]
        case _:
            return True
