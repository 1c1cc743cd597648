"""Constraints against a plain model: random writes, transactions, tiering and restarts on a table with UNIQUE, CHECK, NOT NULL.

The model is a list of rows. A statement is applied to it as a whole and then judged: where the rows that come out break a
rule the lake must refuse the statement by the rule's code and name and keep what was there, and else take it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.db.write import path
from lake.errors import LakeError

Row = tuple[int, int | None, str | None]  # id, code, name
IDS = st.integers(0, 9)
CODES = st.one_of(st.none(), st.integers(-1, 8))
NAMES = st.sampled_from([None, "a", "b", "it's"])
ROWS = st.lists(st.tuples(IDS, CODES, NAMES), min_size=1, max_size=6)
FEW_ROWS = 3  # of an INSERT that goes through the log; more are written to a file


def literal(value: object) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


class Constraints(RuleBasedStateMachine):
    """A lake with one table, and what it must hold."""

    is_keyed = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="lake-constraints-")
        self.rows: list[Row] = []
        self.before: list[Row] | None = None
        self.failed = False
        self.few = path.LOG_ROWS
        path.LOG_ROWS = FEW_ROWS
        self.open()

    def open(self) -> None:
        """Opens the lake."""
        self.database = Database.open(load(options={"lake": self.folder, "tier_secs": "0"}))
        self.database.start(None)
        self.session = Session(self.database)

    def teardown(self) -> None:
        """Removes the lake."""
        path.LOG_ROWS = self.few
        self.database.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @initialize()
    def make(self) -> None:
        """The table."""
        key = "PRIMARY KEY" if self.is_keyed else ""
        self.session.execute(
            f"CREATE TABLE t (id INT NOT NULL {key}, code INT UNIQUE CHECK (code >= 0), name VARCHAR, "
            "CONSTRAINT pair UNIQUE (name, code))"
        )

    # --- the model -----------------------------------------------------------------------------------------------------

    def broken(self, rows: list[Row]) -> set[str]:
        """Codes and names of rules that rows break."""
        found = set()
        if any(code is not None and code < 0 for _, code, _ in rows):
            found.add("t_code_check")
        if any(count > 1 for code, count in Counter(code for _, code, _ in rows).items() if code is not None):
            found.add("t_code_key")
        pairs = Counter((name, code) for _, code, name in rows if name is not None and code is not None)
        if any(count > 1 for count in pairs.values()):
            found.add("pair")
        return found

    def run(self, text: str, after: list[Row]) -> None:
        """Runs a statement that would make the rows these."""
        broken = self.broken(after)
        if not broken:
            self.session.execute(text)
            self.rows = after
            return
        with pytest.raises(LakeError) as refused:
            self.session.execute(text)
        assert refused.value.about.get("constraint") in broken, (text, refused.value)
        if self.before is not None:
            self.failed = True

    def inserted(self, rows: list[Row]) -> list[Row]:
        """What an INSERT makes of the rows that are there."""
        if not self.is_keyed:
            return [*self.rows, *rows]
        kept = {row[0]: row for row in (*self.rows, *rows)}
        return list(kept.values())

    def changed(self, change: Callable[[Row], Row | None]) -> list[Row]:
        """What an UPDATE or DELETE leaves."""
        return [row for row in map(change, self.rows) if row is not None]

    # --- steps ---------------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.failed)
    @rule(rows=ROWS)
    def insert(self, rows: list[Row]) -> None:
        """Few rows through the log, more through a file."""
        if any(code is not None and code < 0 for _, code, _ in rows):
            after = [*self.rows, *rows]
        else:
            after = self.inserted(rows)
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        self.run(f"INSERT INTO t SELECT * FROM (VALUES {values}) AS v", after)

    @precondition(lambda self: not self.failed)
    @rule(by=st.integers(-2, 2), low=IDS)
    def shift(self, by: int, low: int) -> None:
        """Moves codes along, past one another."""
        text = f"UPDATE t SET code = code + {by} WHERE id >= {low}"
        self.run(text, self.changed(lambda row: (row[0], row[1] + by, row[2]) if row[0] >= low and row[1] is not None else row))

    @precondition(lambda self: not self.failed)
    @rule()
    def mirror(self) -> None:
        """Swaps codes in one statement."""
        self.run("UPDATE t SET code = 8 - code", self.changed(lambda row: (row[0], None if row[1] is None else 8 - row[1], row[2])))

    @precondition(lambda self: not self.failed)
    @rule(name=NAMES)
    def rename(self, name: str | None) -> None:
        """One name for all."""
        self.run(f"UPDATE t SET name = {literal(name)}", self.changed(lambda row: (row[0], row[1], name)))

    @precondition(lambda self: not self.failed)
    @rule(id=IDS)
    def delete(self, id: int) -> None:
        """Rows go, and their values are free."""
        self.run(f"DELETE FROM t WHERE id = {id}", self.changed(lambda row: None if row[0] == id else row))

    @precondition(lambda self: not self.failed)
    @rule()
    def truncate(self) -> None:
        """All go."""
        self.run("TRUNCATE t", [])

    @precondition(lambda self: self.before is None)
    @rule()
    def begin(self) -> None:
        """A transaction sees its own rows."""
        self.session.execute("BEGIN")
        self.before = list(self.rows)

    @precondition(lambda self: self.before is not None)
    @rule(keep=st.booleans())
    def end(self, keep: bool) -> None:
        """COMMIT or ROLLBACK."""
        assert self.before is not None
        self.session.execute("COMMIT" if keep else "ROLLBACK")
        if self.failed or not keep:
            self.rows = self.before
        self.before, self.failed = None, False

    @rule()
    def tier(self) -> None:
        """Rows move to files, whose positions are others."""
        self.database.tier()

    @precondition(lambda self: self.before is None)
    @rule()
    def restart(self) -> None:
        """The lake is opened again."""
        self.database.close()
        self.open()

    @precondition(lambda self: self.before is None)
    @rule()
    def drop_and_add(self) -> None:
        """The rule comes back only where the rows hold it, which they always do."""
        self.session.execute("ALTER TABLE t DROP CONSTRAINT t_code_key; ALTER TABLE t ADD CONSTRAINT t_code_key UNIQUE (code)")

    @precondition(lambda self: not self.failed)
    @invariant()
    def holds(self) -> None:
        """The table is the model."""
        if self.session.execute("SELECT count(*) FROM lake.tables WHERE name = 't'").rows() == [(1,)]:
            assert Counter(self.session.execute("SELECT id, code, name FROM t").rows()) == Counter(self.rows)


class KeyedConstraints(Constraints):
    """The same on a table with a key, whose rows take the place of rows of their key."""

    is_keyed = True


SETTINGS = settings(
    max_examples=12, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestConstraints = Constraints.TestCase
TestConstraints.settings = SETTINGS
TestKeyedConstraints = KeyedConstraints.TestCase
TestKeyedConstraints.settings = SETTINGS
