"""Every error a client can see: one class for each SQLSTATE.

    LakeError
    ├── SyntaxFailure          42601      ├── NotNullViolation       23502
    ├── UndefinedTable         42P01      ├── UniqueViolation        23505
    ├── UndefinedColumn        42703      ├── CheckViolation         23514
    └── ...                               └── InternalError          XX000

Raise where the fact is known, with the words the user should read; never catch to reword. A door turns an error into
its own protocol with ``sqlstate``, ``message``, ``detail``, ``hint`` and ``position``, and adds nothing.

Source: PostgreSQL documentation, appendix A (error codes). Spec: SQL, Errors.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import ClassVar

ERRORS: dict[str, type[LakeError]] = {}


class LakeError(Exception):
    """What went wrong, in the user's terms.

    position  1-based character in the statement's text, or None
    hint      what to do about it, or a near name
    about     names of what it is about, for programs: ``schema``, ``table``, ``column``, ``constraint``, ``routine``
    """

    sqlstate: ClassVar[str] = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.about = dict(about or {})
        self.is_recorded = False  # in the audit, which takes a refusal once

    def __init_subclass__(cls, *, sqlstate: str) -> None:
        assert sqlstate not in ERRORS, f"{sqlstate} is taken by {ERRORS[sqlstate].__name__}"
        cls.sqlstate = sqlstate
        ERRORS[sqlstate] = cls

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class FeatureNotSupported(LakeError, sqlstate="0A000"):
    """A form that is understood and not built; the message names it."""


class ProtocolViolation(LakeError, sqlstate="08P01"):
    """A request that does not follow its door's protocol."""


class CardinalityViolation(LakeError, sqlstate="21000"):
    """A subquery used as a value answered more than one row."""


class StringTooLong(LakeError, sqlstate="22001"):
    """A text longer than its column allows."""


class NumericOutOfRange(LakeError, sqlstate="22003"):
    """A number that does not fit its type."""


class DatetimeOverflow(LakeError, sqlstate="22008"):
    """A date or time out of its type's range."""


class IntervalFieldOverflow(LakeError, sqlstate="22015"):
    """A part of an interval out of its range."""


class DivisionByZero(LakeError, sqlstate="22012"):
    """Division of an integer or decimal by zero."""


class InvalidParameter(LakeError, sqlstate="22023"):
    """An argument or option out of its domain."""


class InvalidEscape(LakeError, sqlstate="22025"):
    """A LIKE pattern whose escape character escapes nothing."""


class InvalidRegularExpression(LakeError, sqlstate="2201B"):
    """A regular expression that does not compile."""


class InvalidText(LakeError, sqlstate="22P02"):
    """A text that does not cast to its type, or a label an enum does not list; the message names it."""


class InvalidBinary(LakeError, sqlstate="22P03"):
    """Bytes that are no value of their type in the binary format."""


class BadCopyData(LakeError, sqlstate="22P04"):
    """Rows of COPY that do not follow its format."""


class NotNullViolation(LakeError, sqlstate="23502"):
    """NULL in a NOT NULL column."""


class UniqueViolation(LakeError, sqlstate="23505"):
    """A value that a UNIQUE column holds already."""


class CheckViolation(LakeError, sqlstate="23514"):
    """A row for which a CHECK is false."""


class FailedTransaction(LakeError, sqlstate="25P02"):
    """A statement in a transaction that has failed."""


class NoActiveTransaction(LakeError, sqlstate="25P01"):
    """A statement for a block, outside one."""


class InvalidAuthorization(LakeError, sqlstate="28000"):
    """No token or user, or a wrong one."""


class InvalidPassword(LakeError, sqlstate="28P01"):
    """A user that is not known, or a wrong password."""


class DependentObjects(LakeError, sqlstate="2BP01"):
    """An object that others need."""


class InvalidPowerArgument(LakeError, sqlstate="2201F"):
    """A root or a power that no real number answers."""


class SequenceLimitExceeded(LakeError, sqlstate="2200H"):
    """nextval() passed MAXVALUE or MINVALUE of a sequence without CYCLE."""


class GeneratedAlways(LakeError, sqlstate="428C9"):
    """A value given for a column whose values are always generated."""


class UndefinedDatabase(LakeError, sqlstate="3D000"):
    """No database of that name."""


class UndefinedSchema(LakeError, sqlstate="3F000"):
    """No schema of that name."""


class InvalidCursorName(LakeError, sqlstate="34000"):
    """No cursor or portal of that name."""


class InvalidSavepoint(LakeError, sqlstate="3B001"):
    """No savepoint of that name."""


class SerializationFailure(LakeError, sqlstate="40001"):
    """Another writer changed what this one read."""


class InsufficientPrivilege(LakeError, sqlstate="42501"):
    """The caller may not do this."""


class NullNotAllowed(LakeError, sqlstate="22004"):
    """A NULL where there must be a value."""


class InvalidPreparedStatement(LakeError, sqlstate="26000"):
    """No prepared statement of that name."""


class SyntaxFailure(LakeError, sqlstate="42601"):
    """Text that is not a statement."""


class UndefinedColumn(LakeError, sqlstate="42703"):
    """No column of that name; a near name is the hint."""


class AmbiguousColumn(LakeError, sqlstate="42702"):
    """A name that two inputs have."""


class UndefinedObject(LakeError, sqlstate="42704"):
    """No type, setting, parameter or object of that name."""


class DuplicateColumn(LakeError, sqlstate="42701"):
    """A column named twice."""


class DuplicateAlias(LakeError, sqlstate="42712"):
    """A table name or alias used twice in one FROM."""


class DuplicateObject(LakeError, sqlstate="42P07"):
    """A name that is taken."""


class DuplicateCursor(LakeError, sqlstate="42P03"):
    """A cursor or portal name that is taken."""


class AmbiguousFunction(LakeError, sqlstate="42725"):
    """A call that fits several overloads equally."""


class GroupingFailure(LakeError, sqlstate="42803"):
    """A column outside GROUP BY, or an aggregate where none may stand."""


class WindowingFailure(LakeError, sqlstate="42P20"):
    """A window function where none may stand, or a window that is not defined."""


class DatatypeMismatch(LakeError, sqlstate="42804"):
    """Expressions of types that do not go together."""


class IndeterminateType(LakeError, sqlstate="42P18"):
    """A parameter whose type nothing tells."""


class WrongObjectType(LakeError, sqlstate="42809"):
    """An object of another kind than the statement is for."""


class UndefinedFunction(LakeError, sqlstate="42883"):
    """No function or operator of that name takes these types."""


class UndefinedTable(LakeError, sqlstate="42P01"):
    """No table or view of that name; a near name is the hint."""


class DuplicatePreparedStatement(LakeError, sqlstate="42P05"):
    """A prepared statement's name that is taken."""


class UndefinedParameter(LakeError, sqlstate="42P02"):
    """A parameter that was not given."""


class InvalidColumnReference(LakeError, sqlstate="42P10"):
    """ORDER BY or GROUP BY position out of the select list."""


class InvalidTableDefinition(LakeError, sqlstate="42P16"):
    """A table whose definition cannot hold, or a lookup on a table that has no key."""


class InvalidForeignKey(LakeError, sqlstate="42830"):
    """A reference that does not fit what it refers to."""


class InvalidRecursion(LakeError, sqlstate="42P19"):
    """WITH RECURSIVE that does not follow its form."""


class DiskFull(LakeError, sqlstate="53100"):
    """No room left for what the statement must write."""


class OutOfMemory(LakeError, sqlstate="53200"):
    """More memory than the budget, where spilling cannot help."""


class TooManyRequests(LakeError, sqlstate="53300"):
    """A queue at its limit; try again."""


class ProgramLimitExceeded(LakeError, sqlstate="54000"):
    """A statement or body larger than a limit."""


class StatementTooComplex(LakeError, sqlstate="54001"):
    """A statement nested too deep."""


class ObjectNotInState(LakeError, sqlstate="55000"):
    """An object that is not in the state the call needs."""


class QueryCanceled(LakeError, sqlstate="57014"):
    """A statement stopped by its caller or by a time limit."""


class NodeStopping(LakeError, sqlstate="57P01"):
    """The node is draining."""


class NotLeading(LakeError, sqlstate="57P03"):
    """This node is not the leader any longer, or not yet."""


class IoFailure(LakeError, sqlstate="58030"):
    """The object store or the disk failed."""


class UndefinedFile(LakeError, sqlstate="58P01"):
    """No stored file of that path, or no such version of it."""


class DuplicateFile(LakeError, sqlstate="58P02"):
    """A file that is stored already."""


class FileChanged(LakeError, sqlstate="58P03"):
    """A stored file that is at another version than its writer knows."""


class DataCorrupted(LakeError, sqlstate="XX001"):
    """Stored bytes whose checksum does not hold."""


class InternalError(LakeError, sqlstate="XX000"):
    """A mistake of ours; the trace is in the node's log."""


def near_name(name: str, names: Iterable[str]) -> str | None:
    """A hint with the known name nearest to ``name``, where one is near."""
    close = difflib.get_close_matches(name, list(dict.fromkeys(names)), n=1, cutoff=0.6)
    return f'Did you mean "{close[0]}"?' if close else None
