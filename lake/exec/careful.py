"""Conditionals that compute an expression for no other rows than those that come to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.calls import MakeProgram
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.kernels import views
from lake.exec.steps import Run, column_names, narrowed, physical, plain, true_rows
from lake.sql import bound
from lake.types import Type


def careful_case(expr: bound.Case, make_program: MakeProgram) -> Run:
    """CASE that computes a branch for its rows alone."""
    conditions = [Part(condition, make_program) for condition, _ in expr.whens]
    answers = [Part(answer, make_program) for _, answer in expr.whens]
    otherwise = Part(expr.otherwise, make_program)

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


def careful_coalesce(expr: bound.Call, make_program: MakeProgram) -> Run:
    """coalesce that computes an argument for the rows where all before it are NULL."""
    arguments = [Part(argument, make_program) for argument in expr.arguments]

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


def careful_logic(expr: bound.And | bound.Or, make_program: MakeProgram) -> Run:
    """AND and OR that compute an operand for the rows that those before it leave open."""
    operands = [Part(operand, make_program) for operand in expr.operands]
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


class Part:
    """An expression that is computed for some rows of a batch."""

    def __init__(self, expr: bound.Expr, make_program: MakeProgram) -> None:
        self._program = make_program(expr)
        self._columns = column_names(expr)

    def at(self, batch: pa.RecordBatch, rows: Any) -> Value:
        """The expression's value for the given rows."""
        view = batch if rows.size == batch.num_rows else narrowed(batch, self._columns, rows)
        return self._program.values(view)[0]


def _column_of(value: Value, rows: int, type: Type) -> pa.Array:
    return physical(plain(as_array(value, rows)), type)


def _gathered(parts: list[pa.Array], places: list[Any], rows: int) -> pa.Array:
    """Values computed apart, put back in the order of rows."""
    order = np.empty(rows, np.int64)
    order[np.concatenate(places)] = np.arange(rows)
    return views.concat(parts).take(pa.array(order))
