"""What a statement may ask of its session, and of the types of its values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake import __version__
from lake.arrow_names import parse_arrow_name
from lake.errors import InvalidParameter, UndefinedObject
from lake.exec.cast import cast, interval_array
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import with_constants
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.exec.spellings import fit, number_as_moment, unit_of
from lake.sql.catalog import Settings
from lake.sql.registry import CallInfo, scalar
from lake.types import BIGINT, Decimal, Float, Integer, Interval, Time, Timestamp, Type

GROUP: Final = "session"
NO_SETTINGS: Final = Settings(now=0)


def _settings(call: CallInfo) -> Settings:
    return NO_SETTINGS if call.settings is None else call.settings


@scalar("version() -> VARCHAR", group=GROUP, volatility="stable")
def version() -> pa.Scalar:
    """The program's name and version.

    >>> starts_with(version(), 'PostgreSQL 16.0 (lake ')
    true
    """
    return pa.scalar(f"PostgreSQL 16.0 (lake {__version__})")


@scalar("current_user() -> VARCHAR", group=GROUP, volatility="stable", takes_call=True,
        aliases=("session_user", "user", "current_role"))  # fmt: skip
def current_user(*, call: CallInfo) -> pa.Scalar:
    """Who runs the statement.

    >>> current_user
    admin
    """
    return pa.scalar(_settings(call).user)


@scalar(
    "current_database() -> VARCHAR", group=GROUP, volatility="stable", takes_call=True, aliases=("current_catalog",)
)
def current_database(*, call: CallInfo) -> pa.Scalar:
    """The database's name.

    >>> current_database()
    lake
    """
    return pa.scalar(_settings(call).database)


@scalar("current_schema() -> VARCHAR", group=GROUP, volatility="stable", takes_call=True)
def current_schema(*, call: CallInfo) -> pa.Scalar:
    """The schema where names are looked up first.

    >>> current_schema()
    public
    """
    return pa.scalar(_settings(call).schema)


@scalar("current_schemas(implicit BOOLEAN) -> VARCHAR[]", group=GROUP, origin="postgres", volatility="stable",
        takes_call=True)  # fmt: skip
@per_row
def current_schemas(implicit: Value, *, call: CallInfo) -> pa.Array:
    """The schemas where names are looked up, with ``implicit`` the catalogue's first.

    Goes row by row: it is asked of a constant, once.

    >>> current_schemas(true)
    [pg_catalog, public]
    """
    schema = _settings(call).schema
    rows = as_array(implicit, call.rows).to_pylist()
    paths = [None if item is None else ["pg_catalog", schema] if item else [schema] for item in rows]
    return pa.array(paths, pa.list_(pa.string()))


@scalar(
    "current_setting(name VARCHAR) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable", takes_call=True
)
@scalar("current_setting(name VARCHAR, missing_ok BOOLEAN) -> VARCHAR", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
@per_row
def current_setting(name: Value, missing_ok: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The value of a setting of the session. Goes row by row: it is asked of a constant, once.

    >>> current_setting('timezone')
    UTC

    42704  no such setting
    """
    settings = _settings(call)
    known = {**settings.session, "timezone": settings.time_zone, "search_path": settings.schema}

    def run(column: pa.Array, missing_ok: bool) -> pa.Array:
        found = []
        for item in column.to_pylist():
            if item is not None and item.lower() not in known and not missing_ok:
                raise UndefinedObject(f'unrecognized configuration parameter "{item}"')
            found.append(None if item is None else known.get(item.lower()))
        return pa.array(found, pa.string())

    return with_constants(run, pa.string(), name, pa.scalar(False) if missing_ok is None else missing_ok)


# --- types -----------------------------------------------------------------------------------------------------------


@scalar("typeof(value ANY) -> VARCHAR", group=GROUP, origin="duckdb", strict=False, takes_call=True)
def typeof(value: Value, *, call: CallInfo) -> pa.Array:
    """The SQL type of a value.

    >>> typeof(1.5)
    DECIMAL(2,1)
    """
    return as_array(pa.scalar(call.types[0].sql), call.rows)


@scalar("pg_typeof(value ANY) -> VARCHAR", group=GROUP, origin="postgres", strict=False, takes_call=True)
def pg_typeof(value: Value, *, call: CallInfo) -> pa.Array:
    """The type of a value, by its Postgres name.

    >>> pg_typeof(now())
    timestamp with time zone
    """
    return as_array(pa.scalar(_postgres_name(call.types[0].sql)), call.rows)


_POSTGRES_NAMES: Final = {
    "TINYINT": "smallint", "INT": "integer", "DOUBLE": "double precision", "VARCHAR": "text", "NULL": "unknown",
    "TIMESTAMP": "timestamp without time zone", "TIMESTAMPTZ": "timestamp with time zone",
    "TIME": "time without time zone",
}  # fmt: skip


def _postgres_name(sql: str) -> str:
    if sql.endswith("[]"):
        return _postgres_name(sql[:-2]) + "[]"
    if sql.startswith("DECIMAL"):
        return "numeric"
    return _POSTGRES_NAMES.get(sql, sql.lower())


@scalar("arrow_typeof(value ANY, name VARCHAR DEFAULT NULL) -> VARCHAR", group=GROUP, strict=False, takes_call=True)
def arrow_typeof(value: Value, name: Value, *, call: CallInfo) -> pa.Array:
    """The Arrow type of a value; its name is known as the call is bound.

    >>> arrow_typeof(1)
    Int64
    """
    return as_array(name, call.rows)


def _named_type(arguments: tuple[Any, ...]) -> Type:
    """The type that the second argument names.

    22023  it is no constant     42704  it names no type
    """
    name = getattr(arguments[1], "value", None)
    if not isinstance(name, str):
        raise InvalidParameter("arrow_cast takes the name of an Arrow type as a constant")
    return parse_arrow_name(name)


@scalar(
    "arrow_cast(value ANY, type VARCHAR) -> ANY", group=GROUP, strict=False, takes_call=True, literal_rule=_named_type
)
def arrow_cast(value: Value, type: Value, *, call: CallInfo) -> pa.Array:
    """The value as an Arrow type.

    >>> arrow_cast(1, 'Int8')
    1
    """
    return _arrow_cast(value, call, is_try=False)


def _arrow_cast(value: Value, call: CallInfo, *, is_try: bool) -> pa.Array:
    """The value as the type, numbers counting its unit."""
    column, source, target = as_array(value, call.rows), call.types[0], call.returns
    if isinstance(source, Integer | Decimal | Float) and isinstance(target, Timestamp | Time | Interval):
        whole = cast(column, source, BIGINT, is_try=is_try)
        if isinstance(target, Interval):
            count = NANOSECONDS_OF.get(unit_of(target), 1)
            zero = np.zeros(len(whole), np.int64)
            return interval_array(zero, 0, views.values_of(whole) * count, views.valid_of(whole))
        return fit(number_as_moment(whole, target), target, is_try=is_try)
    return cast(column, source, target, is_try=is_try, settings=call.settings)


NANOSECONDS_OF: Final = {"s": 1_000_000_000, "ms": 1_000_000, "µs": 1_000, "ns": 1}


@scalar("arrow_try_cast(value ANY, type VARCHAR) -> ANY", group=GROUP, strict=False, takes_call=True,
        literal_rule=_named_type)  # fmt: skip
def arrow_try_cast(value: Value, type: Value, *, call: CallInfo) -> pa.Array:
    """The value as an Arrow type, NULL where it does not cast.

    >>> arrow_try_cast('x', 'Int32')
    NULL
    """
    return _arrow_cast(value, call, is_try=True)


def _second_type(types: tuple[Type, ...]) -> Type:
    return types[1]


@scalar("cast_to_type(value ANY, like ANY) -> ANY", group=GROUP, strict=False, takes_call=True, returns=_second_type)
def cast_to_type(value: Value, like: Value, *, call: CallInfo) -> pa.Array:
    """The value as the type of another.

    >>> cast_to_type('42', NULL::INT)
    42
    """
    return cast(as_array(value, call.rows), call.types[0], call.returns, settings=call.settings)


@scalar(
    "try_cast_to_type(value ANY, like ANY) -> ANY", group=GROUP, strict=False, takes_call=True, returns=_second_type
)
def try_cast_to_type(value: Value, like: Value, *, call: CallInfo) -> pa.Array:
    """The value as the type of another, NULL where it does not cast.

    >>> try_cast_to_type('x', NULL::INT)
    NULL
    """
    return cast(as_array(value, call.rows), call.types[0], call.returns, is_try=True, settings=call.settings)


@scalar("error(message VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb", volatility="volatile")
def error(message: pa.Array) -> pa.Array:
    """Fails with a message.

    >>> coalesce('there', error('missing'))
    there

    22023  always
    """
    text = next((item for item in message.to_pylist() if item is not None), None)
    if text is not None:
        raise InvalidParameter(text)
    return message


@scalar("txid_current() -> BIGINT", group=GROUP, origin="duckdb", volatility="stable", takes_call=True)
def txid_current(*, call: CallInfo) -> pa.Scalar:
    """A number of the statement, greater than those of all statements before it: its start in microseconds.

    >>> txid_current() = txid_current()
    true
    """
    return pa.scalar(_settings(call).now, pa.int64())


# --- what Postgres clients ask ---------------------------------------------------------------------------------------



@scalar("obj_description(id BIGINT, catalog VARCHAR) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
@scalar("col_description(id BIGINT, place INT) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
def description(*arguments: Value, call: CallInfo) -> pa.Array:
    """The comment on an object by its oid: there is none.

    >>> obj_description(1, 'pg_class')
    NULL
    """
    return pa.nulls(call.rows, pa.string())
