"""The whole state at a commit as one object; opening a lake from the newest; removing commits that one covers.

A checkpoint is the fold of all commits up to its number, rows of the tail too, so opening a lake takes two listings, one
checkpoint and the commits after it, whatever the lake's age. The newest two are kept: should the newest be damaged, the
other and the commits after it give the same state.

**Commits that may not be removed.** A leader that slept through its successor's election wakes up and writes the number
that follows its own last commit. That number is the successor's first commit, an election; if it were removed with the
others, the write would succeed and the fence would have a hole. So elections stay for FENCE_SECS.
"""

from __future__ import annotations

from typing import Final

import msgspec

from lake.errors import DataCorrupted
from lake.storage.catalog.access import User
from lake.storage.catalog.deletes import Positions, TableDeletes, decode_numbers, encode_numbers
from lake.storage.catalog.fold import apply
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import Garbage, Progress, Schema, Table, View
from lake.storage.catalog.objects import EnumType, Object
from lake.storage.catalog.state import State
from lake.storage.commits.commit import COMMIT_FOLDER
from lake.storage.commits.formats import frame, unframe
from lake.storage.commits.log import Log
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectMissing, ObjectStore
from lake.storage.tail.segment import encode_rows
from lake.storage.tail.tail import TailPart, consolidated, tail_of

MAGIC: Final = b"LAKECHK\n"
CHECKPOINT_FOLDER: Final = "catalog/checkpoint/"
KEPT: Final = 2
FENCE_SECS: Final = 7 * 86_400.0  # longer than a machine sleeps with a leader's process in memory
OPEN_TRIES: Final = 5  # a leader may remove what a reader is about to read


class _Part(msgspec.Struct, frozen=True, array_like=True):
    rows: int
    version: int
    version_high: int
    row_id: int
    created: int
    bytes: int
    segment: str | None
    checksum: int


class _Deleted(msgspec.Struct, frozen=True, array_like=True):
    at: bytes
    numbers: bytes


class _Stored(msgspec.Struct, frozen=True):
    number: int
    time: int
    term: int
    format: int
    definitions: int
    next_id: int
    next_row_id: int
    schemas: list[Schema]
    tables: list[Table]
    views: list[View]
    producers: dict[str, Progress]
    garbage: list[Garbage]
    tails: dict[int, list[_Part]]
    times: tuple[tuple[int, int], ...]
    elections: tuple[tuple[int, int], ...]
    users: list[User] = []
    signing_key: str = ""
    deletes: dict[int, dict[str, _Deleted]] = {}  # by table id and path, which is empty for the tail
    past: list[Table] = []
    objects: list[Object] = []
    unnamed: list[int] = []  # of them, those of dropped tables


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(_Stored)


def checkpoint_name(number: int) -> str:
    """The object of the checkpoint at commit ``number``."""
    return f"{CHECKPOINT_FOLDER}{number:020d}"


def encode_state(state: State, store: ObjectStore | None) -> bytes:
    """The bytes of a checkpoint."""
    body: list[bytes] = []
    tails: dict[int, list[_Part]] = {}
    for id, tail in state.tails.items():
        tails[id] = [_stored_part(part, body) for part in consolidated(tail, store)]
    stored = _Stored(
        number=state.number,
        time=state.time,
        term=state.term,
        format=state.format,
        definitions=state.definitions,
        next_id=state.next_id,
        next_row_id=state.next_row_id,
        schemas=list(state.schemas.values()),
        tables=list(state.tables.values()),
        views=list(state.views.values()),
        producers=dict(state.producers),
        garbage=list(state.garbage.values()),
        tails=tails,
        times=state.times,
        elections=state.elections,
        users=list(state.users.values()),
        signing_key=state.signing_key,
        deletes={id: _stored_deletes(deletes) for id, deletes in state.deletes.items()},
        past=list(state.past.values()),
        objects=list(state.objects.values()),
        unnamed=sorted(set(state.objects).difference(state.names.values(), state.type_names.values())),
    )
    return frame(MAGIC, _ENCODER.encode(stored), body)


def decode_state(data: bytes, name: str) -> State:
    """The state of ``encode_state``.

    XX001  the bytes are damaged; the message names the object
    """
    head, body = unframe(MAGIC, data, name)
    try:
        stored = _DECODER.decode(head)
    except msgspec.DecodeError as error:
        raise DataCorrupted(f"{name} is damaged: {error}") from error
    start = 0
    tails = {}
    for id, parts in stored.tails.items():
        loaded = []
        for part in parts:
            loaded.append(_loaded_part(part, body[start : start + part.bytes]))
            start += part.bytes
        tails[id] = tail_of(loaded)
    if start != len(body):
        raise DataCorrupted(f"{name} is damaged: its rows are cut")
    there = [item for item in stored.objects if item.id not in stored.unnamed]
    types = [item for item in there if isinstance(item, EnumType)]
    named: list[Table | View | Object] = [*stored.tables, *stored.views]
    named += [item for item in there if not isinstance(item, EnumType)]
    return State(
        number=stored.number,
        time=stored.time,
        term=stored.term,
        format=stored.format,
        definitions=stored.definitions,
        next_id=stored.next_id,
        next_row_id=stored.next_row_id,
        tail_rows=sum(tail.rows for tail in tails.values() if tail),
        schemas=PersistentMap((schema.name, schema) for schema in stored.schemas),
        tables=PersistentMap((table.id, table) for table in stored.tables),
        past=PersistentMap((table.id, table) for table in stored.past),
        views=PersistentMap((view.id, view) for view in stored.views),
        names=PersistentMap(((item.schema, item.name), item.id) for item in named),
        objects=PersistentMap((item.id, item) for item in stored.objects),
        type_names=PersistentMap(((item.schema, item.name), item.id) for item in types),
        producers=PersistentMap(stored.producers),
        tails=PersistentMap((id, tail) for id, tail in tails.items() if tail),
        deletes=PersistentMap((id, _loaded_deletes(files)) for id, files in stored.deletes.items()),
        garbage=PersistentMap((item.path, item) for item in stored.garbage),
        times=stored.times,
        elections=stored.elections,
        users=PersistentMap((user.name, user) for user in stored.users),
        signing_key=stored.signing_key,
    )


def write_checkpoint(store: ObjectStore, state: State) -> int:
    """Writes the checkpoint of ``state`` unless it is there, and removes all but the newest two; answers its bytes."""
    data = encode_state(state, store)
    store.put_if_absent(checkpoint_name(state.number), data)
    crash_point("checkpoint-written")
    for number in checkpoint_numbers(store)[:-KEPT]:
        store.delete(checkpoint_name(number))
    return len(data)


def checkpoint_numbers(store: ObjectStore) -> list[int]:
    """Numbers of the checkpoints that are there, ascending."""
    names = (info.name.removeprefix(CHECKPOINT_FOLDER) for info in store.list(CHECKPOINT_FOLDER))
    return sorted(int(name) for name in names if name.isdigit())


def open_state(store: ObjectStore, log: Log) -> tuple[State, int]:
    """The newest state, from a checkpoint and the commits after it, and how many those were.

    XX001  commits are missing, or both checkpoints are damaged
    """
    for attempt in range(OPEN_TRIES):
        try:
            return _open_once(store, log)
        except DataCorrupted:
            # A leader at work removes old commits and checkpoints; what it leaves is found by looking again.
            if attempt == OPEN_TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _open_once(store: ObjectStore, log: Log) -> tuple[State, int]:
    state = newest_checkpoint(store)
    numbers = log.numbers(state.number)
    if numbers and numbers != list(range(state.number + 1, numbers[-1] + 1)):
        raise DataCorrupted(f"commits after {state.number} are missing from {store.address}")
    for commit in log.read(numbers):
        state = apply(state, commit)
    return state, len(numbers)


def newest_checkpoint(store: ObjectStore) -> State:
    """The state of the newest checkpoint that is whole, or the empty one where there is none.

    XX001  there are checkpoints and all are damaged
    """
    damage: DataCorrupted | None = None
    for number in reversed(checkpoint_numbers(store)):
        name = checkpoint_name(number)
        try:
            return decode_state(store.get(name), name)
        except ObjectMissing:
            damage = DataCorrupted(f"object {name} is missing from {store.address}")
        except DataCorrupted as error:
            damage = error
    if damage is not None:
        raise damage
    return State()


def remove_commits(store: ObjectStore, log: Log, state: State, *, now: int, keep_secs: float) -> int:
    """Removes commits that both kept checkpoints cover and that are older than ``keep_secs``; answers how many."""
    checkpoints = checkpoint_numbers(store)
    if len(checkpoints) < KEPT:
        return 0
    fences = {number for number, time in state.elections if now - time < FENCE_SECS * 1e6}
    before = now - int(keep_secs * 1e6)
    gone = [
        int(info.name.removeprefix(COMMIT_FOLDER))
        for info in store.list(COMMIT_FOLDER)
        if info.modified < before and info.name.removeprefix(COMMIT_FOLDER).isdigit()
    ]
    gone = [number for number in gone if number <= checkpoints[-KEPT] and number not in fences]
    log.remove(gone)
    return len(gone)


def _stored_deletes(deletes: TableDeletes) -> dict[str, _Deleted]:
    named = {"": deletes.tail, **deletes.files}
    return {
        path: _Deleted(encode_numbers(found.at), encode_numbers(found.numbers))
        for path, found in named.items()
        if found.rows
    }


def _loaded_deletes(files: dict[str, _Deleted]) -> TableDeletes:
    deletes = TableDeletes()
    for path, stored in files.items():
        found = Positions(decode_numbers(stored.at), decode_numbers(stored.numbers))
        deletes = deletes.with_file(path, found) if path else deletes.with_tail(found)
    return deletes


def _stored_part(part: TailPart, body: list[bytes]) -> _Part:
    data = b"" if part.segment else encode_rows(part.batch(None))
    body.append(data)
    return _Part(
        part.rows, part.version, part.version_high, part.row_id, part.created, len(data), part.segment, part.checksum
    )


def _loaded_part(part: _Part, data: memoryview) -> TailPart:
    return TailPart(
        rows=part.rows,
        version=part.version,
        version_high=part.version_high,
        row_id=part.row_id,
        created=part.created,
        encoded=None if part.segment else data,
        segment=part.segment,
        checksum=part.checksum,
    )
