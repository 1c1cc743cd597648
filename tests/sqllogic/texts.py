"""Values of typed answers as the files of each dialect write them.

    >>> from lake.types import parse_type_name
    >>> duckdb_text([1, None], parse_type_name("bigint[]")), datafusion_text("0.50", parse_type_name("decimal", (3, 2)))
    ('[1, NULL]', '0.5')
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

import numpy as np

from lake.types import Boolean, Bytes, Float, Integer, Interval, List, Map, Struct, Timestamp, Type
from lake.types import Decimal as DecimalType

DATAFUSION_DIGITS: Final = 12  # after the point, of numbers
_CONTEXT: Final = Context(prec=1000)
_SPECIAL: Final = {"nan": "NaN", "infinity": "Infinity", "-infinity": "-Infinity"}
_MOMENT: Final = re.compile(r"(.*)T(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?")
_QUOTED: Final = re.compile(r"^$|^\s|\s$|[,'\[\]{}()=:\"\\]|^null$", re.IGNORECASE)


def float_text(value: Any, bits: int) -> str:
    """The shortest digits of a float; special values in Postgres's words."""
    special = _SPECIAL.get(str(value).lower())
    return special or (str(np.float32(value)) if bits == 32 else repr(float(value)))


def datafusion_text(value: Any, type: Type) -> str:
    """A cell of DataFusion's files: numbers to twelve digits after the point, without trailing zeros."""
    match value, type:
        case None, _:
            return "NULL"
        case bool(), _:
            return "true" if value else "false"
        case _, Float(bits):
            text = float_text(value, bits)
            return text if text in _SPECIAL.values() else _plain(Decimal(text))
        case _, DecimalType():
            return _plain(Decimal(str(value)))
        case _, Timestamp():
            return _datafusion_moment(str(value))
        case _, List() | Struct() | Map():
            return _datafusion_nested(value, type)
        case "", _:
            return "(empty)"
    return str(value).rstrip("\n").replace("\0", "\\0")


def _plain(number: Decimal) -> str:
    if -int(number.as_tuple().exponent) > DATAFUSION_DIGITS:
        number = number.quantize(Decimal(1).scaleb(-DATAFUSION_DIGITS), ROUND_HALF_EVEN, _CONTEXT)
    text = format(number, "f") if number else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _datafusion_moment(text: str) -> str:
    """The fraction in groups of three digits."""
    found = _MOMENT.fullmatch(text)
    if not found:
        return text
    day, time, fraction, zone = found.groups()
    digits = (fraction or ".").rstrip("0")[1:]
    digits = digits.ljust(-(-len(digits) // 3) * 3, "0")
    zone = "Z" if zone in ("+00:00", "+0000") else zone or ""
    return f"{day}T{time}{'.' + digits if digits else ''}{zone}"


def _datafusion_nested(value: Any, type: Type) -> str:
    match value, type:
        case None, _:
            return "NULL"
        case _, List(of):
            return f"[{', '.join(_datafusion_nested(item, of) for item in value)}]"
        case _, Struct(fields):
            return f"{{{', '.join(f'{name}: {_datafusion_nested(value[name], of)}' for name, of in fields)}}}"
        case _, Map():
            return f"{{{', '.join(f'{key}: {_datafusion_nested(item, type.value)}' for key, item in value.items())}}}"
        case bool(), _:
            return "true" if value else "false"
        case _, Float(bits):
            return _rust_float(float_text(value, bits))
        case _, Timestamp():
            return _datafusion_moment(str(value))
    return str(value)


def _rust_float(text: str) -> str:
    """Floats inside lists have an exponent outside 1e-5 .. 1e9, written without a plus or leading zeros."""
    if text in _SPECIAL.values():
        return text.replace("Infinity", "inf")
    number = Decimal(text)
    power = number.adjusted() if number else 0
    if -5 <= power < 9:
        plain = format(number, "f")
        return plain if "." in plain else f"{plain}.0"
    mantissa = format(number.scaleb(-power).normalize(_CONTEXT), "f")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"


def sqlite_text(value: Any, type: Type, letter: str) -> str:
    """A value of SQLite's files: as the letter of its column says, whatever its type."""
    if value is None:
        return "NULL"
    number = int(value) if isinstance(value, bool) else value
    if letter in "IR":
        try:
            exact = Decimal(str(number))
            return str(int(exact)) if letter == "I" else f"{exact:.3f}"
        except ArithmeticError:
            return "0" if letter == "I" else "0.000"
    text = float_text(value, type.bits) if isinstance(type, Float) else str(value).lower() if number is not value else str(value)
    return "".join(char if " " <= char <= "~" else "@" for char in text) or "(empty)"


def duckdb_text(value: Any, type: Type) -> str:
    """A cell of DuckDB's files."""
    return "(empty)" if value == "" else _duckdb(value, type, nested=False)


def _duckdb(value: Any, type: Type, *, nested: bool) -> str:
    match value, type:
        case None, _:
            return "NULL"
        case bool(), _:
            return "true" if value else "false"
        case _, Float(bits):
            return float_text(value, bits).lower().replace("infinity", "inf")
        case _, Timestamp():
            return _duckdb_moment(str(value))
        case _, Interval():
            return duckdb_interval(str(value))
        case _, Bytes():
            data = bytes.fromhex(value)
            return "".join(chr(b) if 32 <= b < 127 and chr(b) not in "\"'\\" else f"\\x{b:02X}" for b in data) or "(empty)"
        case _, List(of):
            return f"[{', '.join(_duckdb(item, of, nested=True) for item in value)}]"
        case _, Struct(fields):
            return f"{{{', '.join(f'{name!r}: {_duckdb(value[name], of, nested=True)}' for name, of in fields)}}}"
        case _, Map():
            pairs = (f"{_quoted(key)}={_duckdb(item, type.value, nested=True)}" for key, item in value.items())
            return f"{{{', '.join(pairs)}}}"
    return _quoted(str(value)) if nested and not isinstance(type, Integer | DecimalType | Boolean) else str(value)


def _quoted(text: str) -> str:
    """A text inside a list, in quotes where it could be read as something else."""
    if not _QUOTED.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _duckdb_moment(text: str) -> str:
    found = _MOMENT.fullmatch(text)
    if not found:
        return text
    day, time, fraction, zone = found.groups()
    zone = "+00" if zone in ("Z", "+00:00", "+0000") else zone or ""
    return f"{day} {time}{(fraction or '').rstrip('0')}{zone}"


def duckdb_interval(text: str) -> str:
    """The interval that the lake writes as ``14 mons 3 days 4 hours 5 mins 6.5 secs``, as DuckDB writes it."""
    words = text.split()
    parts = {unit.rstrip("s"): Decimal(count) for count, unit in zip(words[::2], words[1::2], strict=True)}
    months = int(parts.get("mon", 0))
    years, months = int(math.copysign(abs(months) // 12, months)), int(math.copysign(abs(months) % 12, months))
    told = [(years, "year"), (months, "month"), (int(parts.get("day", 0)), "day")]
    shown = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for count, unit in told if count]
    seconds = parts.get("hour", 0) * 3600 + parts.get("min", 0) * 60 + parts.get("sec", Decimal(0))
    if seconds or not shown:
        whole, fraction = divmod(abs(seconds), 1)
        clock = f"{int(whole) // 3600:02}:{int(whole) // 60 % 60:02}:{int(whole) % 60:02}"
        digits = format(Decimal(fraction).normalize(), "f")[1:] if fraction else ""
        shown.append(f"{'-' if seconds < 0 else ''}{clock}{digits}")
    return " ".join(shown)
