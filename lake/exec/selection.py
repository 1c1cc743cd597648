"""Conjuncts over batches: the rows for which all are true.

    quantity < 24 AND shipped >= DATE '1994-01-01' AND shipped < DATE '1995-01-01' AND mode LIKE 'A%' AND price > cost * 2

    RangeTest shipped in [8766, 9130]      a compiled loop over the values         dearest drop first, as seen so far
    RangeTest quantity in [.., 2399]
    PairTest  sent < received              two columns of whole numbers
    EntryTest mode                         the dictionary's entries are tested once, then codes looked up
    price > cost * 2                       any other expression, over the rows that are left

Quick tests cannot raise, so they may go before all else and in any order: those that drop most go first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lake.errors import LakeError
from lake.exec.evaluate import Program
from lake.exec.kernels.ranges import HIGHEST, LOWEST, rows_between, rows_marked, rows_within
from lake.exec.kernels.taking import taken_all
from lake.exec.kernels.views import ALL_VALID, mask_of, values_of
from lake.exec.steps import column_names, nodes, true_rows
from lake.narrow import widened
from lake.sql import bound
from lake.types import Date, Decimal, Float, Integer, Text, Time, Timestamp, Type

if TYPE_CHECKING:
    from lake.exec.context import Context

SHRINK_BELOW: Final = 0.25
"""The share of rows left by a conjunct under which the next ones see those rows alone."""

QUICK_ROWS: Final = 2_048
"""Batches of fewer rows are left to the programs: a small query must not wait for a compiled kernel to be loaded."""

ENTRIES_SHARE: Final = 2
"""A dictionary is tested by entry where it has at most one entry for so many rows."""

_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class RangeTest(Struct):
    """A column of whole numbers within ``[low, high]``, or outside of it."""

    column: str
    low: int
    high: int
    outside: bool = False
    seen: int = 0
    passed: int = 0

    def rows(self, batch: pa.RecordBatch, rows: Any) -> Any:
        """Those of the rows (None for all) that pass, ascending."""
        array = batch.column(self.column)
        return rows_within(values_of(array), mask_of(array), self.low, self.high, outside=self.outside, rows=rows)


class FloatTest(Struct):
    """A column of doubles within ``[low, high]``, or outside of it; NaN is greater than every number."""

    column: str
    low: float
    high: float
    with_nan: bool
    outside: bool = False
    seen: int = 0
    passed: int = 0

    def rows(self, batch: pa.RecordBatch, rows: Any) -> Any:
        """Those of the rows (None for all) that pass, ascending."""
        array = batch.column(self.column)
        return rows_between(
            values_of(array), mask_of(array), self.low, self.high, with_nan=self.with_nan, outside=self.outside, rows=rows
        )


class PairTest(Struct):
    """Two columns of whole numbers of one type, compared."""

    left: str
    right: str
    op: str
    seen: int = 0
    passed: int = 0

    def rows(self, batch: pa.RecordBatch, rows: Any) -> Any:
        """Those of the rows (None for all) that pass, ascending."""
        columns = [batch.column(self.left), batch.column(self.right)]
        left, right = (values_of(each) if rows is None else values_of(each)[rows] for each in columns)
        true = _COMPARED[self.op](left, right)
        for valid in map(mask_of, columns):
            if valid.size:
                true &= (valid if rows is None else valid[rows]) != 0
        return np.flatnonzero(true) if rows is None else rows[true]


_COMPARED: Final = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


class EntryTest(Struct):
    """Any conjunct over one text column, for batches where that is a dictionary; ``marks`` are those of the last one."""

    column: str
    program: Program
    seen: int = 0
    passed: int = 0
    _last: tuple[object, pa.Array, Any] | None = None

    def rows(self, batch: pa.RecordBatch, rows: Any) -> Any:
        """Those of the rows (None for all) that pass, ascending; NotImplemented where the column is no small dictionary."""
        array = batch.column(self.column)
        marks = self.marks(array.dictionary, len(array)) if isinstance(array, pa.DictionaryArray) else None
        if marks is None:
            return NotImplemented
        indices = array.indices
        valid = mask_of(indices) if indices.null_count else ALL_VALID
        return rows_marked(values_of(indices), valid, marks, rows)

    def marks(self, entries: pa.Array, rows: int) -> Any:
        """uint8[entries + 1]: for which entries of a column of ``rows`` rows the conjunct is true; the last is NULL's.

        None where they are too many, and where that raises: an entry that fails may be one that no row asks for.
        """
        if len(entries) * ENTRIES_SHARE > rows:
            return None
        buffers = entries.buffers()
        key = (buffers[-1].address if buffers[-1] else 0, entries.offset, len(entries))
        last = self._last
        if last is not None and (last[0] == key or last[1].equals(entries)):
            return last[2]
        column = pa.concat_arrays([entries, pa.nulls(1, entries.type)])
        try:
            true = true_rows(self.program.values(pa.record_batch([column], [self.column]))[0], len(column))
            marks = np.ascontiguousarray(true).view(np.uint8)
        except (LakeError, pa.ArrowInvalid):
            marks = None
        # The entries are kept, so that no other dictionary gets their address.
        self._last = (key, entries, marks)
        return marks


QuickTest = RangeTest | FloatTest | PairTest | EntryTest


class Selector:
    """Conjuncts made ready; ``rows`` tells a batch's rows for which all are true. Threads share it.

    Conjuncts that are no quick tests run in the order given. Once few rows are left, the later ones see those alone.
    """

    def __init__(self, conjuncts: Sequence[bound.Expr], context: Context | None = None) -> None:
        self._all = [_Conjunct(Program((expr,), context), _types_of(expr)) for expr in conjuncts]
        self._quick, self._rest = _sorted_out(conjuncts, self._all)

    def rows(self, batch: pa.RecordBatch) -> Any | None:
        """int64[chosen]: the rows for which every conjunct is true, ascending; None for all."""
        if batch.num_rows < QUICK_ROWS or not self._quick:
            return _true_rows(self._all, batch, None)
        chosen, rest = self._quick_rows(batch)
        if not rest or (chosen is not None and len(chosen) == 0):
            return chosen
        return _true_rows(rest, batch, chosen)

    def _quick_rows(self, batch: pa.RecordBatch) -> tuple[Any, list[_Conjunct]]:
        """The rows that pass the quick tests (None for all), and the conjuncts that are left to try."""
        rows: Any = None
        rest = self._rest
        for test, conjunct in self._quick:
            found = test.rows(batch, rows)
            if found is NotImplemented:
                assert conjunct is not None
                rest = [conjunct, *rest]
                continue
            before = batch.num_rows if rows is None else len(rows)
            test.seen += before
            test.passed += len(found)
            if len(found) < before:
                rows = found
            if len(found) == 0:
                break
        quick = self._quick
        if len(quick) > 1 and any(_passing(one) > _passing(two) for one, two in pairwise(quick)):
            self._quick = sorted(quick, key=_passing)
        return rows, rest


class _Conjunct(Struct, frozen=True):
    """types  physical types of the columns it uses, which a scan hands out narrower"""

    program: Program
    types: dict[str, pa.DataType]

    @property
    def columns(self) -> list[str]:
        return list(self.types)


def _passing(quick: tuple[QuickTest, _Conjunct | None]) -> float:
    """The share of rows a test let pass; one that is not tried yet is tried before those that drop little."""
    test = quick[0]
    return test.passed / test.seen if test.seen else 0.5


def _sorted_out(
    conjuncts: Sequence[bound.Expr], made: list[_Conjunct]
) -> tuple[list[tuple[QuickTest, _Conjunct | None]], list[_Conjunct]]:
    """The conjuncts as quick tests, those of one column in one, and the conjuncts that are none."""
    quick: list[tuple[QuickTest, _Conjunct | None]] = []
    ranges: dict[str, RangeTest] = {}
    rest = []
    for expr, conjunct in zip(conjuncts, made, strict=True):
        test = range_test(expr)
        if test is not None and not test.outside and test.column in ranges:
            known = ranges[test.column]
            known.low, known.high = max(known.low, test.low), min(known.high, test.high)
        elif test is not None:
            quick.append((test, None))
            if not test.outside:
                ranges[test.column] = test
        elif (other := float_test(expr) or pair_test(expr)) is not None:
            quick.append((other, None))
        elif is_entry_test(expr):
            (name,) = conjunct.columns
            quick.append((EntryTest(name, conjunct.program), conjunct))
        else:
            rest.append(conjunct)
    return quick, rest


def range_test(expr: bound.Expr) -> RangeTest | None:
    """The range that a comparison of a whole-number column with a constant asks for; None where it is no such thing."""
    match expr:
        case bound.Compare(op=op, left=bound.Column(id=id, type=type), right=bound.Literal(value=int(value))):
            pass
        case bound.Compare(op=op, left=bound.Literal(value=int(value)), right=bound.Column(id=id, type=type)):
            op = _MIRRORED.get(op, op)
        case _:
            return None
    if not is_whole(type):
        return None
    name = f"c{id}"
    match op:
        case "=":
            return RangeTest(name, value, value)
        case "<>":
            return RangeTest(name, value, value, outside=True)
        case "<":
            return RangeTest(name, LOWEST, value - 1) if value > LOWEST else RangeTest(name, 1, 0)
        case "<=":
            return RangeTest(name, LOWEST, value)
        case ">":
            return RangeTest(name, value + 1, HIGHEST) if value < HIGHEST else RangeTest(name, 1, 0)
        case ">=":
            return RangeTest(name, value, HIGHEST)
    return None


def float_test(expr: bound.Expr) -> FloatTest | None:
    """The range that a comparison of a column of doubles with a constant asks for; None where it is no such thing."""
    match expr:
        case bound.Compare(op=op, left=bound.Column(id=id, type=Float()), right=bound.Literal(value=float(value))):
            pass
        case bound.Compare(op=op, left=bound.Literal(value=float(value)), right=bound.Column(id=id, type=Float())):
            op = _MIRRORED.get(op, op)
        case _:
            return None
    if math.isnan(value):
        return None
    name = f"c{id}"
    match op:
        case "=" | "<>":
            return FloatTest(name, value, value, with_nan=False, outside=op == "<>")
        case "<":
            return FloatTest(name, -math.inf, math.nextafter(value, -math.inf), with_nan=False) if value > -math.inf else None
        case "<=":
            return FloatTest(name, -math.inf, value, with_nan=False)
        case ">":
            return FloatTest(name, math.nextafter(value, math.inf), math.inf, with_nan=True) if value < math.inf else None
        case ">=":
            return FloatTest(name, value, math.inf, with_nan=True)
    return None


def pair_test(expr: bound.Expr) -> PairTest | None:
    """The comparison of two whole-number columns of one type; None where it is no such thing."""
    match expr:
        case bound.Compare(op=op, left=bound.Column(id=one, type=type), right=bound.Column(id=two, type=other)):
            return PairTest(f"c{one}", f"c{two}", op) if op in _COMPARED and type == other and is_whole(type) else None
    return None


def is_whole(type: Type) -> bool:
    """Whether a column of the type holds signed integers of at most 64 bits."""
    if isinstance(type, Decimal):
        return type.is_short
    return isinstance(type, Integer | Date | Time | Timestamp)


def is_entry_test(expr: bound.Expr) -> bool:
    """Whether the conjunct looks at one text column and nothing else, and gives equal values for equal texts."""
    if len(column_names(expr)) != 1:
        return False
    for node in nodes(expr):
        match node:
            case bound.Column(type=type):
                if not isinstance(type, Text):
                    return False
            case bound.Call(function=function):
                if function.volatility == "volatile":
                    return False
            case bound.Literal() | bound.Compare() | bound.InList() | bound.IsNull() | bound.Not() | bound.And() | bound.Or():
                pass
            case bound.Cast() | bound.Case():
                pass
            case _:
                return False
    return True


def _true_rows(conjuncts: Sequence[_Conjunct], batch: pa.RecordBatch, chosen: Any) -> Any | None:
    """Those of the rows ``chosen`` (None for all) for which every conjunct is true; None for all."""
    mask: Any = None
    view = _view(batch, conjuncts, chosen)
    for index, conjunct in enumerate(conjuncts):
        if mask is not None:
            left = int(np.count_nonzero(mask))
            if left == 0:
                return np.empty(0, np.int64)
            if left < SHRINK_BELOW * mask.size:
                positions = np.flatnonzero(mask)
                chosen = positions if chosen is None else chosen[positions]
                view, mask = _view(batch, conjuncts[index:], chosen), None
        true = true_rows(conjunct.program.values(view)[0], view.num_rows)
        mask = true if mask is None else mask & true
    if chosen is None:
        return None if mask is None or mask.all() else np.flatnonzero(mask)
    return chosen if mask is None else chosen[mask]


def _view(batch: pa.RecordBatch, conjuncts: Sequence[_Conjunct], rows: Any) -> pa.RecordBatch:
    """The columns that the conjuncts use, in their own types, at some rows (None for all)."""
    types = {name: type for conjunct in conjuncts for name, type in conjunct.types.items()}
    if not types:
        return batch if rows is None else pa.record_batch([pa.nulls(len(rows))], ["c"])
    columns = [batch.column(name) for name in types]
    if rows is None:
        wide = [widened(column, type) for column, type in zip(columns, types.values(), strict=True)]
    else:
        wide = taken_all(columns, rows, list(types.values()))
    return pa.RecordBatch.from_arrays(wide, list(types))


def _types_of(expr: bound.Expr) -> dict[str, pa.DataType]:
    """The batch's columns that ``expr`` uses, with their physical types."""
    used = set(column_names(expr))
    found = {f"c{node.id}": node.type.physical for node in nodes(expr) if isinstance(node, bound.Column)}
    return {name: type for name, type in sorted(found.items()) if name in used}
