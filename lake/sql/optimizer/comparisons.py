"""Comparisons with constants, moved onto the column itself so that ranges reach the files.

    CAST(l_shipdate AS TIMESTAMP) <= TIMESTAMP '1998-09-02'       l_shipdate <= DATE '1998-09-02'
    CAST(l_quantity AS DECIMAL(21,2)) < 24.00                     l_quantity < 24.00
    CAST(id AS BIGINT) = 5000000000                               false where id INT is not NULL
    CAST(at AS DATE) = DATE '2024-01-02'                          at >= '2024-01-02' AND at < '2024-01-03'
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from lake.sql.bound import And, Cast, Compare, Expr, InList, Literal, Or
from lake.sql.optimizer.expressions import UNKNOWN, is_not_null, is_null
from lake.types import (
    BOOLEAN,
    DATE,
    TEXT,
    TIMESTAMP,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Integer,
    Json,
    Text,
    Time,
    Timestamp,
    Type,
    Uuid,
)

DAY: Final = 86_400_000_000
"""Microseconds of a day."""

DATE_MAX: Final = 100_000_000
"""Days around 1970 whose microseconds fit an int64."""

ORDERED: Final = (Integer, Decimal, Text, Date, Time, Timestamp, Boolean, Bytes)
"""Types whose literals Python orders as SQL does; floats are left out for NaN."""


def compare_literals(op: str, left: Literal, right: Literal) -> bool | None:
    """The answer of a comparison of constants that are not NULL; None where only the engine tells."""
    if left.type != right.type or not isinstance(left.type, ORDERED) or isinstance(left.type, Json):
        return None
    one: Any = left.value
    two: Any = right.value
    match op:
        case "=" | "is not distinct":
            return bool(one == two)
        case "<>" | "is distinct":
            return bool(one != two)
        case "<":
            return bool(one < two)
        case "<=":
            return bool(one <= two)
        case ">":
            return bool(one > two)
        case ">=":
            return bool(one >= two)
        case _:
            return None


def cast_literal(literal: Literal, type: Type) -> Literal | None:
    """``literal`` in another exact type, where its value is the same there; None where only the engine tells."""
    value = literal.value
    if value is None:
        return Literal(type, None)
    if isinstance(literal.type, Text) and isinstance(type, Text) and not isinstance(type, Uuid):
        return Literal(type, value)
    if type.spelled:
        return None
    if literal.type == type:
        return Literal(type, value)
    if isinstance(literal.type, Date) and type == TIMESTAMP:
        assert isinstance(value, int)
        return Literal(type, value * DAY) if abs(value) < DATE_MAX else None
    scale_from, scale_to = _scale(literal.type), _scale(type)
    if scale_from is None or scale_to is None or isinstance(value, bool) or not isinstance(value, int):
        return None
    fitted = _Fitted.of(value, scale_from, type)
    return Literal(type, fitted.floor) if fitted.is_exact and fitted.is_in_range else None


def simplify_comparison(expr: Compare) -> Expr:
    """``CAST(x AS t) op constant`` as a comparison of ``x``, where casting keeps the order."""
    match expr:
        case Compare(op=op, left=Cast(operand=operand, is_try=False) as cast, right=Literal() as right):
            if right.value is None:
                return expr
            if op in ("is distinct", "is not distinct"):
                moved = _moved("=", cast, operand, right)
                if isinstance(moved, Compare) and moved.op == "=":
                    return Compare.of(op, moved.left, moved.right)
                return expr
            moved = _moved(op, cast, operand, right)
            return expr if moved is None else moved
        case _:
            return expr


def _moved(op: str, cast: Cast, operand: Expr, value: Literal) -> Expr | None:
    if isinstance(operand.type, Date) and cast.type == TIMESTAMP:
        return _compare_days(op, operand, value)
    if operand.type == TIMESTAMP and isinstance(cast.type, Date):
        return _compare_instants(op, operand, value)
    scale_from, scale_to = _scale(operand.type), _scale(cast.type)
    number = value.value
    if scale_from is None or scale_to is None or not isinstance(number, int):
        return None
    if scale_from > scale_to or _whole_digits(operand.type) > _whole_digits(cast.type):
        return None
    fitted = _Fitted.of(number, scale_to, operand.type)
    return _compare_fitted(op, operand, fitted)


def _compare_days(op: str, operand: Expr, value: Literal) -> Expr | None:
    assert isinstance(value.value, int)
    day, rest = divmod(value.value, DAY)
    if abs(day) >= DATE_MAX:
        return None
    return _compare_fitted(op, operand, _Fitted(DATE, day, rest == 0, is_below=False, is_above=False))


def _compare_instants(op: str, operand: Expr, value: Literal) -> Expr | None:
    """``CAST(timestamp AS DATE) op day``: the day is a range of instants."""
    day = value.value
    assert isinstance(day, int)
    if abs(day) >= DATE_MAX:
        return None
    start, after = Literal(TIMESTAMP, day * DAY), Literal(TIMESTAMP, (day + 1) * DAY)
    match op:
        case "=":
            return And(BOOLEAN, (Compare.of(">=", operand, start), Compare.of("<", operand, after)))
        case "<>":
            return Or(BOOLEAN, (Compare.of("<", operand, start), Compare.of(">=", operand, after)))
        case "<" | ">=":
            return Compare.of(op, operand, start)
        case "<=":
            return Compare.of("<", operand, after)
        case ">":
            return Compare.of(">=", operand, after)
        case _:
            return None


class _Fitted(Struct, frozen=True):
    """A number seen from a type of fewer digits: the largest value not above it, and whether it is that value.

    is_below, is_above   the number lies outside the type's range, on that side
    """

    type: Type
    floor: int
    is_exact: bool
    is_below: bool
    is_above: bool

    @property
    def is_in_range(self) -> bool:
        return not self.is_below and not self.is_above

    @staticmethod
    def of(number: int, scale: int, type: Type) -> _Fitted:
        """The integer ``number`` of ``scale`` digits after the point, as ``type`` holds it."""
        scale_to = _scale(type)
        assert scale_to is not None
        if scale_to >= scale:
            floor, rest = number * 10 ** (scale_to - scale), 0
        else:
            floor, rest = divmod(number, 10 ** (scale - scale_to))
        low, high = _bounds(type)
        return _Fitted(type, floor, rest == 0, floor < low, floor > high or (floor == high and rest > 0))


def _compare_fitted(op: str, operand: Expr, fitted: _Fitted) -> Expr:
    """``operand op number`` for a number that may lie between or beyond the values of the operand's type."""
    if not fitted.is_in_range:
        is_true = op in ("<>", "<", "<=") if fitted.is_above else op in ("<>", ">", ">=")
        return _for_all(operand, is_true)
    if fitted.is_exact:
        return Compare.of(op, operand, Literal(fitted.type, fitted.floor))
    match op:
        case "=" | "<>":
            return _for_all(operand, op == "<>")
        case "<" | "<=":
            return Compare.of("<=", operand, Literal(fitted.type, fitted.floor))
        case _:
            return Compare.of(">", operand, Literal(fitted.type, fitted.floor))


def _for_all(operand: Expr, is_true: bool) -> Expr:
    """The same answer for every value of ``operand``, and NULL for NULL."""
    if is_true:
        return Or(BOOLEAN, (is_not_null(operand), UNKNOWN))
    return And(BOOLEAN, (is_null(operand), UNKNOWN))


def simplify_in(expr: InList) -> Expr:
    """``x IN (..)`` without repeats, one item as an equality, a cast of a column moved onto constants."""
    items = tuple(dict.fromkeys(expr.items))
    operand = expr.operand
    if isinstance(operand, Literal) and operand.value is None:
        return UNKNOWN
    match operand:
        case Cast(operand=inner, is_try=False) if all(isinstance(item, Literal) and item.value is not None for item in items):
            moved = [_moved("=", operand, inner, item) for item in items if isinstance(item, Literal)]
            values = [item.right for item in moved if isinstance(item, Compare) and item.op == "="]
            if len(values) == len(items):
                operand, items = inner, tuple(dict.fromkeys(values))
    if len(items) == 1:
        return simplify_comparison(Compare.of("=", operand, items[0]))
    return InList(expr.type, operand, items)


def next_text(prefix: str) -> str | None:
    """The first text after all that begin with ``prefix``; None where there is none."""
    for index in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[index]) + 1
        if code < 0xD800 or 0xDFFF < code <= 0x10FFFF:
            return prefix[:index] + chr(code)
    return None


def prefix_range(operand: Expr, prefix: str) -> tuple[Expr, ...]:
    """Comparisons that hold for every text that begins with ``prefix``."""
    low: tuple[Expr, ...] = (Compare.of(">=", operand, Literal(TEXT, prefix)),)
    after = next_text(prefix)
    return low if after is None else (*low, Compare.of("<", operand, Literal(TEXT, after)))


def _scale(type: Type) -> int | None:
    """Digits after the point of an exact number; None for other types."""
    match type:
        case Integer():
            return 0
        case Decimal(scale=scale):
            return scale
        case _:
            return None


def _whole_digits(type: Type) -> int:
    match type:
        case Integer():
            return type.digits
        case Decimal(precision, scale):
            return precision - scale
        case _:
            raise AssertionError(f"{type} is no exact number")


def _bounds(type: Type) -> tuple[int, int]:
    """The smallest and largest physical value of an exact type."""
    match type:
        case Integer(bits=bits):
            return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        case Decimal(precision=precision):
            return 1 - 10**precision, 10**precision - 1
        case _:
            raise AssertionError(f"{type} is no exact number")
