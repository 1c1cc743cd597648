"""Conditionals: coalesce, nullif, greatest, least and their kin."""

from __future__ import annotations

from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lake.exec import decimals
from lake.exec.comparisons import compare
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import columns
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import Decimal, Type

GROUP: Final = "conditionals"


@scalar("coalesce(value T, others T...) -> T", group=GROUP, strict=False, lazy=True, takes_call=True,
        aliases=("ifnull", "nvl"))  # fmt: skip
def coalesce(*values: Value, call: CallInfo) -> pa.Array:
    """The first argument that is not NULL.

    >>> coalesce(NULL, 2, 3)
    2
    """
    answer = as_array(values[-1], call.rows)
    for value in reversed(values[:-1]):
        if isinstance(value, pa.Scalar):
            answer = as_array(value, call.rows) if value.is_valid else answer
        elif value.null_count == 0:
            answer = value
        elif pa.types.is_nested(value.type) or pa.types.is_interval(value.type):
            answer = pc.if_else(pc.is_valid(value), value, answer)
        else:
            answer = pc.coalesce(value, answer)
    return answer


@scalar("nullif(value T, other T) -> T", group=GROUP, strict=False, takes_call=True)
def nullif(value: Value, other: Value, *, call: CallInfo) -> pa.Array:
    """NULL where both are equal, else the first.

    >>> nullif(1, 2)
    1
    """
    value = as_array(value, call.rows)
    equal = compare("=", value, other, call.returns)
    return pc.if_else(pc.fill_null(equal, False), pa.scalar(None, value.type), value)


@scalar("nvl2(value ANY, there T, missing T) -> T", group=GROUP, strict=False, takes_call=True)
def nvl2(value: Value, there: Value, missing: Value, *, call: CallInfo) -> pa.Array:
    """The second argument where the first is not NULL, else the third.

    >>> nvl2(1, 'a', 'b')
    a
    """
    value = as_array(value, call.rows)
    return pc.if_else(pc.is_valid(value), as_array(there, call.rows), as_array(missing, call.rows))


@scalar("if(condition BOOLEAN, yes T, no T) -> T", group=GROUP, origin="spark", strict=False, takes_call=True,
        aliases=("iff",))  # fmt: skip
def if_(condition: Value, yes: Value, no: Value, *, call: CallInfo) -> pa.Array:
    """The second argument where the condition is true, else the third.

    >>> if(1 > 2, 'yes', 'no')
    no
    """
    condition = pc.fill_null(as_array(condition, call.rows), False)
    return pc.if_else(condition, as_array(yes, call.rows), as_array(no, call.rows))


@scalar("greatest(value T, others T...) -> T", group=GROUP, strict=False, takes_call=True)
def greatest(*values: Value, call: CallInfo) -> pa.Array:
    """The greatest argument that is not NULL.

    >>> greatest(1, NULL, 3, 2)
    3
    """
    return reduce(lambda one, two: _better(">=", one, two, call.returns), columns_of(values, call))


@scalar("least(value T, others T...) -> T", group=GROUP, strict=False, takes_call=True)
def least(*values: Value, call: CallInfo) -> pa.Array:
    """The least argument that is not NULL.

    >>> least(1, NULL, 3)
    1
    """
    return reduce(lambda one, two: _better("<=", one, two, call.returns), columns_of(values, call))


def columns_of(values: tuple[Value, ...], call: CallInfo) -> list[pa.Array]:
    """The arguments as columns."""
    made = [as_array(value, call.rows) for value in values]
    if isinstance(call.returns, Decimal):
        made = [decimals.widen(value, call.returns) for value in made]
    return made


def _better(op: str, one: pa.Array, two: pa.Array, type: Type) -> pa.Array:
    first = pc.or_(pc.fill_null(compare(op, one, two, type), False), pc.is_null(two))
    return pc.if_else(first, one, two)


@scalar("num_nulls(values ANY...) -> BIGINT", group=GROUP, origin="postgres", strict=False, takes_call=True)
def num_nulls(*values: Value, call: CallInfo) -> pa.Array:
    """How many arguments are NULL.

    >>> num_nulls(1, NULL, NULL)
    2
    """
    missing = [pc.is_null(as_array(value, call.rows)).cast(pa.int64()) for value in values]
    return reduce(pc.add, missing, as_array(pa.scalar(0), call.rows))


@scalar("num_nonnulls(values ANY...) -> BIGINT", group=GROUP, origin="postgres", strict=False, takes_call=True)
def num_nonnulls(*values: Value, call: CallInfo) -> pa.Array:
    """How many arguments are not NULL.

    >>> num_nonnulls(1, NULL, NULL)
    1
    """
    return pc.subtract(pa.scalar(len(values)), num_nulls(*values, call=call))


@scalar("constant_or_null(value T, others ANY...) -> T", group=GROUP, origin="duckdb", strict=False, takes_call=True)
def constant_or_null(value: Value, *others: Value, call: CallInfo) -> pa.Array:
    """The first argument, or NULL where another is.

    >>> constant_or_null(42, 1)
    42
    """
    missing = views.to_boolean(num_nulls(*others, call=call).to_numpy() > 0)
    value = as_array(value, call.rows)
    return pc.if_else(missing, pa.scalar(None, value.type), value)


@scalar("is_distinct(a T, b T) -> BOOLEAN", group=GROUP, origin="lake", strict=False, takes_call=True)
def is_distinct(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Whether the arguments differ, NULL being equal to NULL.

    >>> is_distinct(1, NULL)
    true
    """
    one, two = columns(as_array(a, call.rows), b)
    return compare("is distinct", one, two, call.types[0])
