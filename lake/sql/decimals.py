"""The result types of arithmetic: which of two numeric types wins, and how many digits a decimal result keeps.

    >>> result_type("*", Decimal(15, 2), Decimal(15, 2))
    Decimal(precision=31, scale=4)
    >>> arithmetic_type("+", DOUBLE, BIGINT)
    Float(bits=64)

Precision past 38 is cut to 38 and values that do not fit are refused as they are computed.
Source: DataFusion, the rules of its decimal arithmetic.
"""

from __future__ import annotations

from typing import Final

from lake.errors import UndefinedFunction
from lake.types import DECIMAL_DIGITS_MAX, DOUBLE, REAL, Decimal, Float, Integer, Null, Type

DIVISION_DIGITS: Final = 4
"""Digits that a quotient has after the point beyond its dividend's."""

_INTEGER_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}


def decimal_of(type: Integer | Decimal) -> Decimal:
    """The decimal that an integer is in decimal arithmetic."""
    return type if isinstance(type, Decimal) else Decimal(_INTEGER_DIGITS[type.bits], 0)


def result_type(op: str, left: Decimal, right: Decimal) -> Decimal:
    """The type of ``left op right``, exact but for the digits a quotient leaves out.

    + -   scale: the larger; one digit more before the point than the larger
    *     scales and precisions added, and one digit
    /     scale: the dividend's and four
    %     scale: the larger; no more digits before the point than the smaller
    """
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    if op in ("+", "-"):
        scale = max(left.scale, right.scale)
        precision = max(whole_left, whole_right) + scale + 1
    elif op == "*":
        scale = min(left.scale + right.scale, DECIMAL_DIGITS_MAX)
        precision = left.precision + right.precision + 1
    elif op == "/":
        scale = min(left.scale + DIVISION_DIGITS, DECIMAL_DIGITS_MAX)
        precision = whole_left + right.scale + scale
    else:
        assert op == "%", op
        scale = max(left.scale, right.scale)
        precision = min(whole_left, whole_right) + scale
    return Decimal(min(max(precision, scale, 1), DECIMAL_DIGITS_MAX), scale)


def arithmetic_type(op: str, left: Type, right: Type) -> Type:
    """The type of ``left op right`` for numbers: floats win over decimals, decimals over integers, wider over narrower.

    42883  an operand that is no number
    """
    if isinstance(left, Null):
        left = right
    if isinstance(right, Null):
        right = left
    match left, right:
        case (Float(bits=64), _) | (_, Float(bits=64)):
            return DOUBLE
        case (Float(), _) | (_, Float()):
            return REAL
        case (Integer(), Integer()):
            return Integer(max(left.bits, right.bits))
        case (Integer() | Decimal(), Integer() | Decimal()):
            return result_type(op, decimal_of(left), decimal_of(right))
        case _:
            raise UndefinedFunction(f"operator does not exist: {left} {op} {right}")


def common_numeric(left: Type, right: Type) -> Type:
    """The type that holds the values of both numeric types, as comparisons, CASE and UNION need it."""
    match left, right:
        case (Integer(), Integer()):
            return Integer(max(left.bits, right.bits))
        case (Integer() | Decimal(), Integer() | Decimal()):
            one, two = decimal_of(left), decimal_of(right)
            scale = max(one.scale, two.scale)
            whole = max(one.precision - one.scale, two.precision - two.scale)
            return Decimal(min(whole + scale, DECIMAL_DIGITS_MAX), scale)
        case (Float(bits=32), Float(bits=32)):
            return REAL
        case _:
            return DOUBLE
