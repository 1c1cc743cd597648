"""Keys that lie in the paths of files: ``sales/region=eu/day=2024-01-02/part-0.parquet``.

A key is a column with one value in all rows of a file, so a predicate on it leaves out whole files. Source: Apache Hive,
partitioned tables.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from msgspec import Struct

from lake.errors import InvalidParameter, InvalidText
from lake.late import late_pattern
from lake.rows import Part, Predicate, RowSource, physical_array
from lake.storage.external.files import ExternalTable
from lake.types import BIGINT, DATE, TEXT, Type

NULL_NAME: Final = "__HIVE_DEFAULT_PARTITION__"
_SEGMENT: Final = late_pattern(r"([^=/]+)=(.*)")
_WHOLE: Final = late_pattern(r"-?\d{1,18}")
_DAY: Final = late_pattern(r"\d{4}-\d\d-\d\d")
_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda value, values: value in values,
}  # fmt: skip


def keys_of(path: str) -> dict[str, str | None]:
    """The keys in a path, by name; None stands for NULL."""
    found: dict[str, str | None] = {}
    for segment in Path(path).parts[:-1]:
        match = _SEGMENT.fullmatch(segment)
        if match is not None:
            found[unquote(match[1])] = None if match[2] == NULL_NAME else unquote(match[2])
    return found


def with_keys(
    table: ExternalTable, paths: Sequence[str], sources: Sequence[RowSource], types: Mapping[str, Type]
) -> ExternalTable:
    """``table`` with the keys of its paths as columns; ``sources`` are the rows of each file.

    types  of keys; of the others whole numbers are BIGINT, days DATE and other values VARCHAR
    22023  a file without a key that the first one has, or a type for a key that is not there
    22P02  a value that is not of its key's type
    """
    found = [keys_of(path) for path in paths]
    names = list(found[0])
    for path, keys in zip(paths, found, strict=True):
        if list(keys) != names:
            raise InvalidParameter(f'"{path}" has not the partition keys of the first file: {", ".join(names) or "none"}')
    unknown = next((name for name in types if name not in names), None)
    if unknown is not None:
        raise InvalidParameter(f'"{unknown}" is no partition key', hint=f"the keys are: {', '.join(names) or 'none'}")
    typed = {name: types.get(name) or _guessed([keys[name] for keys in found]) for name in names}
    values = [{name: _value(keys[name], typed[name], name) for name in names} for keys in found]
    columns = [(name, type) for name, type in table.columns if name not in typed]
    return ExternalTable((*columns, *typed.items()), PartitionedRows(tuple(sources), tuple(values), typed), table.count)


def _guessed(texts: Sequence[str | None]) -> Type:
    known = [text for text in texts if text is not None]
    if known and all(_WHOLE.fullmatch(text) for text in known):
        return BIGINT
    return DATE if known and all(_DAY.fullmatch(text) for text in known) else TEXT


def _value(text: str | None, type: Type, name: str) -> pa.Scalar:
    """A key's value in physical form."""
    try:
        return physical_array(pa.array([text], pa.string()).cast(type.arrow), type)[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidText(f'invalid input syntax for type {type.sql.lower()}: "{text}" of partition key "{name}"') from None


class PartitionedRows(Struct, frozen=True):
    """Rows of files with the keys of each; ``keys`` are scalars in physical form."""

    sources: tuple[RowSource, ...]
    keys: tuple[Mapping[str, pa.Scalar], ...]
    types: Mapping[str, Type]

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """The parts of the files whose keys may meet the predicates."""
        on_keys = [test for test in predicates if test.column in self.types]
        others = [test for test in predicates if test.column not in self.types]
        inner = [name for name in columns if name not in self.types]
        found: list[Part] = []
        for source, keys in zip(self.sources, self.keys, strict=True):
            if all(_may_hold(keys[test.column], test) for test in on_keys):
                for part in source.parts(inner, others):
                    found.append(Part(part.rows, partial(self._read, part, tuple(columns), keys)))
        return found

    def _read(self, part: Part, columns: tuple[str, ...], keys: Mapping[str, pa.Scalar]) -> Iterable[pa.RecordBatch]:
        for batch in part.read():
            if not columns:
                yield batch
                continue
            arrays = [
                pa.repeat(keys[name], batch.num_rows) if name in keys else batch.column(name) for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _may_hold(key: pa.Scalar, test: Predicate) -> bool:
    """Whether rows with this key can meet a predicate; True where only the engine tells."""
    if test.op in ("is null", "is not null"):
        return bool(key.is_valid) == (test.op == "is not null")
    check = _TESTS.get(test.op)
    if check is None:
        return True
    if not key.is_valid:
        return False
    value = key.cast(pa.int32()).as_py() if pa.types.is_date32(key.type) else key.as_py()
    try:
        return bool(check(value, test.value))
    except TypeError:
        return True
