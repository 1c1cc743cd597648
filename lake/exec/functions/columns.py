"""What function groups share: arguments as columns, NULLs, and the mark of functions that go row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.kernels import views


def columns(*values: Value) -> list[pa.Array]:
    """The arguments as columns of one length; at least one is a column."""
    rows = next(len(value) for value in values if isinstance(value, pa.Array))
    return [as_array(value, rows) for value in values]


def constant(value: Value) -> Any:
    """The Python value of an argument that is the same in all rows; ``NotConstant`` where it is a column of several."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value[0].as_py() if len(value) == 1 else NOT_CONSTANT


NOT_CONSTANT = object()


def map_rows(run: Callable[..., Any], type: pa.DataType, *values: Value) -> pa.Array:
    """``run`` over the rows as Python values; NULL where an argument is."""
    lists = [column.to_pylist() for column in columns(*values)]
    answers = [None if None in row else run(*row) for row in zip(*lists, strict=True)]
    return pa.array(answers, type)


def numpy_floats(value: Value) -> tuple[Any, Any]:
    """A DOUBLE or REAL argument as float64 and its validity; a float for a constant, NaN for NULL."""
    if isinstance(value, pa.Scalar):
        number = value.as_py()
        return (np.nan if number is None else float(number)), (np.zeros(1, np.uint8) if number is None else None)
    return views.values_of(value).astype(np.float64, copy=False), views.valid_of(value)


def both_valid(one: Any, two: Any) -> Any:
    """The rows valid in both; None stands for all."""
    return two if one is None else one if two is None else one & two


def float_function(run: Callable[..., Any], *values: Value) -> pa.Array:
    """A numpy function of floats over columns; the answer is REAL where the first column is, else DOUBLE."""
    parts = [numpy_floats(value) for value in columns(*values)]
    with np.errstate(all="ignore"):
        numbers = run(*(part[0] for part in parts))
    valid = None
    for part in parts:
        valid = both_valid(valid, part[1])
    return views.to_array(np.asarray(numbers, np.float64), pa.float64(), valid)


def null_where(condition: Any, value: pa.Array) -> pa.Array:
    """``value`` with NULL where a numpy mask is true."""
    if not condition.any():
        return value
    return pc.if_else(views.to_boolean(condition), pa.scalar(None, value.type), value)


def with_constants(run: Callable[..., pa.Array], type: pa.DataType, value: Value, *parameters: Value) -> pa.Array:
    """``run(column, *python values)``, once for each combination of parameters that rows have.

    Patterns, formats and units are nearly always constants, and column operations take them as such. Rows where a parameter
    is NULL are NULL. ``run`` does not see a column of NULLs alone, so what it refuses of a parameter is refused for a value.
    """

    def answers(column: pa.Array, key: Sequence[Any]) -> pa.Array:
        is_null = None in key or (len(column) and column.null_count == len(column))
        return pa.nulls(len(column), type) if is_null else run(column, *key)

    known = [constant(parameter) for parameter in parameters]
    if all(item is not NOT_CONSTANT for item in known):
        (column,) = columns(value) if isinstance(value, pa.Array) else [as_array(value, 1)]
        return answers(column, known)
    column, *given = columns(value, *parameters)
    rows_by_parameters: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(*(item.to_pylist() for item in given), strict=True)):
        rows_by_parameters.setdefault(key, []).append(row)
    parts, places = [], []
    for key, rows in rows_by_parameters.items():
        there = np.array(rows, np.int64)
        parts.append(answers(column.take(pa.array(there)), key))
        places.append(there)
    order = np.empty(len(column), np.int64)
    if places:
        order[np.concatenate(places)] = np.arange(len(column))
    return views.concat(parts).take(pa.array(order)) if parts else pa.array([], type)


def map_distinct(run: Callable[[Any], Any], type: pa.DataType, column: pa.Array) -> pa.Array:
    """``run`` over the distinct values of a column; NULL stays NULL."""
    if pa.types.is_nested(column.type):
        return map_rows(run, type, column)
    encoded = column.dictionary_encode()
    answers = [None if item is None else run(item) for item in encoded.dictionary.to_pylist()]
    return pa.array(answers, type).take(encoded.indices)


def by_ascii(
    fast: Callable[[pa.Array], pa.Array], slow: Callable[[str], Any], type: pa.DataType, column: pa.Array
) -> pa.Array:
    """``fast`` over the texts of ASCII at once, and ``slow`` over each of the others."""
    plain = pc.fill_null(pc.string_is_ascii(column), True)
    is_plain = views.true_of(plain)
    if is_plain.all():
        return fast(column)
    parts = [fast(column.filter(plain)), map_distinct(slow, type, column.filter(pc.invert(plain)))]
    order = np.empty(len(column), np.int64)
    order[np.concatenate((np.flatnonzero(is_plain), np.flatnonzero(~is_plain)))] = np.arange(len(column))
    return views.concat(parts).take(pa.array(order))


def over_texts(run: Callable[..., Any], type: pa.DataType) -> Callable[..., pa.Array]:
    """A function of a column and constants, of one that takes a single value and constants: once for each distinct value."""
    return lambda column, *given: map_distinct(lambda item: run(item, *given), type, column)


def all_valid(*arrays: pa.Array) -> Any:
    """uint8[rows]: where all columns have a value; None where there are no NULLs."""
    valid = None
    for array in arrays:
        valid = both_valid(valid, views.valid_of(array))
    return valid
