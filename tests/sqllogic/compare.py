"""Whether an answer is the one that a file expects, by the rules of its dialect.

Each function answers what is wrong, "" where nothing is. ``seen`` holds the hashes of labelled queries of the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from lake.types import Boolean, Float, Integer, Timestamp, Type
from lake.types import Decimal as DecimalType
from tests.sqllogic.answers import Typed
from tests.sqllogic.records import Record
from tests.sqllogic.texts import datafusion_text, duckdb_text, sqlite_text

FLOAT_TOLERANCE: Final = 0.01  # of DuckDB's files
DECIMAL_TOLERANCE: Final = Decimal("1e-9")
IGNORED: Final = "<slt:ignore>"
HASHED: Final = "values hashing to"


def same_datafusion(record: Record, answer: Typed, seen: dict[str, str]) -> str:
    """A line a row, its cells with a space between; a last cell of several lines takes several."""
    rows: list[list[str]] = []
    for values in answer.rows or ():
        cells = [datafusion_text(value, type) for value, type in zip(values, answer.types, strict=True)]
        if cells and "\n" in cells[-1]:
            *first, last = cells
            rows += [first] if first else []
            rows += [[f"{number:02})" + _dashes(line)] for number, line in enumerate(last.split("\n"), 1)]
        else:
            rows.append(cells)
    if record.sort == "rowsort":
        rows.sort()
    elif record.sort == "valuesort":
        rows = [[value] for value in sorted(value for row in rows for value in row)]
    got = [" ".join(row).rstrip() for row in rows]
    if answer.rows is None and answer.count is not None:  # a row with the count there, ``{"rows": n}`` here
        got = [str(answer.count)]
    want = [line.rstrip() for line in record.expected or ()]
    if len(want) == 1 and HASHED in want[0]:
        got = [_hashed([value for row in rows for value in row])]
    if any(IGNORED in line for line in want):
        pattern = ".*".join(map(re.escape, "\n".join(want).split(IGNORED)))
        return "" if re.fullmatch(pattern, "\n".join(got), re.DOTALL) else _difference(got, want)
    return _difference(got, want)


def _dashes(line: str) -> str:
    bare = line.lstrip()
    return "-" * (len(line) - len(bare)) + bare


def same_sqlite(record: Record, answer: Typed, seen: dict[str, str]) -> str:
    """A line a value, or one line with their count and hash."""
    if len(answer.types) != len(record.letters):
        return f"{len(answer.types)} columns, expected {len(record.letters)}"
    rows = [
        [sqlite_text(value, type, letter) for value, type, letter in zip(row, answer.types, record.letters, strict=True)]
        for row in answer.rows or ()
    ]
    if record.sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if record.sort == "valuesort":
        values.sort()
    if wrong := _label(record, values, seen):
        return wrong
    want = [line.strip() for line in record.expected or ()]
    if record.expected is None:
        return ""
    if len(want) == 1 and HASHED in want[0]:
        return _difference([_hashed(values)], want)
    return _difference([value.strip() for value in values], want)


def same_duckdb(record: Record, answer: Typed, seen: dict[str, str]) -> str:
    """A line a row, its cells parted by tabs; or a line a value. Floats are alike within a hundredth."""
    width = len(answer.types)
    rows = [
        [duckdb_text(value, type) for value, type in zip(row, answer.types, strict=True)] for row in answer.rows or ()
    ]
    if record.sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if record.sort == "valuesort":
        values.sort()
    if wrong := _label(record, values, seen):
        return wrong
    lines = list(record.expected or ())
    if record.expected is None or (not lines and record.label):
        return ""
    if len(lines) == 1 and HASHED in lines[0]:
        return _difference([_hashed(values)], [lines[0].strip()])
    if not width:  # a statement that is no query answers there how many rows it wrote
        return "" if lines in ([], [str(answer.count)]) else f"{answer.count} rows written, expected {lines}"
    want = _duckdb_values(lines, width, record.sort)
    if len(values) != len(want):
        return _difference(values, want)
    for number, (got, expected) in enumerate(zip(values, want, strict=True)):
        if not _same_duckdb_value(got, expected, answer.types[number % width]):
            return f"value {number}: got {got!r}, expected {expected!r}; {_difference(values, want)}"
    return ""


def _duckdb_values(lines: list[str], width: int, sort: str) -> list[str]:
    """The expected values row by row, sorted as the answer's are."""
    split = [_cells(line, width) for line in lines]
    if width > 1 and not all(len(cells) == width for cells in split) and len(lines) % width == 0:
        split = [lines[at : at + width] for at in range(0, len(lines), width)]
    elif width == 1:
        split = [[line] for line in lines]
    if sort == "rowsort":
        split.sort()
    values = [value for cells in split for value in cells]
    return sorted(values) if sort == "valuesort" else values


def _cells(line: str, width: int) -> list[str]:
    cells = line.split("\t")
    return cells if len(cells) == width else [cell for cell in cells if cell]


def _same_duckdb_value(got: str, want: str, type: Type) -> bool:
    want = want.strip()
    if got.strip() == want:
        return True
    if want.startswith(("<REGEX>:", "<!REGEX>:")):
        return bool(re.fullmatch(want.partition(":")[2], got, re.DOTALL)) is want.startswith("<REGEX>")
    match type:
        case Boolean():
            return {"0": "false", "1": "true"}.get(want.lower(), want.lower()) == got
        case Integer() | DecimalType() | Float():
            try:
                left, right = Decimal(got), Decimal(want)
                tolerance = Decimal(FLOAT_TOLERANCE) if isinstance(type, Float) else DECIMAL_TOLERANCE
                return left == right or abs(left - right) <= abs(right) * tolerance
            except InvalidOperation:
                return False
        case Timestamp():
            return got in (want, f"{want} 00:00:00")
    return False


def _label(record: Record, values: Sequence[str], seen: dict[str, str]) -> str:
    if not record.label:
        return ""
    found = _hashed(values)
    return "" if seen.setdefault(record.label, found) == found else f"label {record.label} was answered otherwise before"


def _hashed(values: Iterable[str]) -> str:
    kept = list(values)
    digest = hashlib.md5("".join(f"{value}\n" for value in kept).encode(), usedforsecurity=False).hexdigest()
    return f"{len(kept)} {HASHED} {digest}"


def _difference(got: Sequence[str], want: Sequence[str]) -> str:
    """Where two lists of lines part, "" where they are equal."""
    if list(got) == list(want):
        return ""
    at = next((at for at, (left, right) in enumerate(zip(got, want, strict=False)) if left != right), min(len(got), len(want)))
    return f"{len(got)} lines, expected {len(want)}; from line {at + 1}: got {got[at : at + 3]}, expected {want[at : at + 3]}"


def same_message(pattern: str, message: str, dialect: str) -> bool:
    """Whether an error's words are the expected ones: DataFusion's patterns, DuckDB's words."""
    if dialect == "duckdb":
        if pattern.startswith("<REGEX>:"):
            return bool(re.search(pattern.partition(":")[2], message, re.DOTALL))
        return pattern.strip().lower() in message.lower()
    wanted, told = " ".join(pattern.split()), " ".join(message.split())
    try:
        return wanted in told or bool(re.search(wanted, told))
    except re.error:
        return False


COMPARE: Final[dict[str, Callable[[Record, Typed, dict[str, str]], str]]] = {
    "df": same_datafusion, "duckdb": same_duckdb, "sqlite": same_sqlite,
}
