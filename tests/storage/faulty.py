"""An ObjectStore that fails where a test says: before a request is done, or after it, when only the reply is lost."""

from __future__ import annotations

from typing import Any

from lake.errors import IoFailure
from lake.storage.objects.memory import MemoryStore


class FaultyStore(MemoryStore):
    """A MemoryStore with a list of faults: each says a method, a prefix of names, and ``lost`` or ``late``.

    lost  the request does not happen      late  it happens and its reply is lost
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[tuple[str, str, str]] = []

    def _meet(self, method: str, name: str, do: Any) -> Any:
        for fault in self.faults:
            if fault[0] == method and name.startswith(fault[1]):
                self.faults.remove(fault)
                if fault[2] == "late":
                    do()
                raise IoFailure(f"{method} {name}: no answer")
        return do()

    def get(self, name: str) -> bytes:
        return self._meet("get", name, lambda: super(FaultyStore, self).get(name))  # type: ignore[no-any-return]

    def put(self, name: str, data: bytes) -> None:
        self._meet("put", name, lambda: super(FaultyStore, self).put(name, data))

    def put_if_absent(self, name: str, data: bytes) -> bool:
        do = lambda: super(FaultyStore, self).put_if_absent(name, data)  # noqa: E731
        return self._meet("put_if_absent", name, do)  # type: ignore[no-any-return]
