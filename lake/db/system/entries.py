"""What GET /objects lists: tables, views and the place of stored files, with what a tree of a console shows of them.

Spec: HTTP, Resources (object entry).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.storage.catalog.model import Table, View
from lake.storage.files import FOLDER

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Entry = dict[str, Any]


def entries(catalog: StatementCatalog) -> list[Entry]:
    """An entry for each relation of a catalog, and one for the lake's own files."""
    found = [
        _table(item, catalog) if isinstance(item, Table) else _view(item, catalog) for item in catalog.state.relations()
    ]
    place = {"catalog": catalog.lake, "schema": "", "name": FOLDER.rstrip("/"), "kind": "files", "files": FOLDER}
    return [*found, place]


def _table(table: Table, catalog: StatementCatalog) -> Entry:
    state, design = catalog.state, table.design
    names = {column.id: column.name for column in table.columns}
    rows = table.file_rows + state.waiting_rows(table.id) - state.deletes_of(table.id).rows
    partition = names.get(design.partition)
    return {
        "catalog": catalog.lake, "schema": table.schema, "name": table.name, "kind": "table",
        "rows": rows, "bytes": table.file_bytes, "files": table.file_count,
        "key": [names[id] for id in design.key if id in names],
        "partition": f"{design.unit}({partition})" if partition and design.unit else partition,
        "cluster": [names[id] for id in design.cluster if id in names],
        "publish": None,
        "not_null": [column.name for column in table.columns if column.not_null],
        "defaults": {column.name: column.default for column in table.columns if column.default is not None},
    }  # fmt: skip


def _view(view: View, catalog: StatementCatalog) -> Entry:
    entry = {"catalog": catalog.lake, "schema": view.schema, "name": view.name, "kind": view.kind}
    return entry | ({"sql": view.query} if view.query else {})
