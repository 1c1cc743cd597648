"""Which casts happen by themselves: common types, results of arithmetic, and casts of constants at once.

    int < decimal < double        date < timestamp < timestamptz        NULL < everything

A string literal has no type of its own: next to a typed operand it is read as a value of that type. A number's literal
beside a column is read in the column's type where it has the same value there: ``l_quantity < 24`` casts no column.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context
from decimal import Decimal as PyDecimal
from enum import Enum
from typing import Final

from lake.arrow_names import common_spelling
from lake.errors import DatatypeMismatch, DatetimeOverflow, InvalidText, NumericOutOfRange
from lake.sql import literals
from lake.sql.bound import (
    LITERALS,
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Exists,
    Expr,
    InList,
    IsNull,
    Literal,
    MakeList,
    Not,
    Or,
    Unknown,
    children,
)
from lake.sql.decimals import arithmetic_type, common_numeric
from lake.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTERVAL,
    NULL,
    REAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Boolean,
    Date,
    Decimal,
    Float,
    Integer,
    Interval,
    Json,
    List,
    Map,
    Null,
    Oid,
    Struct,
    Text,
    Time,
    Timestamp,
    Type,
    Uuid,
)

_WIDE: Final = Context(prec=200)
ARITHMETIC: Final = frozenset(("+", "-", "*", "/", "%", "//", "^"))
COMPARISONS: Final = frozenset(("=", "<>", "<", "<=", ">", ">="))
NUMERIC: Final = frozenset((Integer, Oid, Float, Decimal))


def is_numeric(type: Type) -> bool:
    """Whether arithmetic takes ``type`` as it is."""
    return type.__class__ in NUMERIC


def is_string_literal(expr: Expr) -> bool:
    """Whether ``expr`` is a text constant, which takes the type of its neighbour."""
    return type(expr) in LITERALS and isinstance(expr.value, str) and expr.type == TEXT  # type: ignore[attr-defined]


# --- arithmetic ------------------------------------------------------------------------------------------------------


def arithmetic_types(op: str, left: Type, right: Type) -> tuple[Type, Type, Type] | None:
    """The types both operands are cast to, and the result's, for numbers; None where one is not a number.

    An integer beside a decimal stays as it is: the operator scales it.
    """
    if isinstance(left, Null) and is_numeric(right):
        left = right
    elif isinstance(right, Null) and is_numeric(left):
        right = left
    if not (is_numeric(left) and is_numeric(right)):
        return None
    if op == "^":
        return DOUBLE, DOUBLE, DOUBLE
    result = arithmetic_type("%" if op == "//" else op, left, right)
    if isinstance(result, Decimal):
        return left, right, arithmetic_type("/" if op == "//" else op, left, right)
    return result, result, result


# --- common types ----------------------------------------------------------------------------------------------------


class Mixed(Enum):
    """What becomes of numbers beside text where a column has both: neither goes, or all are the one or the other.

    ITEMS: numbers within lists, structs and maps, text outside.
    """

    NEITHER = "neither"
    TEXT = "text"
    NUMBERS = "numbers"
    ITEMS = "items"


def common_type(left: Type, right: Type, mixed: Mixed = Mixed.NEITHER) -> Type | None:
    """The type both cast to without being asked, or None."""
    if left == right:
        return left if left is right else common_spelling(left, right)
    if isinstance(right, Null):
        return left
    if isinstance(left, Null):
        return right
    if is_numeric(left) and is_numeric(right):
        # A column of integers and REALs is REAL, though comparisons look closer.
        merged = REAL in (left, right) and (isinstance(left, Integer) or isinstance(right, Integer))
        return REAL if merged else common_numeric(left, right)
    if isinstance(left, Date | Timestamp) and isinstance(right, Date | Timestamp):
        if left.__class__ is not right.__class__:
            return left if isinstance(left, Timestamp) else right
        return left if left == TIMESTAMPTZ else right
    if isinstance(left, Text | Json) and isinstance(right, Text | Json):
        return TEXT
    inside = Mixed.NUMBERS if mixed is Mixed.ITEMS else mixed
    if isinstance(left, List) and isinstance(right, List):
        inner = common_type(left.of, right.of, inside)
        return None if inner is None else List(inner)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return _common_struct(left, right, inside)
    if isinstance(left, Map) and isinstance(right, Map):
        key, value = common_type(left.key, right.key, inside), common_type(left.value, right.value, inside)
        return None if key is None or value is None else Map(key, value)
    if (isinstance(left, Text) and is_numeric(right)) or (isinstance(right, Text) and is_numeric(left)):
        number = left if isinstance(right, Text) else right
        return {Mixed.NEITHER: None, Mixed.NUMBERS: number}.get(mixed, TEXT)
    return None


def _common_struct(left: Struct, right: Struct, mixed: Mixed) -> Struct | None:
    """Fields matched by name where the two share a name, else by place; in the order of the right side where each has the
    same names, otherwise the left side's and then those the right side has besides.

    None where there is no such type.
    """
    places = [left.place(name) for name, _ in right.fields]
    shares = any(place is not None for place in places)
    if shares and (None in places or len(left.fields) != len(right.fields)):
        return _merged_struct(left, right)
    if len(left.fields) != len(right.fields):
        return None
    if None in places or len(set(places)) < len(places):
        places = list(range(len(right.fields)))
    fields = []
    for (name, type), place in zip(right.fields, places, strict=True):
        assert place is not None
        found = common_type(left.fields[place][1], type, mixed)
        if found is None:
            return None
        fields.append((name, found))
    return Struct(tuple(fields))


def _merged_struct(left: Struct, right: Struct) -> Struct | None:
    """The fields of both, each name once; None where two of one name have no common type."""
    fields = dict(left.fields)
    for name, type in right.fields:
        found = common_type(fields[name], type) if name in fields else type
        if found is None:
            return None
        fields[name] = found
    return Struct(tuple(fields.items()))


def compared_type(left: Expr, right: Expr) -> Type | None:
    """The type in which ``left`` and ``right`` are compared, or None where they cannot be."""
    for one, other in ((left, right), (right, left)):
        if is_string_literal(one) and other.type != TEXT and not isinstance(other.type, Null):
            return other.type
        if isinstance(one, Literal) and not isinstance(other, Literal) and (kept := _kept_type(one, other.type)):
            return kept
    if is_numeric(left.type) and is_numeric(right.type):
        return common_numeric(left.type, right.type)
    found = common_type(left.type, right.type, Mixed.NUMBERS)
    if found is not None:
        return found
    for type, wanted in ((left.type, right.type), (right.type, left.type)):
        if isinstance(type, Text) and (is_numeric(wanted) or isinstance(wanted, Date | Timestamp | Time | Boolean)):
            return wanted
    return None


def merged_type(exprs: Sequence[Expr], mixed: Mixed = Mixed.TEXT) -> Type | None:
    """The type of a column whose values are ``exprs`` (CASE, VALUES, UNION, coalesce); None where there is none.

    Numbers beside text become text, or the text numbers; a string literal beside a date, time, interval or boolean is
    read as one.
    """
    typed = [expr.type for expr in exprs if not is_string_literal(expr)]
    found: Type = NULL
    for type in typed:
        merged = common_type(found, type, mixed)
        if merged is None:
            if any(isinstance(item, Text) for item in (found, type)):
                merged = TEXT
            else:
                return None
        found = merged
    if len(typed) == len(exprs):
        return found
    if isinstance(found, Null) or (is_numeric(found) and mixed is not Mixed.NUMBERS):
        return TEXT
    return found


def _kept_type(literal: Literal, type: Type) -> Type | None:
    """``type`` itself where the constant has the same value in it: comparing then leaves the other side as it is."""
    if literal.value is None or not is_numeric(literal.type) or isinstance(literal.type, Float):
        return None
    if not isinstance(type, Integer | Decimal):
        return None
    value = PyDecimal(int(literal.value))  # type: ignore[arg-type]
    if isinstance(literal.type, Decimal):
        value = value.scaleb(-literal.type.scale, _WIDE)
    if isinstance(type, Integer):
        limit = 1 << (type.bits - 1)
        return type if value == value.to_integral_value() and -limit <= value < limit else None
    scaled = value.scaleb(type.scale, _WIDE)
    fits = scaled == scaled.to_integral_value() and abs(scaled) < 10**type.precision
    return type if fits else None


# --- casts -----------------------------------------------------------------------------------------------------------


def cast(expr: Expr, type: Type, *, is_try: bool = False, time_zone: str = "UTC") -> Expr:
    """``expr`` as ``type``: itself where it has that type, a constant where it is one, else a Cast."""
    if expr.type == type:
        return expr
    if isinstance(expr, Literal):
        if isinstance(expr, Unknown):
            expr.seen.append(type)
        found = cast_literal(expr, type, time_zone)
        if found is not None:
            return found
    if isinstance(expr, MakeList) and isinstance(type, List) and not is_try:
        return MakeList(type, tuple(cast(item, type.of, time_zone=time_zone) for item in expr.items))
    return Cast.of(type, expr, is_try=is_try)


def cast_literal(literal: Literal, type: Type, time_zone: str = "UTC") -> Literal | None:
    """The constant cast to ``type``, or None where that is left to the engine.

    22P02  a text that is no value of the type     22003  a number out of the type's range
    """
    value = literal.value
    if value is None:
        return Literal(type, None)
    if (type.spelled and not isinstance(type, Text)) or isinstance(type, Uuid):
        return None
    match literal.type, type:
        case Text(), Text():
            return Literal(type, value)
        case Text(), _:
            assert isinstance(value, str)
            return _cast_text(value, type, time_zone)
        case Integer() | Decimal(), Integer() | Decimal() | Float():
            assert isinstance(value, int)
            scale = literal.type.scale if isinstance(literal.type, Decimal) else 0
            exact = PyDecimal(value).scaleb(-scale, _WIDE)
            return _number_as(exact, type)
        case Float(), Float():
            return Literal(type, float(value))  # type: ignore[arg-type]
        case Date(), Timestamp(zoned=zoned):
            assert isinstance(value, int)
            wall = value * literals.MICROS_PER_DAY
            return Literal(type, wall - literals.offset_micros(time_zone, wall) if zoned else wall)
        case Timestamp(zoned=False), Timestamp(zoned=True):
            assert isinstance(value, int)
            return Literal(type, value - literals.offset_micros(time_zone, value))
        case Timestamp(zoned=False), Date():
            assert isinstance(value, int)
            return Literal(type, value // literals.MICROS_PER_DAY)
        case Boolean(), Text():
            return Literal(type, "true" if value else "false")
        case Integer(), Text():
            return Literal(type, str(value))
        case _:
            return None


def _cast_text(text: str, type: Type, time_zone: str) -> Literal | None:
    match type:
        case Integer(bits):
            return Literal(type, literals.parse_integer(text, bits, type.sql.lower()))
        case Float(32):
            return None
        case Float():
            return Literal(type, literals.parse_float(text))
        case Decimal():
            return _number_as(literals.parse_number(text), type)
        case Boolean():
            return Literal(type, literals.parse_boolean(text))
        case Date():
            return Literal(type, literals.parse_date(text))
        case Time():
            return Literal(type, literals.parse_time(text))
        case Timestamp(zoned):
            return Literal(type, literals.parse_timestamp(text, zoned=zoned, time_zone=time_zone))
        case Interval():
            return Literal(type, literals.parse_interval(text))
        case List() if not text.lstrip().startswith(("{", "[")):
            raise InvalidText(f'malformed array literal: "{text}"')  # as every constant, whether or not a row asks for it
        case _:
            return None


def _number_as(value: PyDecimal, type: Type) -> Literal | None:
    if isinstance(type, Float):
        return Literal(type, float(value)) if type.bits == 64 else None
    if isinstance(type, Integer):
        whole = int(value)
        if not -(1 << (type.bits - 1)) <= whole < 1 << (type.bits - 1):
            raise NumericOutOfRange(f"{type.sql.lower()} out of range: {value}")
        return Literal(type, whole)
    assert isinstance(type, Decimal)
    digits = value.as_tuple()
    if len(digits.digits) + int(digits.exponent) + type.scale > 2 * DECIMAL_DIGITS_MAX:
        raise NumericOutOfRange(f"numeric field overflow: {value} does not fit {type}")
    scaled = int(_scale(value, type.scale))
    if abs(scaled) >= 10**type.precision:
        raise NumericOutOfRange(f"numeric field overflow: {value} does not fit {type}")
    return Literal(type, scaled)


def _scale(value: PyDecimal, scale: int) -> PyDecimal:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return PyDecimal((sign, digits, exponent + scale)).quantize(PyDecimal(1), rounding=ROUND_HALF_UP, context=_WIDE)


# --- constants -------------------------------------------------------------------------------------------------------


def number_literal(value: int | PyDecimal | float) -> Literal:
    """A number as the text writes it: BIGINT, DECIMAL of its digits, or DOUBLE with an exponent or past 38 digits."""
    if isinstance(value, float):
        return Literal(DOUBLE, value)
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return Literal(BIGINT, value)
        value = PyDecimal(value)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits)) or "0") * 10 ** max(exponent, 0)
    scale = max(0, -exponent)
    precision = max(len(str(unscaled)), scale, 1)
    if precision > DECIMAL_DIGITS_MAX:
        return Literal(DOUBLE, float(value))
    return Literal(Decimal(precision, scale), -unscaled if sign else unscaled)


def literal_of(value: object) -> Literal:
    """A Python value as a constant: what parameters are given as.

    42804  a value no SQL type holds
    """
    match value:
        case None:
            return Literal(NULL, None)
        case bool():
            return Literal(BOOLEAN, value)
        case int() | PyDecimal() | float():
            return number_literal(value)
        case str():
            return Literal(TEXT, value)
        case bytes() | bytearray() | memoryview():
            return Literal(BYTES, bytes(value))
        case datetime.datetime():
            if value.tzinfo is None:
                return Literal(TIMESTAMP, (value - literals.EPOCH) // literals.ONE_MICROSECOND)
            naive = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return Literal(TIMESTAMPTZ, (naive - literals.EPOCH) // literals.ONE_MICROSECOND)
        case datetime.date():
            return Literal(DATE, value.toordinal() - literals.EPOCH_ORDINAL)
        case datetime.time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return Literal(TIME, seconds * literals.MICROS_PER_SECOND + value.microsecond)
        case datetime.timedelta():
            return Literal(INTERVAL, (0, value.days, (value.seconds * 1_000_000 + value.microseconds) * 1_000))
        case list() | tuple():
            return _list_literal([literal_of(item) for item in value])
        case _:
            raise DatatypeMismatch(f"a value of Python type {value.__class__.__name__} is no SQL value")


def _list_literal(items: list[Literal]) -> Literal:
    of = merged_type(items)
    if of is None:
        raise DatatypeMismatch("the items of a list are of types that do not go together")
    made: list[object] = []
    for item in items:
        done = cast(item, of)
        if not isinstance(done, Literal):
            raise DatatypeMismatch("the items of a list are of types that do not go together")
        made.append(done.value)
    return Literal(List(of), tuple(made))


def python_value(literal: Literal) -> object:
    """A constant as the Python value that functions in FROM take: Decimal, date, time, datetime, the rest as they are.

    An interval stays (months, days, nanoseconds); a date out of Python's range is 22008.
    """
    value = literal.value
    if value is None:
        return None
    match literal.type:
        case Decimal(scale=scale):
            assert isinstance(value, int)
            return PyDecimal(value).scaleb(-scale, _WIDE)
        case Date():
            assert isinstance(value, int)
            return datetime.date.fromordinal(value + literals.EPOCH_ORDINAL)
        case Timestamp(zoned=zoned):
            assert isinstance(value, int)
            try:
                moment = literals.EPOCH + datetime.timedelta(microseconds=value)
            except OverflowError:
                raise DatetimeOverflow("timestamp out of range") from None
            return moment.replace(tzinfo=datetime.UTC) if zoned else moment
        case Time():
            assert isinstance(value, int)
            return (literals.EPOCH + datetime.timedelta(microseconds=value)).time()
        case List(of):
            assert isinstance(value, tuple)
            return [python_value(Literal(of, item)) for item in value]  # type: ignore[arg-type]
        case _:
            return value


def is_nullable(expr: Expr) -> bool:
    """Whether ``expr`` may be NULL, as far as its form tells."""
    match expr:
        case Column():
            return expr.nullable
        case Literal():
            return expr.value is None
        case Cast():
            return expr.is_try or is_nullable(expr.operand)
        case IsNull() | Exists() | MakeList():
            return False
        case Compare(op=op):
            return not op.startswith("is ") and (is_nullable(expr.left) or is_nullable(expr.right))
        case Call():
            names = ARITHMETIC if expr.function.strict else frozenset()
            return expr.function.name not in names or any(is_nullable(item) for item in expr.arguments)
        case Case():
            return is_nullable(expr.otherwise) or any(is_nullable(then) for _, then in expr.whens)
        case And() | Or() | Not() | InList():
            return any(is_nullable(item) for item in children(expr))
        case _:
            return True
