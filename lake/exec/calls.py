"""Calls of scalar functions over columns, with their lambdas."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa
from msgspec import Struct

from lake.errors import LakeError
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.steps import OverEntries, column_names, nodes, physical, plain
from lake.sql import bound
from lake.sql.catalog import Settings
from lake.sql.registry import CallInfo

MakeProgram: TypeAlias = Callable[[bound.Expr], Any]
"""An expression to its ``evaluate.Program``."""

CODED_ROWS: Final = 4_096
SLOW_NS: Final = 200
"""A call over CODED_ROWS texts or more that takes so long a row is worth a dictionary, which costs some 35 ns a row."""
REPEATED_SHARE: Final = 0.7
"""The share of its rows that a dictionary's entries may be for this to go on."""


class RunCall:
    """Runs a function of one row's values over columns.

    A slow function of one text column, such as a regular expression, is run on the distinct texts of a batch alone where
    many repeat; how slow it is, the batches before have shown.
    """

    def __init__(self, expr: bound.Call, settings: Settings | None, make_program: MakeProgram) -> None:
        function = expr.function
        self._function = function
        self._types = tuple(item.type for item in expr.arguments)
        self._returns = expr.type
        self._settings = settings
        self.lambdas = {
            index: PreparedLambda(item, make_program)
            for index, item in enumerate(expr.arguments)
            if isinstance(item, bound.Lambda)
        }
        self._places = [index for index in range(len(expr.arguments)) if index not in self.lambdas]
        is_text = expr.type.physical == pa.string()
        self._over_entries = (
            OverEntries(self._run_entries, is_text_result=is_text)
            if function.strict and function.volatility == "immutable" and not self.lambdas
            else None
        )
        self._is_worth_codes = False

    def __call__(self, batch: pa.RecordBatch, *values: Value) -> Value:
        if self._over_entries is not None:
            columns = [index for index, value in enumerate(values) if isinstance(value, pa.Array)]
            if len(columns) == 1:
                place, only = columns[0], values[columns[0]]
                if isinstance(only, pa.StringArray) and len(only) >= CODED_ROWS:
                    if not self._is_worth_codes:
                        return self._timed(values, len(only))
                    only = only.dictionary_encode()
                    self._is_worth_codes = len(only.dictionary) <= REPEATED_SHARE * len(only)
                    values = (*values[:place], only, *values[place + 1 :])
                if isinstance(only, pa.DictionaryArray) and len(only.dictionary) <= len(only):
                    try:
                        return self._over_entries(place, values)
                    except LakeError:
                        pass  # It may come from an entry that no row of this batch has.
        arguments: list[Any] = [self._argument(value, index) for value, index in zip(values, self._places)]
        for index, prepared in self.lambdas.items():
            arguments.insert(index, prepared.over(batch))
        if arguments and all(isinstance(value, pa.Scalar | LambdaFunction) for value in arguments):
            uses_rows = any(prepared.captured for prepared in self.lambdas.values())
            rows = batch.num_rows if uses_rows or self._function.volatility == "volatile" else 1
            arguments = [as_array(value, rows) if isinstance(value, pa.Scalar) else value for value in arguments]
            answer = self._run(arguments, rows)
            return answer if rows != 1 or isinstance(answer, pa.Scalar) or batch.num_rows == 1 else answer[0]
        return self._run(arguments, batch.num_rows)

    def _timed(self, values: tuple[Value, ...], rows: int) -> Value:
        """The answer for ``rows`` texts as they are, after which it is known whether that was slow."""
        began = time.perf_counter_ns()
        answer = self._run([self._argument(value, index) for index, value in enumerate(values)], rows)
        self._is_worth_codes = time.perf_counter_ns() - began > SLOW_NS * rows
        return answer

    def _argument(self, value: Value, index: int) -> Value:
        value = plain(value)
        if self._function.narrow:
            return value
        return physical(value, self._types[index])

    def _run_entries(self, *values: Value) -> Value:
        rows = next(len(value) for value in values if isinstance(value, pa.Array))
        return self._run([self._argument(value, index) for index, value in enumerate(values)], rows)

    def _run(self, arguments: list[Any], rows: int) -> Value:
        function = self._function
        if not function.takes_call:
            return function.run(*arguments)
        return function.run(*arguments, call=CallInfo(self._types, self._returns, rows, self._settings))


class PreparedLambda:
    """A lambda's body made into steps."""

    def __init__(self, expr: bound.Lambda, make_program: MakeProgram) -> None:
        self.parameters = [f"c{column.id}" for column in expr.parameters]
        self.captured = column_names(expr)
        self.is_pure = all(
            item.function.volatility == "immutable" for item in nodes(expr.body) if isinstance(item, bound.Call)
        )
        self.program = make_program(expr.body)

    def over(self, batch: pa.RecordBatch) -> LambdaFunction:
        """The lambda with the columns of ``batch`` that its body uses."""
        return LambdaFunction(batch, self)


class LambdaFunction(Struct, frozen=True):
    """A lambda over elements of a batch's lists.

    ``function(rows, *elements)`` answers the body's value for each element; ``rows`` int64[elements] is the row each
    element belongs to, for columns of the batch that the body uses.
    """

    batch: pa.RecordBatch
    prepared: PreparedLambda

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
