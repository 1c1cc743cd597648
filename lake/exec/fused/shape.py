"""What a loop computes, without its constants: tuples of words and numbers, equal for queries that one loop serves.

    l_quantity < 24 AND l_shipdate >= DATE '1994-01-01'     sum(l_extendedprice * l_discount)

    tests  ("within", 0, 0, False), ("within", 1, 2, False)                   columns and places of constants
    calls  ("sum", ("mul", ("column", 2), ("column", 3), 64), None)           bits of the result, FILTER

Values are whole numbers of 64 bits (integers, dates, timestamps and scaled decimals), and doubles where they are added up.
Whatever has no form makes the whole query one that is not covered.

    values  ("column", c) ("number", p, bits) ("null",) ("add" | "sub" | "mul", a, b, bits) ("fit", a, low, high)
            ("case", ((truth, value), ..), otherwise)
    reals   ("real", c) ("real number", p) ("fadd" | "fsub" | "fmul", a, b, 64)
    truths  ("within", c, p, outside) ("between", c, p, with_nan, outside) ("marks", c, t) ("truth", c)
            ("compare", op, a, b) ("and", ..) ("or", ..) ("not", a) ("is null", a)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from msgspec import Struct

from lake.exec.context import Context
from lake.exec.evaluate import Program
from lake.exec.functions.aggregates import Converted
from lake.exec.kernels.aggregates import Count
from lake.exec.kernels.exact_sum import ExactSum
from lake.exec.kernels.extremes import NumberExtreme
from lake.exec.operators.tally import PlainTally, SharedTally, ShiftedTally, Tally, adds_integers
from lake.exec.selection import EntryTest, RangeTest, float_test, is_entry_test, is_whole, range_test
from lake.exec.steps import column_names
from lake.sql import bound
from lake.types import Boolean, Decimal, Float, Integer, Text, Type

Form = tuple[Any, ...]

WORD: Final = (-(1 << 63), (1 << 63) - 1)
ITEMS_MAX: Final = 16
"""A list of IN of more constants is not compared with one by one."""
FORMS_MAX: Final = 2_000
"""Expressions of more parts take long to compile."""

_OPERATIONS: Final = {"+": "add", "-": "sub", "*": "mul"}
_COMPARED: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})


class Plan(Struct, frozen=True):
    """The code that is asked for, whatever the kinds of its columns.

    tests  conjuncts      keys  columns that rows are grouped by      calls  what is kept of each group
    numbers, texts   how many constants and conditions of texts it is given
    """

    tests: tuple[Form, ...]
    keys: tuple[int, ...]
    calls: tuple[Form, ...]
    numbers: int
    texts: int


class TextTest(Struct, frozen=True):
    """A condition of one text column, which is run over a dictionary's entries and only tells those for which it is true."""

    column: int
    test: EntryTest


class Shape(Struct, frozen=True):
    """A query's plan, and what its loop is given besides the rows.

    columns  names in batches        numbers  constants      ranges  (place of a low and a high constant, their column)
    fills    the tallies that ``plan.calls`` feed, by position
    """

    plan: Plan
    columns: tuple[str, ...]
    numbers: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...]
    texts: tuple[TextTest, ...]
    fills: tuple[int, ...]


class NotCovered(Exception):
    """An expression that has no form."""


def shape_of(
    filters: Sequence[bound.Expr],
    exprs: Sequence[bound.Expr],
    key_count: int,
    tallies: Sequence[Tally],
    context: Context,
) -> Shape | None:
    """The shape of an aggregation over filtered rows; None where anything of it is not covered.

    exprs    the aggregate's input columns, keys first (``hash_aggregate.Layout``)
    tallies  one for each call, as they start
    """
    maker = _Maker(context)
    try:
        keys = tuple(maker.key(expr) for expr in exprs[:key_count])
        fills, calls = [], []
        for place, tally in enumerate(tallies):
            form = maker.call(tally, exprs)
            if form is not None:
                fills.append(place)
                calls.append(form)
        tests = maker.tests(filters)
    except NotCovered:
        return None
    plan = Plan(tests, keys, tuple(calls), len(maker.numbers), len(maker.texts))
    if _size(calls) + _size(tests) > FORMS_MAX:
        return None
    columns = tuple(maker.columns)
    return Shape(plan, columns, tuple(maker.numbers), tuple(maker.ranges), tuple(maker.texts), tuple(fills))


def _size(forms: Sequence[Any]) -> int:
    return sum(1 + _size(form) for form in forms if isinstance(form, tuple))


def has_marks(form: Form) -> bool:
    """Whether a condition of a text is part of it, of which nobody knows whether it is false or NULL."""
    return form[0] == "marks" or any(has_marks(part) for part in form if isinstance(part, tuple))


def _refuse() -> NoReturn:
    raise NotCovered


class _Maker:
    """Turns expressions into forms; gathers columns, constants and conditions of texts on the way."""

    def __init__(self, context: Context) -> None:
        self.columns: dict[str, int] = {}
        self.numbers: list[int] = []
        self.ranges: list[tuple[int, int]] = []
        self.texts: list[TextTest] = []
        self._context = context

    def key(self, expr: bound.Expr) -> int:
        """The column of a key."""
        match expr:
            case bound.Column(type=Text() | Boolean()):
                return self._column(f"c{expr.id}")
            case bound.Column(type=type) if is_whole(type):
                return self._column(f"c{expr.id}")
        _refuse()

    def call(self, tally: Tally, exprs: Sequence[bound.Expr]) -> Form | None:
        """What a tally keeps; None where another tally does it for this one."""
        call = tally.call
        where = None if call.where is None else self.truth(exprs[call.where])
        state: Any = tally.accumulator
        if not isinstance(tally, PlainTally):
            return None if isinstance(tally, SharedTally) else _refuse()
        if isinstance(tally, ShiftedTally) and not tally.is_owner:
            return None
        if type(state) is Count:
            arguments = [("is null", self._any(exprs[index])) for index in call.arguments]
            return ("count", tuple(arguments), where)
        if adds_integers(tally):
            return ("sum", self.value(exprs[call.arguments[0]]), where)
        if isinstance(state, ExactSum):
            return ("real sum", self.real(exprs[call.arguments[0]]), where)
        inner = state.inner if isinstance(state, Converted) else state
        if isinstance(inner, NumberExtreme) and is_whole(exprs[call.arguments[0]].type):
            return ("most" if inner.greatest else "least", self.value(exprs[call.arguments[0]]), where)
        _refuse()

    def tests(self, filters: Sequence[bound.Expr]) -> tuple[Form, ...]:
        """The conjuncts, the ranges of one column as one."""
        ranges: dict[str, RangeTest] = {}
        forms = []
        for expr in filters:
            test = range_test(expr)
            if test is None or test.outside:
                forms.append(self.truth(expr))
            elif test.column in ranges:
                known = ranges[test.column]
                known.low, known.high = max(known.low, test.low), min(known.high, test.high)
            else:
                ranges[test.column] = test
        return (*map(self._within, ranges.values()), *forms)

    def truth(self, expr: bound.Expr) -> Form:
        """A condition."""
        if (whole := range_test(expr)) is not None:
            return self._within(whole)
        if (real := float_test(expr)) is not None:
            place = self._number(_bits_of(real.low))
            self._number(_bits_of(real.high))
            return ("between", self._column(real.column), place, real.with_nan, real.outside)
        if is_entry_test(expr):
            return self._marks(expr)
        match expr:
            case bound.Compare(op=op, left=left, right=right) if op in _COMPARED and is_whole(left.type):
                return ("compare", op, self.value(left), self.value(right))
            case bound.And(operands=operands):
                return ("and", *map(self.truth, operands))
            case bound.Or(operands=operands):
                return ("or", *map(self.truth, operands))
            case bound.Not(operand=operand):
                made = self.truth(operand)
                return _refuse() if has_marks(made) else ("not", made)
            case bound.IsNull(operand=operand):
                return ("is null", self._any(operand))
            case bound.InList(operand=operand, items=items) if len(items) <= ITEMS_MAX and is_whole(operand.type):
                found = self.value(operand)
                return ("or", *(("compare", "=", found, self.value(item)) for item in items))
            case bound.Column(type=Boolean()):
                return ("truth", self._column(f"c{expr.id}"))
        _refuse()

    def value(self, expr: bound.Expr) -> Form:
        """A whole number; of decimals the scaled one."""
        match expr:
            case bound.Column(type=type) if is_whole(type):
                return ("column", self._column(f"c{expr.id}"))
            case bound.Literal(value=value, type=type) if is_number(type) or is_whole(type):
                return ("null",) if value is None else self._constant(value)
            case bound.Call(function=function, arguments=(left, right), type=type) if function.name in _OPERATIONS:
                return self._operation(_OPERATIONS[function.name], left, right, type)
            case bound.Cast(operand=operand, is_try=False):
                return self._cast(operand, expr.type)
            case bound.Case(whens=whens, otherwise=otherwise, type=type) if is_number(type) or is_whole(type):
                pairs = tuple((self.truth(condition), self.value(answer)) for condition, answer in whens)
                return ("case", pairs, self.value(otherwise))
        _refuse()

    def real(self, expr: bound.Expr) -> Form:
        """A double, as IEEE 754 computes it."""
        match expr:
            case bound.Column(type=Float()):
                return ("real", self._column(f"c{expr.id}"))
            case bound.Literal(value=float(value), type=Float(bits=64)):
                return ("real number", self._number(_bits_of(value)))
            case bound.Call(function=function, arguments=(left, right), type=Float(bits=64)) if function.name in _OPERATIONS:
                if left.type == right.type == expr.type:
                    return (f"f{_OPERATIONS[function.name]}", self.real(left), self.real(right), 64)
        _refuse()

    def _operation(self, name: str, left: bound.Expr, right: bound.Expr, type: Type) -> Form:
        scales = _scale(left.type), _scale(right.type)
        match type:
            case Integer(bits=bits) if isinstance(left.type, Integer) and isinstance(right.type, Integer):
                return (name, self.value(left), self.value(right), bits)
            case Decimal(scale=scale) if is_number(left.type) and is_number(right.type):
                if name == "mul":
                    return (name, self.value(left), self.value(right), 64) if sum(scales) == scale else _refuse()
                return (name, self._raised(left, scale - scales[0]), self._raised(right, scale - scales[1]), 64)
        _refuse()

    def _cast(self, operand: bound.Expr, type: Type) -> Form:
        """Casts that neither round nor change what kind of thing a number is."""
        source = operand.type
        if source == type:
            return self.value(operand)
        match type:
            case Integer(bits=bits) if isinstance(source, Integer):
                limit = 1 << (bits - 1)
                return ("fit", self.value(operand), -limit, limit - 1) if bits < source.bits else self.value(operand)
            case Decimal(precision=precision, scale=scale) if is_number(source):
                raised = self._raised(operand, scale - _scale(source))
                limit = min(10**precision - 1, WORD[1])
                return ("fit", raised, -limit, limit)
        _refuse()

    def _raised(self, expr: bound.Expr, digits: int) -> Form:
        """A value times a power of ten."""
        if digits < 0:
            _refuse()
        if isinstance(expr, bound.Literal) and isinstance(expr.value, int):
            return self._constant(expr.value * 10**digits)
        made = self.value(expr)
        return ("mul", made, self._constant(10**digits), 64) if digits else made

    def _any(self, expr: bound.Expr) -> Form:
        """What is looked at for NULL alone: a column of any kind, or a value."""
        return ("column", self._column(f"c{expr.id}")) if isinstance(expr, bound.Column) else self.value(expr)

    def _within(self, test: RangeTest) -> Form:
        column, place = self._column(test.column), self._number(test.low)
        self._number(test.high)
        self.ranges.append((place, column))
        return ("within", column, place, test.outside)

    def _marks(self, expr: bound.Expr) -> Form:
        (name,) = column_names(expr)
        column = self._column(name)
        self.texts.append(TextTest(column, EntryTest(name, Program((expr,), self._context))))
        return ("marks", column, len(self.texts) - 1)

    def _column(self, name: str) -> int:
        return self.columns.setdefault(name, len(self.columns))

    def _constant(self, value: object) -> Form:
        """A constant and the bits that it takes, so that code of one shape holds for all constants of that width."""
        if not isinstance(value, int) or not WORD[0] <= value <= WORD[1]:
            _refuse()
        bits = next(bits for bits in (8, 16, 32, 64) if -(1 << (bits - 1)) <= value < 1 << (bits - 1))
        return ("number", self._number(int(value)), bits)

    def _number(self, value: int) -> int:
        self.numbers.append(value)
        return len(self.numbers) - 1


def is_number(type: Type) -> bool:
    """Whether values are whole numbers that are added and multiplied."""
    return isinstance(type, Integer | Decimal)


def _scale(type: Type) -> int:
    return type.scale if isinstance(type, Decimal) else 0


def _bits_of(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])
