"""The changes of a table: told in order, from any position that is kept, until the rows are what they are."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from lake.clock import VirtualClock
from lake.errors import InvalidParameter, UndefinedTable
from lake.storage import Append
from lake.storage.catalog.changes import DropTable, Truncate
from lake.storage.catalog.model import CREATED_AT, ROW_ID, VERSION
from lake.storage.lake import Lake
from lake.storage.objects import MemoryStore
from lake.storage.tables.feed import CHANGE_TYPE, changes
from lake.storage.tables.feed_log import check_logged
from lake.storage.tables.read import PLACE
from lake.storage.tables.write import GROUP_ROWS
from tests.storage.lakes import START, append, lake_with_table, open_lake, rows_of

Told = list[tuple[str, int, int, Any]]


def told(lake: Lake, after: int, *, old: bool = True, step_rows: int = 65_536, id: int = 1) -> tuple[Told, list[int]]:
    """What a feed tells: type, commit, row id and ``a`` of each change, and where its pieces end."""
    found: Told = []
    ends = []
    snapshot = lake.snapshot()
    for piece in changes(snapshot, id, after, snapshot.state.number, old=old, step_rows=step_rows):
        columns = [piece.batch.column(name).to_pylist() for name in (CHANGE_TYPE, VERSION, ROW_ID, "a")]
        found += zip(*columns)
        ends.append(piece.upto)
    return found, ends


def change(lake: Lake, wanted: list[int], chance: random.Random) -> None:
    """Deletes or updates the rows whose ``a`` is wanted, in one commit."""
    rows = lake.snapshot().table("t")
    found = [batch for part in rows.parts(("a", PLACE, ROW_ID, CREATED_AT)) for batch in part.read()]
    places, appends = [], []
    for batch in found:
        held = batch.filter(np.isin(batch.column(0).to_numpy(False), wanted))
        places.append(held.column(1).to_numpy())
        if held.num_rows and chance.random() < 0.6:
            new = rows_of(*[value + 1_000 for value in held.column(0).to_pylist()])
            for name in (ROW_ID, CREATED_AT):
                new = new.append_column(name, held.column(name))
            appends.append(Append(1, new))
    gone = np.concatenate([np.empty(0, np.int64), *places])
    if len(gone):
        lake.commit([rows.deletes_at(gone)], appends=appends)


def replayed(rows: dict[int, Any], feed: Told) -> dict[int, Any]:
    """Rows by id after a feed, which must fit them."""
    rows = dict(rows)
    for kind, _, id, value in feed:
        if kind in ("delete", "update_preimage"):
            assert rows.pop(id) == value
        else:
            assert id not in rows
            rows[id] = value
    return rows


def state_of(lake: Lake) -> dict[int, Any]:
    """Rows of ``t`` by id."""
    parts = lake.snapshot().table("t").parts((ROW_ID, "a"))
    return {id: a for part in parts for batch in part.read() for id, a in zip(*batch.to_pydict().values())}


@pytest.mark.parametrize("seed", range(8))
def test_a_feed_replayed_is_the_table(seed: int) -> None:
    """From every remembered position, in steps of any size, whatever upkeep and TRUNCATE did meanwhile."""
    chance = random.Random(seed)
    clock = VirtualClock(START)
    store = MemoryStore(clock)
    lake = lake_with_table(store, clock, inline_bytes=2_000)
    remembered = {lake.state.number: state_of(lake)}
    for number in range(40):
        clock.advance(chance.choice([0.0, 2.0, 20.0]))
        match chance.randrange(10):
            case 0 | 1 | 2:
                append(lake, *range(number * 10, number * 10 + chance.choice([1, 3, 200])))
            case 3:
                lake.insert_files(lake.state.table("t"), [rows_of(number, None), rows_of(*range(50))])
            case 4 | 5 | 6:
                change(lake, [chance.randrange(number * 10 + 1) for _ in range(20)], chance)
            case 7:
                lake.tier()
            case 8:
                lake.upkeep.round(force=True)
            case _ if chance.random() < 0.4:
                lake.commit([Truncate(1, True)])
            case _:
                lake.close()
                lake = open_lake(store, clock, inline_bytes=2_000)
        remembered[lake.state.number] = state_of(lake)
    for position in chance.sample(sorted(remembered), 8):
        feed, ends = told(lake, position, step_rows=chance.choice([1, 30, 65_536]))
        assert replayed(remembered[position], feed) == state_of(lake)
        assert [version for _, version, _, _ in feed] == sorted(version for _, version, _, _ in feed)
        assert ends == sorted(ends) and ends[-1:] in ([], [lake.state.number])
        new, _ = told(lake, position, old=False)
        assert [row[1:] for row in new] == [row[1:] for row in feed if row[0] in ("insert", "update_postimage")]


def test_old_versions_come_first_and_pairs_are_updates() -> None:
    lake = lake_with_table()
    append(lake, 1, 2, 3)
    before = lake.state.number
    rows = lake.snapshot().table("t")
    batch = next(batch for part in rows.parts((PLACE, ROW_ID, CREATED_AT)) for batch in part.read())
    new = rows_of(20)
    for name in (ROW_ID, CREATED_AT):
        new = new.append_column(name, batch.column(name).slice(1, 1))
    lake.commit([rows.deletes_at(batch.column(0).to_numpy()[1:])], appends=[Append(1, new), Append(1, rows_of(4))])
    feed, _ = told(lake, before)
    assert [(kind, a) for kind, _, _, a in feed] == [
        ("update_preimage", 2), ("delete", 3), ("update_postimage", 20), ("insert", 4),
    ]  # fmt: skip


def test_a_commit_larger_than_a_step_comes_in_pieces() -> None:
    lake = lake_with_table()
    start = lake.state.number
    append(lake, 1)
    lake.insert_files(lake.state.table("t"), [rows_of(*range(GROUP_ROWS + 10))])
    append(lake, 2)
    feed, ends = told(lake, start, step_rows=1_000)
    assert [a for _, _, _, a in feed] == [1, *range(GROUP_ROWS + 10), 2]
    assert ends == [start + 1, start + 1, start + 2, start + 3], "inside the commit nothing can be resumed"


def test_positions_that_are_gone_are_refused() -> None:
    clock = VirtualClock(START)
    lake = lake_with_table(MemoryStore(clock), clock, purge_rows=0)
    append(lake, *range(100))
    lake.tier()
    start = lake.state.number
    change(lake, [5], random.Random(3))
    clock.advance(90_000)
    append(lake, 100)
    assert told(lake, 0)[0][-1][3] == 100
    lake.upkeep.merge()
    with pytest.raises(InvalidParameter, match="no longer kept"):
        told(lake, start)
    assert [a for *_, a in told(lake, lake.state.table("t").horizon)[0]] == [100]
    with pytest.raises(InvalidParameter, match="not there yet"):
        told(lake, 10_000)
    lake.commit([DropTable(1)])
    with pytest.raises(UndefinedTable):
        told(lake, start)


def test_a_keyed_tables_feed_goes_with_its_commits() -> None:
    clock = VirtualClock(START)
    lake = lake_with_table(MemoryStore(clock), clock, gc_secs=0.0, changelog_secs=100.0)
    start = lake.state.number
    append(lake, 1)
    for _ in range(3):
        clock.advance(40.0)
        append(lake, 2)
        check_logged(lake.log, lake.snapshot(), start)
        lake.upkeep.round(force=True)
    with pytest.raises(InvalidParameter, match="no longer kept"):
        check_logged(lake.log, lake.snapshot(), start)
    check_logged(lake.log, lake.snapshot(), lake.state.number)
    with pytest.raises(InvalidParameter, match="not there yet"):
        check_logged(lake.log, lake.snapshot(), lake.state.number + 1)
