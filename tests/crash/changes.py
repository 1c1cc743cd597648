"""Work for the victim beside appends: transactions that change rows, and definitions; and what must be left of them.

Each transaction of ``change`` is a step: it changes ``accounts`` and writes its number to ``ledger``. So the ledger tells which
steps there are, and the accounts must be what those steps make, worked out again in plain Python. ``define`` goes round a
circle of definitions, RESTORE among them; what is left is what the last acknowledged one makes, or the one after it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from lake.connection import Connection
from lake.db.session import Session
from lake.embedded import EmbeddedConnection

ACCOUNTS: Final = 60
ROWS: Final = 40
SHORT: Final = "WITH (retention = '1 second')"
State = dict[int, tuple[int, int]]  # by id: amount, and the step that wrote it


def make_tables(db: Connection) -> None:
    """The tables of ``change``, unless a life before this one made them."""
    db.sql(f"CREATE TABLE IF NOT EXISTS accounts (id INT NOT NULL, amount INT, step INT) {SHORT}")
    db.sql("CREATE TABLE IF NOT EXISTS ledger (step INT)")


def last_step(db: Connection) -> int:
    """The last step there is, 0 of none."""
    return int(db.sql("SELECT coalesce(max(step), 0) FROM ledger").item())


def statements(step: int, seed: int) -> list[str]:
    """What a step does between BEGIN and COMMIT."""
    chance = random.Random(f"{seed}/change/{step}")
    by, rest = chance.choice((2, 3, 7)), chance.randrange(7)
    change = {
        0: f"UPDATE accounts SET amount = amount + 1, step = {step} WHERE id % {by} = {rest}",
        1: f"DELETE FROM accounts WHERE id % {by} = {rest}",
        2: f"MERGE INTO accounts USING (SELECT i FROM range({ACCOUNTS}) AS r(i) WHERE i % {by} = {rest}) AS s ON id = s.i "
        f"WHEN MATCHED THEN UPDATE SET amount = amount + 2, step = {step} "
        f"WHEN NOT MATCHED THEN INSERT VALUES (s.i, 0, {step})",
        3: f"INSERT INTO accounts SELECT i, 5, {step} FROM range({ACCOUNTS}) AS r(i) "
        "WHERE i NOT IN (SELECT id FROM accounts)",
        4: "TRUNCATE accounts" if chance.random() < 0.2 else f"UPDATE accounts SET step = {step}",
    }[step % 5]
    return [change, f"INSERT INTO ledger VALUES ({step})"]


def after_steps(count: int, seed: int) -> State:
    """What the accounts are after the first ``count`` steps."""
    state: State = {}
    for step in range(1, count + 1):
        chance = random.Random(f"{seed}/change/{step}")
        by, rest = chance.choice((2, 3, 7)), chance.randrange(7)
        match step % 5:
            case 0:
                state |= {id: (amount + 1, step) for id, (amount, _) in state.items() if id % by == rest}
            case 1:
                state = {id: row for id, row in state.items() if id % by != rest}
            case 2:
                wanted = [id for id in range(ACCOUNTS) if id % by == rest]
                state |= {id: (state[id][0] + 2, step) if id in state else (0, step) for id in wanted}
            case 3:
                state |= {id: (5, step) for id in range(ACCOUNTS) if id not in state}
            case _:
                state = {} if chance.random() < 0.2 else {id: (amount, step) for id, (amount, _) in state.items()}
    return state


def change(db: EmbeddedConnection, seed: int) -> Iterator[int]:
    """Steps, one transaction each, for ever; the number of each one that was acknowledged."""
    session, step = Session(db.database), last_step(db)
    while True:
        step += 1
        session.execute("BEGIN")
        for text in statements(step, seed):
            session.execute(text)
        session.execute("COMMIT")
        yield step


def check_changes(db: Connection, seed: int, told: int) -> int:
    """Every acknowledged step is there, whole and once; how many steps there are."""
    steps = [row[0] for row in db.sql("SELECT step FROM ledger ORDER BY step").rows()]
    assert steps == list(range(1, len(steps) + 1)), f"steps are {steps[-5:]} of {len(steps)}"
    assert len(steps) >= told, f"step {told} was acknowledged, and the last that is there is {len(steps)}"
    rows = db.sql("SELECT id, amount, step FROM accounts").rows()
    found = {id: (amount, step) for id, amount, step in rows}
    assert len(found) == len(rows), "an account is doubled"
    expected = after_steps(len(steps), seed)
    differing = sorted(found.items() ^ expected.items())
    assert found == expected, f"after {len(steps)} steps accounts differ: {differing[:6]}"
    return len(steps)


# --- definitions ------------------------------------------------------------------------------------------------------

# What each definition of the circle leaves: columns and rows of d, columns and rows of c; None where the table is not there.
Left = tuple[tuple[int, int] | None, tuple[int, int] | None]
CIRCLE: Final[tuple[tuple[str, Left], ...]] = (
    (f"CREATE OR REPLACE TABLE d AS SELECT i AS a FROM range({ROWS}) AS r(i)", ((1, ROWS), None)),
    ("ALTER TABLE d ADD COLUMN b INT", ((2, ROWS), None)),
    ("UPDATE d SET b = a", ((2, ROWS), None)),
    ("DROP TABLE d", (None, None)),
    ("UNDROP TABLE d", ((2, ROWS), None)),
    ("CREATE TABLE c CLONE d", ((2, ROWS), (2, ROWS))),
    (f"DELETE FROM c WHERE a < {ROWS // 4}", ((2, ROWS), (2, ROWS - ROWS // 4))),
    ("TRUNCATE d", ((2, 0), (2, ROWS - ROWS // 4))),
    ("RESTORE TABLE d TO VERSION AS OF $version", ((2, ROWS), (2, ROWS - ROWS // 4))),
    ("ALTER TABLE d DROP COLUMN b", ((1, ROWS), (2, ROWS - ROWS // 4))),
    ("DROP TABLE d PURGE", (None, (2, ROWS - ROWS // 4))),
    ("ALTER TABLE c RENAME TO d", ((2, ROWS - ROWS // 4), None)),
    (f"CREATE OR REPLACE TABLE d {SHORT} AS SELECT i AS a FROM range({ROWS}) AS r(i)", ((1, ROWS), None)),
    ("DROP TABLE d", (None, None)),
)


def define(db: EmbeddedConnection) -> Iterator[int]:
    """Goes round the circle from its begin, for ever; the place of each definition that was acknowledged."""
    session = Session(db.database)
    session.execute("DROP TABLE IF EXISTS c; DROP TABLE IF EXISTS d")
    yield len(CIRCLE) - 1
    while True:
        for place, (text, _) in enumerate(CIRCLE):
            if text == "TRUNCATE d":
                version = db.database.version
            if "$version" in text:
                text = text.replace("$version", str(version))
            session.execute(text)
            yield place


def check_definitions(db: Connection, told: int | None) -> None:
    """What is left is what the definition at ``told`` leaves, or the one after it."""
    if told is None:
        return
    found = (_shape(db, "d"), _shape(db, "c"))
    allowed = [CIRCLE[told][1], CIRCLE[(told + 1) % len(CIRCLE)][1]]
    if CIRCLE[told][1] == (None, None):
        allowed.append((None, None))
    assert found in allowed, f"after {CIRCLE[told][0]!r} tables are {found}"


def _shape(db: Connection, name: str) -> tuple[int, int] | None:
    """Columns and rows of a table; None where it is not there."""
    columns: Any = db.sql(
        "SELECT count(*) FROM information_schema.columns WHERE table_name = $name AND table_schema = 'public'", name=name
    ).item()
    return (int(columns), int(db.sql(f"SELECT count(*) FROM {name}").item())) if columns else None


def check_objects(db: EmbeddedConnection) -> None:
    """Every object that a table names, one of the past too, is there."""
    database = db.database.lake
    for table in database.state.stored_tables():
        for manifest in table.manifests:
            assert database.store.head(manifest.path) is not None, f"{manifest.path} of {table.name} is gone"
        for file in database.manifests.all_files(table):
            assert database.store.head(file.path) is not None, f"{file.path} of {table.name} is gone"
