"""Every flag and variable of the program, its default and its meaning; the one reader of the environment.

    >>> config = load({"LAKE_MEMORY_GB": "4", "LAKE_PAGES_MB": "plenty"}, {"tier-secs": "2"})
    >>> config.memory_gb, config.hot_gb, config.pages_mb, config.tier_secs
    (4.0, 2.0, 256, 2.0)

A flag wins over its variable. A variable that is empty, is not a number where one is asked, or is none of the listed
words takes the default; a flag of that kind is refused (22023), because somebody has just typed it. Settings are fields
of ``Config``; the rows of ``SETTINGS`` feed ``--help``, SHOW ALL and the manual. ``used`` is false for a setting that is
understood and that nothing reads yet.

Spec: HTTP and operations, Limits (environment variables); What the service does 7.
"""

from __future__ import annotations

import math
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lake.errors import InvalidParameter

GIB: Final = 1 << 30
TRUE_WORDS: Final = frozenset(("1", "true", "on", "yes"))
FALSE_WORDS: Final = frozenset(("0", "false", "off", "no"))
CODECS: Final = ("lz4", "zstd", "snappy", "none")
CACHE_GB_MAX: Final = 20.0

Options = Mapping[str, Any]
Derived = Callable[["Machine", Options], Any]  # a default from the machine and the settings declared above


class Machine(Struct, frozen=True):
    """What defaults are taken from: cores, memory and folders of the machine the program runs on."""

    cores: int
    memory_bytes: int
    temp_dir: str
    config_dir: str

    @classmethod
    def here(cls, environ: Mapping[str, str]) -> Machine:
        """This machine, or the part of it that the operating system grants the process."""
        affinity = getattr(os, "sched_getaffinity", None)
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        return cls(cores, _memory_bytes(), tempfile.gettempdir(), _user_config_dir(environ))


class Setting(Struct, frozen=True):
    """One row of SETTINGS: a field of Config and what it is called from outside.

    env       the variable it is read from, or None where only a flag sets it
    flag      the flag without its dashes, or None; ``aliases`` do the same
    written   the variable the service itself sets for the processes it starts; reading it has no effect
    used      whether the program reads the setting
    """

    name: str
    kind: type
    default: Any
    doc: str
    env: str | None = None
    flag: str | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    written: str | None = None
    secret: bool = False
    used: bool = True

    def default_on(self, machine: Machine, above: Options) -> Any:
        """The default here, given the settings declared above this one."""
        return self.default(machine, above) if callable(self.default) else self.default

    def read(self, text: Any) -> Any:
        """The value ``text`` writes, or None where it writes none."""
        if self.kind is tuple:
            return tuple(text.split(os.pathsep)) if isinstance(text, str) else tuple(text)
        if self.kind is bool:
            word = str(text).strip().lower()
            return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None
        if self.kind is str:
            word = str(text)
            return word if not self.choices or word in self.choices else None
        return _read_number(str(text), self.kind)


def setting(default: Any, env: str | None, flag: str | None, doc: str, unit: str = "", **more: Any) -> Any:
    """A field of Config; ``more`` are further fields of its row in SETTINGS. A callable default is derived."""
    return Setting(name="", kind=str, default=default, env=env, flag=flag, doc=doc, unit=unit, **more)


def _quarter_of_free_disk(machine: Machine, above: Options) -> float:
    folder = Path(above["cache_dir"])
    while not folder.exists():
        folder = folder.parent
    return min(CACHE_GB_MAX, shutil.disk_usage(folder).free / 4 / GIB)


def _inline_kb(_: Machine, above: Options) -> int:
    return 1024 if above["ack"] == "replicated" and above["replicas"] > 1 else 64


class Config(Struct, frozen=True, kw_only=True):
    """The settings of one process, read once by ``load`` and passed down."""

    # What is served, and where.
    lake: str | None = setting(None, None, "lake", "the lake: a folder or an object-store prefix", aliases=("dir",))
    lakes: str | None = setting(None, None, "lakes", "a folder of lakes: one database each", used=False)
    default: str | None = setting(None, None, "default", "the database that paths without /db/ mean", used=False)
    addr: str = setting("127.0.0.1:8080", None, "addr", "address of the HTTP door", "host:port")
    pg: str | None = setting(None, None, "pg", "address of the Postgres door", "host:port")
    kafka: str | None = setting(None, None, "kafka", "address of the Kafka door", "host:port", used=False)
    kafka_advertise: str | None = setting(
        None, None, "kafka-advertise", "address Kafka clients are told; the host of --addr without", "host:port",
        used=False)
    flight: str | None = setting(None, None, "flight", "address of the Arrow Flight door", "host:port", used=False)
    advertise: str | None = setting(
        None, None, "advertise", "address other nodes call; --addr without", "host:port", used=False)
    attach: tuple[str, ...] = setting((), None, "attach", "NAME=DIR of a lake to attach, repeatable", used=False)
    attach_found: str | None = setting(None, None, "attach-found", "attach the lakes found in a folder", used=False)
    reader: bool = setting(False, None, "reader", "a node that only reads", used=False)
    stop_with_stdin: bool = setting(False, None, "stop-with-stdin", "stop when standard input closes")
    drain_secs: float = setting(30.0, "LAKE_DRAIN_SECS", None, "time running requests get to finish", "s")
    drain_grace_secs: float = setting(
        0.0, "LAKE_DRAIN_GRACE_SECS", None, "time between a stop signal and refusing requests", "s")
    database_idle_secs: float = setting(
        600.0, "LAKE_DATABASE_IDLE_SECS", None, "a database nobody used for so long is stopped", "s", used=False)

    # Who may call.
    read_token: str | None = setting(
        None, "LAKE_READ_TOKEN", "read-token", "the token that may read", secret=True)
    write_token: str | None = setting(
        None, "LAKE_WRITE_TOKEN", "write-token", "the token that may read and write rows", secret=True)
    admin_token: str | None = setting(
        None, "LAKE_ADMIN_TOKEN", "admin-token", "the token that may do everything", secret=True)
    token: str | None = setting(None, "LAKE_TOKEN", "token", "the token this program presents", secret=True)
    owner_key: str = setting(
        lambda machine, above: secrets.token_hex(16), None, None,
        "lets the program that started the node read its files", written="LAKE_OWNER_KEY", secret=True)
    tls_cert: str | None = setting(
        None, "LAKE_TLS_CERT", "tls-cert", "certificate of every door, PEM", "path")
    tls_key: str | None = setting(None, "LAKE_TLS_KEY", "tls-key", "its key, PEM", "path")
    tls_ca: str | None = setting(
        None, "LAKE_TLS_CA", "tls-ca", "the authority that signs nodes' certificates, PEM", "path")
    tls: str = setting(
        "required", "LAKE_TLS", None, "whether callers of other machines may come without TLS",
        choices=("required", "optional"))
    session_hours: float = setting(12.0, "LAKE_SESSION_HOURS", None, "how long a login lasts", "h")
    session_idle_secs: float = setting(
        3600.0, "LAKE_SESSION_IDLE_SECS", None, "a session idle for so long ends", "s")
    txn_idle_secs: float = setting(
        600.0, "LAKE_TXN_IDLE_SECS", None, "a transaction idle for so long is rolled back", "s")
    user_queries: int = setting(
        0, "LAKE_USER_QUERIES", None, "statements a user may run at once; 0 is no limit")
    user_timeout: float = setting(
        0.0, "LAKE_USER_TIMEOUT", None, "time a user's statement may take; 0 is no limit", "s")
    secret_key: str | None = setting(
        None, "LAKE_SECRET_KEY", None, "master key of the lake's secrets", secret=True, used=False)
    secret_key_previous: str | None = setting(
        None, "LAKE_SECRET_KEY_PREVIOUS", None, "the master key before a rotation", secret=True, used=False)
    kms_command: str | None = setting(
        None, "LAKE_KMS_COMMAND", None, "command that wraps and unwraps data keys", used=False)
    audit: str = setting("role,ddl,function", "LAKE_AUDIT", None, "classes of statements the audit keeps")
    audit_days: int = setting(90, "LAKE_AUDIT_DAYS", None, "how long the audit is kept", "days")

    # Writing.
    ack: str = setting(
        "durable", None, "ack", "what acknowledges a write", choices=("durable", "replicated"), used=False)
    replicas: int = setting(
        2, None, "replicas", "nodes that hold a write before --ack replicated answers", written="LAKE_REPLICAS",
        used=False)
    fsync: bool = setting(
        False, None, "fsync", "followers sync what they hold to disk before they say so", written="LAKE_FSYNC",
        used=False)
    publish: str | None = setting(
        None, None, "publish", "formats every table is published in: delta, iceberg", written="LAKE_PUBLISH",
        used=False)
    flush_ms: float = setting(0.0, None, "flush-ms", "shortest time between two flushes", "ms", used=False)
    inline_kb: int = setting(_inline_kb, "LAKE_INLINE_KB", None, "writes smaller than this ride in the commit", "KiB")
    backlog: int = setting(10_000_000, None, "backlog", "rows that may wait for tiering before commits pause", "rows")
    tier_secs: float = setting(
        10.0, None, "tier-secs", "longest time between two tierings; 0 tiers on request only", "s")
    retain_secs: float = setting(60.0, None, "retain-secs", "how long replaced files are kept", "s")
    changelog_secs: float = setting(
        0.0, None, "changelog-secs", "how long tiered log segments are kept for replay", "s",
        written="LAKE_CHANGELOG_SECS")
    gc_secs: float = setting(60.0, "LAKE_GC_SECS", None, "time between two cleanings of the catalog's log", "s")
    purge_rows: int = setting(
        100_000, "LAKE_PURGE_ROWS", None, "deleted rows of a table that start a rewrite", "rows")
    codec: str = setting("lz4", "LAKE_CODEC", None, "compression of data files", choices=CODECS)
    bucket_requests: int = setting(
        256, "LAKE_BUCKET_REQUESTS", None, "requests to a bucket at once, at first", used=False)
    file_versions: int = setting(50, "LAKE_FILE_VERSIONS", None, "versions kept of a stored file")
    file_versions_days: int = setting(
        90, "LAKE_FILE_VERSIONS_DAYS", None, "how long versions of a stored file are kept", "days")
    job: str | None = setting(None, "LAKE_JOB", None, "job id of a write made with `sql`")

    # Memory, caches and cores.
    memory_gb: float = setting(
        lambda machine, above: machine.memory_bytes / 3 / GIB, "LAKE_MEMORY_GB", "memory-gb",
        "memory of queries; what does not fit spills; a third of the machine's", "GiB")
    cache_dir: str = setting(
        lambda machine, above: str(Path(machine.temp_dir, "lake-cache")), "LAKE_CACHE_DIR", "cache-dir",
        "folder of cached objects and spilled rows; lake-cache in the temporary folder", "path")
    cache_gb: float = setting(
        _quarter_of_free_disk, "LAKE_CACHE_GB", "cache-gb",
        "disk for cached objects; 20 or a quarter of what is free; 0 is none", "GiB", used=False)
    cache_mb: int = setting(1024, "LAKE_CACHE_MB", None, "memory for cached objects", "MiB", used=False)
    hot_gb: float = setting(
        lambda machine, above: above["memory_gb"] / 2, "LAKE_HOT_GB", None,
        "memory for decoded columns, given back where queries need it; half of --memory-gb", "GiB")
    files_cache_mb: int = setting(512, "LAKE_FILES_CACHE_MB", None, "cache of files outside the lake", "MiB",
                                  used=False)
    function_cache_mb: int = setting(256, "LAKE_FUNCTION_CACHE_MB", None, "cache of functions' answers", "MiB",
                                     used=False)
    temp_mb: int = setting(1024, "LAKE_TEMP_MB", None, "all temporary tables of a node", "MiB")
    pages_mb: int = setting(256, "LAKE_PAGES_MB", None, "kept pages of typed answers, all together", "MiB")
    cores: int = setting(lambda machine, above: machine.cores, "LAKE_CORES", None, "cores a node counts")

    # Planning and spreading.
    join_order: float = setting(
        2.0, "LAKE_JOIN_ORDER", None, "how many times cheaper another join order must look; 0 keeps the text's",
        used=False)
    sql_options: str | None = setting(
        None, "LAKE_SQL_OPTIONS", None, "engine settings, key=value with commas", used=False)
    spread_mb: int = setting(256, "LAKE_SPREAD_MB", None, "smaller tables are not spread", "MiB", used=False)
    broadcast_mb: int = setting(
        64, "LAKE_BROADCAST_MB", None, "smaller tables are read whole by every node", "MiB", used=False)
    skew_mb: int = setting(
        64, "LAKE_SKEW_MB", None, "bigger partitions, twice the average, are shared out", "MiB", used=False)
    spill_mb: int = setting(64, "LAKE_SPILL_MB", None, "shuffled rows held in memory", "MiB", used=False)
    link: str | None = setting(None, "LAKE_LINK", None, "`ms,MB/s` between nodes; measured without", used=False)
    learn: bool = setting(False, "LAKE_LEARN", None, "plan with what running queries taught", used=False)
    learn_ms: float = setting(
        100.0, "LAKE_LEARN_MS", None, "slower queries record their misestimates", "ms", used=False)

    # Tasks, procedures and Python.
    task_ms: float = setting(1000.0, None, "task-ms", "time between two looks at the tasks", "ms", used=False)
    python: str | None = setting(
        None, "LAKE_PYTHON", "python", "the Python of procedures: `auto` or a path; none without", used=False)
    python_probe_secs: float = setting(
        15.0, "LAKE_PYTHON_PROBE_SECS", None, "time a found Python has to answer", "s", used=False)
    bin: str | None = setting(None, "LAKE_BIN", None, "where clients find the program", "path", used=False)
    procedures: int = setting(
        lambda machine, above: 4 * above["cores"], "LAKE_PROCEDURES", None,
        "procedures that run at once; four times the cores", used=False)
    worker_mb: int = setting(
        2048, "LAKE_WORKER_MB", None, "a Python worker past this is restarted", "MiB", used=False)
    worker_idle_secs: float = setting(
        60.0, "LAKE_WORKER_IDLE_SECS", None, "an idle Python worker is stopped", "s", used=False)
    worker_start_secs: float = setting(
        60.0, "LAKE_WORKER_START_SECS", None, "time a Python worker has to start", "s", used=False)

    # Watching, sharing and the rest.
    history: bool = setting(True, "LAKE_HISTORY", None, "whether lake.history takes rows")
    history_days: int = setting(7, "LAKE_HISTORY_DAYS", None, "how long lake.history is kept", "days")
    history_rate: int = setting(500, "LAKE_HISTORY_RATE", None, "rows lake.history takes", "rows/s")
    runs_days: int = setting(30, "LAKE_RUNS_DAYS", None, "how long the run log is kept", "days", used=False)
    slow_ms: float = setting(
        1000.0, "LAKE_SLOW_MS", None, "slower statements keep their plan and log a line", "ms")
    trace_pg: bool = setting(
        False, "LAKE_TRACE_PG", None, "time of every Postgres statement on standard error", used=False)
    config_dir: str = setting(
        lambda machine, above: machine.config_dir, "LAKE_CONFIG_DIR", None,
        "folder of the user's own settings and shell history", "path")
    console_extensions: tuple[str, ...] = setting(
        (), "LAKE_CONSOLE_EXTENSIONS", None, "scripts the console loads, separated as in PATH", used=False)
    ai_url: str = setting(
        "http://127.0.0.1:11434/v1", "LAKE_AI_URL", None, "endpoint of the AI functions")
    ai_key: str | None = setting(None, "LAKE_AI_KEY", None, "bearer key to it", secret=True)
    ai_model: str = setting("llama3.2", "LAKE_AI_MODEL", None, "model that completes")
    embed_model: str = setting("nomic-embed-text", "LAKE_EMBED_MODEL", None, "model that embeds")
    ai_calls: int = setting(16, "LAKE_AI_CALLS", None, "requests to it in flight")
    ai_timeout_secs: float = setting(300.0, "LAKE_AI_TIMEOUT_SECS", None, "time of one such request", "s")
    share_url_secs: float = setting(
        900.0, "LAKE_SHARE_URL_SECS", None, "how long a shared link lasts", "s", used=False)


    def __repr__(self) -> str:
        shown = (f"{row.name}={getattr(self, row.name)!r}" for row in SETTINGS if not row.secret)
        return f"Config({', '.join(shown)})"


WRITTEN_ONLY: Final = ("LAKE_TRIES", "LAKE_SERVER_URL")  # set for started processes, and no setting of theirs


def _rows_of(cls: type[Config]) -> tuple[Setting, ...]:
    rows = zip(cls.__struct_fields__, cls.__struct_defaults__, strict=True)
    return tuple(replace(row, name=name, kind=_kind(cls.__annotations__[name])) for name, row in rows)


def _kind(hint: str) -> type:
    """The one type of ``str | None``, ``tuple[str, ...]`` and the like."""
    return {"int": int, "float": float, "bool": bool}.get(hint, tuple if hint.startswith("tuple") else str)


SETTINGS: Final = _rows_of(Config)
_BY_OPTION: Final = {
    name: row
    for row in SETTINGS
    for name in (row.name, *((row.flag,) if row.flag else ()), *row.aliases)
}


def load(environ: Mapping[str, str] | None = None, options: Options | None = None) -> Config:
    """The settings that variables and flags make together; flags win.

    environ  variables; the process's own where None
    options  value by flag (``tier-secs``) or by field (``tier_secs``); None is a flag that was not given
    22023    an option nobody knows, or one whose value cannot be read
    """
    environ = os.environ if environ is None else environ
    given = _read_options(options or {})
    machine = Machine.here(environ)
    values: dict[str, Any] = {}
    for row in SETTINGS:
        value = given.get(row.name)
        if value is None and row.env and environ.get(row.env):
            value = row.read(environ[row.env])
        values[row.name] = row.default_on(machine, values) if value is None else value
    return Config(**values)


def spare_threads() -> None:
    """Has numpy start no threads when it is imported, unless the user says otherwise: the engine has its own."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def flags(names: Iterable[str] | None = None) -> list[Setting]:
    """The settings that have a flag, in order of declaration; only ``names`` of fields where given."""
    wanted = None if names is None else set(names)
    return [row for row in SETTINGS if row.flag and (wanted is None or row.name in wanted)]


def _read_options(options: Options) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in options.items():
        row = _BY_OPTION.get(name) or _BY_OPTION.get(name.replace("_", "-"))
        if row is None:
            raise InvalidParameter(f'unknown setting "{name}"', hint=f"known: {', '.join(sorted(_BY_OPTION))}")
        if text is None or text in ("", ()):
            continue
        value = row.read(text)
        if value is None:
            raise InvalidParameter(f"--{row.flag or row.name} does not take {text!r}", hint=_takes(row))
        values[row.name] = value
    return values


def _takes(row: Setting) -> str:
    if row.choices:
        return f"one of: {', '.join(row.choices)}"
    return {int: "a whole number, 0 or more", float: "a number, 0 or more", bool: "on or off"}.get(row.kind, "a text")


def _read_number(text: str, kind: type) -> int | float | None:
    """A number that counts or measures something, so 0 or more and finite; None for any other text."""
    try:
        number: int | float = kind(text)
    except ValueError:
        return None
    return number if number >= 0 and math.isfinite(number) else None


def _memory_bytes() -> int:
    """Memory of the machine, or of the container where that is less."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        path = Path(limit)
        text = path.read_text().strip() if path.exists() else ""
        if text.isdigit():
            installed = min(installed, int(text))
    return installed


def _user_config_dir(environ: Mapping[str, str]) -> str:
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "win32":
        return str(Path(environ.get("APPDATA") or home, "lake"))
    if sys.platform == "darwin":
        return str(home / "Library" / "Application Support" / "lake")
    return str(Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "lake"))
