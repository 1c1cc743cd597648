"""Casts from text and to text.

Text is read by Arrow where all of it has the plain form; else each distinct text goes through ``sql.literals``, which knows
every form. Text is written as the base dialect prints: ``2024-03-01T12:00:00``, ``1.0``, ``1e20``, ``true``, ``[1, 2]``,
``14 mons 3 days``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from lake.arrow_names import zone_of_type
from lake.compiled import COMPILED_ROWS
from lake.errors import DatatypeMismatch, InvalidText, LakeError
from lake.exec import decimals
from lake.exec.constants import list_array, list_parts, map_entries, to_array
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.exec.plain_text import read_plain_texts, written_decimals
from lake.exec.spellings import duration_text, unit_of
from lake.late import late_pattern
from lake.sql import literals
from lake.types import (
    DECIMAL_INT64_DIGITS_MAX,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Float,
    Integer,
    Interval,
    Json,
    List,
    Map,
    Null,
    Struct,
    Text,
    Time,
    Timestamp,
    Type,
)

DAYS_OF_FOUR_DIGITS: Final = (-719_162, 2_932_896)  # 0001-01-01 and 9999-12-31, which Arrow writes as we do
NANOSECONDS_OF_DAY: Final = 86_400_000_000_000
_INTEGER_NAMES: Final = {8: "tinyint", 16: "smallint", 32: "integer", 64: "bigint"}
UUID_FORM: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_EXPONENT_AT: Final = {64: (-5, 16), 32: (-6, 13)}
"""Digits before the point between which floats are written without an exponent (Ryu's rule)."""

_ESCAPED: Final = late_pattern(r"\\(.)", re.DOTALL)
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_BRACED_ITEM: Final = late_pattern(
    rf'\s*(?:(?P<array>\{{(?:[^{{}}"]|{_QUOTED}|\{{(?:[^{{}}"]|{_QUOTED})*\}})*\}})|"(?P<quoted>(?:[^"\\]|\\.)*)"'
    r'|(?P<plain>(?:[^,{}"\\]|\\.)*[^\s,{}"\\]|(?:[^,{}"\\]|\\.)*\\.))\s*(?:(?P<comma>,)|$)', re.DOTALL)
"""An item of an array written in braces, which may hold arrays of two further levels, and what stands behind it."""


# --- from text -------------------------------------------------------------------------------------------------------


@per_row
def from_text(value: pa.Array, target: Type, *, is_try: bool, zone: str) -> pa.Array:
    """Text as ``target``. What neither kernels nor Arrow read goes row by row: spellings of SQL, and texts to be refused.

    22P02  a text that is no value of the type     22003, 22008  a value out of the type's range
    """
    if len(value) >= COMPILED_ROWS and isinstance(target, Integer | Decimal | Time | Timestamp):
        quick = read_plain_texts(value, target, zone)
        if quick is not None:
            return quick
    if isinstance(target, Integer | Float | Date) or target == Timestamp(False):
        quick = _read_plainly(value, target)
        if quick is not None:
            return quick
    parse = _parser(target, zone)
    entries = value.dictionary_encode()
    parsed: list[object] = []
    for text in entries.dictionary.to_pylist():
        try:
            parsed.append(parse(text))
        except LakeError:
            if not is_try:
                raise
            parsed.append(None)
    return to_array(parsed, target).take(entries.indices)


def read_uuids(value: pa.Array, *, is_try: bool) -> pa.Array:
    """Texts of 32 hexadecimal digits, with hyphens after any four of them and braces around, as UUIDs.

    22P02  another text     Source: PostgreSQL documentation, UUID Type.
    """
    if pc.all(pc.match_substring_regex(value, UUID_FORM)).as_py() is not False:
        return value
    digits = pc.utf8_lower(pc.replace_substring_regex(pc.utf8_trim_whitespace(value), r"^\{(.*)\}$", r"\1"))
    is_good = pc.match_substring_regex(digits, r"^([0-9a-f]{4}-?){7}[0-9a-f]{4}$")
    if not is_try and pc.any(pc.invert(is_good)).as_py():
        text = value.filter(pc.fill_null(pc.invert(is_good), False))[0].as_py()
        raise InvalidText(f'invalid input syntax for type uuid: "{text}"')
    digits = pc.if_else(is_good, pc.replace_substring(digits, "-", ""), pa.scalar(None, pa.string()))
    return pc.replace_substring_regex(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", r"\1-\2-\3-\4-\5")


def _read_plainly(value: pa.Array, target: Type) -> pa.Array | None:
    """What Arrow reads; None where some text is not of the form it knows."""
    if isinstance(target, Integer | Float):
        value = pc.utf8_trim_whitespace(value)
        if isinstance(target, Integer) and pc.any(pc.match_substring_regex(value, "[xX]")).as_py():
            return None
    try:
        read = value.cast(target.physical)
    except pa.ArrowInvalid:
        return None
    if isinstance(target, Float):
        # Arrow reads what is too large as an infinity.
        written = pc.match_substring(value, "inf", ignore_case=True)
        return None if pc.any(pc.and_not(pc.is_inf(read), written)).as_py() else read
    return read


def _parser(target: Type, zone: str) -> Callable[[str], object]:
    match target:
        case Integer(bits):
            return lambda text: literals.parse_integer(text, bits, _INTEGER_NAMES[bits])
        case Float(bits):
            return lambda text: literals.parse_float(text, bits)
        case Decimal():
            return lambda text: _parse_decimal(text, target)
        case Boolean():
            return literals.parse_boolean
        case Bytes():
            return parse_bytes
        case Date():
            return literals.parse_date
        case Time():
            return literals.parse_time
        case Timestamp(zoned):
            return lambda text: literals.parse_timestamp(text, zoned=zoned, time_zone=zone)
        case Interval():
            return literals.parse_interval
        case Json():
            return _checked_json
        case _:
            raise DatatypeMismatch(f"cannot cast type VARCHAR to {target}")


def _parse_decimal(text: str, target: Decimal) -> int:
    """The scaled integer, rounded half away from zero."""
    sign, digits, exponent = literals.parse_number(text).as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)))
    shift = exponent + target.scale
    if number and len(digits) + shift > target.precision + 1:
        raise decimals.out_of_range(target)
    if shift >= 0:
        number *= 10**shift if number else 1
    else:
        unit = 10 ** min(-shift, len(digits) + 1)
        number = (number + unit // 2) // unit
    if number >= 10**target.precision:
        raise decimals.out_of_range(target)
    return -number if sign else number


def parse_bytes(text: str) -> bytes:
    r"""The bytes that ``\x`` and hexadecimal digits write; any other text's own bytes in UTF-8."""
    if not text.startswith("\\x"):
        return text.encode()
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise InvalidText(f'invalid input syntax for type bytea: "{text}"') from None


def _checked_json(text: str) -> str:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidText(f'invalid input syntax for type json: "{text}"', detail=str(error)) from None
    return text


def split_list(text: str, *, is_try: bool) -> list[str | None] | None:
    """The texts of the items of ``[1, 2]`` or ``{a,"b, c",NULL}``; None for what is no list where ``is_try``."""
    trimmed = text.strip()
    if len(trimmed) < 2 or trimmed[0] + trimmed[-1] not in ("[]", "{}"):
        if is_try:
            return None
        raise InvalidText(f'malformed array literal: "{text}"')
    if trimmed[0] == "{":
        braced = _split_braces(trimmed[1:-1])
        if braced is None and not is_try:
            raise InvalidText(f'malformed array literal: "{text}"')
        return braced
    items: list[str | None] = []
    depth, quote, start, inner = 0, "", 1, trimmed[:-1]
    for place in range(1, len(inner)):
        char = inner[place]
        if quote:
            quote = "" if char == quote and inner[place - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == "," and depth == 0:
            items.append(_list_item(inner[start:place]))
            start = place + 1
    if items or inner[start:].strip():
        items.append(_list_item(inner[start:]))
    return items


def _split_braces(inner: str) -> list[str | None] | None:
    """The texts of the items between the braces of a Postgres array; None where they are malformed.

    An item is a text in double quotes, one without, or an array of its own; a backslash stands before what is meant as it is.
    Source: PostgreSQL documentation, Array Input and Output Syntax.
    """
    if not inner.strip():
        return []
    items: list[str | None] = []
    place = 0
    while True:
        match = _BRACED_ITEM.match(inner, place)
        if match is None:
            return None
        if match["array"]:
            items.append(match["array"])
        elif match["quoted"] is not None:
            items.append(_ESCAPED.sub(r"\1", match["quoted"]))
        else:
            plain = match["plain"].strip()
            items.append(None if plain.upper() == "NULL" else _ESCAPED.sub(r"\1", plain))
        place = match.end()
        if not match["comma"]:
            return items


def _list_item(text: str) -> str | None:
    text = text.strip()
    if text.upper() == "NULL":
        return None
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].replace("\\" + text[0], text[0]).replace("\\\\", "\\")
    return text


# --- to text ---------------------------------------------------------------------------------------------------------


def to_text(value: pa.Array, source: Type, *, for_json: bool = False, is_try: bool = False) -> pa.Array:
    """``value`` as the base dialect prints it; with ``for_json`` as JSON text."""
    if for_json and not isinstance(source, Integer | Boolean | Decimal):
        return _to_json(value, source)
    match source:
        case Null():
            return pa.nulls(len(value), pa.string())
        case Integer() if len(value) == 1 and value.null_count == 0:
            return pa.array([str(value[0].as_py())], pa.string())  # pyarrow would import all of its functions for the one
        case Integer() | Boolean():
            return value.cast(pa.string())
        case Date():
            return date_text(value)
        case Text() | Json():
            return value
        case Float(bits):
            return float_text(value, bits)
        case Decimal(scale=scale):
            return decimal_text(value, scale)
        case Time():
            return _with_fraction(value.cast(pa.time32("s"), safe=False).cast(pa.string()), views.values_of(value))
        case Timestamp(zoned):
            zone = zone_of_type(source)
            return timestamp_text(value, zoned=zoned) if zone is None else zoned_text(value, zone)
        case Interval() if source.spelled.startswith("Duration"):
            unit = unit_of(source)
            return _each(value, lambda parts: duration_text(parts[2] + parts[1] * NANOSECONDS_OF_DAY, unit))
        case Interval():
            return _each(value, lambda parts: interval_text(*parts))
        case Bytes():
            return _bytes_text(value, is_try=is_try)
        case List(of):
            return list_text(value, of)
        case Struct(fields):
            return struct_text(value, fields)
        case Map():
            return map_text(value, source)
        case _:
            raise DatatypeMismatch(f"cannot cast type {source} to VARCHAR")


@per_row
def _each(value: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """``write`` over values. Goes row by row: intervals have parts to leave out, and nested values are JSON of orjson's."""
    return pa.array([None if item is None else write(item) for item in value.to_pylist()], pa.string())


def float_text(value: pa.Array, bits: int) -> pa.Array:
    """The shortest digits that read back as the same float, always with a point or an exponent."""
    numbers = np.abs(views.values_of(value).astype(np.float64, copy=False))
    text = value.cast(pa.string())
    plain = ((numbers >= 1e-3) & (numbers < 1e9)) | (numbers == 0)
    pointed = pc.match_substring(text, ".")
    text = pc.if_else(pointed, text, pc.binary_join_element_wise(text, "0", "."))
    if plain.all():
        return text
    places = np.flatnonzero(~plain)
    kind = np.float32 if bits == 32 else np.float64
    chosen = views.values_of(value)[places].astype(kind)
    valid = views.valid_of(value)
    written = [
        None if valid is not None and not valid[place] else one_float_text(number, bits)
        for place, number in zip(places, chosen)
    ]
    return pc.replace_with_mask(text, views.to_boolean(~plain), pa.array(written, pa.string()))


def one_float_text(number: Any, bits: int = 64) -> str:
    """The text of a float: 1.0, 1e20, 1e-7, NaN, inf."""
    number = float(number) if bits == 64 else np.float32(number)
    if number != number:
        return "NaN"
    if np.isinf(number):
        return "inf" if number > 0 else "-inf"
    low, high = _EXPONENT_AT[bits]
    sign, mantissa = ("-", str(number)[1:]) if str(number).startswith("-") else ("", str(number))
    digits, _, exponent = mantissa.partition("e")
    whole, _, fraction = digits.partition(".")
    fraction = "" if fraction == "0" else fraction
    shift = int(exponent or 0) + len(whole)
    figures = (whole + fraction).lstrip("0")
    shift -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0") or "0"
    if figures == "0":
        return f"{sign}0.0"
    if 0 < shift <= high:
        return f"{sign}{figures[:shift].ljust(shift, '0')}.{figures[shift:] or '0'}"
    if low < shift <= 0:
        return f"{sign}0.{'0' * -shift}{figures}"
    tail = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{tail}e{shift - 1}"


@per_row
def decimal_text(value: pa.Array, scale: int) -> pa.Array:
    """Decimals with all digits of their scale. Few, and those of more than 64 bits, go row by row: Arrow writes exponents."""
    found = decimals.scaled(value)
    assert found is not None and not isinstance(found.values, int)
    if found.is_wide or scale > DECIMAL_INT64_DIGITS_MAX or len(value) < COMPILED_ROWS:
        shown = [one_decimal_text(number, scale) for number in found.integers()]
        return pa.array(shown, pa.string(), mask=None if found.valid is None else found.valid == 0)
    return written_decimals(found.values, found.valid, scale)


def one_decimal_text(number: int, scale: int) -> str:
    """The text of a scaled integer."""
    digits = str(abs(number)).rjust(scale + 1, "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits}" if scale == 0 else f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def date_text(value: pa.Array) -> pa.Array:
    """``2024-03-01``; years of more digits have their sign: ``+10001-01-27``."""
    days = views.values_of(value)
    if not len(days) or (days.min() >= DAYS_OF_FOUR_DIGITS[0] and days.max() <= DAYS_OF_FOUR_DIGITS[1]):
        return value.cast(pa.string())
    texts = np.datetime_as_string(days.astype("datetime64[D]")).astype(object)
    return pa.array(np.where(days > DAYS_OF_FOUR_DIGITS[1], "+", "") + texts, pa.string(), mask=~np.asarray(value.is_valid()))


def timestamp_text(value: pa.Array, *, zoned: bool) -> pa.Array:
    """``2024-03-01T12:00:00``, with three or six digits of the second where there are any, and Z for an instant."""
    wall = value.cast(pa.timestamp("us"))
    micros = views.values_of(wall)
    seconds = views.to_array(micros // 1_000_000, pa.timestamp("s"), views.valid_of(value))
    text = _with_fraction(pc.strftime(seconds, format="%Y-%m-%dT%H:%M:%S"), micros)
    return pc.binary_join_element_wise(text, "Z", "") if zoned else text


def zoned_text(value: pa.Array, zone: str) -> pa.Array:
    """What clocks in ``zone`` read, and by how much they are ahead of UTC: ``2024-03-01T12:00:00+01:00``."""
    instants = views.values_of(value)
    wall = pc.local_timestamp(value.cast(pa.timestamp("us", tz=zone)))
    ahead = (views.values_of(wall) - instants) // 60_000_000
    ends = {minutes: _offset_text(int(minutes)) for minutes in np.unique(ahead)}
    offsets = pa.array([ends[minutes] for minutes in ahead], pa.string())
    return pc.binary_join_element_wise(timestamp_text(wall, zoned=False), offsets, "")


def _offset_text(minutes: int) -> str:
    if minutes == 0:
        return "Z"
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def _with_fraction(text: pa.Array, micros: Any) -> pa.Array:
    fraction = micros % 1_000_000
    if not fraction.any():
        return text
    short = fraction % 1000 == 0
    digits = pc.if_else(
        views.to_boolean(short),
        pc.ascii_lpad(pa.array(fraction // 1000).cast(pa.string()), 3, "0"),
        pc.ascii_lpad(pa.array(fraction).cast(pa.string()), 6, "0"),
    )
    return pc.if_else(views.to_boolean(fraction == 0), text, pc.binary_join_element_wise(text, digits, "."))


def interval_text(months: int, days: int, nanoseconds: int) -> str:
    """``14 mons 3 days 4 hours 5 mins 6.500000000 secs``; parts of nothing are left out."""
    parts = []
    if months:
        parts.append(f"{months} mons")
    if days:
        parts.append(f"{days} days")
    sign = "-" if nanoseconds < 0 else ""
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        parts.append(f"{sign}{hours} hours")
    if minutes:
        parts.append(f"{sign}{minutes} mins")
    if seconds % 60 or rest:
        parts.append(f"{sign}{seconds % 60}.{rest:09} secs")
    return " ".join(parts) or "0 secs"


def _bytes_text(value: pa.Array, *, is_try: bool) -> pa.Array:
    try:
        return value.cast(pa.string())
    except pa.ArrowInvalid:
        return _each(value, lambda item: _decoded(item, is_try=is_try))


def _decoded(item: bytes, *, is_try: bool) -> str:
    try:
        return item.decode()
    except UnicodeDecodeError:
        if is_try:
            return None  # type: ignore[return-value]
        raise InvalidText(f"invalid byte sequence for encoding UTF-8: \\x{item.hex()}") from None


def list_text(value: pa.Array, of: Type) -> pa.Array:
    """``[1, NULL, 3]``, the items as their own casts write them."""
    offsets, items, valid = list_parts(value)
    texts = pc.fill_null(to_text(items, of), "NULL") if len(items) else pa.array([], pa.string())
    joined = pc.binary_join(list_array(offsets, texts, valid), ", ")
    return pc.binary_join_element_wise("[", joined, "]", "")


def struct_text(value: pa.Array, fields: tuple[tuple[str, Type], ...]) -> pa.Array:
    """``{a: 1, b: NULL}``, the fields as their own casts write them."""
    parts: list[Any] = ["{"]
    for place, (part, (name, of)) in enumerate(zip(value.flatten(), fields, strict=True)):
        parts += [f"{', ' if place else ''}{name}: ", pc.fill_null(to_text(part, of), "NULL")]
    if not fields:
        return pc.if_else(value.is_valid(), "{}", pa.scalar(None, pa.string()))
    text = pc.binary_join_element_wise(*parts, "}", "")
    return pc.if_else(value.is_valid(), text, pa.scalar(None, pa.string())) if value.null_count else text


def map_text(value: pa.Array, type: Map) -> pa.Array:
    """``{a: 1, b: NULL}``, keys and values as their own casts write them."""
    offsets, pairs, valid = list_parts(map_entries(value))
    keys, items = pairs.flatten() if len(pairs) else (pa.nulls(0), pa.nulls(0))
    if not len(pairs):
        texts = pa.array([], pa.string())
    else:
        shown = pc.fill_null(to_text(items, type.value), "NULL")
        texts = pc.binary_join_element_wise(to_text(keys, type.key), shown, ": ")
    joined = pc.binary_join(list_array(offsets, texts, valid), ", ")
    return pc.binary_join_element_wise("{", joined, "}", "")


def _to_json(value: pa.Array, source: Type) -> pa.Array:
    """Each value as JSON text; floats that JSON lacks are null."""
    if isinstance(source, Text):
        return _each(value, lambda item: orjson.dumps(item).decode())
    if isinstance(source, Float | List | Struct | Map):
        return _each(value, lambda item: orjson.dumps(_json_value(item)).decode())
    return _to_json(to_text(value, source), Text())


def _json_value(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _json_value(part) for key, part in item.items()}
    if isinstance(item, list):
        return [_json_value(part) for part in item]
    return item if item is None or isinstance(item, bool | int | float | str) else str(item)
