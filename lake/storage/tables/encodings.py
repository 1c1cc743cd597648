"""How each column of a file is stored: what its first rows make fastest to read.

    few distinct values       dictionary codes
    whole numbers             packed deltas: smaller than LZ4 makes them, and unpacked in a third of its time
    anything else             plain

Codes and deltas are packed already and stay as they are; plain values are compressed where that saves a fifth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow as pa

from lake.storage.catalog import sketches
from lake.storage.catalog.model import CREATED_AT, ROW_ID, UPDATED_AT, VERSION
from lake.storage.tables.columns import stored_type
from lake.types import Date, Decimal, Integer, Interval, List, Map, Struct, Time, Timestamp, Type

SAMPLE_ROWS: Final = 65_536
SAMPLE_BYTES: Final = 1 << 18
DICTIONARY_VALUES_MAX: Final = 4_096
DICTIONARY_ROWS_EACH: Final = 8
"""Rows there must be for each distinct value."""
DELTA_RANGE_MAX: Final = 1 << 56
"""Numbers that lie farther apart are as long when packed."""
WORTH_COMPRESSING: Final = 0.8
"""The share of its size that a compressed sample may have."""


class Encodings(msgspec.Struct, frozen=True):
    """dictionaries, deltas: stored names of columns; codecs: for each path of a leaf column its codec's name."""

    dictionaries: tuple[str, ...]
    deltas: tuple[str, ...]
    codecs: dict[str, str]


def encodings_of(first: pa.RecordBatch, fields: list[tuple[str, Type]], codec: str) -> Encodings:
    """How to store columns of which ``first`` has the first rows, in physical types, by stored names.

    codec  for plain columns that it makes smaller; "none" for none
    """
    dictionaries: list[str] = []
    deltas: list[str] = []
    codecs: dict[str, str] = {}
    for stored, type in fields:
        sample = first.column(stored).slice(0, SAMPLE_ROWS)
        chosen = "NONE"
        if stored in (VERSION, CREATED_AT, UPDATED_AT) or (stored != ROW_ID and _has_few_values(sample, type)):
            dictionaries.append(stored)
        elif stored == ROW_ID or _packs_well(sample, type):
            deltas.append(stored)
        elif codec != "none" and _compresses(sample):
            chosen = codec.upper()
        codecs.update((path, chosen) for path in _leaf_paths(stored, stored_type(type)))
    return Encodings(tuple(dictionaries), tuple(deltas), codecs)


def _has_few_values(sample: pa.Array, type: Type) -> bool:
    if isinstance(type, List | Struct | Map | Interval):
        return False
    values = len(sample) - sample.null_count
    distinct = sketches.estimate(sketches.sketch_of(sample))
    return bool(distinct <= max(1.5, min(DICTIONARY_VALUES_MAX, values / DICTIONARY_ROWS_EACH)))


def _packs_well(sample: pa.Array, type: Type) -> bool:
    if not isinstance(type, Integer | Date | Time | Timestamp) and not (isinstance(type, Decimal) and type.is_short):
        return False
    low, high = sketches.range_of(sample, type)
    return not isinstance(low, int) or not isinstance(high, int) or high - low < DELTA_RANGE_MAX


def _compresses(sample: pa.Array) -> bool:
    """Whether a fast codec saves enough: what LZ4 does tells for the others."""
    if pa.types.is_dictionary(sample.type):
        sample = sample.dictionary_decode()
    if pa.types.is_nested(sample.type):
        return True
    body = pa.concat_arrays([sample.slice(0, 1), sample.slice(1)]).buffers()[-1]  # a slice shares its buffers: not these
    if body is None or body.size == 0:
        return False
    part = body.slice(0, min(body.size, SAMPLE_BYTES))
    return bool(pa.Codec("lz4_raw").compress(part).size < WORTH_COMPRESSING * part.size)


def _leaf_paths(name: str, type: pa.DataType) -> Iterator[str]:
    """Paths of the columns that a field becomes in Parquet."""
    if pa.types.is_list(type):
        yield from _leaf_paths(f"{name}.list.element", type.value_type)
    elif pa.types.is_struct(type):
        for field in type:
            yield from _leaf_paths(f"{name}.{field.name}", field.type)
    elif pa.types.is_map(type):
        yield from _leaf_paths(f"{name}.key_value.key", type.key_type)
        yield from _leaf_paths(f"{name}.key_value.value", type.item_type)
    else:
        yield name
