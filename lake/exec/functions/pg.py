"""Functions that Postgres's clients call on its catalog: names of types and relations, definitions, comments, rights.

What they look up comes with the statement's settings (``Settings.names``); without it they answer NULL.
Source: PostgreSQL documentation, 9.26 (System Information Functions) and 9.27 (System Administration Functions).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "postgres"
SLEEP_SECS_MAX: Final = 3_600.0


def names_of(call: CallInfo) -> Any:
    """What looks names and numbers of the statement's catalog up."""
    names = None if call.settings is None else call.settings.names
    return _NoNames() if names is None else names()


class _NoNames:
    """What is looked up without a session: nothing."""

    def nothing(self, *values: object) -> None:
        """NULL."""

    type_title = is_visible = constraint = index = view = comment = relation_oid = relation_oid_or_fail = nothing
    serial_sequence = last_number = nothing
    relation_name = type_oid = schema_oid = schema_name = may = may_on = set_config = bytes_of = nothing
    database_bytes = nothing


@per_row
def _each(run: Callable[..., Any], type: pa.DataType, *values: Value) -> pa.Array:
    """``run`` over rows without NULLs. Goes row by row: the catalog is asked by one name or number, and has few rows."""
    return map_rows(run, type, *values)


@per_row
def _rows(call: CallInfo, run: Callable[..., Any], type: pa.DataType, *values: Value) -> pa.Array:
    """``run`` over rows, NULLs included. Goes row by row: the catalog is asked by one name or number, and has few rows."""
    lists = [as_array(value, call.rows).to_pylist() for value in values]
    return pa.array([run(*row) for row in zip(*lists, strict=True)], type)


@scalar("format_type(oid BIGINT, modifier BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable",
        strict=False, takes_call=True)  # fmt: skip
def format_type(oid: Value, modifier: Value, *, call: CallInfo) -> pa.Array:
    """A type's SQL name by its oid and modifier.

    >>> format_type(NULL, NULL)
    NULL
    """
    return _rows(call, names_of(call).type_title, pa.string(), oid, modifier)


@scalar("pg_table_is_visible(oid BIGINT) -> BOOLEAN", group=GROUP, origin="postgres", volatility="stable",
        takes_call=True)  # fmt: skip
def pg_table_is_visible(oid: Value, *, call: CallInfo) -> pa.Array:
    """Whether a relation is found without its schema.

    >>> pg_table_is_visible(1)
    NULL
    """
    return _each(names_of(call).is_visible, pa.bool_(), as_array(oid, call.rows))


@scalar("pg_type_is_visible(oid BIGINT) -> BOOLEAN", group=GROUP, origin="postgres", takes_call=True,
        aliases=("pg_function_is_visible", "pg_collation_is_visible", "pg_opclass_is_visible", "pg_operator_is_visible",
                 "pg_statistics_obj_is_visible", "pg_ts_config_is_visible", "pg_ts_dict_is_visible"))  # fmt: skip
def pg_type_is_visible(oid: Value, *, call: CallInfo) -> pa.Array:
    """Whether a type, function or the like is found without its schema: all are.

    >>> pg_type_is_visible(1)
    true
    """
    return _each(lambda _: True, pa.bool_(), as_array(oid, call.rows))


@scalar("pg_get_expr(expression VARCHAR, relation BIGINT) -> VARCHAR", group=GROUP, origin="postgres", strict=False,
        takes_call=True)  # fmt: skip
@scalar("pg_get_expr(expression VARCHAR, relation BIGINT, pretty BOOLEAN) -> VARCHAR", group=GROUP, origin="postgres",
        strict=False, takes_call=True)  # fmt: skip
def pg_get_expr(expression: Value, relation: Value, pretty: Value | None = None, *, call: CallInfo) -> pa.Array:
    """A stored expression as SQL: it is kept as such.

    >>> pg_get_expr('1 + 1', 0)
    1 + 1
    """
    return as_array(expression, call.rows)


@scalar("pg_get_constraintdef(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable",
        takes_call=True)  # fmt: skip
@scalar("pg_get_constraintdef(oid BIGINT, pretty BOOLEAN) -> VARCHAR", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
def pg_get_constraintdef(oid: Value, pretty: Value | None = None, *, call: CallInfo) -> pa.Array:
    """A rule of a table as ALTER TABLE writes it.

    >>> pg_get_constraintdef(1)
    NULL
    """
    return _each(names_of(call).constraint, pa.string(), as_array(oid, call.rows))


@scalar("pg_get_indexdef(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
@scalar("pg_get_indexdef(oid BIGINT, column BIGINT, pretty BOOLEAN) -> VARCHAR", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
def pg_get_indexdef(
    oid: Value, column: Value | None = None, pretty: Value | None = None, *, call: CallInfo
) -> pa.Array:
    """An index as a statement, or one of its columns.

    >>> pg_get_indexdef(1)
    NULL
    """
    place = pa.scalar(0, pa.int64()) if column is None else column
    return _each(names_of(call).index, pa.string(), as_array(oid, call.rows), as_array(place, call.rows))


@scalar("pg_get_viewdef(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
@scalar("pg_get_viewdef(oid BIGINT, pretty BOOLEAN) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable",
        takes_call=True)  # fmt: skip
def pg_get_viewdef(oid: Value, pretty: Value | None = None, *, call: CallInfo) -> pa.Array:
    """A view's query.

    >>> pg_get_viewdef(1)
    NULL
    """
    return _each(names_of(call).view, pa.string(), as_array(oid, call.rows))


@scalar("pg_get_userbyid(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
def pg_get_userbyid(oid: Value, *, call: CallInfo) -> pa.Array:
    """A role's name.

    >>> pg_get_userbyid(10)
    admin
    """
    known = {10: "admin", 11: "writer", 12: "reader"}
    return _each(lambda item: known.get(item, f"unknown (OID={item})"), pa.string(), as_array(oid, call.rows))


@scalar("obj_description(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
@scalar("obj_description(oid BIGINT, catalog VARCHAR) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable",
        takes_call=True)  # fmt: skip
def obj_description(oid: Value, catalog: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The comment of a relation.

    >>> obj_description(1)
    NULL
    """
    where = pa.scalar("pg_class") if catalog is None else catalog
    comment = names_of(call).comment
    return _each(lambda item, place: comment(item, 0) if place == "pg_class" else None, pa.string(),
                    as_array(oid, call.rows), as_array(where, call.rows))  # fmt: skip


@scalar("col_description(oid BIGINT, column BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable",
        takes_call=True)  # fmt: skip
def col_description(oid: Value, column: Value, *, call: CallInfo) -> pa.Array:
    """The comment of a column.

    >>> col_description(1, 1)
    NULL
    """
    return _each(names_of(call).comment, pa.string(), as_array(oid, call.rows), as_array(column, call.rows))


@scalar("to_regclass(name VARCHAR) -> BIGINT", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def to_regclass(name: Value, *, call: CallInfo) -> pa.Array:
    """The oid of a relation, NULL where there is none.

    >>> to_regclass('none')
    NULL
    """
    return _each(names_of(call).relation_oid, pa.int64(), as_array(name, call.rows))


@scalar("regclass(name VARCHAR) -> BIGINT", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def regclass_oid(name: Value, *, call: CallInfo) -> pa.Array:
    """The oid of a relation: what a text cast to REGCLASS means beside numbers.

    >>> regclass('none')
    NULL

    42P01  no such relation
    """
    return _each(names_of(call).relation_oid_or_fail, pa.int64(), as_array(name, call.rows))


@scalar("regclass(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def regclass_name(oid: Value, *, call: CallInfo) -> pa.Array:
    """The name of a relation: what an oid cast to REGCLASS shows.

    >>> regclass(NULL::BIGINT)
    NULL
    """
    return _each(names_of(call).relation_name, pa.string(), as_array(oid, call.rows))


@scalar("regtype(name VARCHAR) -> BIGINT", group=GROUP, origin="postgres", volatility="stable", takes_call=True,
        aliases=("to_regtype",))  # fmt: skip
def regtype_oid(name: Value, *, call: CallInfo) -> pa.Array:
    """The oid of a type.

    >>> regtype('none')
    NULL

    42704  no such type
    """
    return _each(names_of(call).type_oid, pa.int64(), as_array(name, call.rows))


@scalar("regtype(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def regtype_name(oid: Value, *, call: CallInfo) -> pa.Array:
    """The name of a type.

    >>> regtype(NULL::BIGINT)
    NULL
    """
    title = names_of(call).type_title
    return _each(lambda item: title(item, None), pa.string(), as_array(oid, call.rows))


@scalar("regnamespace(name VARCHAR) -> BIGINT", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def regnamespace_oid(name: Value, *, call: CallInfo) -> pa.Array:
    """The oid of a schema.

    >>> regnamespace('none')
    NULL
    """
    return _each(names_of(call).schema_oid, pa.int64(), as_array(name, call.rows))


@scalar("regnamespace(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def regnamespace_name(oid: Value, *, call: CallInfo) -> pa.Array:
    """The name of a schema.

    >>> regnamespace(NULL::BIGINT)
    NULL
    """
    return _each(names_of(call).schema_name, pa.string(), as_array(oid, call.rows))


@scalar("regproc(name ANY) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True, aliases=("regprocedure", "regrole"))
def regproc(name: Value, *, call: CallInfo) -> pa.Array:
    """A function's name, which is what the catalog keeps in place of its oid.

    >>> regproc('lower')
    lower
    """
    return _each(str, pa.string(), as_array(name, call.rows))


# --- the server ------------------------------------------------------------------------------------------------------


@scalar("set_config(name VARCHAR, value VARCHAR, is_local BOOLEAN) -> VARCHAR", group=GROUP, origin="postgres",
        volatility="volatile", strict=False, takes_call=True)  # fmt: skip
def set_config(name: Value, value: Value, is_local: Value, *, call: CallInfo) -> pa.Array:
    """Changes a setting of the session; its value afterwards.

    >>> set_config('a', NULL, true)
    NULL
    """
    change = names_of(call).set_config
    return _rows(call, lambda key, new, _: change(key, new), pa.string(), name, value, is_local)


@scalar("pg_encoding_to_char(encoding BIGINT) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
def pg_encoding_to_char(encoding: Value, *, call: CallInfo) -> pa.Array:
    """The name of an encoding.

    >>> pg_encoding_to_char(6)
    UTF8
    """
    return _each(lambda item: "UTF8" if item == 6 else "", pa.string(), as_array(encoding, call.rows))


@scalar("pg_client_encoding() -> VARCHAR", group=GROUP, origin="postgres", aliases=("getdatabaseencoding",))
def pg_client_encoding() -> pa.Scalar:
    """The encoding of texts.

    >>> pg_client_encoding()
    UTF8
    """
    return pa.scalar("UTF8")


@scalar("pg_is_in_recovery() -> BOOLEAN", group=GROUP, origin="postgres", aliases=("pg_is_wal_replay_paused",))
def pg_is_in_recovery() -> pa.Scalar:
    """Whether the server only follows another.

    >>> pg_is_in_recovery()
    false
    """
    return pa.scalar(False)


@scalar("pg_backend_pid() -> INT", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def pg_backend_pid(*, call: CallInfo) -> pa.Scalar:
    """The number of the connection.

    >>> pg_backend_pid() >= 0
    true
    """
    session = {} if call.settings is None else call.settings.session
    return pa.scalar(int(session.get("lake.backend_pid", "0")), pa.int32())


@scalar("pg_advisory_unlock_all() -> VARCHAR", group=GROUP, origin="postgres", volatility="stable",
        aliases=("inet_server_addr", "inet_client_addr", "inet_server_port", "inet_client_port"))  # fmt: skip
def pg_advisory_unlock_all() -> pa.Scalar:
    """NULL: there are no such locks, and addresses are not told.

    >>> pg_advisory_unlock_all()
    NULL
    """
    return pa.scalar(None, pa.string())


@scalar("pg_sleep(secs DOUBLE) -> VARCHAR", group=GROUP, origin="postgres", volatility="volatile", takes_call=True)
def pg_sleep(secs: Value, *, call: CallInfo) -> pa.Array:
    """Waits; answers nothing.

    >>> pg_sleep(0)
    NULL
    """
    for item in as_array(secs, call.rows).to_pylist():
        if item is not None and item > 0:
            threading.Event().wait(min(item, SLEEP_SECS_MAX))
    return pa.nulls(call.rows, pa.string())


# --- sizes -----------------------------------------------------------------------------------------------------------


@scalar("pg_relation_size(oid BIGINT) -> BIGINT", group=GROUP, origin="postgres", volatility="stable", takes_call=True,
        aliases=("pg_table_size", "pg_total_relation_size"))  # fmt: skip
def pg_relation_size(oid: Value, *, call: CallInfo) -> pa.Array:
    """Bytes of a table's files.

    >>> pg_relation_size(1)
    NULL
    """
    return _each(names_of(call).bytes_of, pa.int64(), as_array(oid, call.rows))


@scalar("pg_stat_get_numscans(oid BIGINT) -> BIGINT", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def pg_stat_get_numscans(oid: Value, *, call: CallInfo) -> pa.Array:
    """How often an index was scanned: never, for nothing is found by indexes.

    >>> pg_stat_get_numscans(16384)
    0
    """
    return pc.if_else(pc.is_valid(as_array(oid, call.rows)), pa.scalar(0, pa.int64()), None)


@scalar("pg_database_size(database ANY) -> BIGINT", group=GROUP, origin="postgres", volatility="stable", takes_call=True)
def pg_database_size(database: Value, *, call: CallInfo) -> pa.Array:
    """Bytes of all tables' files.

    >>> pg_database_size('lake')
    NULL
    """
    size = names_of(call).database_bytes()
    return _each(lambda _: size, pa.int64(), as_array(database, call.rows))


@scalar("pg_size_pretty(size BIGINT) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
def pg_size_pretty(size: Value, *, call: CallInfo) -> pa.Array:
    """A count of bytes with a unit.

    >>> pg_size_pretty(123456)
    121 kB
    """
    return _each(_pretty, pa.string(), as_array(size, call.rows))


def _pretty(size: int) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    place = 0
    while abs(size) >= 10_240 and place < len(units) - 1:
        size = (size + 512) // 1_024
        place += 1
    return f"{size} {units[place]}"


# --- what does not exist here ----------------------------------------------------------------------------------------

_ABOUT_NOTHING: Final = (
    "pg_get_functiondef", "pg_get_triggerdef", "pg_get_ruledef", "pg_get_partkeydef", "pg_get_function_arguments",
    "pg_get_function_identity_arguments", "pg_get_function_result", "pg_get_function_sqlbody",
    "pg_get_partition_constraintdef", "pg_get_statisticsobjdef_columns", "pg_get_statisticsobjdef",
    "pg_tablespace_location",
)  # fmt: skip


@scalar("pg_partition_ancestors(oid BIGINT) -> BIGINT", group=GROUP, origin="postgres", takes_call=True)
def pg_partition_ancestors(oid: Value, *, call: CallInfo) -> pa.Array:
    """NULL: a table's partitions are files of its own.

    >>> pg_partition_ancestors(1)
    NULL
    """
    return pa.nulls(call.rows, pa.int64())


@scalar("shobj_description(oid BIGINT, catalog VARCHAR) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
@scalar("pg_get_triggerdef(oid BIGINT, pretty BOOLEAN) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True,
        aliases=("pg_get_ruledef",))  # fmt: skip
@scalar("pg_get_trigger(oid BIGINT) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True, aliases=_ABOUT_NOTHING)
def about_nothing(*values: Value, call: CallInfo) -> pa.Array:
    """NULL: triggers, rules, partitions, sequences and comments of databases do not exist here.

    >>> shobj_description(1, 'pg_database')
    NULL
    """
    return pa.nulls(call.rows, pa.string())


@scalar("pg_relation_is_publishable(oid BIGINT) -> BOOLEAN", group=GROUP, origin="postgres", takes_call=True)
def pg_relation_is_publishable(oid: Value, *, call: CallInfo) -> pa.Array:
    """Whether a relation may be replicated logically: none may.

    >>> pg_relation_is_publishable(1)
    false
    """
    return _each(lambda _: False, pa.bool_(), as_array(oid, call.rows))
