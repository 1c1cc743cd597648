"""Rows from a door as columns: newline-delimited JSON, Arrow streams.

A row may leave columns out: those take their defaults. In JSON an explicit null is a null.
Spec: HTTP, Append and bulk insert; SQL, Constraints and defaults 1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal as PyDecimal
from typing import Any, Final

import msgspec
import orjson
import pyarrow as pa
import pyarrow.json as pa_json
from msgspec import Struct, field

from lake.errors import InvalidText, LakeError, ProtocolViolation, UndefinedColumn
from lake.exec.cast import cast
from lake.late import late_pattern
from lake.rows import physical_array
from lake.types import BOOLEAN, TEXT, Decimal, Float, Integer, Json, List, Null, Text, Type, from_arrow

_ABSENT: Final = object()
_NULL_LINE: Final = late_pattern(rb"(?:^|[\n}])[ \t\r]*null")  # where a line or a second value may begin
ROWS_MAX: Final = 10_000_000  # of one append


class Incoming(Struct, frozen=True):
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
        _ = table.column_names  # names that are not UTF-8 are noticed when they are read
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ProtocolViolation(f"the body is not an Arrow stream: {_first_line(error)}") from None
    if not _is_ended(body):
        raise ProtocolViolation("the Arrow stream has no end: the body was cut off")
    return from_arrow_table(table)


def from_json_lines(body: bytes, columns: Sequence[tuple[str, Type]], defaults: Collection[str] = ()) -> Incoming:
    """The rows of newline-delimited JSON, by the names and types of a table's columns.

    defaults  the columns for which leaving them out is not the same as null
    08P01  a line that is not a JSON object      42703  a name that is no column      22P02  a value that does not cast
    """
    if not defaults:
        read = _read_columns(body, columns)
        if read is not None:
            return read
    rows = _json_objects(body)
    known = dict(columns)
    present: set[str] = set()
    for row in rows:
        present.update(row)
    if not present <= known.keys():
        unknown = next(name for row in rows for name in row if name not in known)
        raise UndefinedColumn(f'column "{unknown}" does not exist', hint=f"columns: {', '.join(known)}")
    arrays: dict[str, pa.Array] = {}
    types: dict[str, Type] = {}
    missing: dict[str, pa.BooleanArray] = {}
    for name, type in columns:
        if name not in present:
            continue
        values = [row.get(name, _ABSENT) for row in rows]
        if _ABSENT in values:
            missing[name] = pa.array([value is _ABSENT for value in values], pa.bool_())
            values = [None if value is _ABSENT else value for value in values]
        arrays[name] = json_array(values, type, name)
        types[name] = type
    return Incoming(len(rows), arrays, types, missing)


def _read_columns(body: bytes, columns: Sequence[tuple[str, Type]]) -> Incoming | None:
    """The rows read without a Python object for each value; None for whatever is not plain, which is then read exactly.

    1,000 rows of four columns take 0.5 ms in place of 1.8 ms, and most of it without the interpreter's lock.
    """
    schema = []
    for name, type in columns:
        if isinstance(type, List | Json | Null):
            return None
        plain = isinstance(type, Integer | Float | Decimal) or type == BOOLEAN
        schema.append((name, type.arrow if plain else pa.string()))
    if b"null" in body and _NULL_LINE.search(body):
        return None  # pyarrow's reader ends the process at a null in the place of the first object, and takes later ones
    lines = body.count(b"\n") + (not body.endswith(b"\n"))
    try:
        table = pa_json.read_json(
            pa.BufferReader(body),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(body) + 1),
            parse_options=pa_json.ParseOptions(explicit_schema=pa.schema(schema), unexpected_field_behavior="error"),
        )
        if table.num_rows != lines or lines > ROWS_MAX:
            return None
        table.validate(full=True)
        arrays = {}
        for name, type in columns:
            array = _one_chunk(table.column(name))
            is_text = pa.types.is_string(array.type) and not isinstance(type, Text)
            arrays[name] = cast(array, TEXT, type) if is_text else physical_array(array, type)
    except (pa.ArrowException, LakeError, OverflowError):
        return None
    return Incoming(lines, arrays, dict(columns))


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
    except LakeError as error:
        raise of_column(error, name) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InvalidText(f'column "{name}": {_first_line(error)}') from None


def of_column(error: LakeError, name: str) -> LakeError:
    """The same error, naming the column whose value it is about."""
    return type(error)(f'column "{name}": {error.message}', detail=error.detail, hint=error.hint, about=error.about)


def _direct(values: list[Any], type: Type) -> pa.Array | None:
    """The array where JSON values are values of the type already, else None."""
    kinds = {value.__class__ for value in values}
    kinds.discard(None.__class__)
    match type:
        case Integer() if kinds <= {int, PyDecimal}:
            try:
                return pa.array([_whole(value) for value in values] if PyDecimal in kinds else values, type.arrow)
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


def _whole(value: int | PyDecimal | None) -> int | None:
    """A JSON number such as 3.0 as the integer that it is."""
    if isinstance(value, PyDecimal):
        if value != value.to_integral_value():
            raise OverflowError
        return int(value)
    return value


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
    return body.endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00")


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0]
