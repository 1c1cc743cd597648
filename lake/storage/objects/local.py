"""A folder as an ObjectStore.

An object is written without a name (``O_TMPFILE``), synced, linked to its name and the folder synced; ``link`` fails
when the name is taken, which is put-if-absent. Where the file system has no unnamed files a temporary file under ``.tmp/``
takes their place. A crash leaves at most a file under ``.tmp/``, and ``sweep`` removes old ones.
"""

# Descriptors, O_TMPFILE and folder syncs are what this file is about, and pathlib has none of them.
# ruff: noqa: PTH102, PTH105, PTH108, PTH112, PTH116, PTH120, PTH123, PTH202

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from lake.errors import DiskFull, IoFailure
from lake.metrics import OBJECT_REQUESTS
from lake.storage.faults import crash_point
from lake.storage.objects.base import ObjectInfo, ObjectMissing, check_name

TEMPORARY: Final = ".tmp"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_NO_TMPFILE: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


class LocalStore:
    """Objects as files under ``root``, which is made if absent.

    sync  whether writes are durable through a power cut when they return; without, through a killed process only
    """

    def __init__(self, root: str | Path, *, sync: bool = True) -> None:
        self._root = str(Path(root).absolute())
        self._sync = sync
        self._folders: set[str] = set()
        self._lock = threading.Lock()
        self._has_tmpfile = hasattr(os, "O_TMPFILE")

    @property
    def address(self) -> str:
        """The folder."""
        return self._root

    def path(self, name: str) -> str:
        """The file of an object."""
        return f"{self._root}/{check_name(name)}"

    def get(self, name: str) -> bytes:
        """All bytes."""
        OBJECT_REQUESTS.add(op="get")
        with _reading(name), open(self.path(name), "rb", buffering=0) as file:
            return file.read()

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Bytes from ``offset``."""
        OBJECT_REQUESTS.add(op="get")
        with _reading(name):
            fd = os.open(self.path(name), os.O_RDONLY)
            try:
                return os.pread(fd, length, offset)
            finally:
                os.close(fd)

    def head(self, name: str) -> ObjectInfo | None:
        """Size, time and etag, or None."""
        OBJECT_REQUESTS.add(op="head")
        try:
            with _reading(name):
                found = os.stat(self.path(name))
        except ObjectMissing:
            return None
        return _info(name, found) if stat.S_ISREG(found.st_mode) else None  # a folder is no object

    def put(self, name: str, data: bytes) -> None:
        """Writes or replaces, by renaming a temporary file."""
        OBJECT_REQUESTS.add(op="put")
        path = self.path(name)
        with _writing(name):
            folder = self._make_folder(path)
            temporary = self._write_temporary(data)
            os.replace(temporary, path)
            self._sync_folder(folder)

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Writes unless the name is taken."""
        OBJECT_REQUESTS.add(op="put_if_absent")
        path = self.path(name)
        with _writing(name):
            folder = self._make_folder(path)
            is_new = self._link_new(folder, path, data)
            crash_point("commit-linked")
            # Of a taken name too: the object may be this writer's own, whose first try failed at this very sync.
            self._sync_folder(folder)
            return is_new

    def put_if_match(self, name: str, data: bytes, etag: str) -> bool:
        """Replaces if the etag holds; a lock file makes look and replace one step among processes of this machine."""
        OBJECT_REQUESTS.add(op="put_if_match")
        path = self.path(name)
        with _writing(name):
            folder = self._make_folder(path)
            with self._locked(name):
                try:
                    found = _info(name, os.stat(path))
                except FileNotFoundError:
                    return False
                if found.etag != etag:
                    return False
                os.replace(self._write_temporary(data), path)
            self._sync_folder(folder)
            return True

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        """Objects whose names start with ``prefix`` and sort behind ``after``, by name."""
        OBJECT_REQUESTS.add(op="list")
        folder = prefix.rpartition("/")[0]
        if folder:
            check_name(folder)
        found: list[ObjectInfo] = []
        pending = [folder]
        while pending:
            inside = pending.pop()
            for name, entry in _entries(self._root, inside):
                if entry.is_dir(follow_symlinks=False):
                    if name != TEMPORARY and (name + "/").startswith(prefix[: len(name) + 1]):
                        pending.append(name)
                elif name.startswith(prefix) and name > after:
                    with contextlib.suppress(FileNotFoundError):
                        found.append(_info(name, entry.stat()))
        return sorted(found, key=lambda info: info.name)

    def delete(self, name: str) -> None:
        """Removes; nothing to remove is no error."""
        OBJECT_REQUESTS.add(op="delete")
        with _writing(name), contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))

    def open_reader(self, name: str) -> pa.NativeFile:
        """The file, mapped into memory."""
        OBJECT_REQUESTS.add(op="get")
        path = self.path(name)
        with _reading(name):
            return pa.memory_map(path, "r") if os.path.getsize(path) else pa.BufferReader(b"")

    def open_writer(self, name: str) -> LocalWriter:
        """A temporary file that takes its name when closed."""
        OBJECT_REQUESTS.add(op="put")
        path = self.path(name)
        with _writing(name):
            self._make_folder(f"{self._root}/{TEMPORARY}/x")
            return LocalWriter(self, name, path, f"{self._root}/{TEMPORARY}/{uuid.uuid4().hex}")

    def sweep(self, before: int) -> None:
        """Removes temporary files last written before ``before`` microseconds since the epoch."""
        for _, entry in _entries(self._root, TEMPORARY):
            with contextlib.suppress(FileNotFoundError):
                if entry.stat().st_mtime_ns // 1_000 < before:
                    os.unlink(entry.path)

    # --- steps of a write ---------------------------------------------------------------------------------------------

    def _link_new(self, folder: str, path: str, data: bytes) -> bool:
        fd = self._open_unnamed(folder)
        if fd is None:
            return self._link_temporary(path, data)
        try:
            _write_all(fd, data)
            if self._sync:
                os.fsync(fd)
            # With src_dir_fd CPython calls linkat(AT_SYMLINK_FOLLOW), without it link(), which would link the symlink.
            os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
            return True
        except FileExistsError:
            return False
        finally:
            os.close(fd)

    def _open_unnamed(self, folder: str) -> int | None:
        if not self._has_tmpfile:
            return None
        try:
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o644)
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
            self._has_tmpfile = False
            return None

    def _link_temporary(self, path: str, data: bytes) -> bool:
        temporary = self._write_temporary(data)
        try:
            os.link(temporary, path)
            return True
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)

    def _write_temporary(self, data: bytes) -> str:
        self._make_folder(f"{self._root}/{TEMPORARY}/x")
        path = f"{self._root}/{TEMPORARY}/{uuid.uuid4().hex}"
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        try:
            _write_all(fd, data)
            if self._sync:
                os.fsync(fd)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        return path

    def _make_folder(self, path: str) -> str:
        """The folder of ``path``, made with all above it; each new one is synced into the one above."""
        folder = os.path.dirname(path)
        if folder in self._folders:
            return folder
        with self._lock:
            missing = []
            above = folder
            while not os.path.isdir(above):
                missing.append(above)
                above = os.path.dirname(above)
            for part in reversed(missing):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part)
                self._sync_folder(os.path.dirname(part))
            self._folders.add(folder)
        return folder

    def _sync_folder(self, folder: str) -> None:
        if not self._sync:
            return
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        self._make_folder(f"{self._root}/{TEMPORARY}/x")
        slot = hashlib.blake2s(name.encode(), digest_size=1).hexdigest()
        fd = os.open(f"{self._root}/{TEMPORARY}/lock-{slot}", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


class LocalWriter:
    """A file that is being written."""

    def __init__(self, store: LocalStore, name: str, path: str, temporary: str) -> None:
        self._store = store
        self._name = name
        self._path = path
        self._temporary = temporary
        self._sink = pa.OSFile(temporary, "wb")

    @property
    def sink(self) -> pa.NativeFile:
        """Where the bytes go."""
        return self._sink

    def close(self) -> int:
        """Syncs the file, gives it its name, syncs the folder."""
        with _writing(self._name):
            self._sink.close()
            fd = os.open(self._temporary, os.O_RDONLY)
            try:
                if self._store._sync:
                    os.fsync(fd)
                size = os.fstat(fd).st_size
            finally:
                os.close(fd)
            folder = self._store._make_folder(self._path)
            os.replace(self._temporary, self._path)
            self._store._sync_folder(folder)
            return size

    def abort(self) -> None:
        """Throws the bytes away."""
        with contextlib.suppress(OSError, pa.ArrowException):
            self._sink.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)


def _entries(root: str, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        with os.scandir(f"{root}/{folder}" if folder else root) as entries:
            for entry in entries:
                yield (f"{folder}/{entry.name}" if folder else entry.name), entry
    except (FileNotFoundError, NotADirectoryError):
        return


def _info(name: str, found: os.stat_result) -> ObjectInfo:
    etag = f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"
    return ObjectInfo(name, found.st_size, found.st_mtime_ns // 1_000, etag)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextlib.contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ObjectMissing(name) from None
    except OSError as error:
        raise IoFailure(f"cannot read {name}: {error.strerror or error}") from error


@contextlib.contextmanager
def _writing(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"cannot write {name}: {error.strerror}") from error
        raise IoFailure(f"cannot write {name}: {error.strerror or error}") from error
