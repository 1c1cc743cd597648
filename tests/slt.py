"""Golden SQL: reads, runs and rewrites `.slt` files.

    statement ok                     query IT rowsort               statement error 23505
    CREATE TABLE t (a INT)           SELECT a, b FROM t             INSERT INTO t VALUES (1)
                                     ----                           ----
    statement count 2                1 one                          duplicate key value
    INSERT INTO t VALUES (1), (2)    2 (empty)

Records are parted by empty lines. After ``query``: a letter for each column (T text, I integer, R decimal or float,
B boolean, D date or time, P timestamp, ? any), a sort of the answer (``nosort``, ``rowsort``, ``valuesort``) and a
label: queries of one label answer alike. After ``statement error``: its SQLSTATE; under ``----`` words of its message.
Directives: ``restart`` closes and opens the lake; ``include PATH``; ``halt``; and ``onlyif ENGINE reason`` and
``skipif ENGINE reason`` over a record, whose reason must be there. A file that other engines must answer alike says so
in its head: ``# engines: postgres duckdb``. There, a ``statement error`` must fail, with whatever code, and numbers of
expected answers may have more or fewer digits.

    python -m tests update PATH ..     rewrites the expected answers with what the lake answers
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.engines import Answer, Engine, Failure, LakeEngine, row_text, value_text

SLT: Final = Path(__file__).resolve().parent / "slt"
SORTS: Final = ("nosort", "rowsort", "valuesort")
SEPARATOR: Final = "----"
RELATIVE_TOLERANCE: Final = 1e-9  # of numbers of another engine: NUMERIC against DOUBLE
QUOTIENT_SCALE_MIN: Final = 4  # digits after the point that a quotient of decimals keeps at least

_HEAD: Final = re.compile(r"(statement|query|include|restart|halt|onlyif|skipif)\b\s*(.*)")
_ENGINES: Final = re.compile(r"#\s*engines:\s*(.*)")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?Infinity|NaN", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file.

    kind      ``ok``, ``error``, ``count``, ``query``, ``restart``, ``halt`` or ``include``
    argument  SQLSTATE, count, letters or path
    expected  lines under ``----``, or None where there is no ``----``
    guards    (``onlyif`` or ``skipif``, engine) over the record
    line      of the record's head, from 1
    end       of the record's last line of SQL; ``tail`` of its last line
    """

    kind: str
    argument: str
    line: int
    sql: str = ""
    sort: str = "nosort"
    label: str = ""
    expected: tuple[str, ...] | None = None
    guards: tuple[tuple[str, str], ...] = ()
    end: int = 0
    tail: int = 0

    def runs_on(self, engine: str) -> bool:
        """Whether the guards let ``engine`` run the record."""
        return all((name == engine) is (word == "onlyif") for word, name in self.guards)


class Mismatch(AssertionError):
    """A record that an engine answers otherwise than the file says."""


def parse(text: str, name: str = "slt") -> list[Record]:
    """The records of a file's text, in order."""
    lines = text.splitlines()
    records: list[Record] = []
    guards: list[tuple[str, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if not line or line.startswith("#"):
            at += 1
            continue
        head = _HEAD.fullmatch(line)
        if not head:
            raise SyntaxError(f"{name}:{at + 1}: {line!r} starts no record")
        word, rest = head[1], head[2].strip()
        if word in ("onlyif", "skipif"):
            engine, _, reason = rest.partition(" ")
            if not reason.strip():
                raise SyntaxError(f"{name}:{at + 1}: {word} {engine} gives no reason")
            guards.append((word, engine))
            at += 1
            continue
        record = replace(_start(word, rest, at + 1, name), guards=tuple(guards))
        record = _with_body(record, lines) if word in ("statement", "query") else replace(record, tail=at + 1)
        records.append(record)
        guards, at = [], record.tail
    return records


def _start(word: str, rest: str, line: int, name: str) -> Record:
    words = rest.split()
    match word, words:
        case "statement", ["ok"]:
            return Record("ok", "", line)
        case "statement", ["error" | "count" as kind, argument]:
            return Record(kind, argument, line)
        case "query", [letters, *more] if re.fullmatch(r"[TIRBDP?]+", letters):
            sort = more.pop(0) if more and more[0] in SORTS else "nosort"
            if len(more) <= 1:
                return Record("query", letters, line, sort=sort, label="".join(more))
        case ("restart" | "halt"), []:
            return Record(word, "", line)
        case "include", [path]:
            return Record("include", path, line)
    raise SyntaxError(f"{name}:{line}: cannot read {word} {rest}")


def _with_body(record: Record, lines: Sequence[str]) -> Record:
    """The record with its SQL, from the line under its head to an empty line, and what stands under ``----``."""
    at = record.line
    sql: list[str] = []
    while at < len(lines) and lines[at].strip() and lines[at].strip() != SEPARATOR:
        sql.append(lines[at])
        at += 1
    end, expected = at, None
    if at < len(lines) and lines[at].strip() == SEPARATOR:
        start = at = at + 1
        while at < len(lines) and lines[at].strip():
            at += 1
        expected = tuple(line.rstrip() for line in lines[start:at])
    return replace(record, sql="\n".join(sql), expected=expected, end=end, tail=at)


def engines_of(path: Path) -> set[str]:
    """The engines that must answer as the file says: the lake, and those of its ``# engines:`` line."""
    found = _ENGINES.search(path.read_text(encoding="utf-8"))
    return {"lake", *(found[1].replace(",", " ").split() if found else ())}


def files(root: Path = SLT) -> list[Path]:
    """Every file under ``root``, in order; ``.inc`` files are only included."""
    return sorted(root.rglob("*.slt"))


def run_file(path: Path, engine: Engine) -> int:
    """Runs a file; answers how many records ran.

    Mismatch  the first record that is answered otherwise, with its place and both answers
    """
    labels: dict[str, list[str]] = {}
    ran = 0
    for place, record in flat(path):
        if not record.runs_on(engine.name):
            continue
        if record.kind == "halt":
            break
        ran += 1
        if record.kind == "restart":
            engine.restart()
            continue
        try:
            check(record, engine, labels)
        except Mismatch as wrong:
            raise Mismatch(f"{place}:{record.line}: on {engine.name}\n{record.sql}\n\n{wrong}") from None
    return ran


def flat(path: Path) -> Iterator[tuple[Path, Record]]:
    """The records of a file and, in their place, of the files it includes."""
    for record in parse(path.read_text(encoding="utf-8"), str(path)):
        if record.kind == "include":
            yield from flat(path.parent / record.argument)
        else:
            yield path, record


def check(record: Record, engine: Engine, labels: dict[str, list[str]]) -> None:
    """Runs one record; a Mismatch where the answer is not the expected one."""
    ours = engine.name == "lake"
    try:
        answer = engine.execute(record.sql)
    except Failure as failure:
        _check_failure(record, failure, ours)
        return
    match record.kind:
        case "error":
            raise Mismatch(f"expected an error {record.argument}, and there was none: {answer}")
        case "count" if answer.count is not None and answer.count != int(record.argument):
            raise Mismatch(f"expected {record.argument} rows written, and there were {answer.count}")
        case "query":
            _check_letters(record, answer, ours)
            lines = answer_lines(record, answer)
            if record.label and labels.setdefault(record.label, lines) != lines:
                raise Mismatch(f"the label {record.label} was answered otherwise before:\n{chr(10).join(lines)}")
            if record.expected is not None and not agrees(record, lines, exact=ours):
                raise Mismatch("expected:\n{}\n\nanswered:\n{}".format("\n".join(record.expected), "\n".join(lines)))


def _check_failure(record: Record, failure: Failure, ours: bool) -> None:
    if record.kind != "error":
        raise Mismatch(f"failed with {failure.sqlstate}: {failure.message}")
    if not ours:
        return
    if failure.sqlstate != record.argument:
        raise Mismatch(f"expected error {record.argument}, and it was {failure.sqlstate}: {failure.message}")
    if not _message_holds(record.expected or (), failure):
        raise Mismatch("expected the message to hold\n{}\nand it was\n{}".format(
            "\n".join(record.expected or ()), failure.message))


def _message_holds(words: Sequence[str], failure: Failure) -> bool:
    return " ".join(" ".join(words).split()) in " ".join(failure.message.split())


def _check_letters(record: Record, answer: Answer, ours: bool) -> None:
    if len(answer.letters) != len(record.argument):
        raise Mismatch(f"expected {len(record.argument)} columns, and there were {len(answer.letters)}")
    wrong = [want + got for want, got in zip(record.argument, answer.letters, strict=True) if "?" not in (want, got)]
    if ours and any(pair[0] != pair[1] for pair in wrong):
        raise Mismatch(f"expected columns {record.argument}, and they were {answer.letters}")


def answer_lines(record: Record, answer: Answer) -> list[str]:
    """The answer as the file writes it: a line a row, or a line a value for ``valuesort``."""
    if record.sort == "valuesort":
        return sorted(value_text(value) for row in answer.rows for value in row)
    lines = [row_text(row) for row in answer.rows]
    return sorted(lines) if record.sort == "rowsort" else lines


def agrees(record: Record, lines: list[str], *, exact: bool) -> bool:
    """Whether an answer is the expected one: to the letter, or with numbers that are alike."""
    assert record.expected is not None
    expected = [line.strip() for line in record.expected]
    got = [line.strip() for line in lines]
    if record.sort != "nosort":
        expected, got = sorted(expected), sorted(got)
    if expected == got or exact or len(expected) != len(got):
        return expected == got
    if record.sort != "nosort":
        expected.sort(key=_blurred)
        got.sort(key=_blurred)
    return all(_tokens_agree(*pair) for pair in zip(expected, got, strict=True))


def _blurred(line: str) -> str:
    """A line whose numbers have few digits, so that lines sort alike in all engines."""
    return " ".join(f"{float(word):.6g}" if _NUMBER.fullmatch(word) else word for word in line.split())


def _tokens_agree(expected: str, got: str) -> bool:
    left, right = expected.split(), got.split()
    return len(left) == len(right) and all(map(_token_agrees, left, right))


def _token_agrees(expected: str, got: str) -> bool:
    if expected == got:
        return True
    if not (_NUMBER.fullmatch(expected) and _NUMBER.fullmatch(got)):
        return False
    left, right = float(expected), float(got)
    # A quotient of decimals has fewer digits here than in Postgres: the smaller scale decides.
    decimals = min(_scale(expected), _scale(got))
    cut = 10.0**-decimals if decimals >= QUOTIENT_SCALE_MIN and _scale(expected) != _scale(got) else 1e-12
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=cut)


def _scale(number: str) -> int:
    mantissa = number.lower().partition("e")[0]
    return len(mantissa.partition(".")[2])


def update(path: Path, engine: Engine) -> int:
    """Rewrites a file's expected answers with what the engine answers; answers how many records changed.

    Comments, SQL and the order of records stay. Included files are run, not rewritten.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    edits: list[tuple[Record, list[str]]] = []
    for place, record in flat(path):
        if not record.runs_on(engine.name) or record.kind == "halt":
            continue
        if record.kind == "restart":
            engine.restart()
            continue
        block = _actual_block(record, engine)
        if place == path and block != lines[record.line - 1 : record.tail]:
            edits.append((record, block))
    for record, block in reversed(edits):
        lines[record.line - 1 : record.tail] = block
    if edits:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(edits)


def _actual_block(record: Record, engine: Engine) -> list[str]:
    """The record's lines, as the engine would have them."""
    sql = record.sql.split("\n")
    try:
        answer = engine.execute(record.sql)
    except Failure as failure:
        words = record.expected or () if record.kind == "error" else None
        if words is None or not _message_holds(words, failure):
            words = failure.message.splitlines()[:1]
        return [f"statement error {failure.sqlstate}", *sql, *((SEPARATOR, *words) if words else ())]
    if answer.letters:
        head = " ".join(word for word in ("query", answer.letters, record.sort, record.label) if word != "nosort")
        return [head.strip(), *sql, SEPARATOR, *answer_lines(record, answer)]
    if record.kind == "count" and answer.count is not None:
        return [f"statement count {answer.count}", *sql]
    return ["statement ok", *sql]


def main(arguments: Sequence[str]) -> int:
    """`python -m tests update PATH ..`: rewrites files, each on a fresh lake."""
    parser = argparse.ArgumentParser(prog="python -m tests update", description="rewrites expected answers")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder of files")
    for path in parser.parse_args(arguments).paths:
        for file in files(path) if path.is_dir() else [path]:
            engine = LakeEngine()
            try:
                print(f"{file}: {update(file, engine)} records changed")
            finally:
                engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
