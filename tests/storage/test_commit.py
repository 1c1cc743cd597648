"""A commit's bytes: what is written is read, and nothing else is."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import DataCorrupted, FeatureNotSupported
from lake.storage.catalog.changes import (
    AddFiles,
    Advance,
    AlterTable,
    AppendRows,
    Change,
    Commit,
    CreateSchema,
    CreateTable,
    CreateView,
    DropTable,
    DropView,
    Elected,
    Forget,
    ReplaceFiles,
    SealFiles,
    Tiered,
    Truncate,
)
from lake.storage.catalog.model import Column, ColumnRange, Constraint, DataFile, Manifest, Schema, Table, View
from lake.storage.catalog.state import State
from lake.storage.commits.checkpoint import decode_state, encode_state
from lake.storage.commits.commit import decode, encode
from lake.storage.commits.formats import FORMAT
from lake.storage.tail.segment import decode_rows
from tests.storage.lakes import rows_of

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
counts = st.integers(0, 1 << 62)
values = st.one_of(st.none(), st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False, allow_infinity=False), names)
ranges = st.dictionaries(st.integers(1, 99), st.builds(ColumnRange, values, values, counts), max_size=3)
files = st.builds(DataFile, names, counts, counts, st.tuples(counts), ranges, st.tuples(names), st.booleans(), counts)
manifests = st.builds(Manifest, names, counts, counts, counts, ranges)
columns = st.builds(Column, counts, names, st.sampled_from(["BIGINT", "DECIMAL(15,2)"]), st.booleans(), st.none() | names)
tables = st.builds(
    Table,
    counts, names, names, st.tuples(columns), names, names,
    st.tuples(st.builds(Constraint, names, names, st.tuples(names))),
    st.dictionaries(names, names, max_size=2), st.none() | names, st.tuples(files), st.tuples(manifests),
    sketches=st.dictionaries(counts, st.binary(max_size=8), max_size=2),
)  # fmt: skip
sketches = st.dictionaries(counts, st.binary(max_size=20), max_size=2)
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(CreateSchema, st.builds(Schema, names)),
    st.builds(CreateTable, tables),
    st.builds(
        AlterTable, counts, names, names, st.tuples(columns), st.just(()), st.just({}), st.none() | names, counts
    ),
    st.builds(DropTable, counts),
    st.builds(CreateView, st.builds(View, counts, names, names, st.tuples(names), names)),
    st.builds(DropView, counts),
    st.builds(AppendRows, counts, counts, counts, st.integers(-1, 5), st.none() | names, counts),
    st.builds(AddFiles, counts, st.tuples(files), sketches),
    st.builds(Tiered, counts, counts, st.tuples(files), sketches),
    st.builds(ReplaceFiles, counts, st.tuples(names), st.tuples(files)),
    st.builds(SealFiles, counts, st.tuples(names), manifests, st.tuples(names)),
    st.builds(Truncate, counts),
    st.builds(Advance, names, counts),
    st.builds(Elected, counts, names),
    st.builds(Forget, st.tuples(names)),
)
batches = st.lists(st.none() | st.integers(-99, 99), min_size=1, max_size=5).map(lambda numbers: rows_of(*numbers))
commits = st.builds(
    Commit, counts, counts, counts, names, st.lists(changes, max_size=6).map(tuple), st.lists(batches, max_size=3).map(tuple)
)


@settings(max_examples=150, deadline=None)
@given(commits)
def test_a_commit_is_read_as_written(commit: Commit) -> None:
    """Header, changes and rows come back equal; encoding what came back gives the same bytes."""
    data = encode(commit)
    found = decode(data, "x")
    assert (found.number, found.time, found.term, found.writer) == (commit.number, commit.time, commit.term, commit.writer)
    assert found.changes == commit.changes
    for piece, batch in zip(found.rows, commit.rows, strict=True):
        assert isinstance(piece, memoryview) and decode_rows(piece, "x").equals(batch)
    assert encode(found) == data


@pytest.mark.parametrize("rows", [1, 400])
def test_every_flipped_byte_is_found(rows: int) -> None:
    """Of a small commit and of a compressed one, with each byte changed in turn, none is taken for a commit."""
    changed = tuple(AppendRows(1, rows, at, inline=0) for at in range(1 if rows == 1 else 60))
    data = encode(Commit(7, 1, 1, "w", changed, (rows_of(*range(rows)),)))
    for at in range(len(data)):
        for flip in (1, 0x80):
            with pytest.raises((DataCorrupted, FeatureNotSupported), match=r"catalog/commit/7|format"):
                decode(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :], "catalog/commit/7")


@settings(max_examples=60, deadline=None)
@given(commits, st.data())
def test_a_cut_commit_is_found(commit: Commit, data: st.DataObject) -> None:
    """A commit cut anywhere, or with bytes after its end, is refused by its name."""
    whole = encode(commit)
    end = data.draw(st.integers(0, len(whole) - 1))
    for torn in (whole[:end], whole + b"x"):
        with pytest.raises(DataCorrupted, match=r"torn\.one"):
            decode(torn, "torn.one")


def test_a_newer_format_is_refused_by_its_number() -> None:
    """A lake that a newer release wrote is refused before anything of it is read."""
    import struct

    import xxhash

    data = bytearray(encode(Commit(1, 1, 1, "w", ())))
    struct.pack_into("<I", data, 8, FORMAT + 1)
    data[-8:] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(data[:-8])))
    with pytest.raises(FeatureNotSupported, match=f"format {FORMAT + 1}"):
        decode(bytes(data), "x")


def test_a_checkpoint_of_nothing_and_a_damaged_one() -> None:
    """The empty state survives a round trip; a flipped byte does not."""
    data = encode_state(State(), None)
    assert decode_state(data, "x").number == 0
    for at in range(len(data)):
        with pytest.raises((DataCorrupted, FeatureNotSupported)):
            decode_state(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :], "x")


def test_rows_keep_their_types() -> None:
    """Nested, temporal and empty columns pass through a commit's body."""
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([[1], None, []], pa.list_(pa.int64())),
            pa.array([1, None, 3], pa.timestamp("us", tz="UTC")),
            pa.array([b"", None, b"\0"], pa.binary()),
            pa.array([None, pa.MonthDayNano([1, 2, 3]), None]),
        ],
        names=["l", "t", "b", "i"],
    )
    found = decode(encode(Commit(1, 1, 1, "w", (), (batch,))), "x")
    assert decode_rows(found.rows[0], "x").equals(batch)  # type: ignore[arg-type]
