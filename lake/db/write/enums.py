"""Labels of enum columns, and the check that their texts are among them. Spec: SQL, Enum types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from lake.errors import InvalidText
from lake.storage.catalog.model import Column, Table
from lake.storage.catalog.objects import EnumType
from lake.storage.catalog.state import State, display_name


class Labels(Struct, frozen=True):
    """The labels of an enum type in their order, and the type's name as errors say it."""

    type: str
    labels: tuple[str, ...]

    def check(self, values: pa.Array, column: Column, table: Table) -> None:
        """Refuses a text that is none of the labels; NULL passes.

        22P02  the message names it
        """
        known = pc.is_in(values, value_set=pa.array(self.labels, pa.string()))
        wrong = pc.filter(values, pc.and_(pc.invert(known), pc.is_valid(values)))
        if len(wrong):
            raise InvalidText(
                f'invalid input value for enum {self.type}: "{wrong[0].as_py()}"',
                hint=f"the labels are {', '.join(self.labels)}",
                about={"schema": table.schema, "table": table.name, "column": column.name},
            )


def labels_of(state: State, column: Column) -> Labels | None:
    """The labels of a column, None where it is no enum."""
    found = state.objects.get(column.enum)
    if isinstance(found, EnumType):
        return Labels(display_name(found.schema, found.name), found.labels)
    return Labels("enum", column.labels) if column.labels else None


def enums_of(state: State, table: Table) -> Mapping[str, Labels]:
    """The labels of a table's enum columns, by name."""
    found = {column.name: labels_of(state, column) for column in table.columns if column.enum or column.labels}
    return {name: labels for name, labels in found.items() if labels is not None}
