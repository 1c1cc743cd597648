"""Bound expressions over batches: each is made once into a list of steps, and the steps run for every batch.

    price * (1 - discount) > 10

    r2 = column price      r4 = 1 - r3      (constants r0 = 1, r1 = 10 stand ready)
    r3 = column discount   r5 = r2 * r4     r6 = r5 > r1

A list needs no recursion, whatever the depth of the expression, and an expression that several outputs use is one step.
Steps run eagerly over all rows. Where that raises, the batch is run once more with care: a branch of CASE, a later argument
of coalesce and a later operand of AND or OR see only the rows that come to them, so ``CASE WHEN x <> 0 THEN y / x END`` holds.

A strict function of one text column held as a dictionary runs on the dictionary's entries alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import FeatureNotSupported, InvalidParameter, LakeError
from lake.exec import decimals
from lake.exec.allocator import keep_freed_memory
from lake.exec.cast import cast
from lake.exec.comparisons import compare
from lake.exec.constants import as_array, list_array, to_array, to_python, to_scalar
from lake.exec.decimals import Value
from lake.exec.kernels import views
from lake.sql import bound
from lake.sql.catalog import Settings
from lake.sql.registry import CallInfo
from lake.types import Decimal, Float, Interval, List, Type

if TYPE_CHECKING:
    from lake.exec.context import Context

Run: TypeAlias = Callable[..., Value]

TRUE, FALSE, UNKNOWN = pa.scalar(True), pa.scalar(False), pa.scalar(None, pa.bool_())
SHRINK_BELOW: Final = 0.25
"""The share of rows left by a conjunct under which the next ones see those rows alone."""


@dataclass(slots=True)
class Step:
    """One operation: ``run(batch, *values of inputs)`` gives the value of register ``output``; ``done`` are last used here."""

    run: Run
    inputs: tuple[int, ...]
    output: int
    done: tuple[int, ...] = ()


class Program:
    """Expressions made into steps. It holds no state of a batch: threads share it.

    narrow  decimals may come out as scaled int64 though their type's physical form is wider (``exec.decimals``)
    """

    def __init__(
        self, exprs: Sequence[bound.Expr], context: Context | None = None, *, narrow: bool = False, careful: bool = False
    ) -> None:
        keep_freed_memory()
        self._exprs = tuple(exprs)
        self._context = context
        self._narrow = narrow
        self._careful: Program | None = None
        builder = _Builder(context, careful=careful)
        self._outputs = tuple(builder.register(expr) for expr in exprs)
        self._steps, self._start = builder.finish(self._outputs)
        self._may_need_care = builder.is_conditional and not careful
        self._always_careful = self._may_need_care and builder.is_volatile

    def run(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The expressions' values as columns of the batch's length."""
        rows = batch.num_rows
        return [as_array(value, rows) for value in self.values(batch)]

    def values(self, batch: pa.RecordBatch) -> list[Value]:
        """The expressions' values; constants stay constants."""
        if self._always_careful:
            return self._with_care(batch)
        try:
            return self._run(batch)
        except (LakeError, pa.ArrowInvalid):
            if not self._may_need_care:
                raise
            return self._with_care(batch)

    def _with_care(self, batch: pa.RecordBatch) -> list[Value]:
        if self._careful is None:
            self._careful = Program(self._exprs, self._context, narrow=self._narrow, careful=True)
        return self._careful._run(batch)

    def _run(self, batch: pa.RecordBatch) -> list[Value]:
        registers = self._start.copy()
        try:
            for step in self._steps:
                registers[step.output] = step.run(batch, *[registers[index] for index in step.inputs])
                for index in step.done:
                    registers[index] = None
        except pa.ArrowNotImplementedError as error:
            raise FeatureNotSupported(str(error)) from error
        except pa.ArrowInvalid as error:
            raise InvalidParameter(str(error)) from error
        return [self._finished(registers[index], expr.type) for index, expr in zip(self._outputs, self._exprs)]

    def _finished(self, value: Any, type: Type) -> Value:
        if isinstance(type, Decimal) and not self._narrow:
            return decimals.widen(value, type)
        return value  # type: ignore[no-any-return]


class Selector:
    """Conjuncts made into steps; ``run`` keeps a batch's rows for which all are true.

    Conjuncts run in the order given. Once few rows are left, the later ones see those alone.
    """

    def __init__(self, conjuncts: Sequence[bound.Expr], context: Context | None = None) -> None:
        self._programs = [Program((expr,), context) for expr in conjuncts]
        self._columns = [column_names(expr) for expr in conjuncts]

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which every conjunct is true."""
        chosen = self.rows(batch)
        if chosen is None or len(chosen) == batch.num_rows:
            return batch
        if len(chosen) == 0:
            return batch.slice(0, 0)
        return batch.take(pa.array(chosen))

    def rows(self, batch: pa.RecordBatch) -> Any | None:
        """int64[chosen]: the rows for which every conjunct is true, ascending; None for all."""
        chosen: Any = None
        mask: Any = None
        view = batch
        for index, program in enumerate(self._programs):
            if mask is not None:
                left = int(np.count_nonzero(mask))
                if left == 0:
                    return np.empty(0, np.int64)
                if left < SHRINK_BELOW * mask.size:
                    positions = np.flatnonzero(mask)
                    chosen = positions if chosen is None else chosen[positions]
                    later = sorted({name for names in self._columns[index:] for name in names})
                    view, mask = _narrowed(batch, later, chosen), None
            true = true_rows(program.values(view)[0], view.num_rows)
            mask = true if mask is None else mask & true
        if mask is None:
            return chosen
        if chosen is None:
            return None if mask.all() else np.flatnonzero(mask)
        return chosen[mask]


def _narrowed(batch: pa.RecordBatch, names: list[str], rows: Any) -> pa.RecordBatch:
    """The named columns at some rows; a batch without columns still knows how many rows it has."""
    if names:
        return batch.select(names).take(pa.array(rows))
    return pa.record_batch([pa.nulls(len(rows))], ["c"])


def evaluate(expr: bound.Expr, batch: pa.RecordBatch, context: Context | None = None) -> pa.Array:
    """The values of ``expr`` for each row of ``batch``, in the physical type of ``expr.type``."""
    return _programs((expr,), context, Program).run(batch)[0]  # type: ignore[no-any-return]


def evaluate_all(exprs: tuple[bound.Expr, ...], batch: pa.RecordBatch, context: Context | None = None) -> list[pa.Array]:
    """The values of several expressions; what they have in common is computed once."""
    return _programs(exprs, context, Program).run(batch)  # type: ignore[no-any-return]


def evaluate_mask(conjuncts: tuple[bound.Expr, ...], batch: pa.RecordBatch, context: Context | None = None) -> Any:
    """bool[rows]: the rows of ``batch`` for which all conjuncts are true."""
    chosen = _programs(conjuncts, context, Selector).rows(batch)
    if chosen is None:
        return np.ones(batch.num_rows, np.bool_)
    mask = np.zeros(batch.num_rows, np.bool_)
    mask[chosen] = True
    return mask


def select(conjuncts: tuple[bound.Expr, ...], batch: pa.RecordBatch, context: Context | None = None) -> pa.RecordBatch:
    """The rows of ``batch`` for which all conjuncts are true."""
    return _programs(conjuncts, context, Selector).run(batch)  # type: ignore[no-any-return]


def _programs(exprs: tuple[bound.Expr, ...], context: Context | None, make: Any) -> Any:
    """The steps of ``exprs``, kept for the batches that follow: these functions are called for every batch of a query."""
    settings = None if context is None else context.settings
    key = (make, id(settings), *map(id, exprs))
    found = _KEPT.get(key)
    if found is None:
        if len(_KEPT) >= KEPT_MAX:
            _KEPT.clear()
        # The expressions and settings are kept too, so that no other object gets their ids.
        found = _KEPT[key] = (make(exprs, context), exprs, settings)
    return found[0]


KEPT_MAX: Final = 1_000
_KEPT: Final[dict[tuple[Any, ...], tuple[Any, tuple[bound.Expr, ...], Settings | None]]] = {}


def fold(expr: bound.Expr, context: Context | None = None) -> bound.Literal:
    """The literal that a constant expression is; errors are those of evaluating it."""
    value = Program((expr,), context).run(ONE_ROW)[0][0]
    return bound.Literal(expr.type, to_python(value, expr.type))


def is_constant(expr: bound.Expr, *, stable: bool = False) -> bool:
    """Whether ``expr`` has one value whatever the row: no column, no subquery, only immutable functions.

    stable  functions that are constant within a statement count as well
    """
    if column_names(expr):
        return False
    for node in nodes(expr):
        match node:
            case bound.Call():
                if node.function.volatility == "volatile" or (node.function.volatility == "stable" and not stable):
                    return False
            case bound.ScalarSubquery() | bound.Exists() | bound.Quantified():
                return False
    return True


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


ONE_ROW: Final = pa.record_batch([pa.nulls(1)], ["c"])


# --- making steps ----------------------------------------------------------------------------------------------------


class _Builder:
    """Turns expressions into steps, children first; equal operations on equal registers are one."""

    def __init__(self, context: Context | None, *, careful: bool) -> None:
        self.context = context
        self.careful = careful
        self.is_conditional = False
        self.is_volatile = False
        self._steps: list[Step] = []
        self._start: list[Any] = []
        self._numbers: dict[object, int] = {}
        self._constants: dict[int, pa.Scalar] = {}
        self._made: dict[int, int] = {}

    def register(self, root: bound.Expr) -> int:
        """The register that holds ``root``'s value."""
        todo: list[tuple[bound.Expr, bool]] = [(root, False)]
        while todo:
            expr, has_operands = todo.pop()
            if id(expr) in self._made:
                continue
            operands = self._operands(expr)
            if operands and not has_operands:
                todo.append((expr, True))
                todo.extend((operand, False) for operand in reversed(operands))
            else:
                self._made[id(expr)] = self._make(expr, tuple(self._made[id(operand)] for operand in operands))
        return self._made[id(root)]

    def finish(self, outputs: Iterable[int]) -> tuple[list[Step], list[Any]]:
        """The steps, each with the registers that are not used after it, and the registers as a run finds them."""
        kept = set(outputs) | set(self._constants)
        last: dict[int, Step] = {}
        for step in self._steps:
            for index in step.inputs:
                last[index] = step
        for index, step in last.items():
            if index not in kept:
                step.done = (*step.done, index)
        return self._steps, self._start

    def _operands(self, expr: bound.Expr) -> tuple[bound.Expr, ...]:
        """What must be computed before ``expr``; a careful conditional computes its own."""
        match expr:
            case bound.Case(whens=whens, otherwise=otherwise):
                self.is_conditional = True
                return () if self.careful else (*(part for when in whens for part in when), otherwise)
            case bound.And(operands=operands) | bound.Or(operands=operands):
                self.is_conditional = True
                return () if self.careful else operands
            case bound.Call(function=function, arguments=arguments):
                self.is_volatile |= function.volatility == "volatile"
                if function.lazy:
                    self.is_conditional = True
                    return () if self.careful else arguments
                return tuple(item for item in arguments if not isinstance(item, bound.Lambda))
            case bound.Compare(left=left, right=right):
                return (left, right)
            case bound.Not(operand=operand) | bound.IsNull(operand=operand) | bound.Cast(operand=operand):
                return (operand,)
            case bound.InList(operand=operand, items=items):
                return (operand,) if all(isinstance(item, bound.Literal) for item in items) else (operand, *items)
            case bound.MakeList(items=items):
                return items
            case _:
                return ()

    def _make(self, expr: bound.Expr, inputs: tuple[int, ...]) -> int:
        if isinstance(expr, bound.Literal):
            return self._constant(to_scalar(expr.value, expr.type), (type(expr.value), expr.value, expr.type))
        key, run, is_pure = self._operation(expr, inputs)
        if is_pure and inputs and all(index in self._constants for index in inputs):
            try:
                value = run(ONE_ROW, *(self._constants[index] for index in inputs))
                return self._constant(value if isinstance(value, pa.Scalar) else _plain(value)[0], None)
            except (LakeError, pa.ArrowInvalid):
                pass  # It is raised when a row comes to it.
        numbered = (key, inputs)
        if is_pure and numbered in self._numbers:
            return self._numbers[numbered]
        output = self._new(None)
        self._steps.append(Step(run, inputs, output))
        self._numbers[numbered] = output
        return output

    def _constant(self, value: pa.Scalar, key: object) -> int:
        if key is not None and key in self._numbers:
            return self._numbers[key]
        output = self._new(value)
        self._constants[output] = value
        if key is not None and not isinstance(key[1], float):  # type: ignore[index]
            self._numbers[key] = output
        return output

    def _new(self, value: Any) -> int:
        self._start.append(value)
        return len(self._start) - 1

    def _operation(self, expr: bound.Expr, inputs: tuple[int, ...]) -> tuple[object, Run, bool]:
        """What to run for ``expr``, a key that equal operations share, and whether equal inputs give equal values."""
        context = self.context
        match expr:
            case bound.Column(id=number):
                return ("column", number), _column(f"c{number}"), True
            case bound.Call():
                return self._call(expr, inputs)
            case bound.Compare(op=op, left=left):
                return (op, left.type), _compare(op, left.type), True
            case bound.And() | bound.Or() if self.careful:
                return id(expr), _careful_logic(expr, context), False
            case bound.And():
                return "and", _and, True
            case bound.Or():
                return "or", _or, True
            case bound.Not():
                return "not", _not, True
            case bound.IsNull():
                return "is null", _is_null, True
            case bound.InList(operand=operand, items=items):
                if len(inputs) > 1:
                    return ("in", operand.type), _in_values(operand.type), True
                return ("in", id(expr)), _in_constants(operand.type, items), True
            case bound.Case(whens=whens):
                if self.careful:
                    return id(expr), _careful_case(expr, context), False
                return ("case", expr.type), _case(len(whens), expr.type), True
            case bound.Cast(operand=operand, is_try=is_try):
                key = ("cast", operand.type, expr.type, is_try)
                return key, _cast(operand.type, expr.type, is_try, _settings(context)), True
            case bound.MakeList(items=items):
                return ("list", expr.type), _make_list(expr.type), True
            case _:
                raise FeatureNotSupported(f"{type(expr).__name__} is not an expression of one row")

    def _call(self, expr: bound.Call, inputs: tuple[int, ...]) -> tuple[object, Run, bool]:
        function = expr.function
        if function.lazy and self.careful:
            return id(expr), _careful_coalesce(expr, self.context), False
        run = _Call(expr, self.context)
        if run.lambdas:
            return id(expr), run, function.volatility == "immutable" and all(
                not lambda_.captured and lambda_.is_pure for lambda_ in run.lambdas.values()
            )
        is_pure = function.volatility != "volatile" and bool(expr.arguments)
        if not inputs and function.volatility == "stable":
            return (id(function), expr.type), run, True
        return (id(function), expr.type, tuple(item.type for item in expr.arguments)), run, is_pure


def _settings(context: Context | None) -> Settings | None:
    return None if context is None else context.settings


# --- steps -----------------------------------------------------------------------------------------------------------


def _column(name: str) -> Run:
    def run(batch: pa.RecordBatch) -> Value:
        column = batch.column(name)
        return column if not isinstance(column, pa.ChunkedArray) else views.single(column)

    return run


def _plain(value: Value) -> Value:
    return value.dictionary_decode() if isinstance(value, pa.DictionaryArray) else value


def _compare(op: str, type: Type) -> Run:
    over_entries = _OverEntries(lambda left, right: compare(op, left, right, type), is_text_result=False)

    def run(batch: pa.RecordBatch, left: Value, right: Value) -> Value:
        if not op.startswith("is ") or (isinstance(left, pa.Array) and left.null_count == 0):
            if isinstance(left, pa.DictionaryArray) and isinstance(right, pa.Scalar) and right.is_valid:
                return over_entries(0, (left, right))
            if isinstance(right, pa.DictionaryArray) and isinstance(left, pa.Scalar) and left.is_valid:
                return over_entries(1, (left, right))
        left, right = _plain(left), _plain(right)
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            return compare(op, as_array(left, 1), as_array(right, 1), type)[0]
        return compare(op, left, right, type)

    return run


def _and(batch: pa.RecordBatch, *operands: Value) -> Value:
    value = operands[0]
    for operand in operands[1:]:
        value = pc.and_kleene(value, operand)
    return value


def _or(batch: pa.RecordBatch, *operands: Value) -> Value:
    value = operands[0]
    for operand in operands[1:]:
        value = pc.or_kleene(value, operand)
    return value


def _not(batch: pa.RecordBatch, operand: Value) -> Value:
    return pc.invert(operand)  # type: ignore[no-any-return]


def _is_null(batch: pa.RecordBatch, operand: Value) -> Value:
    if isinstance(operand, pa.DictionaryArray) and operand.dictionary.null_count:
        operand = operand.dictionary_decode()
    return pc.is_null(operand)  # type: ignore[no-any-return]


def _in_constants(type: Type, items: tuple[bound.Expr, ...]) -> Run:
    """Membership in a set of constants: NULL where the operand is, or where it is not found and a NULL is listed."""
    literals = [item.value for item in items if isinstance(item, bound.Literal)]
    has_null = any(value is None for value in literals)
    members = to_array([value for value in literals if value is not None], type)
    if isinstance(type, Float):
        members = pc.add(members, 0.0)
    if isinstance(type, List | Interval):
        scalars = [pa.scalar(None, type.physical) if has_null else members[0], *members]
        in_values = _in_values(type)
        return lambda batch, operand: in_values(batch, operand, *scalars)

    def is_in(operand: Value) -> Value:
        if isinstance(type, Decimal):
            operand = decimals.widen(operand, type)
        if isinstance(type, Float):
            operand = pc.add(operand, 0.0)
        found = pc.is_in(operand, value_set=members)
        unknown = pc.invert(found) if has_null else pc.is_null(operand)
        if not has_null and isinstance(operand, pa.Array) and operand.null_count == 0:
            return found  # type: ignore[no-any-return]
        return pc.if_else(unknown, UNKNOWN, found)  # type: ignore[no-any-return]

    over_entries = _OverEntries(is_in, is_text_result=False)

    def run(batch: pa.RecordBatch, operand: Value) -> Value:
        return over_entries(0, (operand,)) if isinstance(operand, pa.DictionaryArray) else is_in(operand)

    return run


def _in_values(type: Type) -> Run:
    equal = _compare("=", type)

    def run(batch: pa.RecordBatch, operand: Value, *items: Value) -> Value:
        return _or(batch, *(equal(batch, operand, item) for item in items))

    return run


def _cast(source: Type, target: Type, is_try: bool, settings: Settings | None) -> Run:
    def convert(value: Value) -> Value:
        return cast(value, source, target, is_try=is_try, settings=settings)

    over_entries = _OverEntries(convert, is_text_result=False)

    def run(batch: pa.RecordBatch, operand: Value) -> Value:
        if isinstance(operand, pa.DictionaryArray):
            if target.physical == pa.string():
                return operand
            try:
                return over_entries(0, (operand,))
            except LakeError:
                # The entry that does not cast may be one that no row of this batch has.
                return convert(operand.dictionary_decode())
        return convert(operand)

    return run


def _make_list(type: Type) -> Run:
    assert isinstance(type, List)
    of = type.of

    def run(batch: pa.RecordBatch, *items: Value) -> Value:
        rows = batch.num_rows
        columns = [_physical(as_array(_plain(item), rows), of) for item in items]
        count = len(columns)
        if count == 0:
            return list_array(np.zeros(rows + 1, np.int32), pa.array([], of.physical))
        by_column = np.arange(rows * count, dtype=np.int64).reshape(count, rows).T.ravel()
        return list_array(np.arange(rows + 1, dtype=np.int32) * count, views.concat(columns).take(pa.array(by_column)))

    return run


def _physical(value: Any, type: Type) -> Any:
    return decimals.widen(value, type) if isinstance(type, Decimal) else value


# --- calls -----------------------------------------------------------------------------------------------------------


class _Call:
    """Runs a function of one row's values over columns."""

    def __init__(self, expr: bound.Call, context: Context | None) -> None:
        function = expr.function
        self._function = function
        self._types = tuple(item.type for item in expr.arguments)
        self._returns = expr.type
        self._settings = _settings(context)
        self.lambdas = {
            index: _PreparedLambda(item, context)
            for index, item in enumerate(expr.arguments)
            if isinstance(item, bound.Lambda)
        }
        self._places = [index for index in range(len(expr.arguments)) if index not in self.lambdas]
        is_text = expr.type.physical == pa.string()
        self._over_entries = (
            _OverEntries(self._run_entries, is_text_result=is_text)
            if function.strict and function.volatility == "immutable" and not self.lambdas
            else None
        )

    def __call__(self, batch: pa.RecordBatch, *values: Value) -> Value:
        if self._over_entries is not None:
            columns = [index for index, value in enumerate(values) if isinstance(value, pa.Array)]
            if len(columns) == 1:
                only = values[columns[0]]
                if isinstance(only, pa.DictionaryArray) and len(only.dictionary) <= len(only):
                    try:
                        return self._over_entries(columns[0], values)
                    except LakeError:
                        pass  # It may come from an entry that no row of this batch has.
        arguments: list[Any] = [self._argument(value, index) for value, index in zip(values, self._places)]
        for index, prepared in self.lambdas.items():
            arguments.insert(index, prepared.over(batch))
        if arguments and all(isinstance(value, pa.Scalar | LambdaFunction) for value in arguments):
            rows = batch.num_rows if self._function.volatility == "volatile" else 1
            arguments = [as_array(value, rows) if isinstance(value, pa.Scalar) else value for value in arguments]
            answer = self._run(arguments, rows)
            return answer if rows != 1 or isinstance(answer, pa.Scalar) or batch.num_rows == 1 else answer[0]
        return self._run(arguments, batch.num_rows)

    def _argument(self, value: Value, index: int) -> Value:
        value = _plain(value)
        if self._function.narrow:
            return value
        return _physical(value, self._types[index])  # type: ignore[no-any-return]

    def _run_entries(self, *values: Value) -> Value:
        rows = next(len(value) for value in values if isinstance(value, pa.Array))
        return self._run([self._argument(value, index) for index, value in enumerate(values)], rows)

    def _run(self, arguments: list[Any], rows: int) -> Value:
        function = self._function
        if not function.takes_call:
            return function.run(*arguments)  # type: ignore[no-any-return]
        return function.run(*arguments, call=CallInfo(self._types, self._returns, rows, self._settings))  # type: ignore[no-any-return]


class _OverEntries:
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


class _PreparedLambda:
    """A lambda's body made into steps."""

    def __init__(self, expr: bound.Lambda, context: Context | None) -> None:
        self.parameters = [f"c{column.id}" for column in expr.parameters]
        self.captured = column_names(expr)
        self.is_pure = all(
            item.function.volatility == "immutable" for item in nodes(expr.body) if isinstance(item, bound.Call)
        )
        self.program = Program((expr.body,), context)

    def over(self, batch: pa.RecordBatch) -> LambdaFunction:
        """The lambda with the columns of ``batch`` that its body uses."""
        return LambdaFunction(batch, self)


@dataclass(frozen=True, slots=True)
class LambdaFunction:
    """A lambda over elements of a batch's lists.

    ``function(rows, *elements)`` answers the body's value for each element; ``rows`` int64[elements] is the row each
    element belongs to, for columns of the batch that the body uses.
    """

    batch: pa.RecordBatch
    prepared: _PreparedLambda

    @property
    def parameter_count(self) -> int:
        """How many parameters the lambda has."""
        return len(self.prepared.parameters)

    def __call__(self, rows: Any, *elements: pa.Array) -> pa.Array:
        names, columns = list(self.prepared.parameters), list(elements[: len(self.prepared.parameters)])
        for name in self.prepared.captured:
            names.append(name)
            columns.append(self.batch.column(name).take(pa.array(rows)))
        return self.prepared.program.run(pa.RecordBatch.from_arrays(columns, names))[0]


# --- conditionals ----------------------------------------------------------------------------------------------------


def _case(count: int, type: Type) -> Run:
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
    answers = [_plain(value) for value in answers]
    if len(conditions) == 1 and not pa.types.is_nested(answers[0].type):
        condition = conditions[0]
        if isinstance(condition, pa.Scalar):
            return answers[0] if condition.as_py() else answers[1]
        return pc.if_else(pc.fill_null(condition, False), answers[0], answers[1])  # type: ignore[no-any-return]
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


def _careful_case(expr: bound.Case, context: Context | None) -> Run:
    """CASE that computes a branch for its rows alone."""
    conditions = [_Part(condition, context) for condition, _ in expr.whens]
    answers = [_Part(answer, context) for _, answer in expr.whens]
    otherwise = _Part(expr.otherwise, context)

    def run(batch: pa.RecordBatch) -> Value:
        left = np.arange(batch.num_rows)
        parts, places = [], []
        for condition, answer in zip(conditions, answers, strict=True):
            if left.size == 0:
                break
            true = true_rows(condition.at(batch, left), left.size)
            if true.any():
                parts.append(_column_of(answer.at(batch, left[true]), int(true.sum()), expr.type))
                places.append(left[true])
                left = left[~true]
        if left.size or not parts:
            parts.append(_column_of(otherwise.at(batch, left), left.size, expr.type))
            places.append(left)
        return _gathered(parts, places, batch.num_rows)

    return run


def _careful_coalesce(expr: bound.Call, context: Context | None) -> Run:
    """coalesce that computes an argument for the rows where all before it are NULL."""
    arguments = [_Part(argument, context) for argument in expr.arguments]

    def run(batch: pa.RecordBatch) -> Value:
        left = np.arange(batch.num_rows)
        parts, places = [], []
        for argument in arguments:
            values = _column_of(argument.at(batch, left), left.size, expr.type)
            is_last = argument is arguments[-1]
            found = np.ones(left.size, np.bool_) if is_last else views.true_of(pc.is_valid(values))
            parts.append(values.filter(views.to_boolean(found)))
            places.append(left[found])
            left = left[~found]
            if left.size == 0:
                break
        return _gathered(parts, places, batch.num_rows)

    return run


def _careful_logic(expr: bound.And | bound.Or, context: Context | None) -> Run:
    """AND and OR that compute an operand for the rows that those before it leave open."""
    operands = [_Part(operand, context) for operand in expr.operands]
    decisive = isinstance(expr, bound.Or)
    combine = pc.or_kleene if decisive else pc.and_kleene

    def run(batch: pa.RecordBatch) -> Value:
        value = as_array(pa.scalar(not decisive), batch.num_rows)
        for operand in operands:
            is_open = ~true_rows(value if decisive else pc.invert(value), batch.num_rows)
            rows = np.flatnonzero(is_open)
            if rows.size == 0:
                break
            part = as_array(operand.at(batch, rows), rows.size)
            back = np.full(batch.num_rows, -1)
            back[rows] = np.arange(rows.size)
            spread = part.take(pa.array(np.maximum(back, 0)))
            value = pc.if_else(views.to_boolean(is_open), combine(value, spread), value)
        return value

    return run


class _Part:
    """An expression that is computed for some rows of a batch."""

    def __init__(self, expr: bound.Expr, context: Context | None) -> None:
        self._program = Program((expr,), context, careful=True)
        self._columns = column_names(expr)

    def at(self, batch: pa.RecordBatch, rows: Any) -> Value:
        """The expression's value for the given rows."""
        view = batch if rows.size == batch.num_rows else _narrowed(batch, self._columns, rows)
        return self._program.values(view)[0]


def _column_of(value: Value, rows: int, type: Type) -> pa.Array:
    return _physical(_plain(as_array(value, rows)), type)  # type: ignore[no-any-return]


def _gathered(parts: list[pa.Array], places: list[Any], rows: int) -> pa.Array:
    """Values computed apart, put back in the order of rows."""
    order = np.empty(rows, np.int64)
    order[np.concatenate(places)] = np.arange(rows)
    return views.concat(parts).take(pa.array(order))
