"""Who leads, as objects below ``cluster/``: elections, heartbeats, hand-overs.

    cluster/term/0000000003    {"term":3,"address":"127.0.0.1:8080","writer":"..","at":..}    put-if-absent
    cluster/alive/0000000003   the same, rewritten by the leader every HEARTBEAT_SECS
    cluster/left/0000000003    the leader stepped down

A term only says who believes to lead. What keeps two leaders from both writing is the commit log (``commits.log``).
An empty address is a leader that takes no requests: a program that writes for a moment.
"""

from __future__ import annotations

from typing import Final

import msgspec

from lake.clock import Clock
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectMissing, ObjectStore, put_once

TERM_FOLDER: Final = "cluster/term/"
ALIVE_FOLDER: Final = "cluster/alive/"
LEFT_FOLDER: Final = "cluster/left/"
HEARTBEAT_SECS: Final = 10.0
ALIVE_SECS: Final = 30.0  # a mark older than that is of a leader that died
KEPT_TERMS: Final = 16
CLAIMS_MAX: Final = 64  # tries against other claimants


class Term(msgspec.Struct, frozen=True):
    """An election, or a heartbeat: ``at`` is microseconds since the epoch."""

    term: int
    address: str
    writer: str
    at: int


def claim(store: ObjectStore, clock: Clock, writer: str, address: str = "") -> Term:
    """Claims the term after the newest."""
    term = newest_term(store)
    for _ in range(CLAIMS_MAX):
        term += 1
        mark = Term(term, address, writer, clock.now())
        if put_once(store, _name(TERM_FOLDER, term), msgspec.json.encode(mark)):
            crash_point("term-claimed")
            _remove_old(store, term)
            return mark
    raise AssertionError(f"{CLAIMS_MAX} others claimed a term before this process could")


def newest_term(store: ObjectStore) -> int:
    """The newest election, or 0."""
    return max(_numbers(store, TERM_FOLDER), default=0)


def has_successor(store: ObjectStore, term: int) -> bool:
    """Whether somebody was elected after ``term``."""
    return newest_term(store) > term


def mark_alive(store: ObjectStore, clock: Clock, mark: Term) -> None:
    """The leader's heartbeat."""
    beat = msgspec.structs.replace(mark, at=clock.now())
    store.put(_name(ALIVE_FOLDER, mark.term), msgspec.json.encode(beat))


def mark_left(store: ObjectStore, clock: Clock, mark: Term) -> None:
    """Says that the leader of this term stepped down of its own will."""
    left = msgspec.structs.replace(mark, at=clock.now())
    store.put_if_absent(_name(LEFT_FOLDER, mark.term), msgspec.json.encode(left))
    store.delete(_name(ALIVE_FOLDER, mark.term))


def find_address(store: ObjectStore, clock: Clock) -> str | None:
    """The address of the leader that serves the lake, or None: its mark is at most ALIVE_SECS old, and it has not left."""
    term = max(_numbers(store, ALIVE_FOLDER), default=0)
    if term == 0 or store.head(_name(LEFT_FOLDER, term)) is not None:
        return None
    try:
        mark = msgspec.json.decode(store.get(_name(ALIVE_FOLDER, term)), type=Term)
    except (ObjectMissing, msgspec.DecodeError):
        return None
    if clock.now() - mark.at > ALIVE_SECS * 1e6:
        return None
    return mark.address or None


def _remove_old(store: ObjectStore, term: int) -> None:
    for folder in (TERM_FOLDER, ALIVE_FOLDER, LEFT_FOLDER):
        for number in _numbers(store, folder):
            if number <= term - KEPT_TERMS:
                store.delete(_name(folder, number))


def _numbers(store: ObjectStore, folder: str) -> list[int]:
    names = (info.name.removeprefix(folder) for info in store.list(folder))
    return [int(name) for name in names if name.isdigit()]


def _name(folder: str, term: int) -> str:
    return f"{folder}{term:010d}"
