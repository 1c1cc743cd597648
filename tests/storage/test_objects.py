"""Both stores keep the same promises; the folder also survives what a folder meets."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lake.errors import InvalidParameter
from lake.storage.objects import LocalStore, MemoryStore, ObjectMissing, ObjectStore, put_once


@pytest.fixture(params=["local", "local without O_TMPFILE", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "memory":
        return MemoryStore()
    local = LocalStore(tmp_path / "lake", sync=False)
    local._has_tmpfile = request.param == "local"
    return local


def test_objects_are_read_as_written(store: ObjectStore) -> None:
    store.put("a/b/one", b"0123456789")
    assert store.get("a/b/one") == b"0123456789"
    assert store.get_range("a/b/one", 3, 4) == b"3456"
    assert store.get_range("a/b/one", 8, 100) == b"89"
    with store.open_reader("a/b/one") as reader:
        reader.seek(5)
        assert reader.read(2) == b"56"
    head = store.head("a/b/one")
    assert head is not None and head.size == 10
    store.put("a/b/one", b"other")
    assert store.get("a/b/one") == b"other"
    store.put("empty", b"")
    assert store.get("empty") == b"" and store.open_reader("empty").read() == b""


def test_missing_objects_are_said_to_be(store: ObjectStore) -> None:
    assert store.head("nothing") is None
    for read in (store.get, store.open_reader, lambda name: store.get_range(name, 0, 1)):
        with pytest.raises(ObjectMissing):
            read("no/such/object")
    store.delete("no/such/object")
    assert store.list("no/") == []
    store.put("folder/object", b"x")
    assert store.head("folder") is None, "a folder is no object"


def test_put_if_absent_is_won_once(store: ObjectStore) -> None:
    won: list[int] = []

    def race(number: int) -> None:
        if store.put_if_absent("cluster/term/1", str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.get("cluster/term/1") == str(won[0]).encode()


def test_put_once_knows_its_own_object(store: ObjectStore) -> None:
    assert put_once(store, "x", b"mine")
    assert put_once(store, "x", b"mine")
    assert not put_once(store, "x", b"another's")


def test_put_if_match_compares_etags(store: ObjectStore) -> None:
    assert not store.put_if_match("f", b"1", "none")
    store.put("f", b"1")
    first = store.head("f")
    assert first is not None
    assert store.put_if_match("f", b"22", first.etag)
    assert not store.put_if_match("f", b"333", first.etag)
    assert store.get("f") == b"22"


def test_list_is_by_prefix_and_sorted(store: ObjectStore) -> None:
    for name in ("data/t/2", "data/t/1", "data/tt/3", "data/other", "log/x", "da"):
        store.put(name, b"")
    assert [info.name for info in store.list("data/t/")] == ["data/t/1", "data/t/2"]
    assert [info.name for info in store.list("data/t")] == ["data/t/1", "data/t/2", "data/tt/3"]
    assert [info.name for info in store.list("data/t", after="data/t/1")] == ["data/t/2", "data/tt/3"]
    assert [info.name for info in store.list("")] == ["da", "data/other", "data/t/1", "data/t/2", "data/tt/3", "log/x"]


def test_written_streams_appear_when_closed(store: ObjectStore) -> None:
    writer = store.open_writer("data/t/file")
    writer.sink.write(b"half")
    assert store.head("data/t/file") is None
    writer.sink.write(b" and half")
    assert writer.close() == 13
    assert store.get("data/t/file") == b"half and half"
    dropped = store.open_writer("data/t/dropped")
    dropped.sink.write(b"x")
    dropped.abort()
    assert store.head("data/t/dropped") is None


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a/./b", "a\\b", "a\0b", "a\nb", "x" * 1_025]
)
def test_names_stay_inside_the_lake(store: ObjectStore, name: str) -> None:
    for call in (store.get, store.delete, store.head, lambda name: store.put(name, b""), store.open_writer):
        with pytest.raises(InvalidParameter):
            call(name)


def test_a_listing_leaves_temporary_files_out_and_sweep_removes_them(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, sync=False)
    store.open_writer("data/t/file").sink.write(b"left behind")
    assert store.list("") == []
    assert len(list((tmp_path / ".tmp").iterdir())) == 1
    store.sweep(before=1)
    assert len(list((tmp_path / ".tmp").iterdir())) == 1
    store.sweep(before=1 << 62)
    assert list((tmp_path / ".tmp").iterdir()) == []
