"""Every golden file of tests/slt, run on a lake of its own; and the reader of such files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import slt
from tests.engines import Answer, Failure, Interval, LakeEngine, parse_postgres_interval, value_text
from tests.pg.test_slt_pg import name_of


@pytest.mark.parametrize("path", slt.files(), ids=name_of)
def test_golden_file(path: Path) -> None:
    """The lake answers what the file says."""
    engine = LakeEngine()
    try:
        assert slt.run_file(path, engine), "the file holds no record"
    finally:
        engine.close()


class Canned:
    """An engine that answers what a test says."""

    name = "lake"

    def __init__(self, **answers: Answer | Failure) -> None:
        self.answers = answers
        self.restarts = 0

    def execute(self, text: str) -> Answer:
        """The answer under the statement's text."""
        answer = self.answers[text]
        if isinstance(answer, Failure):
            raise answer
        return answer

    def restart(self) -> None:
        """Counts restarts."""
        self.restarts += 1

    def close(self) -> None:
        """Nothing to let go."""


TEXT = """# A head.
statement ok
make

query IT rowsort pair
pair
----
1 one
2 (empty)

restart

statement error 23505
twice
----
duplicate   key

onlyif postgres it has the word
query I
other
----
3

statement count 2
write
"""
ANSWERS = {
    "make": Answer(),
    "pair": Answer(("a", "b"), "IT", [(2, ""), (1, "one")]),
    "twice": Failure("duplicate key value", "23505"),
    "write": Answer(count=2),
}


def test_records_are_read_and_run(tmp_path: Path) -> None:
    """A file that holds runs whole, less what is for other engines."""
    path = tmp_path / "a.slt"
    path.write_text(TEXT)
    engine = Canned(**ANSWERS)
    assert slt.run_file(path, engine) == 5
    assert engine.restarts == 1
    assert slt.update(path, engine) == 0
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    ("statement", "answer", "words"),
    [
        ("pair", Answer(("a", "b"), "IT", [(1, "one")]), "expected:"),
        ("pair", Answer(("a", "b"), "TT", [(2, ""), (1, "one")]), "expected columns IT"),
        ("pair", Failure("no", "42601"), "failed with 42601"),
        ("twice", Answer(), "there was none"),
        ("twice", Failure("duplicate key value", "23514"), "it was 23514"),
        ("twice", Failure("another message", "23505"), "to hold"),
        ("write", Answer(count=3), "there were 3"),
        ("make", Failure("no", "42601"), "failed with 42601"),
    ],
)
def test_differences_are_found(tmp_path: Path, statement: str, answer: Answer | Failure, words: str) -> None:
    """Each kind of wrong answer is told with its place."""
    path = tmp_path / "a.slt"
    path.write_text(TEXT)
    with pytest.raises(slt.Mismatch, match=words) as caught:
        slt.run_file(path, Canned(**{**ANSWERS, statement: answer}))
    assert "a.slt:" in str(caught.value)


def test_update_writes_what_was_answered(tmp_path: Path) -> None:
    """Answers that changed are rewritten, and the file then holds."""
    path = tmp_path / "a.slt"
    path.write_text(TEXT)
    changed = {"pair": Answer(("a", "b"), "TR", [("x\ny", 0.1 + 0.2)]), "make": Failure("no room", "53100")}
    engine = Canned(**{**ANSWERS, **changed})
    assert slt.update(path, engine) == 2
    text = path.read_text()
    assert "query TR rowsort pair\npair\n----\nx\\ny 0.3\n" in text
    assert "statement error 53100\nmake\n----\nno room\n" in text
    assert text.startswith("# A head.\n") and text.endswith("write\n")
    slt.run_file(path, engine)


@pytest.mark.parametrize("text", ["queri I\nx", "skipif lake\nstatement ok\nx", "query Z\nx", "statement error\nx"])
def test_unreadable_files_are_refused(text: str) -> None:
    """A record nobody can read, or a guard without a reason, is an error."""
    with pytest.raises(SyntaxError):
        slt.parse(text)


def test_numbers_of_other_engines_agree_by_the_smaller_scale() -> None:
    """NUMERIC and DOUBLE of one value are alike; other values are not."""
    record = slt.Record("query", "R", 1, expected=("0.333333", "2.33333333333", "1.50", "x"))
    assert slt.agrees(record, ["0.33333333333333333333", "2.3333333333333333", "1.5000", "x"], exact=False)
    assert not slt.agrees(record, ["0.33333333333333333333", "2.3333333333333333", "1.5000", "x"], exact=True)
    assert not slt.agrees(record, ["0.334", "2.33333333333", "1.50", "x"], exact=False)
    assert not slt.agrees(record, ["0.333333", "2.33333333333", "1.6", "x"], exact=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"), (True, "true"), (1.0, "1.0"), (float("nan"), "NaN"), (float("-inf"), "-Infinity"),
        ("", "(empty)"), (b"\x41\xff", "41ff"), ([1, None, "a b"], "[1, NULL, a b]"),
        (Interval(14, 3, 5_500_000_000), "14 mons 3 days 5.5 secs"),
        (Interval(0, 0, -61 * 10**9), "-1 mins -1 secs"), (Interval(0, 0, 0), "0 secs"),
    ],
)
def test_values_are_written_on_one_line(value: object, text: str) -> None:
    """How golden files write a value."""
    assert value_text(value) == text


def test_postgres_intervals_are_read() -> None:
    """Months, days and time keep their own signs."""
    assert parse_postgres_interval("1 year 2 mons -3 days +04:05:06.7") == (14, -3, 14_706_700_000_000)
    assert parse_postgres_interval("-00:00:01") == (0, 0, -1_000_000_000)
