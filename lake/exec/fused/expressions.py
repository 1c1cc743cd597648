"""Values and conditions of one row as LLVM instructions.

Whole numbers are computed in 64 bits, whatever the width of their columns. The least and the greatest value that an
expression can have, by the widths of its columns and constants, tell where an overflow must be looked for. NULL is a bit
beside a number, and a condition two bits, for it may be neither true nor false.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

from llvmlite import ir

from lake.exec.fused.shape import WORD, Form

BOOL: Final = ir.IntType(1)
BYTE: Final = ir.IntType(8)
INDEX: Final = ir.IntType(64)
PTR: Final = ir.PointerType()
FALSE: Final = ir.Constant(BOOL, 0)
TRUE: Final = ir.Constant(BOOL, 1)
DOUBLE: Final = ir.DoubleType()
LOW_BITS: Final = (1 << 32) - 1

WINDOW_BITS: Final = 52
"""How many exponents in a row the doubles of a sum may have: their mantissas of 53 bits, shifted by so many, are three digits
of 32 bits, of which 2**18 are added up in 64 bits."""
DIGITS: Final = 3
_FRACTION: Final = (1 << 52) - 1
_EXPONENT: Final = (1 << 11) - 1

_TYPES: Final = {
    "int8": BYTE, "int16": ir.IntType(16), "int32": ir.IntType(32), "int64": INDEX, "bool": BYTE,
    "float": ir.FloatType(), "double": DOUBLE,
}  # fmt: skip
_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "bool": 8, "float": 32, "double": 64}


def constant(value: int) -> ir.Constant:
    """A whole number."""
    return ir.Constant(INDEX, value)


class Value(NamedTuple):
    """A number, whether it is there (None where it always is), and within which bounds it lies."""

    number: Any
    valid: Any
    low: int
    high: int


class Truth(NamedTuple):
    """A condition is true, false, or neither."""

    true: Any
    false: Any


class Row:
    """The row at hand; an expression is computed once for each."""

    def __init__(self, builder: ir.IRBuilder, kinds: Sequence[str], bad: Any) -> None:
        self.builder = builder
        self.number: Any = None
        self.numbers: list[Any] = []
        self._kinds = [kind.removesuffix("?") for kind in kinds]
        self._nullable = [kind.endswith("?") for kind in kinds]
        self._bad = bad
        self._columns: list[Any] = []
        self._valids: list[Any] = []
        self._marks: list[Any] = []
        self._made: dict[Form, Any] = {}

    def load(self, pointers: Any, numbers: Any, count: int, texts: int) -> None:
        """Takes all pointers and constants out of the arguments."""
        columns = len(self._kinds)
        every = [self._item(pointers, place, PTR) for place in range(2 * columns + texts)]
        self._columns, self._valids, self._marks = every[:columns], every[columns : 2 * columns], every[2 * columns :]
        self.numbers = [self._item(numbers, place, INDEX) for place in range(count)]

    def _item(self, pointer: Any, place: int, type: Any) -> Any:
        return self.builder.load(self.builder.gep(pointer, [constant(place)], source_etype=type), typ=type)

    def start(self, number: Any) -> None:
        """Goes to another row."""
        self.number = number
        self._made = {}

    def fail(self, when: Any, valid: Any) -> None:
        """Notes that the batch is to be left to the plain way."""
        known = self.builder.load(self._bad, typ=BOOL)
        self.builder.store(self.builder.or_(known, self.both(when, valid)), self._bad)

    def both(self, one: Any, other: Any) -> Any:
        """Whether two conditions hold; None is one that always does."""
        if one is None or other is None:
            return one if other is None else other
        return self.builder.and_(one, other)

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, form: Form) -> Value:
        """The instructions of a value."""
        if form not in self._made:
            self._made[form] = self._value(form)
        made: Value = self._made[form]
        return made

    def _value(self, form: Form) -> Value:
        match form:
            case ("column", column):
                limit = 1 << (_BITS[self._kinds[column]] - 1)
                return Value(self._widened(column), self._valid(column), -limit, limit - 1)
            case ("number", place, bits):
                return Value(self.numbers[place], None, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
            case ("null",):
                return Value(constant(0), FALSE, 0, 0)
            case ("real", column):
                number = self._loaded(column)
                number = number if number.type == DOUBLE else self.builder.fpext(number, DOUBLE)
                return Value(number, self._valid(column), 0, 0)
            case ("real number", place):
                return Value(self.builder.bitcast(self.numbers[place], DOUBLE), None, 0, 0)
            case (("fadd" | "fsub" | "fmul") as name, left, right, _):
                one, other = self.value(left), self.value(right)
                return Value(getattr(self.builder, name)(one.number, other.number), self.both(one.valid, other.valid), 0, 0)
            case ("fit", operand, low, high):
                return self._within(self.value(operand), low, high)
            case ("case", pairs, otherwise):
                made = self.value(otherwise)
                for condition, answer in reversed(pairs):
                    made = self._chosen(self.truth(condition).true, self.value(answer), made)
                return made
            case (name, left, right, bits):
                limit = 1 << (bits - 1)
                return self._within(self._computed(name, self.value(left), self.value(right)), -limit, limit - 1)
        raise AssertionError(form)

    def _computed(self, name: str, left: Value, right: Value) -> Value:
        """A sum, difference or product; it fails where it passes 64 bits."""
        valid = self.both(left.valid, right.valid)
        match name:
            case "add":
                ends = [left.low + right.low, left.high + right.high]
            case "sub":
                ends = [left.low - right.high, left.high - right.low]
            case _:
                ends = [one * other for one in left[2:] for other in right[2:]]
        low, high = min(ends), max(ends)
        if WORD[0] <= low and high <= WORD[1]:
            return Value(getattr(self.builder, name)(left.number, right.number), valid, low, high)
        both = getattr(self.builder, f"s{name}_with_overflow")(left.number, right.number)
        self.fail(self.builder.extract_value(both, 1), valid)
        return Value(self.builder.extract_value(both, 0), valid, max(low, WORD[0]), min(high, WORD[1]))

    def _within(self, value: Value, low: int, high: int) -> Value:
        """The value; it fails where it lies outside."""
        if value.low < low:
            self.fail(self.builder.icmp_signed("<", value.number, constant(low)), value.valid)
        if value.high > high:
            self.fail(self.builder.icmp_signed(">", value.number, constant(high)), value.valid)
        return value._replace(low=max(value.low, low), high=min(value.high, high))

    def _chosen(self, condition: Any, one: Value, other: Value) -> Value:
        valid = None
        if one.valid is not None or other.valid is not None:
            valid = self.builder.select(condition, *(TRUE if each.valid is None else each.valid for each in (one, other)))
        number = self.builder.select(condition, one.number, other.number)
        return Value(number, valid, min(one.low, other.low), max(one.high, other.high))

    def digits(self, value: Value, window: Any) -> list[Any]:
        """A double as digits of 32 bits, lowest first, all with its sign; the last has up to 41 bits.

        They count the last bit of doubles whose exponent field is ``window``. It fails for others than zeros and those whose
        field is that one or up to WINDOW_BITS more: so for NaN, infinities and the smallest numbers.
        """
        builder, wide = self.builder, ir.IntType(128)
        bits = builder.bitcast(value.number, INDEX)
        field = builder.and_(builder.lshr(bits, constant(52)), constant(_EXPONENT))
        shift = builder.sub(field, window)
        is_zero = builder.icmp_unsigned("==", builder.shl(bits, constant(1)), constant(0))
        fits = builder.icmp_unsigned("<=", shift, constant(WINDOW_BITS))
        self.fail(builder.not_(builder.or_(fits, is_zero)), value.valid)
        mantissa = builder.or_(builder.and_(bits, constant(_FRACTION)), constant(_FRACTION + 1))
        mantissa = builder.select(fits, mantissa, constant(0))
        moved = builder.shl(builder.zext(mantissa, wide), builder.zext(builder.select(fits, shift, constant(0)), wide))
        low, high = builder.trunc(moved, INDEX), builder.trunc(builder.lshr(moved, ir.Constant(wide, 64)), INDEX)
        sign = builder.ashr(bits, constant(63))
        parts = (builder.and_(low, constant(LOW_BITS)), builder.lshr(low, constant(32)), high)
        return [builder.sub(builder.xor(part, sign), sign) for part in parts]

    # --- conditions --------------------------------------------------------------------------------------------------

    def truth(self, form: Form) -> Truth:
        """The instructions of a condition."""
        if form not in self._made:
            self._made[form] = self._truth(form)
        made: Truth = self._made[form]
        return made

    def _truth(self, form: Form) -> Truth:
        builder = self.builder
        match form:
            case ("within", column, place, outside):
                return self._of_column(self._in_range(column, place), column, outside)
            case ("between", column, place, with_nan, outside):
                return self._of_column(self._in_doubles(column, place, with_nan), column, outside)
            case ("truth", column):
                return self._of_column(builder.icmp_signed("!=", self._loaded(column), ir.Constant(BYTE, 0)), column, False)
            case ("marks", column, text):
                true = builder.icmp_unsigned("!=", self._mark(column, text), ir.Constant(BYTE, 0))
                return Truth(true, FALSE)
            case ("compare", op, left, right):
                one, other = self.value(left), self.value(right)
                sign = {"=": "==", "<>": "!="}.get(op, op)
                return self._known(builder.icmp_signed(sign, one.number, other.number), self.both(one.valid, other.valid))
            case ("is null", operand):
                valid = self._valid(operand[1]) if operand[0] == "column" else self.value(operand).valid
                return Truth(FALSE, TRUE) if valid is None else Truth(builder.not_(valid), valid)
            case ("not", operand):
                return Truth(*reversed(self.truth(operand)))
            case (("and" | "or") as name, *operands):
                if_true, if_false = (builder.and_, builder.or_) if name == "and" else (builder.or_, builder.and_)
                sides = [self.truth(operand) for operand in operands]
                return Truth(reduce(if_true, (side.true for side in sides)), reduce(if_false, (side.false for side in sides)))
        raise AssertionError(form)

    def _known(self, true: Any, valid: Any) -> Truth:
        return Truth(self.both(true, valid), self.both(self.builder.not_(true), valid))

    def _of_column(self, true: Any, column: int, outside: bool) -> Truth:
        return self._known(self.builder.not_(true) if outside else true, self._valid(column))

    def _in_range(self, column: int, place: int) -> Any:
        """Whether a column lies between two constants, compared in its own width, which they have been made to fit."""
        builder, type, value = self.builder, _TYPES[self._kinds[column]], self._loaded(column)
        low, high = (number if type is INDEX else builder.trunc(number, type) for number in self.numbers[place : place + 2])
        return builder.and_(builder.icmp_signed(">=", value, low), builder.icmp_signed("<=", value, high))

    def _in_doubles(self, column: int, place: int, with_nan: bool) -> Any:
        builder, value = self.builder, self._loaded(column)
        if self._kinds[column] == "float":
            value = builder.fpext(value, DOUBLE)
        low, high = (builder.bitcast(number, DOUBLE) for number in self.numbers[place : place + 2])
        inside = builder.and_(builder.fcmp_ordered(">=", value, low), builder.fcmp_ordered("<=", value, high))
        return builder.or_(inside, builder.fcmp_unordered("uno", value, value)) if with_nan else inside

    def _mark(self, column: int, text: int) -> Any:
        """Whether a condition of a text is true, by its code; NULL's mark stands first."""
        place = self.builder.add(self._widened(column), constant(1))
        valid = self._valid(column)
        if valid is not None:
            place = self.builder.select(valid, place, constant(0))
        return self.builder.load(self.builder.gep(self._marks[text], [place], source_etype=BYTE), typ=BYTE)

    # --- columns -----------------------------------------------------------------------------------------------------

    def _loaded(self, column: int) -> Any:
        """A column's value in its own width."""
        key = ("loaded", column)
        if key not in self._made:
            type = _TYPES[self._kinds[column]]
            at = self.builder.gep(self._columns[column], [self.number], source_etype=type)
            self._made[key] = self.builder.load(at, typ=type)
        return self._made[key]

    def _widened(self, column: int) -> Any:
        loaded = self._loaded(column)
        return loaded if _TYPES[self._kinds[column]] is INDEX else self.builder.sext(loaded, INDEX)

    def _valid(self, column: int) -> Any:
        """Whether a column has a value; None where it always does."""
        if not self._nullable[column]:
            return None
        key = ("valid", column)
        if key not in self._made:
            at = self.builder.gep(self._valids[column], [self.number], source_etype=BYTE)
            self._made[key] = self.builder.icmp_unsigned("!=", self.builder.load(at, typ=BYTE), ir.Constant(BYTE, 0))
        return self._made[key]
