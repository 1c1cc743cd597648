"""One sqllogictest file: its directives, loops and records, run in order on a lake."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.engines import Failure
from tests.sqllogic.answers import Lake
from tests.sqllogic.compare import COMPARE, same_message
from tests.sqllogic.records import Record, parse

# What DuckDB's files may require of it that the lake has, or that changes nothing here.
REQUIREMENTS: Final = frozenset({
    "skip_reload", "vector_size", "noforcestorage", "no_alternative_verify", "no_vector_verification", "notwindows",
    "no_latest_storage", "64bit", "core_functions", "json", "parquet", "icu", "longdouble", "strinline",
})
# Directives of DuckDB's files that need what is DuckDB's own: its database files, threads, the environment.
UNRUNNABLE: Final = frozenset({
    "concurrentloop", "concurrentforeach", "load", "restart", "reconnect", "unzip", "require-env", "test-env", "template",
    "include", "set",
})
INTEGRAL: Final = "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint"
GROUPS: Final = {
    "<integral>": INTEGRAL,
    "<signed>": "tinyint smallint integer bigint hugeint",
    "<unsigned>": "utinyint usmallint uinteger ubigint uhugeint",
    "<numeric>": f"{INTEGRAL} float double",
    "<alltypes>": f"{INTEGRAL} float double bool interval varchar",
}
LABELS: Final = frozenset({"lake", "datafusion", "Datafusion", "DataFusion"})  # whose records a guard means
SHOWN: Final = 600  # characters of a statement and of what was wrong
_EXPLAIN: Final = re.compile(r"(\s*--[^\n]*\n)*\s*explain\b", re.IGNORECASE)
_CONDITION: Final = re.compile(r"(\w+)\s*(=|<>|>=|<=|>|<)\s*(.+)")
_RELATIVE: Final = re.compile(r"'((?:\.\./)+)")


class Skipped(Exception):
    """A file, or the rest of it, that cannot be run here."""


@dataclass(frozen=True, slots=True)
class Options:
    """How files are run."""

    dialect: str
    over_http: bool = False
    excluded: Mapping[str, frozenset[int]] = field(default_factory=dict)
    root: Path | None = None
    skip_explain: bool = False
    messages: bool = False
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class Wrong:
    """A record that failed."""

    line: int
    sql: str
    why: str


@dataclass
class Counted:
    """What a file counted; ``why`` tells why the rest of it did not run."""

    passed: int = 0
    skipped: int = 0
    failures: list[Wrong] = field(default_factory=list)
    why: str = ""

    def fail(self, line: int, sql: str, why: str) -> None:
        """Counts a failure."""
        self.failures.append(Wrong(line, sql[:SHOWN], why[:SHOWN]))


class _Halt(Exception):
    """The file says that it ends here."""


class FileRun:
    """The records of a file, and the state that its directives change."""

    def __init__(self, path: Path, options: Options, counted: Counted) -> None:
        self.options, self.counted = options, counted
        self.path = path
        self.records = list(_included(path, options.dialect))
        self.variables: dict[str, str] = {}
        self.seen: dict[str, str] = {}
        self.skipping = False
        self.substitutes = options.dialect == "duckdb"
        self.excluded = next((v for k, v in options.excluded.items() if str(path).endswith(f"/{k}")), frozenset())
        self.root = options.root or next((each.parent for each in path.parents if each.name == "test_files"), None)
        self.scratch = Path()
        if options.dialect == "duckdb":
            self._require()

    def _require(self) -> None:
        """Skipped, where the file needs what is DuckDB's own."""
        for record in self.records:
            if record.kind != "directive":
                continue
            name = record.words[0]
            missing = name == "require" and record.words[1] not in REQUIREMENTS
            if missing or name in UNRUNNABLE:
                self.counted.skipped = sum(each.kind != "directive" for each in self.records)
                raise Skipped(" ".join(record.words[:2]))

    def run(self, lake: Lake) -> None:
        """Runs everything; counts into ``counted``."""
        self.scratch = Path(tempfile.mkdtemp(prefix="lake-slt-"))
        written = self.root / "test_files" / "scratch" / self.path.stem if self.options.dialect == "df" and self.root else None
        if written:
            shutil.rmtree(written, ignore_errors=True)
            written.mkdir(parents=True)
        try:
            if self.options.dialect == "df" and "spark" in self.path.parts:
                lake.run("SET datafusion.sql_parser.dialect = 'spark'")
            self._steps(lake, self.records)
        except _Halt:
            pass
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _steps(self, lake: Lake, records: Sequence[Record]) -> None:
        at = 0
        while at < len(records):
            record = records[at]
            at += 1
            if record.kind != "directive":
                self._record(lake, record)
            elif record.words[0] in ("loop", "foreach"):
                end = _loop_end(records, at)
                if not self.skipping and self._wanted(record):
                    self._loop(lake, record, records[at:end])
                at = end + 1
            else:
                self._directive(record)

    def _loop(self, lake: Lake, head: Record, body: Sequence[Record]) -> None:
        name = head.words[1]
        outer = self.variables.get(name)
        for value in self._loop_values(head):
            self.variables[name] = value
            self._steps(lake, body)
        self.variables.pop(name, None)
        if outer is not None:
            self.variables[name] = outer

    def _loop_values(self, head: Record) -> list[str]:
        words = [self._substituted(word) for word in head.words[2:]]
        if head.words[0] == "loop":
            return [str(number) for number in range(int(words[0]), int(words[1]))]
        values: list[str] = []
        for word in words:
            if word.startswith("!"):
                values = [value for value in values if value != word[1:]]
            else:
                values += GROUPS[word].split() if word in GROUPS else [word]
        return values

    def _directive(self, record: Record) -> None:
        match record.words:
            case ("halt", *_) if self._wanted(record):
                raise _Halt
            case ("mode", "skip", *_):
                self.skipping = True
            case ("mode", "unskip", *_):
                self.skipping = False
            case ("control", "substitution", state):
                self.substitutes = state == "on"

    def _wanted(self, record: Record) -> bool:
        """Whether the guards let the record run here."""
        return all(self._holds(condition) is (word == "onlyif") for word, condition in record.guards)

    def _holds(self, condition: str) -> bool:
        found = _CONDITION.fullmatch(condition)
        if not found or found[1] not in self.variables:
            return condition in LABELS
        left, right = self.variables[found[1]], found[3].strip()
        equal = left == right
        try:
            order = (float(left) > float(right)) - (float(left) < float(right))
        except ValueError:
            order = (left > right) - (left < right)
        return {"=": equal, "<>": not equal, ">": order > 0, "<": order < 0, ">=": order >= 0, "<=": order <= 0}[found[2]]

    def _substituted(self, text: str) -> str:
        if self.options.dialect == "duckdb":
            for name, value in self.variables.items():
                text = text.replace(f"${{{name}}}", value).replace(f"{{{name}}}", value)
            for name in ("__TEST_DIR__", "{TEST_DIR}", "{TEMP_DIR}"):
                text = text.replace(name, str(self.scratch))
        elif self.options.dialect == "df":
            if self.substitutes:
                text = text.replace("$__TEST_DIR__", str(self.scratch)).replace("${__TEST_DIR__}", str(self.scratch))
            if self.root:
                base = self.root
                text = _RELATIVE.sub(lambda found: f"'{(base / found[1]).resolve()}/", text)
                text = text.replace("'test_files/", f"'{base}/test_files/")
        return text

    def _record(self, lake: Lake, record: Record) -> None:
        explains = self.options.skip_explain and _EXPLAIN.match(record.sql)
        if self.skipping or explains or not self._wanted(record):
            self.counted.skipped += 1
            return
        expected = None if record.expected is None else tuple(map(self._substituted, record.expected))
        record = replace(record, sql=self._substituted(record.sql), expected=expected)
        wrong = self._wrong(lake, record)
        if record.line in self.excluded:
            self.counted.skipped += 1
        elif wrong:
            self.counted.fail(record.line, record.sql, wrong)
        else:
            self.counted.passed += 1

    def _wrong(self, lake: Lake, record: Record) -> str:
        """What is wrong with the record's answer, "" where nothing is."""
        try:
            with _limited(self.options.timeout):
                answer = lake.run(record.sql, record.connection)
        except Failure as failure:
            return self._refused(record, failure)
        except TimeoutError:
            return f"no answer in {self.options.timeout:g} s"
        match record.kind:
            case "query":
                return COMPARE[self.options.dialect](record, answer, self.seen)
            case "error":
                return "no error" + (f"; expected: {record.message}" if record.message else "")
            case "count":
                count = len(answer.rows or ()) if answer.count is None else answer.count
                return "" if [str(count)] == list(record.expected or ()) else f"{count} rows written"
        return ""

    def _refused(self, record: Record, failure: Failure) -> str:
        if record.kind == "maybe":
            return ""
        if record.kind != "error":
            return f"error {failure.sqlstate}: {failure.message}"
        if self.options.messages and record.message and not same_message(record.message, failure.message, self.options.dialect):
            return f"another error: {failure.message}\nexpected: {record.message}"
        return ""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """TimeoutError in the main thread after some seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _loop_end(records: Sequence[Record], start: int) -> int:
    """Where the ``endloop`` of a loop stands whose body starts at ``start``."""
    depth = 1
    for at in range(start, len(records)):
        name = records[at].words[0] if records[at].kind == "directive" else ""
        depth += (name in ("loop", "foreach")) - (name == "endloop")
        if not depth:
            return at
    raise Skipped("a loop without an end")


def _included(path: Path, dialect: str) -> Iterator[Record]:
    """The records of a file, with those of files that DataFusion's ``include`` names in their place."""
    for record in parse(path.read_text(encoding="utf-8", errors="replace"), dialect):
        if dialect == "df" and record.words[:1] == ("include",):
            for name in sorted(path.parent.glob(record.words[1])):
                yield from _included(name, dialect)
        else:
            yield record
