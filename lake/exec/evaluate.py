"""Bound expressions over batches: each is made once into a list of steps, and the steps run for every batch.

    price * (1 - discount) > 10

    r2 = column price      r4 = 1 - r3      (constants r0 = 1, r1 = 10 stand ready)
    r3 = column discount   r5 = r2 * r4     r6 = r5 > r1

A list needs no recursion, whatever the depth of the expression, and an expression that several outputs use is one step.
Steps run eagerly over all rows. Where that raises, the batch is run once more with care (``careful``): a branch of CASE, a
later argument of coalesce and a later operand of AND or OR see only the rows that come to them, so that
``CASE WHEN x <> 0 THEN y / x END`` holds.

A strict function of one text column held as a dictionary runs on the dictionary's entries alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec import Struct

from lake.errors import FeatureNotSupported, InvalidParameter, LakeError
from lake.exec import decimals
from lake.exec.allocator import keep_freed_memory
from lake.exec.calls import LambdaFunction, RunCall
from lake.exec.careful import careful_case, careful_coalesce, careful_logic
from lake.exec.constants import as_array, to_python, to_scalar
from lake.exec.decimals import Value
from lake.exec.steps import (
    Run,
    any_equal,
    case,
    column,
    column_names,
    comparison,
    conjunction,
    conversion,
    disjunction,
    list_maker,
    membership,
    negation,
    nodes,
    null_test,
    plain,
)
from lake.sql import bound
from lake.sql.catalog import Settings
from lake.types import Decimal

if TYPE_CHECKING:
    from lake.exec.context import Context

__all__ = ["LambdaFunction", "Program", "evaluate", "fold", "is_constant"]


class Step(Struct):
    """One operation: ``run(batch, *inputs)`` gives register ``output``; the registers ``done`` are used no more."""

    run: Run
    inputs: tuple[int, ...]
    output: int
    done: tuple[int, ...] = ()


class Program:
    """Expressions made into steps. It holds no state of a batch: threads share it.

    narrow  positions of outputs that may come out as scaled int64 though their type's physical form is wider, or True for
            all (``exec.decimals``)
    """

    def __init__(
        self,
        exprs: Sequence[bound.Expr],
        context: Context | None = None,
        *,
        narrow: bool | frozenset[int] = False,
        careful: bool = False,
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
        return [self._finished(registers[index], place) for place, index in enumerate(self._outputs)]

    def _finished(self, value: Any, place: int) -> Value:
        type = self._exprs[place].type
        stays = self._narrow if isinstance(self._narrow, bool) else place in self._narrow
        if isinstance(type, Decimal) and not stays:
            return decimals.widen(value, type)
        return value


def evaluate(expr: bound.Expr, batch: pa.RecordBatch, context: Context | None = None) -> pa.Array:
    """The values of ``expr`` for each row of ``batch``, in the physical type of ``expr.type``."""
    return _program(expr, context).run(batch)[0]


def _program(expr: bound.Expr, context: Context | None) -> Program:
    """The steps of ``expr``, kept for the batches that follow: LIMIT asks for every batch of a query."""
    settings = None if context is None else context.settings
    key = (id(settings), id(expr))
    found = _KEPT.get(key)
    if found is None:
        if len(_KEPT) >= KEPT_MAX:
            _KEPT.clear()
        # The expression and the settings are kept too, so that no other object gets their ids.
        found = _KEPT[key] = (Program((expr,), context), expr, settings)
    return found[0]


KEPT_MAX: Final = 1_000
_KEPT: Final[dict[tuple[int, int], tuple[Program, bound.Expr, Settings | None]]] = {}


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
                return self._constant(value if isinstance(value, pa.Scalar) else plain(value)[0], None)
            except (LakeError, pa.ArrowInvalid):
                pass  # It is raised when a row comes to it.
        numbered = (key, inputs)
        if is_pure and numbered in self._numbers:
            return self._numbers[numbered]
        output = self._new(None)
        self._steps.append(Step(run, inputs, output))
        self._numbers[numbered] = output
        return output

    def _part(self, expr: bound.Expr) -> Program:
        """A part of a conditional, which runs with the same care."""
        return Program((expr,), self.context, careful=True)

    def _body(self, expr: bound.Expr) -> Program:
        """The body of a lambda."""
        return Program((expr,), self.context)

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
                return ("column", number), column(f"c{number}"), True
            case bound.Call():
                return self._call(expr, inputs)
            case bound.Compare(op=op, left=left):
                return (op, left.type), comparison(op, left.type), True
            case bound.And() | bound.Or() if self.careful:
                return id(expr), careful_logic(expr, self._part), False
            case bound.And():
                return "and", conjunction, True
            case bound.Or():
                return "or", disjunction, True
            case bound.Not():
                return "not", negation, True
            case bound.IsNull():
                return "is null", null_test, True
            case bound.InList(operand=operand, items=items):
                if len(inputs) > 1:
                    return ("in", operand.type), any_equal(operand.type), True
                return ("in", id(expr)), membership(operand.type, items), True
            case bound.Case(whens=whens):
                if self.careful:
                    return id(expr), careful_case(expr, self._part), False
                return ("case", expr.type), case(len(whens), expr.type), True
            case bound.Cast(operand=operand, is_try=is_try):
                key = ("cast", operand.type, expr.type, is_try)
                return key, conversion(operand.type, expr.type, is_try, settings_of(context)), True
            case bound.MakeList(items=items):
                return ("list", expr.type), list_maker(expr.type), True
            case _:
                raise FeatureNotSupported(f"{type(expr).__name__} is not an expression of one row")

    def _call(self, expr: bound.Call, inputs: tuple[int, ...]) -> tuple[object, Run, bool]:
        function = expr.function
        if function.lazy and self.careful:
            return id(expr), careful_coalesce(expr, self._part), False
        run = RunCall(expr, settings_of(self.context), self._body)
        if run.lambdas:
            return (
                id(expr),
                run,
                function.volatility == "immutable"
                and all(not lambda_.captured and lambda_.is_pure for lambda_ in run.lambdas.values()),
            )
        is_pure = function.volatility != "volatile" and bool(expr.arguments)
        if not inputs and function.volatility == "stable":
            return (id(function), expr.type), run, True
        return (id(function), expr.type, tuple(item.type for item in expr.arguments)), run, is_pure


def settings_of(context: Context | None) -> Settings | None:
    """The session's settings, where there are any."""
    return None if context is None else context.settings
