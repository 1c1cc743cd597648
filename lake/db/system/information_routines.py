"""information_schema: routines and parameters, from the table of functions. Source: PostgreSQL documentation, chapter 37."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lake.db.system import system_table
from lake.sql.registry import FUNCTIONS, Aggregate, Function, Scalar, Window
from lake.types import BIGINT, TEXT

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]
SCHEMA = "pg_catalog"


def _overloads() -> Iterator[tuple[str, str, Function]]:
    """Each overload with its name and a name that no other overload has."""
    for name in sorted(FUNCTIONS):
        for place, item in enumerate(FUNCTIONS[name], 1):
            yield name, f"{name}_{place}", item


@system_table(
    "information_schema",
    "routines",
    columns={
        "specific_catalog": TEXT, "specific_schema": TEXT, "specific_name": TEXT, "routine_catalog": TEXT,
        "routine_schema": TEXT, "routine_name": TEXT, "routine_type": TEXT, "is_deterministic": TEXT, "data_type": TEXT,
        "function_type": TEXT, "description": TEXT, "syntax_example": TEXT,
    },
)  # fmt: skip
def routines(catalog: StatementCatalog) -> Iterator[Row]:
    """Every overload of every function."""
    for name, specific, item in _overloads():
        kind = {Scalar: "SCALAR", Aggregate: "AGGREGATE", Window: "WINDOW"}.get(type(item), "TABLE")
        steady = "YES" if isinstance(item, Scalar) and item.volatility == "immutable" else "NO"
        words = ", ".join(parameter.name for parameter in item.signature.parameters)
        yield (
            catalog.lake, SCHEMA, specific, catalog.lake, SCHEMA, name, "FUNCTION", steady, item.signature.returns, kind,
            item.doc.split("\n", 1)[0], f"{name}({words})",
        )  # fmt: skip


@system_table(
    "information_schema",
    "parameters",
    columns={
        "specific_catalog": TEXT, "specific_schema": TEXT, "specific_name": TEXT, "ordinal_position": BIGINT,
        "parameter_mode": TEXT, "parameter_name": TEXT, "data_type": TEXT, "parameter_default": TEXT, "is_variadic": TEXT,
    },
)  # fmt: skip
def parameters(catalog: StatementCatalog) -> Iterator[Row]:
    """The parameters of every overload, and its result at place 0."""
    for _, specific, item in _overloads():
        yield catalog.lake, SCHEMA, specific, 0, "OUT", None, item.signature.returns, None, "NO"
        for place, parameter in enumerate(item.signature.parameters, 1):
            yield (
                catalog.lake, SCHEMA, specific, place, "IN", parameter.name, parameter.type, parameter.default,
                "YES" if parameter.variadic else "NO",
            )  # fmt: skip
