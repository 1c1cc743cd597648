"""Functions over the labels of enum types, which the binder hands in. Spec: SQL, Enum types."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lake.errors import InvalidText
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "enums"
Labels = list[str]


@scalar("enum_label(value VARCHAR, type VARCHAR, labels VARCHAR[]) -> VARCHAR", group=GROUP, takes_call=True)
@per_row
def enum_label(value: Value, type: Value, labels: Value, *, call: CallInfo) -> pa.Array:
    """The text, where it is one of the labels: what a cast to an enum type means.

    Goes row by row: each row has its own list of labels.

    >>> enum_label('sad', 'mood', ['sad', 'ok'])
    sad

    22P02  it is none of them
    """
    return map_rows(_checked, pa.string(), as_array(value, call.rows), as_array(type, call.rows), as_array(labels, call.rows))


@scalar("try_enum_label(value VARCHAR, type VARCHAR, labels VARCHAR[]) -> VARCHAR", group=GROUP, takes_call=True)
@per_row
def try_enum_label(value: Value, type: Value, labels: Value, *, call: CallInfo) -> pa.Array:
    """The text, where it is one of the labels, else NULL. Goes row by row: each row has its own list of labels.

    >>> try_enum_label('glad', 'mood', ['sad', 'ok'])
    NULL
    """
    return map_rows(lambda text, _, all: text if text in all else None, pa.string(), as_array(value, call.rows),
                    as_array(type, call.rows), as_array(labels, call.rows))  # fmt: skip


@scalar("enum_first(value VARCHAR, labels VARCHAR[]) -> VARCHAR", group=GROUP, strict=False, takes_call=True)
def enum_first(value: Value, labels: Value, *, call: CallInfo) -> pa.Array:
    """The first label of the value's type: ``enum_first(NULL::mood)``.

    >>> enum_first(NULL, ['sad', 'ok'])
    sad
    """
    return _rows(call, lambda _, all: all[0] if all else None, pa.string(), value, labels)


@scalar("enum_last(value VARCHAR, labels VARCHAR[]) -> VARCHAR", group=GROUP, strict=False, takes_call=True)
def enum_last(value: Value, labels: Value, *, call: CallInfo) -> pa.Array:
    """The last label of the value's type: ``enum_last(NULL::mood)``.

    >>> enum_last(NULL, ['sad', 'ok'])
    ok
    """
    return _rows(call, lambda _, all: all[-1] if all else None, pa.string(), value, labels)


@scalar("enum_range(value VARCHAR, labels VARCHAR[]) -> VARCHAR[]", group=GROUP, strict=False, takes_call=True)
def enum_range(value: Value, labels: Value, *, call: CallInfo) -> pa.Array:
    """All labels of the value's type in their order: ``enum_range(NULL::mood)``.

    >>> enum_range(NULL, ['sad', 'ok'])
    [sad, ok]
    """
    return _rows(call, lambda _, all: all, pa.list_(pa.string()), value, labels)


@scalar("enum_range(low VARCHAR, high VARCHAR, labels VARCHAR[]) -> VARCHAR[]", group=GROUP, strict=False,
        takes_call=True)  # fmt: skip
def enum_range_between(low: Value, high: Value, labels: Value, *, call: CallInfo) -> pa.Array:
    """The labels from one to another, both included; NULL is the first or the last.

    >>> enum_range('sad', NULL, ['bad', 'sad', 'ok'])
    [sad, ok]
    """
    return _rows(call, _between, pa.list_(pa.string()), low, high, labels)


def _checked(text: str, type: str, labels: Labels) -> str:
    if text not in labels:
        raise InvalidText(f'invalid input value for enum {type}: "{text}"')
    return text


def _between(low: str | None, high: str | None, labels: Labels) -> Labels:
    labels = labels or []
    first = 0 if low is None else labels.index(_checked(low, "", labels))
    last = len(labels) - 1 if high is None else labels.index(_checked(high, "", labels))
    return labels[first : last + 1]


@per_row
def _rows(call: CallInfo, run: object, type: pa.DataType, *values: Value) -> pa.Array:
    """The rows of ``run``. Goes row by row: each row has its own list of labels."""
    assert callable(run)
    lists = [as_array(value, call.rows).to_pylist() for value in values]
    return pa.array([run(*row) for row in zip(*lists, strict=True)], type)
