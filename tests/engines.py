"""Engines that tests run SQL on: the lake, and Postgres and DuckDB to compare it with.

    engine.execute("SELECT 1 AS a, 'x' AS b")  ->  Answer(names=("a", "b"), letters="IT", rows=[(1, "x")], count=None)

Values are Python's: int, float, Decimal, str, bool, bytes, date, time, datetime, Interval, list, None. ``value_text``
is how golden files write them.
"""

from __future__ import annotations

import datetime
import math
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

import lake
from lake import types
from lake.errors import LakeError

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"})
SIGNIFICANT_DIGITS: Final = 12  # of a float in golden files: sums in another order differ after the fifteenth


class Interval(NamedTuple):
    """An interval, comparable across engines."""

    months: int
    days: int
    nanoseconds: int


class Failure(Exception):
    """A statement that an engine refused; ``sqlstate`` is "" where the engine has none."""

    def __init__(self, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement answered: letters of column types, rows, and rows written where it wrote."""

    names: tuple[str, ...] = ()
    letters: str = ""
    rows: Sequence[tuple[Any, ...]] = ()
    count: int | None = None


class Engine(Protocol):
    """What the runners ask of an engine."""

    name: str

    def execute(self, text: str) -> Answer:
        """The answer of one statement, or a Failure."""
        ...

    def restart(self) -> None:
        """Closes the database and opens it again."""
        ...

    def close(self) -> None:
        """Lets everything go."""
        ...


class LakeEngine:
    """The lake, embedded, in a folder of its own that goes when it closes."""

    name = "lake"

    def __init__(self, folder: Path | None = None, **settings: Any) -> None:
        self._scratch = None if folder else Path(tempfile.mkdtemp(prefix="lake-slt-"))
        self.folder = folder or self._scratch / "lake"  # type: ignore[operator]
        self._settings = settings
        self._database = lake.open(self.folder, **settings)

    def execute(self, text: str) -> Answer:
        """The answer of one statement."""
        try:
            result = self._database.sql(text)
            letters = "".join(map(letter_of, result.types))
            rows = [tuple(map(_plain, row)) for row in result.rows()]
            return Answer(result.columns, letters, rows, (result.outcome or {}).get("rows"))
        except LakeError as error:
            raise Failure(str(error), error.sqlstate) from error
        except Exception as error:  # what a node would answer as XX000: a mistake of ours, told with its place
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            raise Failure(f"internal error: {type(error).__name__}: {error} ({where})", "XX000") from error

    def restart(self) -> None:
        """Closes the lake and opens it again from its folder."""
        self._database.close()
        self._database = lake.open(self.folder, **self._settings)

    def close(self) -> None:
        """Closes the lake and removes a folder that was made for it."""
        self._database.close()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)


class PostgresEngine:
    """A schema of its own on a Postgres server, dropped when it closes."""

    name = "postgres"

    def __init__(self, conninfo: str, schema: str = "tests") -> None:
        self._conninfo, self._schema = conninfo, schema
        self._connect()
        self._connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
        self._connection.execute(f"CREATE SCHEMA {schema}".encode())

    def _connect(self) -> None:
        import psycopg

        self._connection = psycopg.connect(self._conninfo, autocommit=True)
        register_interval(self._connection)
        self._connection.execute(f"SET search_path TO {self._schema}".encode())
        self._connection.execute("SET TimeZone TO 'UTC'")

    def execute(self, text: str) -> Answer:
        """The answer of one statement."""
        import psycopg

        try:
            cursor = self._connection.execute(text.encode(), prepare=False)
            rows = cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise Failure(str(error), error.sqlstate or "") from error
        if cursor.description is None:
            return Answer(count=cursor.rowcount if cursor.rowcount >= 0 else None)
        letters = "".join(POSTGRES_LETTERS.get(column.type_code, "?") for column in cursor.description)
        return Answer(tuple(column.name for column in cursor.description), letters, rows)

    def restart(self) -> None:
        """Connects again; the server keeps what was written."""
        self._connection.close()
        self._connect()

    def close(self) -> None:
        """Drops the schema and the connection."""
        self._connection.execute(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE".encode())
        self._connection.close()


class DuckDBEngine:
    """DuckDB in memory; a restart keeps it, as it has no folder."""

    name = "duckdb"

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")

    def execute(self, text: str) -> Answer:
        """The answer of one statement."""
        import duckdb

        try:
            cursor = self._connection.execute(text)
            if not cursor.description:
                return Answer()
            names = tuple(column[0] for column in cursor.description)
            letters = "".join(_duckdb_letter(str(column[1])) for column in cursor.description)
            return Answer(names, letters, cursor.fetchall())
        except duckdb.Error as error:
            raise Failure(str(error)) from error

    def restart(self) -> None:
        """Nothing: a database in memory has nothing to open."""

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


ENGINES: Final[dict[str, Callable[..., Engine]]] = {
    "lake": LakeEngine, "postgres": PostgresEngine, "duckdb": DuckDBEngine,
}

POSTGRES_LETTERS: Final = {
    16: "B", 20: "I", 21: "I", 23: "I", 26: "I", 700: "R", 701: "R", 1700: "R", 25: "T", 1043: "T", 1042: "T", 19: "T",
    1082: "D", 1083: "D", 1114: "P", 1184: "P",
}


def letter_of(type: types.Type) -> str:
    """The letter golden files write for a SQL type; ``?`` for those that have none."""
    match type:
        case types.Boolean():
            return "B"
        case types.Integer():
            return "I"
        case types.Float() | types.Decimal():
            return "R"
        case types.Text() | types.Json():
            return "T"
        case types.Date() | types.Time():
            return "D"
        case types.Timestamp():
            return "P"
    return "?"


def _duckdb_letter(name: str) -> str:
    head = name.split("(")[0]
    if head.startswith("DECIMAL") or head in ("DOUBLE", "FLOAT"):
        return "R"
    if head.startswith("TIMESTAMP"):
        return "P"
    if head.endswith("INT") or head == "INTEGER":
        return "I"
    return {"BOOLEAN": "B", "VARCHAR": "T", "DATE": "D", "TIME": "D"}.get(head, "?")


def register_interval(connection: Any) -> None:
    """Makes a Postgres connection answer intervals as Interval, with months apart from days, REAL as what it holds, UUID as text."""
    from psycopg.adapt import Loader

    class IntervalLoader(Loader):
        def load(self, data: Any) -> Interval:
            return parse_postgres_interval(bytes(data).decode())

    class RealLoader(Loader):
        def load(self, data: Any) -> float:
            return float(np.float32(bytes(data).decode()))

    class UuidLoader(Loader):
        def load(self, data: Any) -> str:
            return bytes(data).decode()

    connection.execute("SET IntervalStyle TO 'postgres'")
    connection.adapters.register_loader("interval", IntervalLoader)
    connection.adapters.register_loader("float4", RealLoader)
    connection.adapters.register_loader("uuid", UuidLoader)


def parse_postgres_interval(text: str) -> Interval:
    """The interval that Postgres writes as ``1 year 2 mons -3 days +04:05:06.7``."""
    months = days = nanoseconds = 0
    words = text.split()
    while words:
        word = words.pop(0)
        if ":" in word:
            sign = -1 if word.startswith("-") else 1
            hours, minutes, seconds = word.lstrip("+-").split(":")
            whole = (int(hours) * 3600 + int(minutes) * 60) * 10**9 + int(Decimal(seconds) * 10**9)
            nanoseconds += sign * whole
            continue
        unit = words.pop(0).rstrip("s")
        months += int(word) * {"year": 12, "mon": 1}.get(unit, 0)
        days += int(word) if unit == "day" else 0
    return Interval(months, days, nanoseconds)


def _plain(value: Any) -> Any:
    """A value as every engine here answers it."""
    if isinstance(value, pa.MonthDayNano):
        return Interval(value.months, value.days, value.nanoseconds)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def value_text(value: Any, *, nested: bool = False) -> str:
    """A value as golden files write it: on one line, and never empty."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return _float_text(value)
        case Decimal():
            return format(value, "f")
        case str():
            return value if nested else _escaped(value) or "(empty)"
        case Interval() | datetime.timedelta():
            return _interval_text(_as_interval(value))
        case datetime.datetime():
            moment = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
            return _trim_fraction(moment.isoformat()) + ("Z" if value.tzinfo else "")
        case datetime.time():
            return _trim_fraction(value.isoformat())
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex() or "(empty)"
        case list() | tuple():
            return f"[{', '.join(value_text(item, nested=True) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {value_text(item, nested=True)}' for key, item in value.items())}}}"
    return str(value)


def row_text(row: Iterable[Any]) -> str:
    """A row as golden files write it: values with one space between."""
    return " ".join(value_text(value) for value in row).rstrip()


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(f"{value:.{SIGNIFICANT_DIGITS}g}"))


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _trim_fraction(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def _as_interval(value: Interval | datetime.timedelta) -> Interval:
    if isinstance(value, Interval):
        return value
    return Interval(0, value.days, (value.seconds * 10**6 + value.microseconds) * 1000)


def _interval_text(value: Interval) -> str:
    """``14 mons 3 days 4 hours 5 mins 6.5 secs``, without the parts that are 0."""
    parts = [f"{value.months} mons"] if value.months else []
    parts += [f"{value.days} days"] if value.days else []
    sign, left = ("-", -value.nanoseconds) if value.nanoseconds < 0 else ("", value.nanoseconds)
    hours, left = divmod(left, 3600 * 10**9)
    minutes, left = divmod(left, 60 * 10**9)
    seconds = Decimal(left) / 10**9
    parts += [f"{sign}{hours} hours"] if hours else []
    parts += [f"{sign}{minutes} mins"] if minutes else []
    parts += [f"{sign}{seconds.normalize():f} secs"] if seconds else []
    return " ".join(parts) or "0 secs"
