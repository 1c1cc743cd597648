"""What is made when it is first used: tables that modules fill when they are imported, and regular expressions.

    FUNCTIONS: Final = LateTable[str, list[Function]]()
    FUNCTIONS.fill_from("lake.exec.functions.strings", ...)
    FUNCTIONS["upper"]                                          imports them

So a layer says where its rows are without paying for them: a program that asks little imports little. A node fills its
tables before it is ready.

    _DATE: Final = late_pattern("([0-9]+)-([0-9]+)-([0-9]+)")
    _DATE.fullmatch(text)                                       compiles it
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, AnyStr, TypeVar, cast, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_FILLING = threading.RLock()


class LateTable(MutableMapping[K, V]):
    """A dictionary whose rows are registered by modules.

    single  each key is registered by one module, so that a search ends with the module that has it
    """

    def __init__(self, *, single: bool = False) -> None:
        self._single = single
        self._rows: dict[K, V] = {}
        self._modules: list[str] = []
        self._is_filling = False

    def fill_from(self, *modules: str) -> None:
        """Names modules that register rows, in the order in which they are imported."""
        self._modules += modules

    def fill(self) -> None:
        """Imports what is left."""
        self._import(None)

    def registered(self, key: K) -> V | None:
        """The row that was registered so far; nothing is imported."""
        return self._rows.get(key)

    def __getitem__(self, key: K) -> V:
        if self._modules and not (self._single and key in self._rows):
            self._import(key)
        return self._rows[key]

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """The row of a key; ``default`` where there is none."""
        if self._modules and not (self._single and key in self._rows):
            self._import(key)
        return self._rows.get(key, default)

    def __setitem__(self, key: K, row: V) -> None:
        self._rows[key] = row

    def __delitem__(self, key: K) -> None:
        del self._rows[key]

    def __iter__(self) -> Iterator[K]:
        self.fill()
        return iter(self._rows)

    def __len__(self) -> int:
        self.fill()
        return len(self._rows)

    def _import(self, key: K | None) -> None:
        """Imports modules until the key is there, where one of them has it, or all."""
        with _FILLING:
            if self._is_filling:
                return  # one of the modules asks while it is imported
            self._is_filling = True
            try:
                while self._modules and not (self._single and key in self._rows):
                    import_module(self._modules[0])
                    del self._modules[0]
            finally:
                self._is_filling = False


class _LatePattern:
    """Stands for a compiled regular expression; what it is asked for, it has from then on."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)  # the module remembers what it compiled
        setattr(self, name, found)
        return found


def late_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """``re.compile``, when the first of the pattern's methods is called.

    A pattern takes 0.1 to 2 ms. Importing what ``SELECT 1`` needs compiled 46 of them and used 2.
    """
    return cast("re.Pattern[AnyStr]", _LatePattern(text, flags))
