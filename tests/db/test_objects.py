"""Sequences, enum types and indexes where SQL files do not reach: appends, crashes, sessions, notices, threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.errors import InsufficientPrivilege, InvalidText, NotNullViolation, ObjectNotInState
from lake.roles import Principal, Role


def opened(folder: Path) -> Database:
    """A lake that leads and tiers only when told."""
    database = Database.open(load(options={"lake": str(folder), "tier_secs": "0"}))
    database.start(None)
    return database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty lake."""
    database = opened(tmp_path / "lake")
    yield database
    database.close()


def append(database: Database, table: str, lines: bytes) -> None:
    """Rows as POST /append takes them."""
    database.append((table,), lines, is_arrow=False, once=None).result()


def test_append_numbers_rows_and_keeps_given_values(database: Database) -> None:
    """Sequences 19: rows that leave an identity column out are numbered; a given value is kept."""
    session = Session(database)
    session.execute("CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY, n INT)")
    append(database, "t", b'{"n": 1}\n{"n": 2, "id": 50}\n{"n": 3}')
    assert session.execute("SELECT n, id FROM t ORDER BY n").rows()[1] == (2, 50)
    assert session.execute("SELECT count(DISTINCT id) FROM t").rows() == [(3,)]
    with pytest.raises(NotNullViolation):
        append(database, "t", b'{"id": null, "n": 4}')


def test_append_checks_labels(database: Database) -> None:
    """Enums 6: a label that is not listed is refused on this path too."""
    session = Session(database)
    session.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE t (m mood)")
    append(database, "t", b'{"m": "ok"}\n{"m": null}')
    with pytest.raises(InvalidText, match='invalid input value for enum mood: "glad"') as failed:
        append(database, "t", b'{"m": "sad"}\n{"m": "glad"}')
    assert failed.value.about == {"schema": "public", "table": "t", "column": "m"}
    session.execute("ALTER TYPE mood ADD VALUE 'glad'")
    append(database, "t", b'{"m": "glad"}')
    assert session.execute("SELECT count(*) FROM t").rows() == [(3,)]


def test_no_number_twice_across_threads(database: Database) -> None:
    """Sequences 12: sessions that take numbers at once get each of them once."""
    Session(database).execute("CREATE SEQUENCE s")
    taken: list[int] = []

    def take() -> None:
        session = Session(database)
        for _ in range(50):
            taken.extend(value for (value,) in session.execute("SELECT nextval('s') FROM range(0, 3)").rows())

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 1_201))


def test_no_number_twice_after_a_crash(tmp_path: Path) -> None:
    """Sequences 13: a process that goes without closing leaves a gap, and no number comes again; one that closes leaves none."""
    first = opened(tmp_path / "lake")
    Session(first).execute("CREATE SEQUENCE s")
    assert Session(first).execute("SELECT nextval('s')").rows() == [(1,)]
    first.lake.release()
    first._hold.let_go() if first._hold is not None else None
    second = opened(tmp_path / "lake")
    ((after,),) = Session(second).execute("SELECT nextval('s')").rows()
    assert after > 1
    second.close()
    third = opened(tmp_path / "lake")
    assert Session(third).execute("SELECT nextval('s')").rows() == [(after + 1,)]
    third.close()


def test_currval_is_the_sessions(database: Database) -> None:
    """Sequences 20: another session's numbers are not this one's."""
    first, second = Session(database), Session(database)
    first.execute("CREATE SEQUENCE s")
    first.execute("SELECT nextval('s')").run_through()
    second.execute("SELECT nextval('s')").run_through()
    assert first.execute("SELECT currval('s')").rows() == [(1,)]
    with pytest.raises(ObjectNotInState):
        Session(database).execute("SELECT lastval()").rows()


def test_a_reader_takes_no_numbers(database: Database) -> None:
    """nextval and setval write; currval does not."""
    Session(database).execute("CREATE SEQUENCE s")
    reader = Session(database, Principal("reader", Role.READ))
    for call in ("nextval('s')", "setval('s', 5)"):
        with pytest.raises(InsufficientPrivilege):
            reader.execute(f"SELECT {call}").rows()


def test_an_index_says_that_nothing_is_built(database: Database) -> None:
    """Indexes 10: the notice of CREATE INDEX."""
    session = Session(database)
    session.execute("CREATE TABLE t (a INT)")
    (notice,) = session.execute("CREATE INDEX i ON t (a)").notices
    assert notice.startswith('index "i" is kept as a note, nothing is built for it')
    assert session.execute("CREATE INDEX IF NOT EXISTS i ON t (a)").notices == ('relation "i" already exists, skipping',)
