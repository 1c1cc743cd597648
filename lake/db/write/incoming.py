"""Rows from a door as columns: newline-delimited JSON, Arrow streams.

A row may leave columns out: those take their defaults. In JSON an explicit null is a null.
Spec: HTTP, Append and bulk insert; SQL, Constraints and defaults 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal as PyDecimal
from typing import Any, Final

import msgspec
import orjson
import pyarrow as pa

from lake.errors import InvalidText, ProtocolViolation, UndefinedColumn
from lake.exec.cast import cast
from lake.rows import physical_array
from lake.types import BOOLEAN, TEXT, Decimal, Float, Integer, Json, List, Text, Type, from_arrow

_ABSENT: Final = object()
ROWS_MAX: Final = 10_000_000  # of one append


@dataclass(frozen=True, slots=True)
class Incoming:
    """Columns of rows to write, in physical form and of the types they came with.

    missing   for a column that some rows leave out, which ones
    """

    rows: int
    arrays: dict[str, pa.Array]
    types: dict[str, Type]
    missing: dict[str, pa.BooleanArray] = field(default_factory=dict)


def from_arrow_table(table: pa.Table) -> Incoming:
    """The columns of an Arrow table; each is one chunk afterwards."""
    arrays, types = {}, {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in arrays:
            raise ProtocolViolation(f'column "{name}" is there twice')
        types[name] = from_arrow(column.type)
        arrays[name] = physical_array(_one_chunk(column), types[name])
    return Incoming(table.num_rows, arrays, types)


def from_arrow_stream(body: bytes) -> Incoming:
    """The rows of an Arrow IPC stream.

    08P01  bytes that are not a whole stream
    """
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowInvalid, OSError, pa.ArrowNotImplementedError, pa.ArrowSerializationError) as error:
        raise ProtocolViolation(f"the body is not an Arrow stream: {_first_line(error)}") from None
    if not _is_ended(body):
        raise ProtocolViolation("the Arrow stream has no end: the body was cut off")
    return from_arrow_table(table)


def from_json_lines(body: bytes, columns: Sequence[tuple[str, Type]]) -> Incoming:
    """The rows of newline-delimited JSON, by the names and types of a table's columns.

    08P01  a line that is not a JSON object      42703  a name that is no column      22P02  a value that does not cast
    """
    rows = _json_objects(body)
    known = dict(columns)
    for row in rows:
        if not row.keys() <= known.keys():
            unknown = next(name for name in row if name not in known)
            raise UndefinedColumn(f'column "{unknown}" does not exist', hint=f"columns: {', '.join(known)}")
    arrays: dict[str, pa.Array] = {}
    types: dict[str, Type] = {}
    missing: dict[str, pa.BooleanArray] = {}
    for name, type in columns:
        values = [row.get(name, _ABSENT) for row in rows]
        absent = sum(value is _ABSENT for value in values)
        if absent == len(rows):
            continue
        if absent:
            missing[name] = pa.array([value is _ABSENT for value in values], pa.bool_())
            values = [None if value is _ABSENT else value for value in values]
        arrays[name] = json_array(values, type, name)
        types[name] = type
    return Incoming(len(rows), arrays, types, missing)


def json_array(values: list[Any], type: Type, name: str) -> pa.Array:
    """JSON values as an array of ``type.physical``.

    22P02  a value that does not cast; the message names it and its column
    """
    try:
        direct = _direct(values, type)
        if direct is not None:
            return direct
        texts = pa.array([_text(value) for value in values], pa.string())
        return cast(texts, TEXT, type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, InvalidText) as error:
        message = error.message if isinstance(error, InvalidText) else _first_line(error)
        raise InvalidText(f'column "{name}": {message}') from None


def _direct(values: list[Any], type: Type) -> pa.Array | None:
    """The array where JSON values are values of the type already, else None."""
    kinds = {value.__class__ for value in values}
    kinds.discard(None.__class__)
    match type:
        case Integer() if kinds <= {int}:
            try:
                return pa.array(values, type.arrow)
            except (pa.ArrowInvalid, OverflowError):
                return None
        case Float() if kinds <= {int, float, PyDecimal}:
            return pa.array([None if value is None else float(value) for value in values], type.arrow)
        case Text() if kinds <= {str}:
            return pa.array(values, pa.string())
        case Json():
            return pa.array([None if v is None else _json_text(v) for v in values], pa.string())
        case Decimal() if kinds <= {int, PyDecimal}:
            texts = pa.array([None if value is None else str(value) for value in values], pa.string())
            return cast(texts, TEXT, type)
        case List(of) if kinds <= {list}:
            flat = [item for value in values if value is not None for item in value]
            offsets, total = [], 0
            for value in values:
                offsets.append(None if value is None else total)
                total += 0 if value is None else len(value)
            return pa.ListArray.from_arrays(pa.array([*offsets, total], pa.int32()), json_array(flat, of, "element"))
        case _ if type == BOOLEAN and kinds <= {bool}:
            return pa.array(values, pa.bool_())
    return None


def _json_objects(body: bytes) -> list[dict[str, Any]]:
    rows = []
    decoder = msgspec.json.Decoder(float_hook=PyDecimal)
    for number, line in enumerate(body.split(b"\n"), 1):
        stripped = line.strip()
        if not stripped:
            continue
        try:
            row = decoder.decode(stripped)
        except (msgspec.DecodeError, UnicodeDecodeError, ArithmeticError, RecursionError) as error:
            raise ProtocolViolation(f"line {number} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise ProtocolViolation(f"line {number} is not a JSON object")
        rows.append(row)
    if len(rows) > ROWS_MAX:
        raise ProtocolViolation(f"an append takes at most {ROWS_MAX} rows")
    return rows


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return _json_text(value)


def _json_text(value: Any) -> str:
    return orjson.dumps(value, default=lambda number: orjson.Fragment(str(number))).decode()


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _is_ended(body: bytes) -> bool:
    """Whether a stream ends with its end mark; without it the sender was cut off between two batches."""
    return body.endswith(b"\x00\x00\x00\x00")


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0]
