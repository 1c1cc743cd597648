"""The bytes of a commit, written and checked here only. ``formats`` draws the frame.

    header   {"number":42,"time":..,"term":3,"writer":"5f..","changes":[{"type":"append",..}],"pieces":[812]}
    body     the rows of AppendRows, each piece an Arrow IPC stream
"""

from __future__ import annotations

from typing import Final

import msgspec
import pyarrow as pa

from lake.errors import DataCorrupted, InvalidText
from lake.storage.catalog.changes import Change, Commit, Rows
from lake.storage.commits.formats import frame, unframe
from lake.storage.tail.segment import encode_rows

MAGIC: Final = b"LAKECMT\n"
COMMIT_FOLDER: Final = "catalog/commit/"


class _Header(msgspec.Struct, frozen=True):
    number: int
    time: int
    term: int
    writer: str
    changes: tuple[Change, ...]
    pieces: tuple[int, ...]


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(_Header)


def commit_name(number: int) -> str:
    """The object of commit ``number``."""
    return f"{COMMIT_FOLDER}{number:020d}"


def encode(commit: Commit) -> bytes:
    """The object's bytes.

    22P02  a text of the commit is not Unicode
    """
    pieces = [_piece(rows) for rows in commit.rows]
    header = _Header(
        commit.number, commit.time, commit.term, commit.writer, commit.changes, tuple(len(piece) for piece in pieces)
    )
    try:
        return frame(MAGIC, _ENCODER.encode(header), pieces)
    except UnicodeEncodeError as error:
        raise InvalidText(f"a name or text is not valid Unicode: {error.reason}") from error


def decode(data: bytes, name: str) -> Commit:
    """The commit; its rows stay encoded until somebody reads them.

    XX001  the bytes are damaged; the message names the object
    """
    head, body = unframe(MAGIC, data, name)
    try:
        header = _DECODER.decode(head)
    except msgspec.DecodeError as error:
        raise DataCorrupted(f"{name} is damaged: {error}") from error
    if sum(header.pieces) != len(body):
        raise DataCorrupted(f"{name} is damaged: its rows are cut")
    rows: list[memoryview] = []
    start = 0
    for length in header.pieces:
        rows.append(body[start : start + length])
        start += length
    return Commit(header.number, header.time, header.term, header.writer, header.changes, tuple(rows))


def _piece(rows: Rows) -> bytes:
    return encode_rows(rows) if isinstance(rows, pa.RecordBatch) else bytes(rows)
