"""Numbers of sequences: blocks taken in commits, handed out from memory. Spec: SQL, Sequences and identity.

    nextval('s') ── block 65..128 in memory ── 65           the commit that took it says: the next block starts at 129

A block is committed before its first number is given, so that no number is given twice, whatever crashes; what is left of
a block when the process dies is a gap. A process that ends in order gives the rest back. Blocks start at CACHE or
BLOCK_MIN numbers and double while they are used up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from lake.db.names import named_parts, qualified
from lake.errors import (
    LakeError,
    NumericOutOfRange,
    ObjectNotInState,
    SequenceLimitExceeded,
    UndefinedTable,
    WrongObjectType,
)
from lake.roles import Role
from lake.storage.catalog import objects
from lake.storage.catalog.changes import AdvanceSequence
from lake.storage.catalog.deletes import Numbers
from lake.storage.catalog.state import State, display_name
from lake.storage.commits.sequencer import Flush

if TYPE_CHECKING:
    from lake.db.database import Database
    from lake.db.session import Session

BLOCK_MIN: Final = 32
BLOCK_MAX: Final = 4_096


class _Block(Struct):
    """Numbers of a sequence that are this process's to give: ``count`` from ``next``; ``size`` is that of the next block."""

    step: int
    next: int = 0
    count: int = 0
    size: int = BLOCK_MIN


class Sequences:
    """The numbers that a database hands out; each sequence behind a lock of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._blocks: dict[int, _Block] = {}
        self._locks: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()

    def take(self, id: int, count: int) -> Numbers:
        """The next ``count`` numbers.

        2200H  the sequence ends before      42704  it was dropped
        """
        parts: list[Numbers] = []
        with self._lock_of(id):
            while count:
                block = self._blocks.get(id)
                if block is None or not block.count:
                    block = self._refill(id, block, count)
                taken = min(count, block.count)
                parts.append(_run(block.next, block.step, taken))
                block.next += block.step * taken
                block.count -= taken
                count -= taken
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def set(self, sequence: objects.Sequence, value: int, *, called: bool) -> None:
        """Makes ``value`` the last number, or with ``called`` False the next one.

        22003  it is not between MINVALUE and MAXVALUE
        """
        if not sequence.low <= value <= sequence.high:
            raise NumericOutOfRange(
                f'setval: value {value} is out of bounds for sequence "{sequence.name}" ({sequence.low}..{sequence.high})'
            )
        with self._lock_of(sequence.id):

            def prepare(state: State) -> list[AdvanceSequence]:
                found = _sequence(state, sequence.id)
                next, ended = after(found, value) if called else (value, False)
                return [AdvanceSequence(found.id, next, called, ended)]

            self._database.commit(Flush(prepare=prepare))
            self._blocks.pop(sequence.id, None)

    def last(self, sequence: objects.Sequence) -> int | None:
        """The last number that was given, as far as this process knows; None where none was."""
        block = self._blocks.get(sequence.id)
        if block is not None and block.count:
            return block.next - block.step
        if not sequence.called:
            return None
        last = sequence.next if sequence.ended else sequence.next - sequence.increment
        return last if sequence.low <= last <= sequence.high else _end(sequence)

    @contextmanager
    def held(self, ids: Sequence[int]) -> Iterator[None]:
        """While sequences are altered: what is left of their blocks is given back before, and nobody takes numbers."""
        locks = [self._lock_of(id) for id in sorted(set(ids))]
        for lock in locks:
            lock.acquire()
        try:
            self._give_back(ids)
            yield
        finally:
            for lock in locks:
                lock.release()

    def close(self) -> None:
        """Gives back what is left of all blocks; what cannot be is a gap."""
        ids = list(self._blocks)
        try:
            with self.held(ids):
                pass
        except LakeError:
            return

    def _refill(self, id: int, before: _Block | None, count: int) -> _Block:
        made: list[_Block] = []

        def prepare(state: State) -> list[AdvanceSequence]:
            found = _sequence(state, id)
            size = max(found.cache, count, before.size if before is not None else BLOCK_MIN)
            start, given, next, ended = block_of(found, size)
            made[:] = [_Block(found.increment, start, given, min(2 * size, BLOCK_MAX))]
            return [AdvanceSequence(id, next, True, ended)]

        self._database.commit(Flush(prepare=prepare))
        self._blocks[id] = made[0]
        return made[0]

    def _give_back(self, ids: Sequence[int]) -> None:
        """Commits that the numbers left of blocks are the next ones."""
        left = {id: block for id in ids if (block := self._blocks.pop(id, None)) is not None and block.count}

        def prepare(state: State) -> list[AdvanceSequence]:
            changes = []
            for id, block in left.items():
                if id in state.objects:
                    changes.append(AdvanceSequence(id, block.next))
            return changes

        if left:
            self._database.commit(Flush(prepare=prepare))

    def _lock_of(self, id: int) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(id, threading.Lock())


def block_of(sequence: objects.Sequence, size: int) -> tuple[int, int, int, bool]:
    """The next block of at most ``size`` numbers: its first, how many they are, the number after it, whether that is the end.

    2200H  the sequence has ended
    """
    if sequence.ended and not sequence.cycle:
        word = "maximum" if sequence.increment > 0 else "minimum"
        raise SequenceLimitExceeded(f'nextval: reached {word} value of sequence "{sequence.name}" ({_end(sequence)})')
    start = _wrapped(sequence) if sequence.ended else sequence.next
    count = min(size, (_end(sequence) - start) // sequence.increment + 1)
    next, ended = after(sequence, start + sequence.increment * (count - 1))
    return start, count, next, ended


def after(sequence: objects.Sequence, last: int) -> tuple[int, bool]:
    """The number after ``last``, and whether there is none; then the number is ``last``."""
    next = last + sequence.increment
    if sequence.low <= next <= sequence.high:
        return next, False
    return (_wrapped(sequence), False) if sequence.cycle else (last, True)


def _wrapped(sequence: objects.Sequence) -> int:
    return sequence.low if sequence.increment > 0 else sequence.high


def _end(sequence: objects.Sequence) -> int:
    return sequence.high if sequence.increment > 0 else sequence.low


def _sequence(state: State, id: int) -> objects.Sequence:
    found = state.objects.get(id)
    if not isinstance(found, objects.Sequence):
        raise UndefinedTable("the sequence was dropped")
    return found


def _run(start: int, step: int, count: int) -> Numbers:
    """``count`` numbers; the one after the last may be out of range."""
    return np.arange(count, dtype=np.int64) * np.int64(step) + np.int64(start)


# --- for the functions of SQL ----------------------------------------------------------------------------------------


class SessionSequences:
    """What nextval, currval, setval and lastval ask; a session remembers what it was given."""

    def __init__(self, database: Database, session: Session | None) -> None:
        self._database = database
        self._session = session

    def next(self, name: str, count: int) -> Numbers:
        """The next numbers of a sequence."""
        found = self._writable(name)
        taken = self._database.sequences.take(found.id, count)
        if self._session is not None and len(taken):
            self._session.numbers[found.id] = int(taken[-1])
            self._session.last_sequence = found.id
        return taken

    def current(self, name: str) -> int:
        """The number that nextval gave last in this session.

        55000  it gave none yet
        """
        found = self._find(name)
        value = None if self._session is None else self._session.numbers.get(found.id)
        if value is None:
            raise ObjectNotInState(f'currval of sequence "{found.name}" is not yet defined in this session')
        return value

    def last(self) -> int:
        """The number that nextval gave last in this session, of whichever sequence.

        55000  it gave none yet
        """
        session = self._session
        if session is None or session.last_sequence not in self._database.lake.state.objects:
            raise ObjectNotInState("lastval is not yet defined in this session")
        return session.numbers[session.last_sequence]

    def set(self, name: str, value: int, called: bool) -> int:
        """Sets a sequence; the value."""
        found = self._writable(name)
        self._database.sequences.set(found, value, called=called)
        if called and self._session is not None:
            self._session.numbers[found.id] = value
            self._session.last_sequence = found.id
        return value

    def last_of(self, oid_name: str) -> int | None:
        """The last number of a sequence, None where there is none."""
        return self._database.sequences.last(self._find(oid_name))

    def _writable(self, name: str) -> objects.Sequence:
        if self._session is not None:
            self._session.principal.require(Role.WRITE)
        return self._find(name)

    def _find(self, name: str) -> objects.Sequence:
        return find_sequence(self._database.lake.state, named_parts(name), self._database.name)


def find_sequence(state: State, parts: tuple[str, ...], database: str) -> objects.Sequence:
    """The sequence of a name.

    42P01  there is none      42809  it is something else
    """
    schema, name = qualified(parts, database)
    found = state.sequence(name, schema)
    shown = display_name(schema, name)
    if found is None and (schema, name) in state.names:
        raise WrongObjectType(f'"{shown}" is not a sequence')
    if found is None:
        raise UndefinedTable(f'relation "{shown}" does not exist')
    return found
