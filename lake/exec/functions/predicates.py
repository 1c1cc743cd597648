"""Questions that answer true or false, and refusals: isnull, equal_null, regexp, assert_true, raise_error."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.patterns import regexp_like
from lake.exec.kernels import views
from lake.exec.kernels.order import boundaries
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "conditions"


@scalar("isnull(value ANY) -> BOOLEAN", group=GROUP, origin="spark", strict=False, takes_call=True)
def isnull(value: Value, *, call: CallInfo) -> pa.Array:
    """Whether the value is NULL.

    >>> SELECT isnull(1), isnull(NULL)
    false | true
    """
    return as_array(value, call.rows).is_null()


@scalar("isnotnull(value ANY) -> BOOLEAN", group=GROUP, origin="spark", strict=False, takes_call=True)
def isnotnull(value: Value, *, call: CallInfo) -> pa.Array:
    """Whether the value is not NULL.

    >>> SELECT isnotnull(1), isnotnull(NULL)
    true | false
    """
    return as_array(value, call.rows).is_valid()


@scalar("equal_null(a T, b T) -> BOOLEAN", group=GROUP, origin="spark", strict=False, takes_call=True)
def equal_null(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """Whether both are equal, or both NULL.

    >>> SELECT equal_null(NULL, NULL), equal_null(1, NULL), equal_null([1], [1])
    true | false | true
    """
    one, two = (views.plain(as_array(value, call.rows)) for value in (a, b))
    if pa.types.is_null(one.type):
        return pa.array(np.ones(call.rows, np.bool_))
    if pa.types.is_nested(one.type) or pa.types.is_interval(one.type):
        # Rows of both sides take turns: a pair is equal where the second row begins nothing new.
        turns = views.concat([one, two]).take(pa.array(np.arange(2 * call.rows).reshape(2, -1).T.ravel()))
        return pa.array(~boundaries([turns], 2 * call.rows)[1::2])
    equal = pc.fill_null(pc.equal(one, two), False)
    return pc.or_(equal, pc.and_(one.is_null(), two.is_null()))


scalar("regexp(text VARCHAR, pattern VARCHAR) -> BOOLEAN", group=GROUP, origin="spark")(regexp_like)


@scalar("raise_error(message VARCHAR) -> VARCHAR", group=GROUP, origin="spark", volatility="volatile")
def raise_error(message: Value) -> pa.Array:
    """Refuses the statement with a message, unless that is NULL.

    >>> raise_error(NULL) IS NULL
    true

    22023  always
    """
    (column,) = [message] if isinstance(message, pa.Array) else [as_array(message, 1)]
    told = column.drop_null()
    if len(told):
        raise InvalidParameter(told[0].as_py())
    return column


@scalar("assert_true(condition BOOLEAN) -> VARCHAR", group=GROUP, origin="spark", volatility="volatile", strict=False,
        takes_call=True)  # fmt: skip
@scalar("assert_true(condition BOOLEAN, message VARCHAR) -> VARCHAR", group=GROUP, origin="spark", volatility="volatile",
        strict=False, takes_call=True)  # fmt: skip
def assert_true(condition: Value, message: Value | None = None, *, call: CallInfo) -> pa.Array:
    """NULL where the condition is true; refuses the statement where it is not.

    >>> assert_true(1 < 2) IS NULL
    true

    22023  the condition is false or NULL
    """
    bad: Any = np.flatnonzero(~views.true_of(as_array(condition, call.rows)))
    if bad.size:
        text = None if message is None else as_array(message, call.rows)[int(bad[0])].as_py()
        raise InvalidParameter(text or "the condition of assert_true is not true")
    return pa.nulls(call.rows, pa.string())
