"""A throwaway Postgres for differential tests: found on the machine, or taken from the `pgserver` wheel.

Looked for on PATH, under Debian's `/usr/lib/postgresql/*/bin`, then in the wheel. The cluster lives in a temporary
folder, listens on a socket there and on no port, sorts text by bytes (`--locale=C`, as the lake does), and goes when it
stops.
Postgres does not run as root, so under root it runs as `postgres` or `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

DEBIAN: Final = Path("/usr/lib/postgresql")
UNPRIVILEGED: Final = ("postgres", "nobody")
START_SECS: Final = 60.0
OPTIONS: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=20", "jit=off")


class Missing(Exception):
    """No Postgres on this machine, and no wheel that carries one."""


def find_binaries() -> tuple[Path, bool]:
    """The folder that holds initdb and postgres, and whether it is the wheel's.

    Missing  there is none
    """
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    if DEBIAN.is_dir():
        versions = [path for path in DEBIAN.iterdir() if path.name.isdigit()]
        candidates += [path / "bin" for path in sorted(versions, key=lambda path: -int(path.name))]
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder, False
    wheel = importlib.util.find_spec("pgserver")
    if wheel is not None and wheel.origin:
        return Path(wheel.origin).parent / "pginstall" / "bin", True
    raise Missing("no Postgres on PATH, none under /usr/lib/postgresql, and no pgserver wheel")


class Server:
    """A running Postgres; ``conninfo`` is what libpq connects with.

    options   settings that are not its defaults
    port      of this machine's own address, where it listens instead of on a socket of its folder
    """

    def __init__(self, options: Sequence[str] = OPTIONS, port: int = 0) -> None:
        self._options = [*options, "listen_addresses=127.0.0.1", f"port={port}"] if port else options
        binaries, from_wheel = find_binaries()
        self._scratch = Path(tempfile.mkdtemp(prefix="lake-pg-"))
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            user = _unprivileged()
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            if from_wheel:
                # Its folder may lie where only root looks, such as an environment in a home folder.
                binaries = _copy_wheel(binaries, self._scratch)
            os.chown(self._scratch, user.pw_uid, user.pw_gid)
        place = f"host=127.0.0.1 port={port}" if port else f"host={self._scratch}"
        self.conninfo = f"{place} user=postgres dbname=postgres"
        try:
            self._start(binaries)
        except BaseException:
            self.stop()
            raise

    def _start(self, binaries: Path) -> None:
        data = str(self._scratch / "data")
        environ = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        subprocess.run(
            [str(binaries / "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            cwd=self._scratch, env=environ, check=True, capture_output=True, **self._as,
        )
        settings = [word for option in self._options for word in ("-c", option)]
        # The server outlives this call; stop() ends it.
        log = (self._scratch / "log").open("wb")
        self._process = subprocess.Popen(
            [str(binaries / "postgres"), "-D", data, "-k", str(self._scratch), "-h", "", *settings],
            cwd=self._scratch, env=environ, stdout=log, stderr=subprocess.STDOUT, **self._as,
        )
        log.close()
        self._wait()

    def _wait(self) -> None:
        import psycopg

        until = time.monotonic() + START_SECS
        while True:
            try:
                psycopg.connect(self.conninfo).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"Postgres did not start:\n{(self._scratch / 'log').read_text()}") from None
                time.sleep(0.05)

    def stop(self) -> None:
        """Ends the server and removes its folder."""
        process = getattr(self, "_process", None)
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)  # the fast shutdown
            try:
                process.wait(START_SECS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd:
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Missing("Postgres does not run as root, and there is no user postgres or nobody")


def _copy_wheel(binaries: Path, scratch: Path) -> Path:
    """The wheel's Postgres under ``scratch``, with the libraries that stand beside its package."""
    package = binaries.parent.parent
    shutil.copytree(binaries.parent, scratch / "pgserver" / "pginstall", symlinks=True)
    libraries = package.parent / "pgserver.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, scratch / "pgserver.libs", symlinks=True)
    for path in scratch.rglob("*"):
        path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
    return scratch / "pgserver" / "pginstall" / "bin"
