"""An ObjectStore in memory: for tests, for temporary lakes, and as the model of what a store promises."""

from __future__ import annotations

import itertools
import threading

import pyarrow as pa
from msgspec import Struct

from lake.clock import Clock, SystemClock
from lake.metrics import OBJECT_REQUESTS
from lake.storage.objects.base import ObjectInfo, ObjectMissing, check_name


class _Stored(Struct, frozen=True):
    data: bytes
    info: ObjectInfo


class MemoryStore:
    """Objects in a dict; they go with the process.

    requests  how often each method was called, by its name
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._objects: dict[str, _Stored] = {}
        self._lock = threading.Lock()
        self._etags = itertools.count(1)
        self.requests: dict[str, int] = {}

    @property
    def address(self) -> str:
        """Where the objects are."""
        return "memory"

    def get(self, name: str) -> bytes:
        """All bytes."""
        return self._find("get", name).data

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Bytes from ``offset``."""
        return self._find("get", name).data[offset : offset + length]

    def head(self, name: str) -> ObjectInfo | None:
        """Size, time and etag, or None."""
        self._count("head")
        stored = self._objects.get(check_name(name))
        return stored.info if stored else None

    def put(self, name: str, data: bytes) -> None:
        """Writes or replaces."""
        self._count("put")
        with self._lock:
            self._store(name, data)

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Writes unless the name is taken."""
        self._count("put_if_absent")
        with self._lock:
            if check_name(name) in self._objects:
                return False
            self._store(name, data)
            return True

    def put_if_match(self, name: str, data: bytes, etag: str) -> bool:
        """Replaces if the etag holds."""
        self._count("put_if_match")
        with self._lock:
            found = self._objects.get(check_name(name))
            if found is None or found.info.etag != etag:
                return False
            self._store(name, data)
            return True

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        """Objects whose names start with ``prefix`` and sort behind ``after``, by name."""
        self._count("list")
        with self._lock:
            stored = list(self._objects.items())
        found = (item.info for name, item in stored if name.startswith(prefix) and name > after)
        return sorted(found, key=lambda info: info.name)

    def delete(self, name: str) -> None:
        """Removes; nothing to remove is no error."""
        self._count("delete")
        with self._lock:
            self._objects.pop(check_name(name), None)

    def open_reader(self, name: str) -> pa.NativeFile:
        """The bytes as a stream."""
        return pa.BufferReader(self._find("get", name).data)

    def open_writer(self, name: str) -> MemoryWriter:
        """A buffer that becomes the object when closed."""
        check_name(name)
        return MemoryWriter(self, name)

    def _find(self, kind: str, name: str) -> _Stored:
        self._count(kind)
        stored = self._objects.get(check_name(name))
        if stored is None:
            raise ObjectMissing(name)
        return stored

    def _store(self, name: str, data: bytes) -> None:
        info = ObjectInfo(check_name(name), len(data), self._clock.now(), str(next(self._etags)))
        self._objects[name] = _Stored(bytes(data), info)

    def _count(self, kind: str) -> None:
        OBJECT_REQUESTS.add(op=kind)
        self.requests[kind] = self.requests.get(kind, 0) + 1


class MemoryWriter:
    """An object that is being written."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self._store = store
        self._name = name
        self._sink = pa.BufferOutputStream()

    @property
    def sink(self) -> pa.NativeFile:
        """Where the bytes go."""
        return self._sink

    def close(self) -> int:
        """Makes the object visible."""
        data = self._sink.getvalue().to_pybytes()
        self._store.put(self._name, data)
        return len(data)

    def abort(self) -> None:
        """Throws the bytes away."""
        self._sink.close()
