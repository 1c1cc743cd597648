"""Functions over sequences: nextval, currval, lastval, setval. Spec: SQL, Sequences and identity.

Who hands numbers out comes with the statement's settings (``Settings.sequences``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.errors import ObjectNotInState
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows
from lake.exec.functions.pg import names_of
from lake.exec.per_row import per_row
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "sequences"


def _sequences(call: CallInfo) -> Any:
    made = None if call.settings is None else call.settings.sequences
    if made is None:
        raise ObjectNotInState("there are no sequences here")
    return made()


@scalar("nextval(sequence VARCHAR) -> BIGINT", group=GROUP, origin="postgres", volatility="volatile", takes_call=True)
@per_row
def nextval(sequence: Value, *, call: CallInfo) -> pa.Array:
    """The next number of a sequence, another for each row.

    Goes row by row: a sequence is asked by name, and statements ask few.

    >>> nextval(NULL)
    NULL

    42P01  no such sequence      2200H  it has ended      42501  the caller may only read
    """
    names = np.array(as_array(sequence, call.rows).to_pylist(), object)
    values = np.zeros(len(names), np.int64)
    known = {name for name in names if name is not None}
    for name in sorted(known):
        places = np.flatnonzero(names == name)
        values[places] = _sequences(call).next(name, len(places))
    return pa.array(values, mask=np.array([name is None for name in names], np.bool_))


@scalar("nextval(oid BIGINT) -> BIGINT", group=GROUP, origin="postgres", volatility="volatile", takes_call=True)
@per_row
def nextval_of_oid(oid: Value, *, call: CallInfo) -> pa.Array:
    """The next number of the sequence with an oid: ``nextval('s'::regclass)``.

    Goes row by row: a sequence is asked by name, and statements ask few.

    >>> nextval(NULL::BIGINT)
    NULL
    """
    oids = as_array(oid, call.rows)
    if oids.null_count == len(oids):
        return pa.nulls(len(oids), pa.int64())
    if call.settings is None or call.settings.names is None:
        raise ObjectNotInState("there are no sequences here")
    found = map_rows(call.settings.names().relation_name, pa.string(), oids)
    return nextval(found, call=call)


@scalar("currval(sequence VARCHAR) -> BIGINT", group=GROUP, origin="postgres", volatility="volatile", takes_call=True)
@per_row
def currval(sequence: Value, *, call: CallInfo) -> pa.Array:
    """The number that nextval gave last in this session.

    Goes row by row: a sequence is asked by name, and statements ask few.

    >>> currval(NULL)
    NULL

    55000  it gave none yet
    """
    return map_rows(lambda name: _sequences(call).current(name), pa.int64(), as_array(sequence, call.rows))


@scalar("lastval() -> BIGINT", group=GROUP, origin="postgres", volatility="volatile", takes_call=True)
def lastval(*, call: CallInfo) -> pa.Array:
    """The number that nextval gave last in this session, of whichever sequence.

    >>> SELECT count(*) FROM (SELECT lastval() WHERE false)
    0

    55000  it gave none yet
    """
    return pa.array(np.full(call.rows, _sequences(call).last(), np.int64))


@scalar("setval(sequence VARCHAR, value BIGINT) -> BIGINT", group=GROUP, origin="postgres", volatility="volatile",
        takes_call=True)  # fmt: skip
@scalar("setval(sequence VARCHAR, value BIGINT, is_called BOOLEAN) -> BIGINT", group=GROUP, origin="postgres",
        volatility="volatile", takes_call=True)  # fmt: skip
@per_row
def setval(sequence: Value, value: Value, is_called: Value | None = None, *, call: CallInfo) -> pa.Array:
    """Sets a sequence: the next number comes after ``value``, or is it where ``is_called`` is false.

    Goes row by row: a sequence is asked by name, and statements ask few.

    >>> setval(NULL, 1)
    NULL

    22003  a value out of the sequence's bounds
    """
    called = pa.scalar(True) if is_called is None else is_called
    return map_rows(lambda *given: _sequences(call).set(*given), pa.int64(), as_array(sequence, call.rows),
                    as_array(value, call.rows), as_array(called, call.rows))  # fmt: skip


@scalar("pg_get_serial_sequence(table VARCHAR, column VARCHAR) -> VARCHAR", group=GROUP, origin="postgres",
        volatility="stable", takes_call=True)  # fmt: skip
@per_row
def pg_get_serial_sequence(table: Value, column: Value, *, call: CallInfo) -> pa.Array:
    """The sequence that an identity column owns, NULL where it owns none.

    Goes row by row: a sequence is asked by name, and statements ask few.

    >>> pg_get_serial_sequence(NULL, 'id')
    NULL

    42P01, 42703  no such table or column
    """
    return map_rows(names_of(call).serial_sequence, pa.string(), as_array(table, call.rows), as_array(column, call.rows))


@scalar("pg_sequence_last_value(oid BIGINT) -> BIGINT", group=GROUP, origin="postgres", volatility="volatile",
        takes_call=True)  # fmt: skip
@per_row
def pg_sequence_last_value(oid: Value, *, call: CallInfo) -> pa.Array:
    """The last number that a sequence gave, NULL where it gave none.

    Goes row by row: a sequence is asked by name, and statements ask few.

    >>> pg_sequence_last_value(NULL)
    NULL
    """
    return map_rows(names_of(call).last_number, pa.int64(), as_array(oid, call.rows))
