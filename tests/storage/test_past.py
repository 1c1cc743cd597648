"""What is over: dropped and emptied tables, clones, purged rows, and what becomes of their files."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from lake.clock import VirtualClock
from lake.errors import DuplicateObject, InvalidParameter, UndefinedTable
from lake.storage import Append
from lake.storage.catalog.changes import (
    AddFiles,
    AlterTable,
    CloneTable,
    CreateTable,
    DropTable,
    Truncate,
    UndropTable,
)
from lake.storage.catalog.model import Column, Design, Table
from lake.storage.lake import Lake
from lake.storage.objects import MemoryStore
from lake.storage.tables.read import PLACE
from lake.storage.tiering.expire import named_objects
from lake.storage.tiering.tier import seal_all
from tests.storage.lakes import START, append, contents, lake_with_table, numbers, open_lake, rows_of, table_of

DAY = 86_400.0


def clocked(**options: Any) -> tuple[Lake, VirtualClock, MemoryStore]:
    clock = VirtualClock(START)
    store = MemoryStore(clock)
    return lake_with_table(store, clock, retain_secs=0.0, orphan_secs=0.0, **options), clock, store


def delete(lake: Lake, *values: int, name: str = "t") -> None:
    """Deletes the rows whose ``a`` is among the values."""
    rows = lake.snapshot().table(name)
    found = [batch for part in rows.parts(("a", PLACE)) for batch in part.read()]
    places = [batch.column(1).to_numpy()[np.isin(batch.column(0).to_numpy(False), values)] for batch in found]
    lake.commit([rows.deletes_at(np.concatenate(places))])


def at(lake: Lake, number: int, name: str = "t") -> list[Any]:
    """The column ``a`` of a table as it was."""
    rows = lake.snapshot().table(name).at(number)
    return [value for part in rows.parts(("a",)) for batch in part.read() for value in batch.column(0).to_pylist()]


def clone(lake: Lake, name: str, of: str = "t") -> None:
    """A clone of a table."""
    source = lake.state.table(of)
    made = Table(lake.state.next_id, "public", name, source.columns, lake.state.free_folder(name), next_column=9)
    lake.commit([CloneTable(made, source.id)])


def objects(store: MemoryStore) -> set[str]:
    """Objects that hold rows."""
    return {info.name for folder in ("data/", "log/") for info in store.list(folder)}


def test_a_dropped_table_is_there_until_its_retention_is_over() -> None:
    lake, clock, store = clocked()
    append(lake, 1, 2)
    lake.tier()
    append(lake, 3)
    id = lake.state.table("t").id
    lake.commit([DropTable(id, True)])
    assert lake.state.find("t") is None and [table.id for table in lake.state.dropped()] == [id]
    lake.upkeep.round(force=True)  # the tail of a dropped table is tiered as any other
    assert not lake.state.tails and lake.state.tail_rows == 0
    lake.close()
    lake = open_lake(store, clock, retain_secs=0.0)
    lake.commit([UndropTable(id)])
    assert numbers(lake) == [1, 2, 3]
    append(lake, 4)
    lake.commit([DropTable(id, True)])
    clock.advance(DAY + 1)
    lake.upkeep.round(force=True)
    lake.upkeep.round(force=True)
    assert not lake.state.past and not objects(store)
    with pytest.raises(UndefinedTable):
        lake.commit([UndropTable(id)])


def test_undrop_takes_a_free_name() -> None:
    lake, _, _ = clocked()
    id = lake.state.table("t").id
    lake.commit([DropTable(id, True)])
    lake.commit([CreateTable(table_of(lake.state.next_id))])
    with pytest.raises(DuplicateObject):
        lake.commit([UndropTable(id)])
    lake.commit([DropTable(lake.state.table("t").id)])
    lake.commit([UndropTable(id)])
    assert lake.state.table("t").id == id


def test_rows_from_before_truncate_are_the_past() -> None:
    lake, clock, store = clocked()
    table = lake.state.table("t")
    append(lake, 1, 2)
    first = lake.state.number
    lake.tier()
    append(lake, 3)
    second = lake.state.number
    lake.commit([Truncate(table.id, True)])
    assert numbers(lake) == [] and lake.state.rows(table.id) == 0
    append(lake, 4)
    third = lake.state.number
    lake.commit([Truncate(table.id, True)])
    append(lake, 5)
    for _ in range(2):
        assert [at(lake, number) for number in (first, second, second + 1, third)] == [[1, 2], [1, 2, 3], [], [4]]
        lake.upkeep.round(force=True)
        lake.close()
        lake = open_lake(store, clock, retain_secs=0.0)
    clock.advance(DAY + 1)
    lake.upkeep.round(force=True)
    lake.upkeep.round(force=True)
    assert not lake.state.past and len(objects(store)) == 1 and numbers(lake) == [5]
    with pytest.raises(InvalidParameter):
        at(lake, second)


def test_a_clone_keeps_its_files() -> None:
    lake, clock, store = clocked()
    append(lake, 1, 2, 3)
    lake.tier()
    append(lake, *range(100, 4_000))  # a segment, which the tails share
    delete(lake, 2)
    clone(lake, "c")
    before = contents(lake, name="c")
    assert before == contents(lake)
    delete(lake, 3, name="c")
    delete(lake, 1)
    lake.upkeep.round(force=True)
    lake.commit([DropTable(lake.state.table("t").id)])
    for _ in range(3):
        clock.advance(DAY + 1)
        lake.upkeep.round(force=True)
    assert [row[0] for row in contents(lake, name="c")] == [1, *range(100, 4_000)]
    lake.close()
    lake = open_lake(store, clock)
    assert [row[3] for row in contents(lake, name="c")] == [row[3] for row in before if row[0] not in (2, 3)]
    assert objects(store) == named_objects(lake.store, lake.manifests, lake.state)


def test_a_clone_of_sealed_files_keeps_them() -> None:
    lake, _, store = clocked()
    seal_many(lake)
    clone(lake, "c")
    lake.commit([DropTable(lake.state.table("t").id)])
    lake.upkeep.round(force=True)
    assert sorted(row[0] for row in contents(lake, name="c")) == sorted([*range(130), *range(130)])
    lake.commit([DropTable(lake.state.table("c").id)])
    for _ in range(2):
        lake.upkeep.round(force=True)
    assert not objects(store)


def seal_many(lake: Lake) -> None:
    """130 files of two rows, most of them in a manifest."""
    table = lake.state.table("t")
    files = [lake.write_files(table, [rows_of(at, at)]).files[0] for at in range(130)]
    lake.commit([AddFiles(table.id, tuple(files), {})])
    flush = seal_all(lake.snapshot(), lake.clock)
    assert flush is not None
    lake.submit(flush).result()
    assert lake.state.table("t").manifests


def test_rows_deleted_from_sealed_files_are_purged() -> None:
    lake, clock, store = clocked(purge_rows=3)
    seal_many(lake)
    delete(lake, 0, 1, 100)
    before = lake.state.number
    for _ in range(2):
        lake.upkeep.merge()
    assert lake.state.table("t").file_rows == 260, "within the retention nothing is purged"
    assert len(at(lake, before - 1)) == 260
    clock.advance(DAY + 1)
    while lake.upkeep.merge():
        pass
    table = lake.state.table("t")
    assert table.file_rows == 254 and not lake.state.deletes_of(table.id).rows
    assert [row[0] for row in contents(lake)] == [at for at in range(130) if at not in (0, 1, 100) for _ in "ab"]
    with pytest.raises(InvalidParameter):
        at(lake, before - 1)
    lake.upkeep.round(force=True)
    assert objects(store) == named_objects(lake.store, lake.manifests, lake.state)


def test_few_deleted_rows_wait_for_more() -> None:
    lake, clock, _ = clocked(purge_rows=50)
    append(lake, *range(100))
    lake.tier()
    delete(lake, *range(5))
    clock.advance(DAY + 1)
    assert not lake.upkeep.merge()
    delete(lake, *range(5, 11))
    assert not lake.upkeep.merge(), "a tenth counts what is past its time"
    clock.advance(DAY + 1)
    assert lake.upkeep.merge() and lake.state.table("t").file_rows == 89


def test_retention_is_the_tables_own() -> None:
    lake, clock, _ = clocked(purge_rows=0)
    table = lake.state.table("t")
    definition = {name: getattr(table, name) for name in AlterTable.__struct_fields__ if hasattr(table, name)}
    lake.commit([AlterTable(table=table.id, **{**definition, "design": Design(retention=10)})])
    append(lake, 1, 2)
    lake.tier()
    before = lake.state.number
    delete(lake, 1)
    clock.advance(8.0)
    assert not lake.upkeep.merge()
    clock.advance(8.0)
    assert lake.upkeep.merge()
    with pytest.raises(InvalidParameter):
        at(lake, before)
    assert not msgspec.structs.replace(table, design=Design(retention=0)).keeps_past


def test_columns_are_as_they_were() -> None:
    lake, clock, _ = clocked()
    append(lake, 1, None)
    first = lake.state.number
    table = lake.state.table("t")
    renamed = msgspec.structs.replace(table.columns[0], name="alpha")
    alter(lake, (renamed, Column(9, "s", "TEXT", stored="s__9")))
    clock.advance(2.0)
    append_stored(lake, 7)
    second = lake.state.number
    for _ in range(2):
        rows = lake.snapshot().table("t")
        assert [column.name for column in rows.at(first).columns] == ["a", "s", "d"]
        assert [column.name for column in rows.at(second).columns] == ["alpha", "s"]
        old = [batch.to_pydict() for part in rows.at(first).parts(("a", "s")) for batch in part.read()]
        assert old == [{"a": [1, None], "s": ["text 1", None]}], "a dropped column's values stay in files written since"
        assert rows.at(first).statistics().columns.keys() == {"a", "s", "d"}
        lake.tier()
    clock.advance(DAY + 1)
    append_stored(lake, 8)
    clock.advance(2.0)
    lake.upkeep.round(force=True)
    assert lake.state.table("t").history == ()
    assert [column.stored for column in lake.state.table("t").stored_columns] == ["a", "s__9"]


def alter(lake: Lake, columns: tuple[Column, ...]) -> None:
    """Gives ``t`` other columns."""
    table = lake.state.table("t")
    kept = {name: getattr(table, name) for name in AlterTable.__struct_fields__ if hasattr(table, name)}
    lake.commit([AlterTable(table=table.id, **{**kept, "columns": columns, "next_column": 10})])


def append_stored(lake: Lake, value: int) -> None:
    """A row of the altered ``t``."""
    batch = rows_of(value).select(["a", "s"]).rename_columns(["a", "s__9"])
    lake.commit(appends=[Append(lake.state.table("t").id, batch)])


def test_silent_producers_are_forgotten() -> None:
    lake, clock, _ = clocked(producers_secs=100.0)
    append(lake, 1, producer="old", seq=5)
    clock.advance(99.0)
    append(lake, 2, producer="new", seq=1)
    lake.upkeep.round(force=True)
    assert {"old", "new"} <= lake.state.producers.keys()
    clock.advance(2.0)
    lake.upkeep.round(force=True)
    assert "old" not in lake.state.producers and lake.state.producers["new"].seq == 1
    assert append(lake, 3, producer="old", seq=1).duplicate is False
