"""Columns that a group's columns determine, which a query may name without grouping by them.

    SELECT o.id, o.total, count(*) FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY o.id

``total`` follows from the key ``id``, so it is one of the groups in effect. Keys are followed through joins, subqueries,
groups and row numbers.
"""

from __future__ import annotations

from lake.sql import plan
from lake.sql.bound import Column, columns_of


def determined(node: plan.Plan, known: frozenset[int]) -> frozenset[int]:
    """The ids of ``node``'s columns that are the same in all its rows where the ``known`` ones are."""
    match node:
        case plan.Scan():
            return known | _of_scan(node, known)
        case plan.Join():
            return determined(node.left, known) | determined(node.right, known)
        case plan.Project():
            return known | _of_outputs(tuple(zip(node.outputs, node.exprs, strict=True)), node.input, known)
        case plan.Aggregate():
            groups = _of_outputs(node.groups, node.input, known)
            whole = all(column.id in groups for column, _ in node.groups) and node.grouping_sets is None
            return known | groups | (_ids(node) if whole else frozenset())
        case plan.Window():
            return known | _of_window(node, known)
        case plan.Filter() | plan.Sort() | plan.Limit() | plan.Distinct() | plan.Materialize():
            return determined(node.input, known)
        case _:
            return known


def _ids(node: plan.Plan) -> frozenset[int]:
    return frozenset(column.id for column in node.columns)


def _of_scan(node: plan.Scan, known: frozenset[int]) -> frozenset[int]:
    """All columns where a key without NULLs is known."""
    by_name = dict(zip(node.names, node.outputs, strict=True))
    for key in node.table.unique:
        columns = [by_name.get(name) for name in key]
        if all(column is not None and not column.nullable and column.id in known for column in columns):
            return _ids(node)
    return frozenset()


def _of_outputs(pairs: tuple[tuple[Column, object], ...], source: plan.Plan, known: frozenset[int]) -> frozenset[int]:
    """The outputs whose expressions use nothing but what is determined below."""
    passed = {expr.id for column, expr in pairs if isinstance(expr, Column) and column.id in known}
    below = determined(source, known | passed)
    return frozenset(column.id for column, expr in pairs if column.id in known or columns_of(expr) <= below)


def _of_window(node: plan.Window, known: frozenset[int]) -> frozenset[int]:
    numbered = any(
        call.function.name == "row_number" and not columns_of(*node.partition) and column.id in known
        for column, call in node.calls
    )
    below = _ids(node.input) if numbered else determined(node.input, known)
    return below | _ids(node) if _ids(node.input) <= below else below
