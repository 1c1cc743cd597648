"""Pages decoded by our own kernels against pyarrow's decoder, and damaged pages."""

from __future__ import annotations

import datetime
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.compiled import KERNELS
from lake.exec.kernels import interpreted
from lake.storage.tables.pages import ROWS_MIN, decode_chunk

ROWS = ROWS_MIN + 777


def column(kind: str, distinct: int, seed: int) -> pa.Array:
    """ROWS values, ``distinct`` different ones."""
    picked = np.random.default_rng(seed).integers(0, distinct, ROWS)
    match kind:
        case "text":
            return pa.array([f"v{number % distinct}é" for number in range(distinct)]).take(pa.array(picked))
        case "decimal":
            words = (picked * 1_000_003 - 5_000_000).astype(np.int64)
            return pa.Array.from_buffers(pa.decimal64(18, 2), ROWS, [None, pa.py_buffer(words)])
        case "small decimal":
            return pa.Array.from_buffers(pa.decimal64(9, 2), ROWS, [None, pa.py_buffer(picked.astype(np.int64))])
        case "date":
            return pa.array(picked.astype(np.int32)).cast(pa.date32())
        case "double":
            return pa.array(picked / 7)
        case "timestamp":
            return pa.array(picked * 1_000_000_007).cast(pa.timestamp("us"))
        case "float":
            return pa.array((picked / 7).astype(np.float32))
        case "short":
            return pa.array(picked.astype(np.int16))
        case "wide":
            return pa.array(picked * 0x123456789ABCDEF - 2**62)
    return pa.array(np.sort(picked) - distinct // 2)


def written(table: pa.Table, **options: object) -> bytes:
    """The table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, store_decimal_as_integer=True, **options)
    return sink.getvalue().to_pybytes()


def decoded(file: bytes, type: pa.DataType) -> pa.Array | None:
    """The first column of the first row group."""
    source = pa.BufferReader(file)
    footer = pq.ParquetFile(source).metadata
    return decode_chunk(source, footer.row_group(0).column(0), footer.schema.column(0).max_definition_level, type)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["text", "decimal", "small decimal", "date", "double", "float", "timestamp", "integer", "short", "wide"]),
    st.sampled_from([1, 2, 3, 17, 256, 4_000]),
    st.sampled_from(["LZ4", "NONE"]),
    st.sampled_from(["plain", "codes", "deltas"]),
    st.sampled_from(["required", "no nulls", "nulls", "all null"]),
    st.sampled_from([None, 5_000]),
)
def test_values_are_those_of_pyarrow(kind, distinct, codec, coding, nulls, page_rows) -> None:
    """Every kind of column that is taken comes out as pyarrow reads it."""
    array = column(kind, distinct, seed=distinct)
    if nulls in ("nulls", "all null"):
        chosen = np.random.default_rng(distinct).random(ROWS) < (0.3 if nulls == "nulls" else 2)
        array = array.take(pa.array(np.arange(ROWS), mask=chosen))
    table = pa.table([array], pa.schema([pa.field("a", array.type, nullable=nulls != "required")]))
    options = {"use_dictionary": coding == "codes" or kind == "text"}
    if coding == "deltas" and kind not in ("text", "double", "float"):
        options["column_encoding"] = {"a": "DELTA_BINARY_PACKED"}
    file = written(table, compression=codec, max_rows_per_page=page_rows, **options)
    found = decoded(file, array.type)
    assert found is not None
    found.validate(full=True)
    assert pa.types.is_dictionary(found.type) == (kind == "text")
    assert (found.dictionary_decode() if kind == "text" else found).equals(array)


def test_what_is_left_to_pyarrow() -> None:
    """Few rows, other codecs, texts that are not all codes."""
    assert decoded(written(pa.table({"a": [1, 2]}), compression="LZ4"), pa.int64()) is None
    assert decoded(written(pa.table({"a": range(ROWS)}), compression="ZSTD"), pa.int64()) is None
    texts = pa.array([str(number) for number in range(ROWS)])
    assert decoded(written(pa.table({"a": texts}), compression="LZ4", use_dictionary=False), pa.string()) is None
    assert decoded(written(pa.table({"a": [True] * ROWS}), compression="LZ4"), pa.bool_()) is None
    days = pa.array([datetime.date(2026, 1, 1)] * ROWS)
    assert decoded(written(pa.table({"a": days}), compression="LZ4", data_page_version="2.0"), pa.date32()) is None


@pytest.mark.parametrize("kind", ["text", "integer", "deltas"])
def test_damage_is_no_crash(kind: str) -> None:
    """A page with any byte changed is decoded to something, refused, or an error of Arrow's."""
    array = column(kind, 300, 1)
    encoding = {"a": "DELTA_BINARY_PACKED"} if kind == "deltas" else None
    options = {"use_dictionary": kind != "deltas", "column_encoding": encoding}
    file = bytearray(written(pa.table({"a": array}), compression="NONE", **options))
    footer = pq.ParquetFile(pa.BufferReader(bytes(file))).metadata
    record = footer.row_group(0).column(0)
    first = record.dictionary_page_offset or record.data_page_offset
    ends = [*range(first, first + 60), *range(record.data_page_offset, record.data_page_offset + 80)]
    for at in [*ends, *range(first, first + record.total_compressed_size, 97)]:
        for changed in (0, 0xFF, file[at] ^ 1, file[at] ^ 0x80):
            damaged = bytes(file[:at]) + bytes([changed]) + bytes(file[at + 1 :])
            try:
                found = decode_chunk(pa.BufferReader(damaged), record, 1, array.type)
            except pa.ArrowException:
                continue
            assert found is None or len(found) == ROWS


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=1, max_size=80), st.integers(1, 40), st.sampled_from(["codes", "values", "deltas", "levels"]))
def test_unpacking_is_what_python_says(data: bytes, rows: int, kind: str) -> None:
    """The compiled kernels and the plain ones agree on any bytes."""
    words = np.frombuffer(data + bytes(16 + -len(data) % 8), np.uint64).copy()
    answers = []
    for is_compiled in (True, False):
        out = np.full(rows, 7, np.uint8 if kind == "levels" else np.int32)
        made = KERNELS[f"unpack.unpack_{kind}"]
        between = {"codes": (9,), "values": (np.arange(9, dtype=np.int32),)}.get(kind, ())
        with nullcontext() if is_compiled else interpreted():
            answer = made(words, np.int64(0), np.int64(len(data)), *between, out)
        ends = answer if kind == "levels" else bool(answer)
        is_right = ends[0] >= 0 if kind == "levels" else ends
        answers.append((ends, out.tolist() if is_right else None))
    assert answers[0] == answers[1]
