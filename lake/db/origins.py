"""Where the columns of an answer come from: the table's oid and the column's number, which tools find keys and rules by.

    SELECT id, price AS cost, 1 + 1 FROM t        ((16391, 1), (16391, 3), (0, 0))

Source: PostgreSQL documentation, 55.7 (RowDescription).
"""

from __future__ import annotations

from lake.db.system.pg_catalog_oids import relation_oid
from lake.sql import plan
from lake.sql.bind import BoundQuery
from lake.sql.bound import Column
from lake.storage.catalog.model import Table
from lake.storage.catalog.state import State

Origin = tuple[int, int]
NOWHERE: Origin = (0, 0)


def origins_of(found: BoundQuery, state: State) -> tuple[Origin, ...]:
    """The origin of each column of a query; zeros for what is computed, and below set operations."""
    made: dict[int, Origin] = {}
    passed: dict[int, int] = {}
    for node in plan.walk(found.plan):
        if isinstance(node, plan.Scan):
            made |= _of_scan(node, state)
        elif isinstance(node, plan.Project):
            for output, expr in zip(node.outputs, node.exprs, strict=True):
                if isinstance(expr, Column) and expr.id != output.id:
                    passed[output.id] = expr.id
    return tuple(_followed(column.id, made, passed) for column in found.columns)


def _of_scan(node: plan.Scan, state: State) -> dict[int, Origin]:
    if len(node.table.name) != 2:
        return {}
    schema, name = node.table.name
    table = state.find(name, schema)
    if not isinstance(table, Table):
        return {}
    oid = relation_oid(table)
    places = {each: place for place, column in enumerate(table.columns, 1) for each in (column.name, column.stored)}
    return {
        output.id: (oid, places[stored])
        for output, stored in zip(node.outputs, node.names, strict=True)
        if stored in places
    }


def _followed(id: int, made: dict[int, Origin], passed: dict[int, int]) -> Origin:
    while id in passed:
        id = passed[id]
    return made.get(id, NOWHERE)
