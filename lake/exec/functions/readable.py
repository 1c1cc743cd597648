"""Texts for people and about files: bars, sizes, parts of paths, and what a UUID says."""

from __future__ import annotations

import re
import uuid
from typing import Final

import numpy as np
import pyarrow as pa

from lake.errors import InvalidParameter, InvalidText
from lake.exec.decimals import Value
from lake.exec.functions.columns import map_distinct, map_rows, over_texts, with_constants
from lake.exec.per_row import per_row
from lake.sql.registry import scalar

GROUP: Final = "text"
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
WIDTH_MAX: Final = 1000
SEPARATORS: Final = {"system": "/", "both_slash": r"/\\", "forward_slash": "/", "backslash": r"\\"}


@scalar("bar(number DOUBLE, low DOUBLE, high DOUBLE, width DOUBLE DEFAULT 80) -> VARCHAR", group=GROUP, origin="duckdb")
@per_row
def bar(number: Value, low: Value, high: Value, width: Value) -> pa.Array:
    """A bar that shows where the number lies between low and high.

    Goes row by row: each row's text is drawn on its own.

    >>> replace(bar(5, 0, 20, 10), ' ', '.')
    ██▌.......

    22023  a width out of 1 to 1000
    """

    def draw(number: float, low: float, high: float, width: float) -> str:
        if not 1 <= width <= WIDTH_MAX or not low < high:
            raise InvalidParameter(f"bar takes a width from 1 to {WIDTH_MAX}, and low below high")
        share = 0.0 if np.isnan(number) else min(max((number - low) / (high - low), 0), 1)
        whole, part = divmod(int(share * width * 8), 8)
        return ("█" * whole + (EIGHTHS[part] if part else "")).ljust(int(width))

    return map_rows(draw, pa.string(), number, low, high, width)


def _register_size(base: int, units: tuple[str, ...], names: tuple[str, ...], example: str, answer: str) -> None:
    def write(count: int) -> str:
        size, power = float(abs(count)), 0
        while size >= base and power < len(units) - 1:
            size, power = size / base, power + 1
        sign = "-" if count < 0 else ""
        if power == 0:
            return f"{count} byte{'' if abs(count) == 1 else 's'}"
        return f"{sign}{int(size * 10) / 10:.1f} {units[power]}"

    def function(count: pa.Array) -> pa.Array:
        return map_distinct(write, pa.string(), count)

    function.__doc__ = f"A number of bytes for people, in steps of {base}.\n\n    >>> {example}\n    {answer}\n    "
    first, *others = names
    scalar(f"{first}(count BIGINT) -> VARCHAR", group=GROUP, origin="duckdb", aliases=others)(function)


_register_size(1024, ("", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"), ("format_bytes", "formatreadablesize"),
               "format_bytes(16384)", "16.0 KiB")  # fmt: skip
_register_size(1000, ("", "kB", "MB", "GB", "TB", "PB", "EB"), ("formatreadabledecimalsize",),
               "formatReadableDecimalSize(16000)", "16.0 kB")  # fmt: skip


# --- paths -----------------------------------------------------------------------------------------------------------


def _split(path: str, separator: str) -> list[str]:
    """22023  an unknown separator"""
    letters = SEPARATORS.get(separator)
    if letters is None:
        raise InvalidParameter(f'unknown separator "{separator}"', hint=f"{', '.join(SEPARATORS)} are known.")
    return re.split(f"[{letters}]", path)


@scalar("parse_path(path VARCHAR, separator VARCHAR DEFAULT 'both_slash') -> VARCHAR[]", group=GROUP, origin="duckdb")
@per_row
def parse_path(path: Value, separator: Value) -> pa.Array:
    """The parts of a path. Goes row by row: Arrow's split keeps what is empty between separators.

    >>> parse_path('path/to/file.csv')
    [path, to, file.csv]
    """

    def run(item: str, separator: str) -> list[str]:
        parts = _split(item, separator)
        root = ["/"] if item[:1] in ("/", "\\") and parts[0] == "" else []
        return root + [part for part in parts if part]

    strings = pa.list_(pa.string())
    return with_constants(over_texts(run, strings), strings, path, separator)


@scalar("parse_filename(path VARCHAR, trim BOOLEAN DEFAULT FALSE, separator VARCHAR DEFAULT 'both_slash') -> VARCHAR",
        group=GROUP, origin="duckdb")  # fmt: skip
@per_row
def parse_filename(path: Value, trim: Value, separator: Value) -> pa.Array:
    """The last part of a path, without its ending where so told.

    Goes row by row: the ending is cut off at the last point, but for names that begin with it.

    >>> SELECT parse_filename('path/to/file.csv'), parse_filename('path/to/file.csv', true)
    file.csv | file
    """

    def run(item: str, trim: bool, separator: str) -> str:
        name = _split(item, separator)[-1]
        return name.rpartition(".")[0] or name if trim else name

    return with_constants(over_texts(run, pa.string()), pa.string(), path, trim, separator)


@scalar("parse_dirname(path VARCHAR, separator VARCHAR DEFAULT 'both_slash') -> VARCHAR", group=GROUP, origin="duckdb")
@per_row
def parse_dirname(path: Value, separator: Value) -> pa.Array:
    """The first part of a path. Goes row by row: a path from the root has its separator for a first part.

    >>> parse_dirname('path/to/file.csv')
    path
    """

    def run(item: str, separator: str) -> str:
        parts = _split(item, separator)
        return "" if len(parts) < 2 else parts[0] or item[0]

    return with_constants(over_texts(run, pa.string()), pa.string(), path, separator)


@scalar("parse_dirpath(path VARCHAR, separator VARCHAR DEFAULT 'both_slash') -> VARCHAR", group=GROUP, origin="duckdb")
@per_row
def parse_dirpath(path: Value, separator: Value) -> pa.Array:
    """A path without its last part. Goes row by row: a path of one part has none before it.

    >>> parse_dirpath('path/to/file.csv')
    path/to
    """

    def run(item: str, separator: str) -> str:
        return item[: max(len(item) - len(_split(item, separator)[-1]) - 1, 0)]

    return with_constants(over_texts(run, pa.string()), pa.string(), path, separator)


# --- UUIDs -----------------------------------------------------------------------------------------------------------


@scalar("uuid_extract_version(id VARCHAR) -> INT", group="bytes", origin="duckdb")
@per_row
def uuid_extract_version(id: pa.Array) -> pa.Array:
    """The version of a UUID. Goes row by row: Python's UUID reads all spellings.

    >>> uuid_extract_version('019482e4-1441-7aad-8127-eec99573b0a0')
    7

    22P02  a text that is no UUID
    """

    def version(item: str) -> int:
        try:
            return uuid.UUID(item).int >> 76 & 15
        except ValueError:
            raise InvalidText(f'invalid input syntax for type uuid: "{item}"') from None

    return map_distinct(version, pa.int32(), id)
