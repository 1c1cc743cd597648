"""A catalogue of functions with examples, run on the lake and compared with what each function's own engine answered.

    python -m tests functions --file functions.tsv [--origin spark] [--names] [--reasons]

The file is tab-separated with a head: name, kind, origin, aliases, argument types, return type, example, result, meaning,
note. In a result rows are parted by `` / `` and values by `` | ``. An example ``agree``s, ``differ``s or is ``refused``;
without one the name is ``known`` or ``unknown``. What REASONS tells of is ``excused`` in their place. Examples of Spark are run in the base dialect and, where that disagrees,
under ``SET datafusion.sql_parser.dialect = 'spark'``.

Texts are compared as they are, but for what engines only write differently: numbers to about twelve digits, quotes
and spaces inside lists, structs and maps, names of fields where the recorded struct has none, intervals, bytes as
hexadecimal digits, the T of a timestamp and its zeroes, and the case of NULL.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lake.errors import LakeError
from lake.sql.literals import parse_interval
from lake.sql.registry import FUNCTIONS
from tests.engines import Engine, Failure, LakeEngine
from tests.functions_reasons import REASONS

TOLERANCE: Final = 1e-11  # of numbers that were recorded with twelve digits
DIALECT: Final = "SET datafusion.sql_parser.dialect = "
_NUMBER: Final = re.compile(r"(?<![\w.:-])[+-]?(\d+\.\d*|\.\d+|\d+)(e[+-]?\d+)?(?![\w:.-])", re.IGNORECASE)
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00(:00)?)?")
_INTERVAL: Final = re.compile(
    r"(?:INTERVAL )?'?((?:-?[\d.]+ (?:year|mon|day|hour|min|sec)\w*|-?\d\d:\d\d:\d\d(?:\.\d+)?|\d+-\d+|\d+ (?=\d\d:)|\s)+)'?"
    r"( YEAR TO MONTH| DAY TO SECOND)?"
)
_FIELD_NAME: Final = re.compile(r"(?<=[{ ])\w+: ")
_NESTED_MARKS: Final = re.compile(r"\s*(?:->|=|:)\s+|\s*->\s*|(?<=\w)=(?=\w)")


@dataclass(frozen=True, slots=True)
class Row:
    """A function of the catalogue."""

    name: str
    kind: str
    origin: str
    example: str
    result: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a row, and what the lake said."""

    row: Row
    word: str
    answer: str


def read(path: Path) -> list[Row]:
    """The rows of a catalogue."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = lines[0].split("\t")
    places = [head.index(name) for name in ("name", "kind", "origin", "example", "result")]
    rows = []
    for line in lines[1:]:
        fields = line.split("\t")
        fields += [""] * (len(head) - len(fields))
        rows.append(Row(*(fields[place] for place in places)))
    return rows


def canonical(text: str) -> str:
    """A result without what engines only write differently."""
    text = _MOMENT.sub(lambda match: f"{match[1]} {match[2]}{(match[3] or '').rstrip('0').rstrip('.')}", text.strip())
    text = re.sub(r"\bnull\b", "NULL", text)
    interval = _INTERVAL.fullmatch(text)
    if interval is not None and not text.isdigit():
        try:
            return str(parse_interval(interval[1].strip(), (interval[2] or "").strip() or None))
        except LakeError:
            return text
    if "{" in text or "[" in text:
        text = _NESTED_MARKS.sub(": ", text.replace("'", "").replace('"', ""))
        text = re.sub(r",\s*", ", ", text).replace("{:", "{").replace("(", "{").replace(")", "}")
    return text


def values_of(text: str) -> list[list[str]]:
    """The rows and values of a recorded result."""
    rows = []
    for row in re.split(r" / ", text):
        rows.append([canonical("" if value.strip() == "(empty)" else value) for value in row.split(" | ")])
    return rows


def answered(engine: Engine, example: str, bytes_as: str = "CAST({} AS VARCHAR)") -> str:
    """What an example answers, every value as its cast to text; Failure where it is refused."""
    try:
        names = engine.execute(f"DESCRIBE {example}").rows
        shown = {"Binary": bytes_as}
        texts = ", ".join(shown.get(row[1], "CAST({} AS VARCHAR)").format(f'"c{place}"') for place, row in enumerate(names))
        columns = ", ".join(f'"c{place}"' for place in range(len(names)))
        answer = engine.execute(f"SELECT {texts} FROM ({example}) AS example({columns})")
    except Failure:
        answer = engine.execute(example)
    return " / ".join(" | ".join("NULL" if item is None else str(item) for item in row) for row in answer.rows)


def same(one: str, two: str) -> bool:
    """Whether two canonical texts are alike, their numbers to about twelve digits."""
    if "{" in two and ": " not in two:
        one = _FIELD_NAME.sub("", one)
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", two):
        return False
    pairs = zip(_NUMBER.finditer(one), _NUMBER.finditer(two), strict=True)
    return all(a[0] == b[0] or math.isclose(float(a[0]), float(b[0]), rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in pairs)


def agrees(answer: str, result: str) -> bool:
    """Whether an answer is the recorded result but for how it is written."""
    ours, theirs = values_of(answer), values_of(result)
    by_value = [len(row) for row in ours] == [len(row) for row in theirs] and all(
        same(one, two) for row, other in zip(ours, theirs, strict=True) for one, two in zip(row, other, strict=True)
    )
    return by_value or same(canonical(answer), canonical(result))


def judge(engine: Engine, row: Row) -> Verdict:
    """Runs a row's example."""
    reason = REASONS.get((row.origin, row.name))
    if not row.example:
        return Verdict(row, "known" if row.name in FUNCTIONS else "excused" if reason else "unknown", reason or "")
    verdicts = []
    for dialect in ("postgres", "spark") if row.origin == "spark" else ("postgres",):
        engine.execute(f"{DIALECT}'{dialect}'")
        try:
            answer = answered(engine, row.example)
            if not agrees(answer, row.result):
                in_digits = answered(engine, row.example, "encode({}, 'hex')")
                answer = in_digits if agrees(in_digits, row.result) else answer
            verdicts.append(Verdict(row, "agree" if agrees(answer, row.result) else "differ", answer))
        except Failure as failure:
            verdicts.append(Verdict(row, "refused", f"{failure.sqlstate} {failure.message}"))
        if verdicts[-1].word == "agree":
            break
    best = min(verdicts, key=lambda verdict: ("agree", "differ", "refused").index(verdict.word))
    return Verdict(row, "excused", reason) if reason and best.word != "agree" else best


def main(arguments: Sequence[str]) -> int:
    """0 when every example agrees."""
    parser = argparse.ArgumentParser(prog="python -m tests functions", description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, required=True, help="the catalogue")
    parser.add_argument("--origin", help="only functions of one engine")
    parser.add_argument("--names", action="store_true", help="names that have no example and are not there, too")
    parser.add_argument("--reasons", action="store_true", help="what is excused, with why")
    options = parser.parse_args(arguments)
    engine = LakeEngine()
    try:
        rows = [row for row in read(options.file) if options.origin in (None, row.origin)]
        verdicts = [judge(engine, row) for row in rows]
    finally:
        engine.close()
    for verdict in verdicts:
        row = verdict.row
        if verdict.word in ("differ", "refused"):
            print(f"{verdict.word} {row.origin} {row.name}: {row.example}")
            print(f"    recorded  {row.result}\n    answered  {verdict.answer.splitlines()[0] if verdict.answer else ''}")
        elif verdict.word == "excused" and options.reasons:
            print(f"excused {row.origin} {row.name}: {verdict.answer}")
        elif verdict.word == "unknown" and options.names:
            print(f"unknown {row.origin} {row.name}")
    for origin in sorted({row.origin for row in rows}):
        counts = Counter(verdict.word for verdict in verdicts if verdict.row.origin == origin)
        words = ("agree", "differ", "refused", "excused", "known", "unknown")
        print(f"{origin}: " + ", ".join(f"{word} {counts[word]}" for word in words))
    return 0 if all(verdict.word not in ("differ", "refused") for verdict in verdicts) else 1
