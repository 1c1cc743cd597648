"""Files that people keep in the lake, beside its tables: notebooks, SQL, images, with what each of them was before.

    files/reports/june.csv                                              the file
    files/.versions/reports/june.csv/<16 digits>-<digest>-<who>         its bytes as they were saved: when, and by whom

Every save writes its version first and the file behind it, the file by compare-and-swap, so of two saves made of the same
version one is told that it came too late. The version a file is at is the newest one with the digest of its bytes: nothing
else is kept, nothing is cached, and a file that another program put there has a version too. Spec: HTTP, Files.
"""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from lake.clock import MICROSECONDS, Clock
from lake.errors import DuplicateFile, FileChanged, InvalidParameter, UndefinedFile
from lake.storage.objects.base import ObjectInfo, ObjectMissing, ObjectStore, check_name

FOLDER: Final = "files/"
VERSIONS: Final = "files/.versions/"
VERSIONED_BYTES_MAX: Final = 64 << 20  # a larger file is kept without what it was before
DAY_MICROSECONDS: Final = 86_400 * MICROSECONDS
WHO_CHARS_MAX: Final = 120  # as it is written in a name, of which a disk takes 255 bytes
PART_BYTES_MAX: Final = 255
PATH_BYTES_MAX: Final = 700  # a name has 1,024, and that of a version is longer
CHANGED: Final = "the file changed since it was opened"


class Version(Struct, frozen=True):
    """One save of a file: when in microseconds, by whom, how large; ``id`` tells it from every other of the file."""

    id: str
    at: int
    who: str
    bytes: int
    name: str


class Files:
    """The files of one lake; any thread of any node may call."""

    def __init__(self, store: ObjectStore, clock: Clock, *, versions: int, days: int) -> None:
        self._store = store
        self._clock = clock
        self._versions = versions
        self._days = days

    def listed(self, folder: str = "") -> list[ObjectInfo]:
        """The files below a folder, all of them without one, by name; versions are not among them."""
        prefix = FOLDER + folder.strip("/").removeprefix(FOLDER.strip("/")).strip("/")
        prefix = prefix if prefix.endswith("/") else prefix + "/"
        return [info for info in self._store.list(prefix) if not info.name.startswith(VERSIONS)]

    def get(self, path: str) -> tuple[bytes, str]:
        """A file's bytes, and the version it is at.

        58P01  there is none
        """
        data = self._read(name_of(path))
        return data, self._version_of(path, data)

    def read(self, path: str) -> bytes | None:
        """A file's bytes, or None."""
        try:
            return self._store.get(name_of(path))
        except ObjectMissing:
            return None

    def put(self, path: str, data: bytes, who: str, version: str | None) -> str:
        """Stores a file; answers its version.

        version  the one that is replaced, ``*`` whichever it is, None for a file that is not there yet
        58P02    the file is there already      58P03  it is at another version, or gone
        22023    no path, or one whose folder is a file
        """
        name = name_of(path)
        self._check_folders(name)
        known = self._store.head(name)
        if version is None and known is not None:
            raise DuplicateFile(f'file "{name}" exists already', hint="send its etag as If-Match to replace it")
        if version is not None and (known is None or (version != "*" and self.get(path)[1] != version)):
            raise FileChanged(CHANGED)
        saved = self._save(path, data, who)
        if known is None:
            if not self._store.put_if_absent(name, data):
                self._forget(saved)
                is_file = self._store.head(name) is not None
                raise DuplicateFile(f'{"file" if is_file else "folder"} "{name}" exists already')
        elif not self._store.put_if_match(name, data, known.etag):
            self._forget(saved)
            raise FileChanged(CHANGED)
        self._expire(self.versions(path), keep=1)
        return saved.id

    def delete(self, path: str, version: str | None = None) -> None:
        """Removes a file; its versions stay.

        58P01  there is none      58P03  it is not at ``version``
        """
        _, found = self.get(path)
        if version not in (None, "*", found):
            raise FileChanged(CHANGED)
        self._store.delete(name_of(path))

    def versions(self, path: str) -> list[Version]:
        """What a file was, the newest save first; of a file that was removed too, none of one that never was."""
        folder = VERSIONS + name_of(path).removeprefix(FOLDER) + "/"
        found = [_version(info, folder) for info in self._store.list(folder)]
        return sorted((item for item in found if item is not None), key=lambda item: item.id, reverse=True)

    def version(self, path: str, id: str) -> bytes:
        """The bytes of one version.

        58P01  there is none
        """
        for item in self.versions(path):
            if item.id == id:
                return self._read(item.name)
        raise UndefinedFile(f'file "{name_of(path)}" has no version "{id[:80]}"')

    def restore(self, path: str, id: str, who: str) -> str:
        """Makes a version the file again, which is a save; answers the new version.

        58P01  there is no such version      58P03  somebody else saves the file at this moment
        """
        data = self.version(path, id)
        return self.put(path, data, who, None if self._store.head(name_of(path)) is None else "*")

    def expire(self) -> None:
        """Removes versions past their number and their time, of all files."""
        by_file: dict[str, list[Version]] = {}
        for info in self._store.list(VERSIONS):
            folder = info.name.rpartition("/")[0] + "/"
            item = _version(info, folder)
            if item is not None:
                by_file.setdefault(folder, []).append(item)
        for folder, found in by_file.items():
            is_there = self._store.head(FOLDER + folder.removeprefix(VERSIONS).rstrip("/")) is not None
            self._expire(sorted(found, key=lambda item: item.id, reverse=True), keep=int(is_there))

    # --- steps --------------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> bytes:
        try:
            return self._store.get(name)
        except ObjectMissing:
            raise UndefinedFile(f'no file "{name}"') from None

    def _version_of(self, path: str, data: bytes) -> str:
        digest = _digest(data)
        return next((item.id for item in self.versions(path) if item.id.endswith(digest)), digest)

    def _save(self, path: str, data: bytes, who: str) -> Version:
        """Writes a version, later than every one of the file before it, however the clock stands."""
        digest = _digest(data)
        if len(data) > VERSIONED_BYTES_MAX:
            return Version(digest, 0, who, len(data), "")
        before = next((item.at for item in self.versions(path)), 0)
        at = max(self._clock.now(), before + 1)
        id = f"{at:016d}-{digest}"
        folder = VERSIONS + name_of(path).removeprefix(FOLDER)
        name = f"{folder}/{id}-{_named(who)}"
        self._store.put(check_name(name), data)
        return Version(id, at, who, len(data), name)

    def _forget(self, saved: Version) -> None:
        if saved.name:
            self._store.delete(saved.name)

    def _expire(self, found: list[Version], keep: int) -> None:
        """Removes what is over of one file's versions, newest first; the newest ``keep`` stay whatever their age."""
        oldest = self._clock.now() - self._days * DAY_MICROSECONDS
        for place, item in enumerate(found):
            if place >= max(self._versions, keep) or (place >= keep and item.at < oldest):
                self._store.delete(item.name)

    def _check_folders(self, name: str) -> None:
        """22023 where a folder of the name is a file, or the name is a folder: a disk has no room for both."""
        parts = name.split("/")
        for count in range(2, len(parts)):
            above = "/".join(parts[:count])
            if self._store.head(above) is not None:
                raise InvalidParameter(f'"{above}" is a file, and holds none')
        if self._store.head(name) is None and self._store.list(name + "/"):
            raise InvalidParameter(f'"{name}" is a folder')


def name_of(path: str) -> str:
    """The object of a file, whose path may be given with or without ``files/``.

    22023  not a path, one too long for its versions, or one in a folder that begins with a dot, the lake's own
    """
    name = FOLDER + path.removeprefix(FOLDER)
    encoded = name.encode("utf-8", "replace")
    if len(encoded) > PATH_BYTES_MAX or max(map(len, encoded.split(b"/"))) > PART_BYTES_MAX:
        raise InvalidParameter(
            f"a file's path has at most {PATH_BYTES_MAX} bytes, and {PART_BYTES_MAX} between its slashes: {path[:80]!r}.."
        )
    if name.removeprefix(FOLDER).startswith("."):
        raise InvalidParameter(f"a file's path does not begin with a dot: {path[:200]!r}")
    try:
        return check_name(name)
    except InvalidParameter:
        raise InvalidParameter(f"not a path of a file: {path[:200]!r}") from None


def _named(who: str) -> str:
    """A user's name as part of an object's; a long one is cut, between two characters."""
    while len(quote(who, safe="")) > WHO_CHARS_MAX:
        who = who[:-1]
    return quote(who, safe="")


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _version(info: ObjectInfo, folder: str) -> Version | None:
    """The version that an object is; None of what is in a folder below, which is of other files."""
    last = info.name.removeprefix(folder)
    at, _, rest = last.partition("-")
    digest, _, who = rest.partition("-")
    if "/" in last or not (at.isascii() and at.isdigit()):
        return None
    return Version(f"{at}-{digest}", int(at), unquote(who), info.size, info.name)
