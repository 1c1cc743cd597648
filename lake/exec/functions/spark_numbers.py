"""Numbers as Spark has them: bits, bases, formats, and casts called by a type's name."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter, InvalidText
from lake.exec import decimals
from lake.exec.cast import cast, decimal_to_double
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions import arithmetic, rounding
from lake.exec.functions.arithmetic import same_type
from lake.exec.functions.columns import (
    columns,
    float_function,
    map_distinct,
    map_rows,
    numpy_floats,
    with_constants,
)
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar
from lake.types import BIGINT, Decimal, Float, Integer, Type

GROUP: Final = "numbers"
WORD_BITS: Final = 64
DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BITMAP_BITS: Final = 8 * 4096


# --- signs, zeroes and trigonometry ----------------------------------------------------------------------------------


@scalar("negative(number NUMERIC) -> NUMERIC", group=GROUP, origin="spark", returns=same_type, takes_call=True)
def negative(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The number with the other sign.

    >>> negative(1)
    -1
    """
    return arithmetic.negate(number, call=call)


@scalar("positive(number NUMERIC) -> NUMERIC", group=GROUP, origin="spark", returns=same_type)
def positive(number: pa.Array) -> pa.Array:
    """The number as it is.

    >>> positive(1)
    1
    """
    return number


@scalar("nullifzero(number NUMERIC) -> NUMERIC", group=GROUP, origin="spark", returns=same_type)
def nullifzero(number: pa.Array) -> pa.Array:
    """The number, NULL where it is 0.

    >>> SELECT nullifzero(0), nullifzero(2)
    NULL | 2
    """
    return pc.if_else(pc.equal(number, pa.scalar(0).cast(number.type)), pa.scalar(None, number.type), number)


@scalar("zeroifnull(number NUMERIC) -> NUMERIC", group=GROUP, origin="spark", strict=False, takes_call=True,
        returns=lambda types: types[0] if isinstance(types[0], Integer | Float | Decimal) else BIGINT)  # fmt: skip
def zeroifnull(number: Value, *, call: CallInfo) -> pa.Array:
    """The number, 0 where it is NULL.

    >>> SELECT zeroifnull(NULL), zeroifnull(2)
    0.0 | 2
    """
    column = as_array(number, call.rows)
    if pa.types.is_null(column.type):
        column = column.cast(call.returns.physical)
    return pc.fill_null(column, pa.scalar(0).cast(column.type))


@scalar("sec(number DOUBLE) -> DOUBLE", group=GROUP, origin="spark")
def sec(number: pa.Array) -> pa.Array:
    """The secant of radians.

    >>> sec(0)
    1.0
    """
    return float_function(lambda angle: 1 / np.cos(angle), number)


@scalar("csc(number DOUBLE) -> DOUBLE", group=GROUP, origin="spark")
def csc(number: pa.Array) -> pa.Array:
    """The cosecant of radians.

    >>> csc(1.0)
    1.1883951057781212
    """
    return float_function(lambda angle: 1 / np.sin(angle), number)


# --- whole numbers ---------------------------------------------------------------------------------------------------


@scalar("spark_floor(number NUMERIC) -> BIGINT", group=GROUP, origin="spark", takes_call=True)
def spark_floor(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The greatest whole number not above the number, as BIGINT.

    >>> spark_floor(-0.1)
    -1

    22003  out of BIGINT's range
    """
    return _whole(number, call, "floor")


@scalar("spark_ceil(number NUMERIC) -> BIGINT", group=GROUP, origin="spark", takes_call=True,
        aliases=("spark_ceiling",))  # fmt: skip
def spark_ceil(number: pa.Array, *, call: CallInfo) -> pa.Array:
    """The least whole number not below the number, as BIGINT.

    >>> spark_ceil(-0.1)
    0

    22003  out of BIGINT's range
    """
    return _whole(number, call, "ceil")


def _whole(number: pa.Array, call: CallInfo, kind: str) -> pa.Array:
    given = call.types[0]
    type = rounding.whole_type(call.types)
    part = CallInfo(call.types, type, call.rows, call.settings)
    made = (rounding.floor if kind == "floor" else rounding.ceil)(number, call=part)
    if isinstance(given, Float):
        type = given
    return cast(decimals.widen(made, type) if isinstance(type, Decimal) else made, type, BIGINT)


# --- bits ------------------------------------------------------------------------------------------------------------


@scalar("bit_get(number BIGINT, place INT) -> INT", group="bits", origin="spark", aliases=("getbit",))
def bit_get(number: Value, place: Value) -> pa.Array:
    """The bit at a place, counted from 0 at the lowest.

    >>> SELECT bit_get(11, 0), bit_get(11, 2)
    1 | 0

    22023  a place out of 0 to 63
    """
    number, place = columns(number, place)
    low_high = pc.min_max(place).as_py()
    if low_high["min"] is not None and not 0 <= low_high["min"] <= low_high["max"] < WORD_BITS:
        raise InvalidParameter(f"bit position out of 0 to {WORD_BITS - 1}")
    shifted = pc.shift_right(number, place.cast(pa.int64()))
    return pc.bit_wise_and(shifted, pa.scalar(1, pa.int64())).cast(pa.int32())


@scalar("shiftrightunsigned(number INTEGER, count INT) -> INTEGER", group="bits", origin="spark", returns=same_type)
def shiftrightunsigned(number: Value, count: Value) -> pa.Array:
    """Bits moved down, zeroes coming in; the count is taken modulo the type's width.

    >>> SELECT shiftrightunsigned(4, 1), shiftrightunsigned(-1, 60)
    2 | 15
    """
    number, count = columns(number, count)
    width = number.type.bit_width
    words = views.values_of(number)
    unsigned = words.view(np.dtype(f"u{width // 8}"))
    moved = unsigned >> (views.values_of(count) & (width - 1)).astype(unsigned.dtype)
    valid = pc.and_(number.is_valid(), count.is_valid())
    return pc.if_else(valid, views.to_array(moved.view(words.dtype), number.type), pa.scalar(None, number.type))


@scalar("bitmap_bit_position(number BIGINT) -> BIGINT", group="bits", origin="spark")
def bitmap_bit_position(number: pa.Array) -> pa.Array:
    """Which bit of its bucket stands for a number, where a bucket is a bitmap of 32,768 bits.

    >>> SELECT bitmap_bit_position(1), bitmap_bit_position(123)
    0 | 122
    """
    words = views.values_of(number)
    made = np.where(words > 0, (words - 1) % BITMAP_BITS, -words % BITMAP_BITS)
    return views.to_array(made, pa.int64(), views.valid_of(number))


@scalar("bitmap_bucket_number(number BIGINT) -> BIGINT", group="bits", origin="spark")
def bitmap_bucket_number(number: pa.Array) -> pa.Array:
    """Which bucket holds the bit of a number, where a bucket is a bitmap of 32,768 bits.

    >>> bitmap_bucket_number(123)
    1
    """
    words = views.values_of(number)
    made = np.where(words > 0, 1 + (words - 1) // BITMAP_BITS, -(-words // BITMAP_BITS))
    return views.to_array(made, pa.int64(), views.valid_of(number))


@scalar("bitmap_count(bitmap BYTEA) -> BIGINT", group="bits", origin="spark")
@per_row
def bitmap_count(bitmap: pa.Array) -> pa.Array:
    """How many bits are set. Goes row by row: Arrow counts no bits of bytes.

    >>> bitmap_count('\\x1010'::BYTEA)
    2
    """
    return map_distinct(lambda item: int.from_bytes(item, "big").bit_count(), pa.int64(), bitmap)


# --- bases and formats -----------------------------------------------------------------------------------------------


@scalar("conv(number VARCHAR, base_from INT, base_to INT) -> VARCHAR", group=GROUP, origin="spark")
@per_row
def conv(number: Value, base_from: Value, base_to: Value) -> pa.Array:
    """A number's text from one base in another; a target base below 0 makes it signed. NULL for a base out of 2 to 36.

    Goes row by row: digits are read as far as they are some, up to 64 bits.

    >>> SELECT conv('100', 2, 10), conv(-10, 16, -10)
    4 | -16
    """

    def run(column: pa.Array, base_from: int, base_to: int) -> pa.Array:
        if not 2 <= base_from <= 36 or not 2 <= abs(base_to) <= 36:
            return pa.nulls(len(column), pa.string())
        return map_distinct(lambda item: _convert(item.strip(), base_from, base_to), pa.string(), column)

    return with_constants(run, pa.string(), number, base_from, base_to)


def _convert(text: str, base_from: int, base_to: int) -> str | None:
    is_negative = text.startswith("-")
    known = DIGITS[:base_from]
    value = 0
    if not text:
        return None
    for char in text.upper()[1 if is_negative else 0 :]:
        if char not in known:
            break
        value = min(value * base_from + known.index(char), 2**WORD_BITS - 1)
    if is_negative:
        value = -value
    if base_to > 0:
        value %= 2**WORD_BITS
    elif value >= 2 ** (WORD_BITS - 1):
        value -= 2**WORD_BITS
    sign, value, digits = "-" if value < 0 else "", abs(value), ""
    while value:
        value, digit = divmod(value, abs(base_to))
        digits = DIGITS[digit] + digits
    return sign + (digits or "0")


@scalar("format_number(number NUMERIC, places INT) -> VARCHAR", group=GROUP, origin="spark", takes_call=True)
@per_row
def format_number(number: Value, places: Value, *, call: CallInfo) -> pa.Array:
    """The number with commas between thousands and so many digits after the point; NULL for places below 0.

    Goes row by row: Arrow writes no commas.

    >>> format_number(12332.123456, 4)
    12,332.1235
    """
    type = call.types[0]

    def run(column: pa.Array, places: int) -> pa.Array:
        if places < 0:
            return pa.nulls(len(column), pa.string())
        if isinstance(type, Decimal):
            column = decimal_to_double(decimals.widen(column, type), type.scale)
        return map_distinct(lambda item: f"{item:,.{places}f}", pa.string(), column)

    return with_constants(run, pa.string(), number, places)


def _number_pattern(format: str) -> tuple[re.Pattern[str], int]:
    """A pattern for texts of a format of digits (9 and 0), a point, commas, a currency sign, S and PR; and its scale.

    22023  another letter in the format
    """
    pieces = {"9": r"\d?", "0": r"\d?", ".": r"\.?", "D": r"\.?", ",": ",?", "G": ",?", "$": r"\$", "S": "[+-]?", "MI": "-?"}
    shape = format.upper()
    angle = shape.endswith("PR")
    shape = shape.removesuffix("PR")
    parts = re.findall(r"MI|.", shape)
    unknown = [part for part in parts if part not in pieces]
    if unknown or not re.search("[90]", shape):
        raise InvalidParameter(f'invalid number format "{format}"')
    body = "".join(pieces[part] for part in parts)
    scale = len(re.findall("[90]", re.split("[.D]", shape, maxsplit=1)[1])) if re.search("[.D]", shape) else 0
    return re.compile(f"<?{body}>?" if angle else body), scale


def _number_format_type(arguments: tuple[Any, ...]) -> Type:
    """DECIMAL of the digits that a constant format has.

    22023  a format that is no constant
    """
    format = getattr(arguments[1], "value", None) if len(arguments) == 2 else None
    if not isinstance(format, str):
        raise InvalidParameter("to_number takes a constant format")
    _, scale = _number_pattern(format)
    return Decimal(max(1, len(re.findall("[90]", format))), scale)


def _read_number(text: str, pattern: re.Pattern[str], scale: int) -> int | None:
    if not pattern.fullmatch(text.strip()) or not re.search(r"\d", text):
        return None
    whole, _, fraction = re.sub(r"[^\d.]", "", text).partition(".")
    number = int((whole or "0") + fraction.ljust(scale, "0"))
    return -number if "-" in text or text.strip().startswith("<") else number


@per_row
def _to_number(text: Value, format: Value, call: CallInfo, *, is_try: bool) -> pa.Array:
    """The numbers of texts in a format. Goes row by row: each text is held against the format, sign by sign."""
    assert isinstance(call.returns, Decimal)

    def run(column: pa.Array, format: str) -> pa.Array:
        pattern, scale = _number_pattern(format)

        def read(item: str) -> int | None:
            number = _read_number(item, pattern, scale)
            if number is None and not is_try:
                raise InvalidText(f'"{item}" is not a number of the format "{format}"')
            return number

        made = map_distinct(read, pa.int64() if call.returns.is_short else pa.decimal128(38, 0), column)  # type: ignore[attr-defined]
        return made if made.type == call.returns.physical else decimals.widen(made, call.returns)  # type: ignore[arg-type]

    return with_constants(run, call.returns.physical, text, format)


@scalar("to_number(text VARCHAR, format VARCHAR) -> ANY", group=GROUP, origin="spark", takes_call=True,
        literal_rule=_number_format_type)  # fmt: skip
def to_number(text: Value, format: Value, *, call: CallInfo) -> pa.Array:
    """The number of a text in a format of 9 and 0 for digits, with a point, commas and a sign.

    >>> to_number('454.00', '000.00')
    454.00

    22P02  a text that is not of the format
    """
    return _to_number(text, format, call, is_try=False)


@scalar("try_to_number(text VARCHAR, format VARCHAR) -> ANY", group=GROUP, origin="spark", takes_call=True,
        literal_rule=_number_format_type)  # fmt: skip
def try_to_number(text: Value, format: Value, *, call: CallInfo) -> pa.Array:
    """The number of a text in a format, NULL for a text that is not of the format.

    >>> SELECT try_to_number('454', '000'), try_to_number('454x', '000')
    454 | NULL
    """
    return _to_number(text, format, call, is_try=True)


@scalar("luhn_check(digits VARCHAR) -> BOOLEAN", group=GROUP, origin="spark")
@per_row
def luhn_check(digits: pa.Array) -> pa.Array:
    """Whether digits pass the check of Luhn. Goes row by row: digits are weighed from each text's end.

    >>> luhn_check('8112189876')
    true
    """

    def check(item: str) -> bool:
        if not item.isascii() or not item.isdigit():
            return False
        numbers = [int(char) for char in reversed(item)]
        return (sum(numbers[::2]) + sum(sum(divmod(2 * number, 10)) for number in numbers[1::2])) % 10 == 0

    return map_distinct(check, pa.bool_(), digits)


# --- random numbers --------------------------------------------------------------------------------------------------


@scalar("randn() -> DOUBLE", group=GROUP, origin="spark", volatility="volatile", takes_call=True)
def randn(*, call: CallInfo) -> pa.Array:
    """A random number of the normal distribution.

    >>> randn() < 100
    true
    """
    return pa.array(np.random.default_rng().standard_normal(call.rows))


@scalar("uniform(low DOUBLE, high DOUBLE) -> DOUBLE", group=GROUP, origin="spark", volatility="volatile")
def uniform(low: Value, high: Value) -> pa.Array:
    """A random number from a range.

    >>> uniform(1, 2) < 3
    true
    """
    low, high = columns(low, high)
    (first, _), (last, _) = numpy_floats(low), numpy_floats(high)
    made = pa.array(first + np.random.default_rng().random(len(low)) * (last - first))
    return pc.if_else(pc.and_(low.is_valid(), high.is_valid()), made, pa.scalar(None, pa.float64()))


@scalar("randstr(length INT) -> VARCHAR", group="text", origin="spark", volatility="volatile")
@per_row
def randstr(length: pa.Array) -> pa.Array:
    """A random text of letters and digits. Goes row by row: every row is another text.

    >>> length(randstr(5))
    5
    """
    letters = np.array(list(DIGITS + DIGITS[10:].lower()))
    random = np.random.default_rng()
    return map_rows(lambda size: "".join(letters[random.integers(0, letters.size, max(size, 0))]), pa.string(), length)


# --- types as functions ----------------------------------------------------------------------------------------------


def _register_cast(name: str, type: str, example: str, answer: str) -> None:
    """A cast called by the name of its type."""

    def function(value: Value, *, call: CallInfo) -> pa.Array:
        return cast(as_array(value, call.rows), call.types[0], call.returns, settings=call.settings)

    function.__doc__ = f"The value as {type}.\n\n    >>> {example}\n    {answer}\n    "
    scalar(f"{name}(value ANY) -> {type}", group="casts", origin="spark", takes_call=True)(function)


_register_cast("bigint", "BIGINT", "bigint('7')", "7")
_register_cast("smallint", "SMALLINT", "smallint('7')", "7")
_register_cast("tinyint", "TINYINT", "tinyint('7')", "7")
_register_cast("boolean", "BOOLEAN", "boolean('true')", "true")
_register_cast("double", "DOUBLE", "SELECT \"double\"('1.5')", "1.5")
_register_cast("float", "REAL", "SELECT \"float\"('1.5')", "1.5")
_register_cast("string", "VARCHAR", "string(12)", "12")
_register_cast("binary", "BYTEA", "SELECT \"binary\"('A')", "A")
_register_cast("decimal", "DECIMAL(10, 0)", "SELECT \"decimal\"('7')", "7")
_register_cast("date", "DATE", "SELECT \"date\"('2024-02-29')", "2024-02-29")
_register_cast("timestamp", "TIMESTAMP", "SELECT \"timestamp\"('2024-02-29')", "2024-02-29T00:00:00")

