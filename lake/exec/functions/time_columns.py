"""Columns of moments written and read in formats.

A field of a format is written once for each day, hour, minute or second that a column has, and the texts of a row's fields
are joined. Texts are taken apart by a format's expression, all at once, and what its groups say is counted in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.functions.columns import map_distinct
from lake.exec.functions.time_formats import MONTH_NUMBERS, moment_of, reader, writers
from lake.exec.kernels import views
from lake.exec.per_row import per_row

_READ: Final = frozenset(
    ("year", "year2", "month", "name", "day", "hour", "hour12", "half", "minute", "second", "fraction", "digits", "nanos")
)
_MONTHS: Final = pa.array(list(MONTH_NUMBERS))
_NUMBERS: Final = np.array([*MONTH_NUMBERS.values(), 0])
_DAY: Final = 86_400_000_000


def write_column(pattern: str, micros: pa.Array) -> pa.Array:
    """VARCHAR: moments, given as microseconds since 1970, in a format; NULL where the moment is.

    22008  a moment that no format writes: before the year 1 or after 9999
    """
    numbers, valid = views.values_of(pc.fill_null(micros, 0)), views.valid_of(micros)
    parts: list[Any] = [part if isinstance(part, str) else _texts_of(numbers, part) for part in writers(pattern)]
    made = pc.binary_join_element_wise(*(part for part in parts if not isinstance(part, str) or part), "")
    if isinstance(made, pa.Scalar):
        made = pa.repeat(made, len(micros))
    return made if valid is None else pc.if_else(pc.is_valid(micros), made, pa.scalar(None, pa.string()))


@per_row
def _texts_of(numbers: Any, field: Any) -> pa.Array:
    """The texts of a field. Goes row by row over different days, hours, minutes and seconds alone: formats are open."""
    counts = numbers // field.unit
    if field.cycle:
        counts = counts % field.cycle
    return map_distinct(lambda count: field.write(moment_of(count * field.unit)), pa.string(), pa.array(counts))


@per_row
def read_column(pattern: str, texts: pa.Array, slow: Callable[[str], int | None]) -> pa.Array:
    """BIGINT: microseconds since 1970 of texts in a format; ``slow`` says them of texts that need a closer look.

    Those go row by row, as do texts that are to be refused: Python's datetime knows them.

    Formats with days of the year, zones and the like are read by ``slow`` alone.
    """
    names = reader(pattern).groupindex
    if not names or not names.keys() <= _READ:
        return map_distinct(slow, pa.int64(), texts)
    groups = pc.extract_regex(pc.utf8_trim_whitespace(texts), f"^(?:{reader(pattern).pattern})$")
    is_read = pc.is_valid(groups)
    parts = {name: pc.struct_field(groups, name) for name in names}
    made, is_moment = _micros(parts, len(texts))
    good = views.to_boolean(is_moment & views.true_of(is_read))
    known = pc.if_else(good, pa.array(made), pa.scalar(None, pa.int64()))
    rest = pc.and_not(pc.is_valid(texts), good)
    if not pc.any(rest).as_py():
        return known
    return pc.replace_with_mask(known, rest, map_distinct(slow, pa.int64(), texts.filter(rest)))


def _micros(parts: dict[str, pa.Array], rows: int) -> tuple[Any, Any]:
    """int64 microseconds since 1970, and whether there is such a moment."""

    def number(name: str, otherwise: int = 0) -> Any:
        if name not in parts:
            return np.full(rows, otherwise, np.int64)
        text = pc.utf8_ltrim(pc.utf8_trim_whitespace(parts[name]), "+")
        return np.asarray(pc.fill_null(text, str(otherwise)).cast(pa.int64()))

    year, month, day = number("year", 1970), number("month", 1), number("day", 1)
    if "year2" in parts:
        year = number("year2")
        year = year + np.where(year >= 70, 1900, 2000)
    if "name" in parts:
        place = pc.index_in(pc.utf8_lower(parts["name"]), _MONTHS)
        month = _NUMBERS[np.asarray(pc.fill_null(place, len(_MONTHS)))]
    hour, minute, second = number("hour"), number("minute"), number("second")
    good = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (hour <= 24) & (minute <= 59) & (second <= 60)
    if "hour12" in parts:
        clock = number("hour12", 1)
        good &= (clock >= 1) & (clock <= 12)
        is_late = pc.match_substring_regex(parts["half"], "^[Pp]") if "half" in parts else pa.array(np.zeros(rows, np.bool_))
        hour = clock % 12 + np.where(views.true_of(is_late), 12, 0)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0).astype("M8[M]")
    first = months.astype("M8[D]").astype(np.int64)
    good &= (day >= 1) & (day <= (months + 1).astype("M8[D]").astype(np.int64) - first)
    seconds = (hour * 60 + minute) * 60 + second
    return (first + day - 1) * _DAY + seconds * 1_000_000 + _fraction(parts, rows), good


def _fraction(parts: dict[str, pa.Array], rows: int) -> Any:
    """int64 microseconds of a second's fraction."""
    if "fraction" in parts:
        share = pc.binary_join_element_wise("0", pc.fill_null(parts["fraction"], ""), "").cast(pa.float64())
        return np.round(np.asarray(share) * 1_000_000).astype(np.int64)
    name, width = ("digits", 6) if "digits" in parts else ("nanos", 9)
    if name not in parts:
        return np.zeros(rows, np.int64)
    padded = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(parts[name], "0"), width, "0"), 0, width)
    return np.asarray(padded.cast(pa.int64())) // 10 ** (width - 6)
