"""The interactive shell: history, completion, statements over several lines, a progress line, tables.

    demo> SELECT count(*)
      ...   FROM flights;

A statement ends with ``;``. Lines that begin with a dot are the shell's own: .tables .help .timing .quit and the like.
Input that is not a terminal is run as a script: errors go to standard error, and the next statement runs.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from lake.connection import Answer, Connection
from lake.errors import LakeError
from lake.late import late_pattern
from lake.sql import parser

HISTORY_FILE: Final = "history"
PROGRESS_AFTER_SECS: Final = 0.5
ROWS_SHOWN_MAX: Final = 1_000
SYSTEM_SCHEMAS: Final = "('information_schema', 'lake', 'pg_catalog')"
COLUMNS_OF_TABLES: Final = (
    "SELECT table_name, column_name FROM information_schema.columns "
    f"WHERE table_schema NOT IN {SYSTEM_SCHEMAS} ORDER BY table_name, ordinal_position"
)
HELP: Final = """\
.help              this text
.tables            tables and views
.schema [TABLE]    columns of one or all tables
.read FILE         run the statements of a file
.timing on|off     print the time of each statement
.format NAME       table, json, ndjson, csv, tsv
.quit, .exit, \\q   leave
Statements end with a semicolon. Control-C gives up a line, control-D leaves."""


class Shell:
    """A connection, and how its answers are shown."""

    def __init__(self, db: Connection, name: str) -> None:
        self.db = db
        self.name = name
        self.timing = True
        self.format = "table"
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self.failed = False

    def run_statements(self, text: str) -> None:
        """Runs the statements of ``text`` one after another and prints each answer; an error ends them."""
        for own in split_statements(text):
            if not self.run_statement(own):
                return

    def run_statement(self, text: str) -> bool:
        """Runs a statement and prints its answer, or the error; whether it went well."""
        started = time.monotonic()
        try:
            with _progress(self.is_terminal):
                answer = self.db.sql(text)
        except LakeError as error:
            self.failed = True
            print(explain_error(error, text), file=sys.stderr)
            return False
        except KeyboardInterrupt:
            self.failed = True
            print("given up", file=sys.stderr)
            return False
        self._show(answer)
        if self.timing and self.is_terminal:
            print(f"{(time.monotonic() - started) * 1_000:.1f} ms")
        return True

    def run_dot(self, line: str) -> bool:
        """Runs a line of the shell's own; False when it says to leave."""
        word, _, rest = line.strip().partition(" ")
        command = COMMANDS.get(word)
        if word in (".quit", ".exit", "\\q"):
            return False
        if command is None:
            print(f"no command {word}; .help lists them", file=sys.stderr)
        else:
            command(self, rest.strip())
        return True

    def _show(self, answer: Answer) -> None:
        for notice in answer.notices:
            print(notice)
        if answer.outcome is not None:
            print(answer)
        elif self.format == "table":
            print(_head(answer))
        else:
            from lake.doors.http import encode

            for piece in encode.STREAMS[self.format](answer.result()):
                print(piece.decode(), end="")
            if self.format == "json":
                print()


def run_shell(db: Connection, where: str) -> int:
    """Reads statements and runs them until the input ends; 1 if a script's statement failed."""
    shell = Shell(db, Path(where).name or where)
    if not shell.is_terminal:
        _run_script(shell, sys.stdin)
        return 1 if shell.failed else 0
    print(f"lake {where}    .help lists commands, control-D leaves")
    names = Names(db)
    session = _prompt_session(names)
    while True:
        names.forget()
        try:
            text = session.prompt(f"{shell.name}> ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        if text.startswith((".", "\\q")):
            if not shell.run_dot(text):
                return 0
        elif text:
            shell.run_statements(text)


def _run_script(shell: Shell, lines: Iterable[str]) -> None:
    """Runs the statements and dot lines of a script; an error does not end it."""
    waiting = ""
    for line in lines:
        if not waiting.strip() and line.lstrip().startswith((".", "\\q")):
            if not shell.run_dot(line):
                return
            continue
        waiting += line
        if is_complete(waiting):
            shell.run_statements(waiting)
            waiting = ""
    if waiting.strip():
        shell.run_statements(waiting)


def split_statements(text: str) -> list[str]:
    """The text of each statement; one that does not parse is left whole, for its error to be told."""
    try:
        spans = [stmt.span for stmt in parser.parse(text)]
    except LakeError:
        return [text]
    return [text[span.start : span.end] for span in spans if span is not None] if all(spans) else [text]


def explain_error(error: LakeError, text: str) -> str:
    """An error as a person reads it: what, where in the statement, and what to do.

    error: column "nme" does not exist (42703)
    LINE 1: SELECT nme FROM people
                   ^
    hint: did you mean "name"?
    """
    lines = [f"error: {error.message} ({error.sqlstate})"]
    if error.detail:
        lines.append(error.detail)
    elif error.position is not None and 0 < error.position <= len(text):
        before = text[: error.position - 1]
        number = before.count("\n") + 1
        start = before.rfind("\n") + 1
        head = f"LINE {number}: "
        lines.append(head + text[start:].split("\n", 1)[0])
        lines.append(" " * (len(head) + len(before) - start) + "^")
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return "\n".join(lines)


def is_complete(text: str) -> bool:
    """Whether ``text`` is whole statements: it ends with a semicolon that is not inside a text, a name or a comment."""
    bare = _QUOTED.sub(" ", text)
    return bare.rstrip().endswith(";") and not any(mark in bare for mark in ("'", '"', "/*", "$$"))


def _head(answer: Answer) -> str:
    """An answer's table; of a long one the first rows, saying so."""
    rows = answer.table.num_rows
    if rows <= ROWS_SHOWN_MAX:
        return str(answer)
    first = Answer(answer.columns, answer.types, answer.tag, answer.table.slice(0, ROWS_SHOWN_MAX))
    return f"{first}\nthe first {ROWS_SHOWN_MAX} of {rows} rows; .format csv prints all"


@contextlib.contextmanager
def _progress(is_terminal: bool) -> Iterator[None]:
    """A line that says how long a statement has been running, once that is long enough to wonder."""
    if not is_terminal:
        yield
        return
    ended = threading.Event()

    def tick() -> None:
        started = time.monotonic()
        if ended.wait(PROGRESS_AFTER_SECS):
            return
        while not ended.wait(0.1):
            print(f"\rrunning {time.monotonic() - started:.1f} s, control-C gives up ", end="", file=sys.stderr, flush=True)
        print("\r" + " " * 48 + "\r", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# --- the terminal ----------------------------------------------------------------------------------------------------


def _prompt_session(names: Names) -> Any:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import PostgresLexer

    from lake.config import load

    folder = Path(load().config_dir)
    folder.mkdir(parents=True, exist_ok=True)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(folder / HISTORY_FILE)),
        auto_suggest=AutoSuggestFromHistory(),
        completer=_completer(names),
        complete_while_typing=False,
        lexer=PygmentsLexer(PostgresLexer),
        multiline=Condition(lambda: not _may_run(session.default_buffer.text)),
        prompt_continuation=lambda width, line, wrapped: "... ".rjust(width),
    )
    return session


def _may_run(text: str) -> bool:
    """Whether Enter runs what was typed: a dot line, nothing, or whole statements."""
    stripped = text.strip()
    return not stripped or stripped.startswith((".", "\\q")) or is_complete(text)


def _completer(names: Names) -> Any:
    """Completes the word before the cursor: dot commands, or names and keywords."""
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    class Words(Completer):
        """Candidates for the word before the cursor."""

        def get_completions(self, document: Document, complete_event: object) -> Iterator[Completion]:
            line = document.text_before_cursor.lstrip()
            if line.startswith("."):
                yield from (Completion(name, -len(line)) for name in COMMANDS if name.startswith(line))
                return
            found = _WORD.search(document.text_before_cursor)
            word = found.group() if found else ""
            yield from (Completion(candidate, -len(word)) for candidate in names.candidates(word))

    return Words()


class Names:
    """What the lake has names for, asked once for each prompt and only if something is completed."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._functions: tuple[str, ...] | None = None
        self._tables: dict[str, list[str]] | None = None

    def forget(self) -> None:
        """The next completion asks again what tables there are."""
        self._tables = None

    def candidates(self, word: str) -> list[str]:
        """Names and keywords that begin with ``word``, in its case: tables and columns first; after a dot, columns."""
        if not word:
            return []
        tables = self._load()
        prefix, dot, part = word.rpartition(".")
        if dot:
            # What stands before the dot may be an alias: then any column may be meant.
            columns = tables.get(prefix) or sorted({name for each in tables.values() for name in each})
            return [f"{prefix}.{name}" for name in columns if name.lower().startswith(part.lower())]
        lowered = word.lower()
        names = {*tables, *(name for columns in tables.values() for name in columns)}
        found = sorted(name for name in names if name.lower().startswith(lowered))
        found += sorted(name for name in self._functions or () if name.startswith(lowered) and name not in names)
        keywords = (key.lower() if word.islower() else key for key in sorted(parser.keywords()))
        return found + [key for key in keywords if key.lower().startswith(lowered) and key.lower() not in found]

    def _load(self) -> dict[str, list[str]]:
        """Columns by table; nothing where the lake does not answer."""
        if self._tables is None:
            self._tables = {}
            with contextlib.suppress(LakeError):
                for table, column in self._db.sql(COLUMNS_OF_TABLES).rows():
                    self._tables.setdefault(table, []).append(column)
                if self._functions is None:
                    self._functions = tuple(row[0] for row in self._db.sql("SELECT DISTINCT name FROM lake.functions").rows())
        return self._tables


def _tables(shell: Shell, rest: str) -> None:
    shell.run_statement("SELECT schema, name, kind, rows FROM lake.tables ORDER BY schema, name")


def _schema(shell: Shell, rest: str) -> None:
    condition = " AND table_name = '" + rest.replace("'", "''") + "'" if rest else ""
    shell.run_statement(
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
        f"WHERE table_schema NOT IN {SYSTEM_SCHEMAS}{condition} ORDER BY table_name, ordinal_position"
    )


def _read(shell: Shell, rest: str) -> None:
    try:
        text = Path(rest).read_text(encoding="utf-8")
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return
    _run_script(shell, text.splitlines(keepends=True))


def _timing(shell: Shell, rest: str) -> None:
    shell.timing = rest != "off" if rest else not shell.timing
    print(f"timing {'on' if shell.timing else 'off'}")


def _format(shell: Shell, rest: str) -> None:
    if rest not in ("table", "json", "ndjson", "csv", "tsv"):
        print("formats: table, json, ndjson, csv, tsv", file=sys.stderr)
    else:
        shell.format = rest


def _help(shell: Shell, rest: str) -> None:
    print(HELP)


COMMANDS: Final[dict[str, Callable[[Shell, str], None]]] = {
    ".help": _help,
    ".tables": _tables,
    ".schema": _schema,
    ".read": _read,
    ".timing": _timing,
    ".format": _format,
}
_WORD: Final = late_pattern(r"[\w.]+$")
_QUOTED: Final = late_pattern(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
