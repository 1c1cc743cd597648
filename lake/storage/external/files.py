"""Which files a path means, and how they are read: by the extension, or by the reader that was named.

    expand("data/2024/*.parquet")       expand("data/")       expand(["a.csv", "b.csv"])

Spec: SQL, Function catalog, table functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from lake.errors import FeatureNotSupported, InvalidParameter, IoFailure
from lake.rows import RowSource
from lake.types import Type

FILES_MAX: Final = 100_000
READERS: Final = {
    "parquet": "parquet", "pq": "parquet", "csv": "csv", "tsv": "csv", "json": "json", "jsonl": "json", "ndjson": "json",
    "arrow": "arrow", "ipc": "arrow", "feather": "arrow", "xlsx": "xlsx",
}  # fmt: skip
COMPRESSIONS: Final = ("gz", "bz2", "zst", "lz4")


class ExternalTable(Struct, frozen=True):
    """Files as a table: columns by name and type, their rows, and how many rows there are, if the files tell."""

    columns: tuple[tuple[str, Type], ...]
    rows: RowSource
    count: float | None


def expand(paths: str | Sequence[str]) -> list[str]:
    """The files that a path, a glob, a folder or a list of them means, in order of name within each.

    58030  nothing is there      0A000  an address, which is not built yet
    """
    found: list[str] = []
    for path in [paths] if isinstance(paths, str) else paths:
        if "://" in path:
            raise FeatureNotSupported(f"reading {path.split('://')[0]}:// addresses is not supported yet")
        found += _expand_one(path)
    if len(found) > FILES_MAX:
        raise InvalidParameter(f"{len(found)} files are more than the {FILES_MAX} that one table may have")
    return found


def reader_of(path: str) -> str:
    """``parquet``, ``csv``, ``json``, ``arrow`` or ``xlsx``, by the extension, that of a compression left aside.

    22023  another extension
    """
    suffixes = [suffix.lstrip(".").lower() for suffix in Path(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in READERS:
        raise InvalidParameter(
            f'no reader for "{Path(path).name}"', hint=f"known extensions: {', '.join(READERS)}; or call a reader by name"
        )
    return READERS[suffix]


def _matches(pattern: Path) -> Iterator[Path]:
    """The files a glob means: from its last folder without a wildcard on."""
    fixed = pattern.parts
    count = next((i for i, part in enumerate(fixed) if any(char in part for char in "*?[")), len(fixed))
    if count == len(fixed):
        return iter(())
    return Path(*fixed[:count]).glob(str(Path(*fixed[count:])))


def _expand_one(path: str) -> list[str]:
    place = Path(path).expanduser()
    if place.is_file():
        return [str(place)]
    if place.is_dir():
        inside = sorted(str(file) for file in place.rglob("*") if file.is_file() and not file.name.startswith((".", "_")))
    else:
        inside = sorted(str(file) for file in _matches(place) if file.is_file())
    if not inside:
        raise IoFailure(f'no file at "{path}"')
    return inside
