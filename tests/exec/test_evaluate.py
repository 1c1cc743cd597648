"""Expressions over batches: three-valued logic, errors where a row comes to them, dictionaries, decimals, folding."""

from __future__ import annotations

import operator
from decimal import Decimal as PythonDecimal
from decimal import localcontext

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lake.exec.functions  # noqa: F401 - fills the table of functions
from lake.errors import DivisionByZero, LakeError, NumericOutOfRange
from lake.exec.evaluate import Program, evaluate, fold, is_constant
from lake.exec.selection import Selector
from lake.sql.bound import And, Call, Case, Cast, Column, Compare, Expr, InList, IsNull, Literal, MakeList, Not, Or
from lake.sql.registry import FUNCTIONS, Scalar
from lake.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, TEXT, Decimal, List, Type

X, Y = Column(BIGINT, 1, "x"), Column(BIGINT, 2, "y")
S, F = Column(TEXT, 3, "s"), Column(DOUBLE, 4, "f")
NAN = float("nan")


def call(name: str, *arguments: Expr, type: Type | None = None) -> Call:
    """A call of the first overload with so many parameters."""
    found = next(
        item
        for item in FUNCTIONS[name]
        if isinstance(item, Scalar) and (len(item.signature.parameters) == len(arguments) or item.signature.is_variadic)
    )
    rule = found.return_rule
    return Call(type or (rule(tuple(item.type for item in arguments)) if rule else arguments[0].type), found, arguments)


def number(value: int | None) -> Literal:
    """A BIGINT constant."""
    return Literal(BIGINT, value)


def batch(**columns: pa.Array) -> pa.RecordBatch:
    """A batch of named columns."""
    return pa.record_batch(columns)


def values(expr: Expr, rows: pa.RecordBatch) -> list[object]:
    """The expression's values as Python has them."""
    return evaluate(expr, rows).to_pylist()  # type: ignore[no-any-return]


TRUTHS = [True, False, None]


def test_logic_has_three_values() -> None:
    """AND, OR and NOT follow the truth tables of SQL."""
    pairs = [(a, b) for a in TRUTHS for b in TRUTHS]
    rows = batch(c1=pa.array([a for a, _ in pairs], pa.bool_()), c2=pa.array([b for _, b in pairs], pa.bool_()))
    a, b = Column(BOOLEAN, 1, "a"), Column(BOOLEAN, 2, "b")
    conjunction = [False if False in pair else None if None in pair else True for pair in pairs]
    disjunction = [True if True in pair else None if None in pair else False for pair in pairs]
    assert values(And(BOOLEAN, (a, b)), rows) == conjunction
    assert values(Or(BOOLEAN, (a, b)), rows) == disjunction
    assert values(Not(BOOLEAN, a), rows) == [None if one is None else not one for one, _ in pairs]


def test_case_computes_a_branch_for_its_rows() -> None:
    """A division that fails elsewhere is safe behind its condition."""
    rows = batch(c1=pa.array([2, 0, None, 5]))
    guarded = Case(BIGINT, ((Compare.of("<>", X, number(0)), call("/", number(10), X)),), number(None))
    assert values(guarded, rows) == [5, None, None, 2]
    with pytest.raises(DivisionByZero):
        evaluate(call("/", number(10), X), rows)


def test_nested_conditionals_are_careful_too() -> None:
    """The care of a CASE reaches the CASE inside it, coalesce and AND."""
    rows = batch(c1=pa.array([2, 0, 4, None]), c2=pa.array([1, 1, 0, 3]))
    inner = Case(BIGINT, ((Compare.of("<>", Y, number(0)), call("/", X, Y)),), number(-1))
    outer = Case(BIGINT, ((Compare.of("=", X, number(0)), number(0)),), call("/", number(8), inner))
    assert values(outer, rows) == [4, 0, -8, None]
    assert values(call("coalesce", Y, call("/", number(1), number(0))), batch(c2=pa.array([1, 2]))) == [1, 2]
    both = And(BOOLEAN, (Compare.of("<>", X, number(0)), Compare.of(">", call("/", number(8), X), number(2))))
    assert values(both, rows) == [True, False, False, None]


def test_filters_shrink() -> None:
    """Once a conjunct leaves few rows, the next ones see those alone."""
    rows = batch(c1=pa.array([*([0] * 50), 1, 2, None]), c2=pa.array(range(53)))
    conjuncts = (Compare.of(">", X, number(0)), Compare.of(">", call("/", number(2), X), number(1)))
    assert Selector(conjuncts).rows(rows).tolist() == [50]
    assert Selector(()).rows(rows) is None


def test_floats_compare_as_postgres() -> None:
    """NaN equals itself and is the greatest; -0.0 is 0.0."""
    rows = batch(c4=pa.array([1.5, NAN, None, -0.0]))
    assert values(Compare.of("=", F, F), rows) == [True, True, None, True]
    assert values(Compare.of(">", F, Literal(DOUBLE, 1e300)), rows) == [False, True, None, False]
    assert values(Compare.of("<", F, Literal(DOUBLE, NAN)), rows) == [True, False, None, True]
    assert values(InList(BOOLEAN, F, (Literal(DOUBLE, 0.0), Literal(DOUBLE, NAN))), rows) == [False, True, None, True]


def test_distinct_never_answers_null() -> None:
    """IS [NOT] DISTINCT FROM takes NULL for a value."""
    rows = batch(c1=pa.array([1, None, None]), c2=pa.array([1, None, 2]))
    assert values(Compare.of("is distinct", X, Y), rows) == [False, False, True]
    assert values(Compare.of("is not distinct", X, Y), rows) == [True, True, False]
    assert values(Compare.of("is not distinct", X, number(None)), rows) == [False, True, True]


def test_in_follows_sql_with_nulls() -> None:
    """A NULL in the list makes what is not found unknown."""
    rows = batch(c1=pa.array([1, 2, None]))
    assert values(InList(BOOLEAN, X, (number(1), number(3))), rows) == [True, False, None]
    assert values(InList(BOOLEAN, X, (number(1), number(None))), rows) == [True, None, None]
    assert values(InList(BOOLEAN, X, (X, number(7))), rows) == [True, True, None]


@pytest.mark.parametrize("coded", [False, True])
def test_text_may_be_a_dictionary(coded: bool) -> None:
    """Comparison, LIKE, functions and IS NULL answer the same for codes."""
    column = pa.array(["abc", "b", None, "abc", "ABC"])
    rows = batch(c3=column.dictionary_encode() if coded else column)
    assert values(Compare.of("=", S, Literal(TEXT, "abc")), rows) == [True, False, None, True, False]
    assert values(call("like", S, Literal(TEXT, "a%"), type=BOOLEAN), rows) == [True, False, None, True, False]
    assert values(call("upper", S), rows) == ["ABC", "B", None, "ABC", "ABC"]
    assert values(IsNull(BOOLEAN, S), rows) == [False, False, True, False, False]
    assert values(Compare.of("<", S, S), rows) == [False, False, None, False, False]
    assert values(InList(BOOLEAN, S, (Literal(TEXT, "b"),)), rows) == [False, True, None, False, False]


def test_answers_over_a_dictionary_keep_it_unique() -> None:
    """Entries that become equal become one: codes stand for values."""
    rows = batch(c3=pa.array(["a", "A", "b"]).dictionary_encode())
    (made,) = Program((call("upper", S),)).run(rows)
    assert isinstance(made, pa.DictionaryArray)
    assert made.dictionary.to_pylist() == ["A", "B"]


def test_an_entry_that_no_row_has_raises_nothing() -> None:
    """A dictionary is shared with other batches: what only their rows have is not cast."""
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array(["1", "x"]))
    assert values(Cast(BIGINT, S), batch(c3=column)) == [1, 1]


def test_depth_is_no_matter() -> None:
    """A chain of three thousand additions overflows no stack."""
    expr: Expr = X
    for _ in range(3000):
        expr = call("+", expr, number(1))
    assert values(expr, batch(c1=pa.array([0, None]))) == [3000, None]


def test_common_parts_are_one_step() -> None:
    """The same expression in two outputs is computed once."""
    shared = call("*", X, Y)
    program = Program((call("+", shared, number(1)), call("-", call("*", X, Y), number(1))))
    assert len(program._steps) == 5


def test_integers_overflow_as_errors() -> None:
    """Nothing wraps."""
    rows = batch(c1=pa.array([2**62]))
    with pytest.raises(NumericOutOfRange, match="bigint out of range"):
        evaluate(call("*", X, number(4)), rows)


def test_lists_and_intervals_compare() -> None:
    """Lists item by item, intervals by their length."""
    one, two = Literal(INTERVAL, (1, 0, 0)), Literal(INTERVAL, (0, 30, 0))
    assert fold(Compare.of("=", one, two)).value is True
    rows = batch(c1=pa.array([1, 2]))
    made = MakeList(List(BIGINT), (X, number(5)))
    assert values(made, rows) == [[1, 5], [2, 5]]
    assert values(Compare.of("<", made, Literal(List(BIGINT), (2, 0))), rows) == [True, False]


def test_folding() -> None:
    """Constants become literals in physical form."""
    assert fold(call("*", Literal(Decimal(2, 1), 15), Literal(Decimal(2, 1), 15))) == Literal(Decimal(5, 2), 225)
    assert fold(Cast(DATE, Literal(TEXT, "1970-01-31"))) == Literal(DATE, 30)
    assert is_constant(call("+", number(1), number(2)))
    assert not is_constant(call("+", X, number(2)))
    assert not is_constant(Call(DOUBLE, _scalar("random"), ()))


def _scalar(name: str) -> Scalar:
    found = FUNCTIONS[name][0]
    assert isinstance(found, Scalar)
    return found


# --- decimals against Python's ---------------------------------------------------------------------------------------

PYTHON = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}
TYPES = st.sampled_from([Decimal(4, 1), Decimal(15, 2), Decimal(18, 0), Decimal(20, 5), Decimal(38, 10), BIGINT])


@st.composite
def operands(draw: st.DrawFn) -> tuple[Type, list[int | None]]:
    """A numeric type and some of its scaled integers."""
    type = draw(TYPES)
    limit = 2**63 - 1 if type == BIGINT else 10**type.precision - 1  # type: ignore[attr-defined]
    edge = st.integers(-limit, limit) | st.integers(-100, 100)
    return type, draw(st.lists(st.none() | edge, min_size=3, max_size=3))


def _exact(type: Type, value: int | None) -> PythonDecimal | None:
    scale = type.scale if isinstance(type, Decimal) else 0
    return None if value is None else PythonDecimal(value).scaleb(-scale)


@settings(max_examples=150, deadline=None)
@given(op=st.sampled_from(["+", "-", "*", "/", "%"]), left=operands(), right=operands())
def test_decimals_are_exact(op: str, left: tuple[Type, list[int | None]], right: tuple[Type, list[int | None]]) -> None:
    """Every result is Python's, cut where the quotient's digits end, or it is refused for its size or a zero."""
    if left[0] == right[0] == BIGINT:
        return
    one, two = Column(left[0], 1, "a"), Column(right[0], 2, "b")
    expr = call(op, one, two)
    assert isinstance(expr.type, Decimal)
    with localcontext(prec=120):
        for a, b in zip(left[1], right[1], strict=True):
            rows = batch(c1=_column(left[0], a), c2=_column(right[0], b))
            x, y = _exact(left[0], a), _exact(right[0], b)
            try:
                (got,) = evaluate(Cast(TEXT, expr), rows).to_pylist()
            except DivisionByZero:
                assert y == 0 and x is not None
                continue
            except NumericOutOfRange:
                assert x is not None and y is not None
                continue
            if x is None or y is None:
                assert got is None
                continue
            exact = PYTHON[op](x, y)
            unit = PythonDecimal(1).scaleb(-expr.type.scale)
            assert PythonDecimal(got) == exact.quantize(unit, "ROUND_DOWN" if op == "/" else "ROUND_HALF_UP")


def _column(type: Type, value: int | None) -> pa.Array:
    if isinstance(type, Decimal) and not type.is_short:
        with localcontext(prec=60):
            return pa.array([_exact(type, value)], type.arrow)
    return pa.array([value], pa.int64())


def test_errors_carry_their_codes() -> None:
    """What the user reads has a SQLSTATE."""
    with pytest.raises(LakeError) as caught:
        evaluate(Cast(BIGINT, S), batch(c3=pa.array(["abc"])))
    assert (caught.value.sqlstate, caught.value.message) == ("22P02", 'invalid input syntax for type bigint: "abc"')
