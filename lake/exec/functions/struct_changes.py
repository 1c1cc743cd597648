"""Structs merged, and what Arrow calls the metadata of a field."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lake.arrow_names import arrow_name
from lake.errors import DatatypeMismatch
from lake.exec.constants import as_array, struct_array, to_array
from lake.exec.decimals import Value
from lake.exec.kernels import views
from lake.sql.registry import CallInfo, scalar
from lake.types import BOOLEAN, TEXT, Map, Struct, Type

GROUP: Final = "structs"


def _joined_type(types: tuple[Type, ...]) -> Type:
    """The struct of the fields of all.

    42804  another type, or a field that two of them have
    """
    fields: list[tuple[str, Type]] = []
    for type in types:
        if not isinstance(type, Struct):
            raise DatatypeMismatch(f"struct_concat takes structs, not {type}")
        fields += type.fields
    if len({name for name, _ in fields}) < len(fields):
        raise DatatypeMismatch("struct_concat takes structs without a field in common")
    return Struct(tuple(fields))


@scalar("struct_concat(structs ANY...) -> ANY", group=GROUP, origin="duckdb", strict=False, takes_call=True,
        returns=_joined_type)  # fmt: skip
def struct_concat(*structs: Value, call: CallInfo) -> pa.Array:
    """One struct of the fields of all; those of a struct that is NULL are NULL.

    >>> struct_concat({a: 1}, {b: 2})
    {a: 1, b: 2}
    """
    assert isinstance(call.returns, Struct)
    given = [as_array(value, call.rows) for value in structs]
    valid = views.true_of(given[0].is_valid()) if given else None
    for column in given[1:]:
        valid = valid | views.true_of(column.is_valid())
    return struct_array([part for column in given for part in column.flatten()], call.returns, valid)


# --- Arrow's fields --------------------------------------------------------------------------------------------------

METADATA: Final = Map(TEXT, TEXT)
FIELD: Final = Struct((("name", TEXT), ("data_type", TEXT), ("nullable", BOOLEAN), ("metadata", METADATA)))


@scalar("arrow_metadata(value ANY) -> ANY", group="casts", strict=False, takes_call=True, returns=lambda types: METADATA)
def arrow_metadata(value: Value, *, call: CallInfo) -> pa.Array:
    """The metadata of a value's field: none, as fields of the lake carry none.

    >>> arrow_metadata(1)
    {}
    """
    return pa.array([[]] * call.rows, METADATA.physical)


@scalar("arrow_metadata(value ANY, key VARCHAR) -> VARCHAR", group="casts", strict=False, takes_call=True)
def arrow_metadata_of(value: Value, key: Value, *, call: CallInfo) -> pa.Array:
    """The metadata of a value's field under a key: NULL, as fields of the lake carry none.

    >>> arrow_metadata(1, 'k') IS NULL
    true
    """
    return pa.nulls(call.rows, pa.string())


@scalar("arrow_field(value ANY) -> ANY", group="casts", strict=False, takes_call=True, returns=lambda types: FIELD)
def arrow_field(value: Value, *, call: CallInfo) -> pa.Array:
    """What Arrow says of a value's field.

    >>> arrow_field(1)
    {name: lit, data_type: Int64, nullable: false, metadata: {}}
    """
    nullable = as_array(value, call.rows).null_count > 0
    row = ("lit", arrow_name(call.types[0]), nullable, ())
    return to_array([row] * call.rows, FIELD)


@scalar("with_metadata(value ANY, pairs VARCHAR...) -> ANY", group="casts", strict=False, takes_call=True,
        returns=lambda types: types[0])  # fmt: skip
def with_metadata(value: Value, *pairs: Value, call: CallInfo) -> pa.Array:
    """The value as it is: fields of the lake carry no metadata.

    >>> with_metadata(5, 'k', 'v')
    5
    """
    return as_array(value, call.rows)


