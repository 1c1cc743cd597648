"""The program: ``lake serve``, ``lake sql``, and the shell.

    lake serve ./demo                      serve a folder, made if it is not there
    lake sql ./demo "SELECT 1"             one statement or script; -f FILE, or standard input, has it else
    lake sql --url http://HOST:PORT "..."  the same on a node
    lake docs DIR                          the function reference as Markdown, the HTTP door as OpenAPI
    lake [LAKE]                            the shell

Exit status: 0 done, 1 a statement failed (its error is on standard error), 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lake import __version__
from lake.errors import LakeError

if TYPE_CHECKING:
    from lake.connection import Answer, Connection

COMMANDS: Final = ("serve", "sql", "docs", "shell")
FORMATS: Final = ("table", "json", "ndjson", "csv", "tsv", "arrow", "parquet")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program and answers its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or (arguments[0] not in COMMANDS and arguments[0] not in ("-h", "--help", "--version")):
        arguments.insert(0, "shell")
    parser = _parser()
    # Words may stand before and after the options, which argparse takes as left over.
    options, more = parser.parse_known_args(arguments)
    wrong = [word for word in more if word.startswith("-") and word != "-"]
    if wrong or (more and not hasattr(options, "words")):
        parser.error(f"unrecognized arguments: {' '.join(wrong or more)}")
    if more:
        options.words += more
    try:
        return int(options.run(options))
    except LakeError as error:
        print(f"error: {error} ({error.sqlstate})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _parser() -> argparse.ArgumentParser:
    from lake.config import flags

    parser = argparse.ArgumentParser("lake", description="A database made of a folder.")
    parser.add_argument("--version", action="version", version=f"lake {__version__}")
    commands = parser.add_subparsers(required=True, metavar="serve | sql | docs | shell")

    serve = commands.add_parser("serve", help="serve a lake over HTTP", description="Serves a lake until it is stopped.")
    serve.add_argument("path", nargs="?", metavar="LAKE", help="a folder, made if it is not there")
    for row in flags():
        if row.name not in ("url", "job"):
            help_text = row.doc if row.used else f"{row.doc} (not used yet)"
            names = [f"--{row.flag}", *(f"--{alias}" for alias in row.aliases)]
            if row.kind is bool:
                serve.add_argument(*names, dest=row.name, action="store_const", const="on", help=help_text)
            else:
                serve.add_argument(*names, dest=row.name, metavar=row.unit or row.name.upper(), help=help_text)
    serve.set_defaults(run=_serve)

    sql = commands.add_parser("sql", help="run SQL", description="Runs statements; a query prints its rows.")
    sql.add_argument("words", nargs="*", metavar="LAKE SQL", help="the lake (not with --url) and the statements")
    sql.add_argument("-f", "--file", help="read the statements from a file; - is standard input")
    _add_where(sql)
    sql.add_argument("--format", choices=FORMATS, default="table", help="how a query's rows are written")
    sql.set_defaults(run=_sql)

    docs = commands.add_parser("docs", help="write the function reference", description="Writes a page for each group.")
    docs.add_argument("path", metavar="DIR", type=Path, help="a folder, made if it is not there")
    docs.set_defaults(run=_docs)

    shell = commands.add_parser("shell", help="the interactive shell (the default)")
    shell.add_argument("path", nargs="?", metavar="LAKE", default=None)
    _add_where(shell)
    shell.set_defaults(run=_shell)
    return parser


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="address of a node, in place of a lake")
    parser.add_argument("--dir", help="the lake, in place of the first word")
    parser.add_argument("--token", help="token for the node; LAKE_TOKEN where it is not given")


def _serve(options: argparse.Namespace) -> int:
    from lake.config import SETTINGS, load
    from lake.doors.http.front import Runner
    from lake.doors.postgres.server import PostgresDoor
    from lake.net.lifecycle import run, serve

    given = {row.name: getattr(options, row.name, None) for row in SETTINGS if row.flag}
    if options.path is not None:
        given["lake"] = options.path
    if not given.get("lake"):
        print("lake serve needs a folder: lake serve ./demo", file=sys.stderr)
        return 2
    run(serve(load(options=given), Runner, lambda text: print(text, flush=True), PostgresDoor))
    return 0


def _sql(options: argparse.Namespace) -> int:
    from lake.config import load

    words = list(options.words)
    where = options.url or options.dir
    if where is None:
        if not words:
            print('lake sql needs a lake: lake sql ./demo "SELECT 1"', file=sys.stderr)
            return 2
        where = words.pop(0)
    if options.file is not None:
        try:
            text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            print(f"lake sql cannot read {options.file}: {error}", file=sys.stderr)
            return 2
    elif words:
        text = " ".join(words)
    elif not sys.stdin.isatty():
        text = sys.stdin.read()
    else:
        print("lake sql needs statements, or -f FILE", file=sys.stderr)
        return 2
    with _connect(where, is_url=options.url is not None, token=options.token) as db:
        try:
            answer = db.sql(text, job=load().job)
        except LakeError as error:
            from lake.shell import explain_error

            print(explain_error(error, text), file=sys.stderr)
            return 1
        _write(answer, options.format)
    return 0


def _docs(options: argparse.Namespace) -> int:
    import lake.db  # noqa: F401  (every function is registered)
    from lake.docs import write_reference

    try:
        written = write_reference(options.path)
    except OSError as error:
        print(f"lake docs cannot write {options.path}: {error}", file=sys.stderr)
        return 2
    print(f"{len(written)} pages in {options.path}")
    return 0


def _shell(options: argparse.Namespace) -> int:
    from lake.shell import run_shell

    where = options.url or options.dir or options.path or "./lake"
    with _connect(where, is_url=options.url is not None, token=options.token) as db:
        return run_shell(db, where)


def _connect(where: str, *, is_url: bool, token: str | None) -> Connection:
    from lake.config import load

    if is_url:
        from lake.client import HttpConnection

        config = load()
        return HttpConnection(where, token=token or config.token or config.admin_token, ca=config.tls_ca)
    from lake.embedded import open_lake

    return open_lake(where, {"token": token} if token else {})


def _write(answer: Answer, format: str) -> None:
    """Prints an answer: rows in the format asked for, an outcome as JSON."""
    from lake.doors.http import encode

    for notice in answer.notices:
        print(notice, file=sys.stderr)
    if answer.outcome is not None or format == "table":
        print(answer)
        return
    for piece in encode.STREAMS[format](answer.result()):
        sys.stdout.buffer.write(piece)
    if format == "json":
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


