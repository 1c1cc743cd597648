"""What the steps of expressions do: columns, comparisons, logic, membership, casts, lists and CASE over whole columns.

A function here makes the ``run`` of a step: ``run(batch, *values)``, whose values are columns or constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import LakeError
from lake.exec import decimals
from lake.exec.cast import cast
from lake.exec.comparisons import compare
from lake.exec.constants import as_array, list_array, to_array
from lake.exec.decimals import Value
from lake.exec.kernels import views
from lake.sql import bound
from lake.sql.catalog import Settings
from lake.types import TEXT, Decimal, Float, Interval, List, Map, Struct, Type

Run: TypeAlias = Callable[..., Value]
UNKNOWN: Final = pa.scalar(None, pa.bool_())


# --- expressions and rows --------------------------------------------------------------------------------------------


def nodes(expr: bound.Expr) -> Iterator[bound.Expr]:
    """``expr`` and all below it, without recursion; subqueries are not entered."""
    todo = [expr]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(bound.children(node))


def column_names(expr: bound.Expr) -> list[str]:
    """The names of the batch's columns that ``expr`` uses; parameters of its own lambdas are not among them."""
    used: set[int] = set()
    own: set[int] = set()
    for node in nodes(expr):
        if isinstance(node, bound.Column):
            used.add(node.id)
        elif isinstance(node, bound.Lambda):
            own.update(column.id for column in node.parameters)
    return sorted(f"c{id}" for id in used - own)


def true_rows(value: Value, rows: int) -> Any:
    """bool[rows]: where a BOOLEAN is true."""
    if isinstance(value, pa.Scalar):
        return np.full(rows, value.as_py() is True)
    return views.true_of(value)


def narrowed(batch: pa.RecordBatch, names: list[str], rows: Any) -> pa.RecordBatch:
    """The named columns at some rows; a batch without columns still knows how many rows it has."""
    if names:
        return batch.select(names).take(pa.array(rows))
    return pa.record_batch([pa.nulls(len(rows))], ["c"])


# --- steps -----------------------------------------------------------------------------------------------------------


def column(name: str) -> Run:
    """The batch's column of a name."""
    def run(batch: pa.RecordBatch) -> Value:
        column = batch.column(name)
        return column if not isinstance(column, pa.ChunkedArray) else views.single(column)

    return run


def plain(value: Value) -> Value:
    """A value without a dictionary."""
    return value.dictionary_decode() if isinstance(value, pa.DictionaryArray) else value


def comparison(op: str, type: Type) -> Run:
    """``left op right``: over the entries of a dictionary where the other side is a constant."""
    over_entries = OverEntries(lambda left, right: compare(op, left, right, type), is_text_result=False)

    def run(batch: pa.RecordBatch, left: Value, right: Value) -> Value:
        if not op.startswith("is ") or (isinstance(left, pa.Array) and left.null_count == 0):
            if isinstance(left, pa.DictionaryArray) and isinstance(right, pa.Scalar) and right.is_valid:
                return over_entries(0, (left, right))
            if isinstance(right, pa.DictionaryArray) and isinstance(left, pa.Scalar) and left.is_valid:
                return over_entries(1, (left, right))
        left, right = plain(left), plain(right)
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            return compare(op, as_array(left, 1), as_array(right, 1), type)[0]
        return compare(op, left, right, type)

    return run


def conjunction(batch: pa.RecordBatch, *operands: Value) -> Value:
    """AND of all operands, with three values."""
    value = operands[0]
    for operand in operands[1:]:
        value = pc.and_kleene(value, operand)
    return value


def disjunction(batch: pa.RecordBatch, *operands: Value) -> Value:
    """OR of all operands, with three values."""
    value = operands[0]
    for operand in operands[1:]:
        value = pc.or_kleene(value, operand)
    return value


def negation(batch: pa.RecordBatch, operand: Value) -> Value:
    """NOT, with three values."""
    return pc.invert(operand)


def null_test(batch: pa.RecordBatch, operand: Value) -> Value:
    """IS NULL."""
    if isinstance(operand, pa.DictionaryArray) and operand.dictionary.null_count:
        operand = operand.dictionary_decode()
    return pc.is_null(operand)


def membership(type: Type, items: tuple[bound.Expr, ...]) -> Run:
    """Membership in a set of constants: NULL where the operand is, or where it is not found and a NULL is listed."""
    literals = [item.value for item in items if isinstance(item, bound.Literal)]
    has_null = any(value is None for value in literals)
    members = to_array([value for value in literals if value is not None], type)
    if isinstance(type, Float):
        members = pc.add(members, 0.0)
    if isinstance(type, List | Struct | Map | Interval):
        scalars = [pa.scalar(None, type.physical) if has_null else members[0], *members]
        in_values = any_equal(type)
        return lambda batch, operand: in_values(batch, operand, *scalars)

    def is_in(operand: Value) -> Value:
        if isinstance(type, Decimal):
            operand = decimals.widen(operand, type)
        if isinstance(type, Float):
            operand = pc.add(operand, 0.0)
        found = pc.is_in(operand, value_set=members)
        unknown = pc.invert(found) if has_null else pc.is_null(operand)
        if not has_null and isinstance(operand, pa.Array) and operand.null_count == 0:
            return found
        return pc.if_else(unknown, UNKNOWN, found)

    over_entries = OverEntries(is_in, is_text_result=False)

    def run(batch: pa.RecordBatch, operand: Value) -> Value:
        return over_entries(0, (operand,)) if isinstance(operand, pa.DictionaryArray) else is_in(operand)

    return run


def any_equal(type: Type) -> Run:
    """Whether the first value equals one of the others, with three values."""
    equal = comparison("=", type)

    def run(batch: pa.RecordBatch, operand: Value, *items: Value) -> Value:
        return disjunction(batch, *(equal(batch, operand, item) for item in items))

    return run


def conversion(source: Type, target: Type, is_try: bool, settings: Settings | None) -> Run:
    """A cast: over the entries of a dictionary."""
    def convert(value: Value) -> Value:
        return cast(value, source, target, is_try=is_try, settings=settings)

    over_entries = OverEntries(convert, is_text_result=False)

    def run(batch: pa.RecordBatch, operand: Value) -> Value:
        if isinstance(operand, pa.DictionaryArray):
            if target == TEXT:
                return operand
            try:
                return over_entries(0, (operand,))
            except LakeError:
                # The entry that does not cast may be one that no row of this batch has.
                return convert(operand.dictionary_decode())
        return convert(operand)

    return run


def list_maker(type: Type) -> Run:
    """``[a, b]`` of each row."""
    assert isinstance(type, List)
    of = type.of

    def run(batch: pa.RecordBatch, *items: Value) -> Value:
        rows = batch.num_rows
        columns = [physical(as_array(plain(item), rows), of) for item in items]
        count = len(columns)
        if count == 0:
            return list_array(np.zeros(rows + 1, np.int32), pa.array([], of.physical))
        by_column = np.arange(rows * count, dtype=np.int64).reshape(count, rows).T.ravel()
        return list_array(np.arange(rows + 1, dtype=np.int32) * count, views.concat(columns).take(pa.array(by_column)))

    return run


def physical(value: Any, type: Type) -> Any:
    """A value of a decimal type in its physical form; others as they are."""
    return decimals.widen(value, type) if isinstance(type, Decimal) else value


# --- dictionaries ----------------------------------------------------------------------------------------------------


class OverEntries:
    """Runs a function of a dictionary column and constants on the dictionary's entries, and hands the answers out by code.

    The answers for the last dictionary are kept: the batches of a row group share theirs.
    """

    def __init__(self, run: Callable[..., Value], *, is_text_result: bool) -> None:
        self._run = run
        self._is_text_result = is_text_result
        self._last: tuple[object, pa.Array, pa.Array] | None = None

    def __call__(self, position: int, values: tuple[Value, ...]) -> Value:
        column = values[position]
        answers = self._answers(column.dictionary, position, values)
        if pa.types.is_boolean(answers.type) and answers.null_count == 0 and column.indices.null_count == 0:
            return views.to_boolean(views.true_of(answers)[views.values_of(column.indices)])
        if isinstance(answers, pa.DictionaryArray):
            codes = answers.indices.take(column.indices)
            return pa.DictionaryArray.from_arrays(codes, answers.dictionary)
        return answers.take(column.indices)

    def _answers(self, entries: pa.Array, position: int, values: tuple[Value, ...]) -> pa.Array:
        key = (entries.buffers()[-1].address if entries.buffers()[-1] else 0, entries.offset, len(entries),
               *(id(value) for index, value in enumerate(values) if index != position))  # fmt: skip
        last = self._last
        if last is not None and last[0] == key:
            return last[2]
        answers = self._run(*(entries if index == position else value for index, value in enumerate(values)))
        answers = as_array(answers, len(entries))
        if self._is_text_result:
            answers = answers.dictionary_encode()
        constants = [value for index, value in enumerate(values) if index != position]
        self._last = (key, (entries, constants), answers)
        return answers


# --- CASE -----------------------------------------------------------------------------------------------------------


def case(count: int, type: Type) -> Run:
    """CASE whose ``count`` conditions and answers are computed for all rows."""
    def run(batch: pa.RecordBatch, *values: Value) -> Value:
        conditions, answers = values[0 : 2 * count : 2], [*values[1 : 2 * count : 2], values[-1]]
        return choose(conditions, answers, batch.num_rows, type)

    return run


def choose(conditions: Sequence[Value], answers: Sequence[Value], rows: int, type: Type) -> Value:
    """For each row the answer of its first true condition; the last of ``answers`` where none is."""
    if isinstance(type, Decimal) and len({value.type for value in answers}) > 1:
        answers = [decimals.widen(value, type) for value in answers]
    if all(isinstance(value, pa.Scalar) for value in answers):
        return _choose_constants(conditions, answers, rows, type)
    answers = [plain(value) for value in answers]
    if len(conditions) == 1 and not pa.types.is_nested(answers[0].type):
        condition = conditions[0]
        if isinstance(condition, pa.Scalar):
            return answers[0] if condition.as_py() else answers[1]
        return pc.if_else(pc.fill_null(condition, False), answers[0], answers[1])
    which = first_true(conditions, rows)
    columns = [as_array(value, rows) for value in answers]
    return views.concat(columns).take(pa.array(which * rows + np.arange(rows)))


def first_true(conditions: Sequence[Value], rows: int) -> Any:
    """int64[rows]: the number of the first condition that is true, or how many there are."""
    which = np.full(rows, len(conditions), np.int64)
    for index in range(len(conditions) - 1, -1, -1):
        which[true_rows(conditions[index], rows)] = index
    return which


def _choose_constants(conditions: Sequence[Value], answers: Sequence[Value], rows: int, type: Type) -> Value:
    """CASE of constants: text comes out as a dictionary."""
    entries = views.concat([as_array(value, 1) for value in answers])
    which = pa.array(first_true(conditions, rows).astype(np.int32))
    if entries.type == pa.string():
        encoded = entries.dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.take(which), encoded.dictionary)
    return entries.take(which)
