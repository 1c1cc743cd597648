"""PersistentMap: a mapping that is never changed; setting a key answers another map that shares almost all of it.

    before = PersistentMap({1: "a"})
    after = before.set(2, "b")          before still holds one key

A leaf is a dict of up to 32 keys, an inner node a tuple of 16 children chosen by 4 bits of the hash, so that setting one
key of a million copies about five small nodes. Source: Bagwell, "Ideal Hash Trees", EPFL 2001.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D")

LEAF_KEYS_MAX: Final = 32
_BITS: Final = 4
_FAN: Final = 1 << _BITS
_SHIFT_MAX: Final = 60  # below it a leaf grows without a limit, which takes that many equal hashes

_Node = Any  # dict[K, V] | tuple[_Node, ...]
_ABSENT: Final = object()


class PersistentMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping whose ``set`` and ``remove`` cost little however large it is."""

    __slots__ = ("_root", "_size")

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._root: _Node = {}
        self._size = 0
        for key, value in dict(items).items():
            self._root = _set(self._root, 0, hash(key), key, value)
            self._size += 1

    def __getitem__(self, key: K) -> V:
        found = _find(self._root, key)
        if found is _ABSENT:
            raise KeyError(key)
        return found  # type: ignore[no-any-return]

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """The value of a key; ``default`` where there is none."""
        found = _find(self._root, key)
        return default if found is _ABSENT else found

    def __contains__(self, key: object) -> bool:
        return _find(self._root, key) is not _ABSENT

    def __iter__(self) -> Iterator[K]:
        pending = [self._root]
        while pending:
            node = pending.pop()
            if type(node) is dict:
                yield from node
            else:
                pending.extend(node)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)!r})"

    def set(self, key: K, value: V) -> PersistentMap[K, V]:
        """The map in which ``key`` has ``value``."""
        return self._with(_set(self._root, 0, hash(key), key, value), self._size + (key not in self))

    def remove(self, key: K) -> PersistentMap[K, V]:
        """The map without ``key``; this one, if it has no such key."""
        if key not in self:
            return self
        return self._with(_remove(self._root, 0, hash(key), key), self._size - 1)

    def _with(self, root: _Node, size: int) -> PersistentMap[K, V]:
        other: PersistentMap[K, V] = PersistentMap.__new__(PersistentMap)
        other._root = root
        other._size = size
        return other


def _find(node: _Node, key: object) -> Any:
    code = hash(key)
    while type(node) is not dict:
        node = node[code & (_FAN - 1)]
        code >>= _BITS
    return node.get(key, _ABSENT)


def _set(node: _Node, shift: int, code: int, key: Any, value: Any) -> _Node:
    if type(node) is dict:
        leaf = {**node, key: value}
        return leaf if len(leaf) <= LEAF_KEYS_MAX or shift > _SHIFT_MAX else _split(leaf, shift)
    slot = code & (_FAN - 1)
    return (*node[:slot], _set(node[slot], shift + _BITS, code >> _BITS, key, value), *node[slot + 1 :])


def _split(leaf: dict[Any, Any], shift: int) -> _Node:
    children: list[dict[Any, Any]] = [{} for _ in range(_FAN)]
    for key, value in leaf.items():
        children[(hash(key) >> shift) & (_FAN - 1)][key] = value
    return tuple(children)


def _remove(node: _Node, shift: int, code: int, key: Any) -> _Node:
    if type(node) is dict:
        return {other: value for other, value in node.items() if other != key}
    slot = code & (_FAN - 1)
    return (*node[:slot], _remove(node[slot], shift + _BITS, code >> _BITS, key), *node[slot + 1 :])
