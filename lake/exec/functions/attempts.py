"""Functions that answer NULL where others refuse: try_add and its kin.

A refused column is halved until the rows that are refused stand alone: columns without such rows are run once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import LakeError
from lake.exec import decimals
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions import arithmetic
from lake.exec.functions.arithmetic import arithmetic_rule
from lake.exec.functions.columns import columns
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import DOUBLE, Decimal, Integer, Type

GROUP: Final = "numbers"


def attempt(run: Callable[..., pa.Array], type: pa.DataType, *given: pa.Array) -> pa.Array:
    """``run`` over columns of one length, NULL in the rows that it refuses."""
    rows = len(given[0])
    if rows == 0:
        return pa.array([], type)
    try:
        return views.plain(run(*given))
    except LakeError:
        if rows == 1:
            return pa.nulls(1, type)
    half = rows // 2
    parts = [attempt(run, type, *(column.slice(*cut) for column in given)) for cut in ((0, half), (half, rows - half))]
    return views.concat(parts)


def _without_zeroes(divisor: pa.Array) -> pa.Array:
    """The divisors, NULL for 0."""
    is_zero = pc.equal(divisor, pa.scalar(0).cast(divisor.type))
    return pc.if_else(pc.fill_null(is_zero, False), pa.scalar(None, divisor.type), divisor)


def _register(name: str, op: str, run: Callable[..., Any], text: str, example: str, answer: str) -> None:
    """An operator of numbers that answers NULL where it is refused."""

    def function(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
        def whole(*given: pa.Array) -> pa.Array:
            part = CallInfo(call.types, call.returns, len(given[0]), call.settings)
            made = as_array(run(*given, call=part), part.rows)
            return decimals.widen(made, call.returns) if isinstance(call.returns, Decimal) else made

        a, b = columns(a, b)
        return attempt(whole, call.returns.physical, a, _without_zeroes(b) if op == "%" else b)

    function.__doc__ = f"{text}\n\n    >>> {example}\n    {answer}\n    "
    scalar(f"{name}(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, origin="spark", returns=arithmetic_rule(op),
           takes_call=True)(function)  # fmt: skip


_register("try_add", "+", arithmetic.add, "The sum, NULL where it is out of range.",
          "SELECT try_add(1, 2), try_add(9223372036854775807, 1)", "3 | NULL")  # fmt: skip
_register("try_subtract", "-", arithmetic.subtract, "The difference, NULL where it is out of range.",
          "SELECT try_subtract(3, 2), try_subtract(-9223372036854775807, 2)", "1 | NULL")  # fmt: skip
_register("try_multiply", "*", arithmetic.multiply, "The product, NULL where it is out of range.",
          "SELECT try_multiply(3, 2), try_multiply(9223372036854775807, 2)", "6 | NULL")  # fmt: skip
_register("try_mod", "%", arithmetic.modulo, "What is left of a division, NULL by zero.",
          "SELECT try_mod(3, 2), try_mod(3, 0)", "1 | NULL")  # fmt: skip


def _quotient_type(types: tuple[Type, ...]) -> Type:
    """DOUBLE of integers, else the type of a division."""
    return DOUBLE if all(isinstance(item, Integer) for item in types) else arithmetic_rule("/")(types)


@scalar("try_divide(a NUMERIC, b NUMERIC) -> NUMERIC", group=GROUP, origin="spark", returns=_quotient_type,
        takes_call=True)  # fmt: skip
def try_divide(a: Value, b: Value, *, call: CallInfo) -> pa.Array:
    """The quotient with its fraction, NULL by zero.

    >>> SELECT try_divide(3, 2), try_divide(1, 0)
    1.5 | NULL
    """

    def run(a: pa.Array, b: pa.Array) -> pa.Array:
        part = CallInfo(call.types, call.returns, len(a), call.settings)
        made = as_array(arithmetic.divide(a, b, call=part), part.rows)
        return decimals.widen(made, call.returns) if isinstance(call.returns, Decimal) else made

    a, b = columns(a, b)
    return attempt(run, call.returns.physical, a, _without_zeroes(b))
