"""has_table_privilege and its like: what a user may do, as Postgres's clients ask.

Of tables, views and their columns by what was granted; of everything else by the caller's role, which has it on all alike.
Source: PostgreSQL documentation, 9.26 (Access Privilege Inquiry Functions). Spec: SQL, Users, roles, grants.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows
from lake.exec.functions.pg import GROUP, names_of
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

_OTHERS: Final = ("has_database_privilege", "has_function_privilege", "has_sequence_privilege", "has_type_privilege")


@scalar("has_table_privilege(relation ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
@scalar("has_table_privilege(user ANY, relation ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
@per_row
def has_table_privilege(*values: Value, call: CallInfo) -> pa.Array:
    """Whether the caller, or a user it may ask about, has one of the rights on all of a table or view; NULL of no relation.

    Goes row by row: the catalog is asked by one name or number, and has few rows.

    42P01  no such relation      42704  no such user

    >>> has_table_privilege('t', NULL)
    NULL
    """
    ask = names_of(call).may_on
    given = [as_array(value, call.rows) for value in values]
    if len(given) == 2:
        return map_rows(lambda relation, words: ask(None, relation, None, words), pa.bool_(), *given)
    return map_rows(lambda user, relation, words: ask(user, relation, None, words), pa.bool_(), *given)


@scalar("has_any_column_privilege(relation ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
@scalar("has_any_column_privilege(user ANY, relation ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
@per_row
def has_any_column_privilege(*values: Value, call: CallInfo) -> pa.Array:
    """As has_table_privilege, of one column at least.

    Goes row by row: the catalog is asked by one name or number, and has few rows.

    >>> has_any_column_privilege('t', NULL)
    NULL
    """
    ask = names_of(call).may_on
    given = [as_array(value, call.rows) for value in values]
    if len(given) == 2:
        return map_rows(lambda relation, words: ask(None, relation, "*", words), pa.bool_(), *given)
    return map_rows(lambda user, relation, words: ask(user, relation, "*", words), pa.bool_(), *given)


@scalar("has_column_privilege(relation ANY, column ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
@scalar("has_column_privilege(user ANY, relation ANY, column ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP,
        origin="postgres", volatility="stable", takes_call=True)  # fmt: skip
@per_row
def has_column_privilege(*values: Value, call: CallInfo) -> pa.Array:
    """As has_table_privilege, of a column by its name or number.

    Goes row by row: the catalog is asked by one name or number, and has few rows.

    >>> has_column_privilege('t', 'c', NULL)
    NULL
    """
    ask = names_of(call).may_on
    given = [as_array(value, call.rows) for value in values]
    if len(given) == 3:
        return map_rows(lambda relation, column, words: ask(None, relation, column, words), pa.bool_(), *given)
    return map_rows(ask, pa.bool_(), *given)


@scalar("has_schema_privilege(object ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True, aliases=_OTHERS)  # fmt: skip
@scalar("has_schema_privilege(user ANY, object ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True, aliases=_OTHERS)  # fmt: skip
@per_row
def has_schema_privilege(*values: Value, call: CallInfo) -> pa.Array:
    """Whether the caller's role has a right, which it has on all objects alike.

    Goes row by row: the catalog is asked by one name or number, and has few rows.

    >>> has_schema_privilege('public', NULL)
    NULL
    """
    return map_rows(names_of(call).may, pa.bool_(), as_array(values[-1], call.rows))


@scalar("pg_has_role(role ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres", takes_call=True)
@scalar("pg_has_role(user ANY, role ANY, privilege VARCHAR) -> BOOLEAN", group=GROUP, origin="postgres", takes_call=True)
@per_row
def pg_has_role(*values: Value, call: CallInfo) -> pa.Array:
    """Whether a user is a member of a role: roles hold one another.

    Goes row by row: the catalog is asked by one name or number, and has few rows.

    >>> pg_has_role('admin', 'MEMBER')
    true
    """
    return map_rows(lambda _: True, pa.bool_(), as_array(values[-1], call.rows))
