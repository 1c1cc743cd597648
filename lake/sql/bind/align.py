"""The columns of queries that belong together: common types, casts to them, and other names."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lake.arrow_names import common_spelling
from lake.errors import DatatypeMismatch, InvalidColumnReference
from lake.sql import ast, plan
from lake.sql.bind.coerce import cast, is_nullable, merged_type
from lake.sql.bind.scope import Bound, Shared
from lake.sql.bound import Column, Expr, Literal
from lake.types import Type


def renamed(made: Bound, cte: ast.Cte, shared: Shared) -> Bound:
    """The query under the names that WITH gives its columns.

    42P10  more names than columns
    """
    if len(cte.columns) > len(made.columns):
        raise InvalidColumnReference(
            f'WITH query "{cte.name}" has {len(made.columns)} columns available but {len(cte.columns)} columns specified',
            position=shared.position(cte),
        )
    return replace(made, names=cte.columns + made.names[len(cte.columns) :])


def aligned(made: Bound, types: Sequence[Type], shared: Shared) -> plan.Plan:
    """The query's plan with its columns cast to ``types``."""
    outputs: list[Column] = []
    exprs: list[Expr] = []
    taken = set[int]()
    for place, (column, type) in enumerate(zip(made.columns, types, strict=True)):
        expr: Expr = column
        if column.type != type:
            expr = cast(_constant(made, place) or column, type, time_zone=shared.settings.time_zone)
        if isinstance(expr, Column) and expr.id not in taken:
            outputs.append(expr)
            taken.add(expr.id)
        else:
            outputs.append(shared.column(column.name, type, is_nullable(expr)))
        exprs.append(expr)
    if tuple(exprs) == made.plan.columns:
        return made.plan
    return plan.Project(tuple(outputs), tuple(exprs), made.plan)


def _constant(made: Bound, place: int) -> Literal | None:
    """The constant that a column always is, for string literals and NULLs without a type of their own."""
    node, column = made.plan, made.columns[place]
    while isinstance(node, plan.Project) and column in node.outputs:
        expr = node.exprs[node.outputs.index(column)]
        if isinstance(expr, Literal):
            return expr
        if not isinstance(expr, Column):
            return None
        node, column = node.input, expr
    return None


def common_types(left: Bound, right: Bound, clause: str, node: ast.Node, shared: Shared) -> tuple[Type, ...]:
    """The types that both sides' columns are cast to, pair by pair.

    42804  types that do not go together
    """
    types = []
    for place, (one, other) in enumerate(zip(left.columns, right.columns, strict=True)):
        if one.type == other.type:
            types.append(common_spelling(one.type, other.type))
            continue
        sides: list[Expr] = [_constant(left, place) or one, _constant(right, place) or other]
        found = merged_type(sides)
        if found is None:
            raise DatatypeMismatch(
                f"{clause} types {one.type.sql.lower()} and {other.type.sql.lower()} cannot be matched",
                position=shared.position(node),
            )
        types.append(found)
    return tuple(types)
