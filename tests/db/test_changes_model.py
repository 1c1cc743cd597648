"""Tables that change, against a plain model: random statements with tiering, merging, purging and restarts between them.

The model is a dict of rows by ``_row_id``. After each step the table is the model, each row under the id it always had,
and every older version that was remembered reads as it was, or is refused because its deleted rows are past their time.
A failure prints the steps that lead to it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lake.config import load
from lake.db.database import Database
from lake.db.session import Session
from lake.db.write import path
from lake.errors import InvalidParameter, SerializationFailure

Row = tuple[int | None, int | None, str | None]
KEYS = st.integers(0, 12)
VALUES = st.one_of(st.none(), st.integers(-5, 5))
TEXTS = st.sampled_from([None, "", "x", "it's"])
ROWS = st.tuples(KEYS, VALUES, TEXTS)
FEW_ROWS = 8  # of an INSERT that goes through the log; more are written to a file


def literal(value: object) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def values(rows: list[tuple[Any, ...]]) -> str:
    """Rows as VALUES."""
    return "VALUES " + ", ".join(f"({', '.join(map(literal, row))})" for row in rows)


class Changes(RuleBasedStateMachine):
    """A lake with one table, and what it must hold."""

    clauses = ""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="lake-changes-")
        self.rows: dict[int, Row] = {}
        self.past: dict[int, Counter[Row]] = {}
        self.before: dict[int, Row] | None = None  # the rows at BEGIN
        self.touched: set[int] = set()  # rows the transaction changed
        self.elsewhere: dict[int, Row] = {}  # rows another session changed meanwhile
        self.more: list[Row] = []  # rows it inserted
        self.emptied = False
        self.few = path.LOG_ROWS
        path.LOG_ROWS = FEW_ROWS
        self.open()

    def open(self) -> None:
        """Opens the lake."""
        config = load(options={"lake": self.folder, "tier_secs": "0"})
        self.database = Database.open(config)
        self.database.start(None)
        self.session = Session(self.database)

    def teardown(self) -> None:
        """Closes and removes the lake."""
        self.database.close()
        path.LOG_ROWS = self.few
        shutil.rmtree(self.folder)

    def run(self, text: str) -> Any:
        """A statement's outcome, or its rows."""
        result = self.session.execute(text)
        return result.rows() if result.is_query else result.outcome

    def found(self) -> dict[int, Row]:
        """The table's rows by id."""
        listed = self.run("SELECT _row_id, k, a, s FROM t")
        found = {row[0]: row[1:] for row in listed}
        assert len(found) == len(listed), "no two rows have one id"
        return found

    def take_new(self, expected: list[Row]) -> None:
        """Learns the ids of rows that were inserted."""
        new = {id: row for id, row in self.found().items() if id not in self.rows}
        assert Counter(new.values()) == Counter(expected)
        self.rows |= new

    @initialize()
    def make(self) -> None:
        """The empty table."""
        self.run(f"CREATE TABLE t (k BIGINT NOT NULL, a BIGINT, s VARCHAR) {self.clauses}")
        self.past[self.database.version] = Counter()

    # --- statements ---

    @rule(rows=st.lists(ROWS, min_size=1, max_size=14))
    def insert(self, rows: list[Row]) -> None:
        """INSERT through the log or into a file."""
        assert self.run(f"INSERT INTO t {values(rows)}") == {"rows": len(rows)}
        self.take_new(rows)

    @rule(low=KEYS, step=st.integers(1, 3), by=st.integers(-2, 2))
    def update(self, low: int, step: int, by: int) -> None:
        """UPDATE by a condition."""
        hit = {id: row for id, row in self.rows.items() if row[0] >= low and row[0] % step == 0}
        done = self.run(f"UPDATE t SET a = coalesce(a, 0) + {by}, s = 'u' WHERE k >= {low} AND k % {step} = 0")
        assert done == {"rows": len(hit), "updated": len(hit), "deleted": 0, "inserted": 0}
        self.rows |= {id: (row[0], (row[1] or 0) + by, "u") for id, row in hit.items()}
        self.touched |= hit.keys()

    @rule(source=st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), text=TEXTS)
    def update_from(self, source: dict[int, int | None], text: str | None) -> None:
        """UPDATE by a join; rows come back by RETURNING."""
        hit = {id: (row[0], source[row[0]], text) for id, row in self.rows.items() if row[0] in source}
        sql = f"UPDATE t SET a = v.x, s = {literal(text)} FROM ({values(list(source.items()))}) v(k, x)"
        assert Counter(self.run(f"{sql} WHERE t.k = v.k RETURNING *")) == Counter(hit.values())
        self.rows |= hit
        self.touched |= hit.keys()

    @rule(low=KEYS, width=st.integers(0, 5))
    def delete(self, low: int, width: int) -> None:
        """DELETE by a condition."""
        gone = {id for id, row in self.rows.items() if low <= row[0] <= low + width}
        done = self.run(f"DELETE FROM t WHERE k BETWEEN {low} AND {low + width}")
        assert done == {"rows": len(gone), "updated": 0, "deleted": len(gone), "inserted": 0}
        self.rows = {id: row for id, row in self.rows.items() if id not in gone}
        self.touched |= gone

    @rule(source=st.dictionaries(KEYS, st.integers(-5, 5), min_size=1, max_size=5), others=st.booleans())
    def merge(self, source: dict[int, int], others: bool) -> None:
        """MERGE with clauses of every kind."""
        sql = (
            f"MERGE INTO t USING ({values(list(source.items()))}) v(k, x) ON t.k = v.k "
            "WHEN MATCHED AND v.x > 0 THEN UPDATE SET a = v.x WHEN MATCHED AND v.x < -2 THEN DELETE "
            "WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND v.x <> 0 THEN INSERT (k, a) VALUES (v.k, v.x)"
        )
        sql += " WHEN NOT MATCHED BY SOURCE AND t.a IS NULL THEN DELETE" if others else ""
        known = {row[0] for row in self.rows.values()}
        new: list[Row] = [(k, x, None) for k, x in source.items() if k not in known and x]
        after: dict[int, Row] = {}
        for id, row in self.rows.items():
            x = source.get(row[0])
            if x is None:
                if not (others and row[1] is None):
                    after[id] = row
            elif x >= -2:
                after[id] = (row[0], x, row[2]) if x > 0 else row
        updated = sum(source.get(row[0], 0) > 0 for row in self.rows.values())
        counts = {"updated": updated, "deleted": len(self.rows) - len(after), "inserted": len(new)}
        assert self.run(sql) == {"rows": sum(counts.values()), **counts}
        self.touched |= {id for id, row in self.rows.items() if id not in after or source.get(row[0], 0) > 0}
        self.rows = after
        self.take_new(new)

    @rule()
    def truncate(self) -> None:
        """TRUNCATE."""
        self.run("TRUNCATE t")
        self.emptied = self.before is not None
        self.touched |= self.rows.keys()
        self.rows = {}

    @rule()
    def refused(self) -> None:
        """A statement that fails leaves everything as it was."""
        if self.rows and self.before is None:
            with pytest.raises(Exception, match="not-null"):
                self.run("UPDATE t SET k = NULL")

    # --- transactions ---

    @precondition(lambda self: self.before is None)
    @rule()
    def begin(self) -> None:
        """BEGIN."""
        self.run("BEGIN")
        self.before = dict(self.rows)
        self.touched, self.elsewhere, self.more, self.emptied = set(), {}, [], False

    @precondition(lambda self: self.before is not None)
    @rule(key=KEYS)
    def change_elsewhere(self, key: int) -> None:
        """Another session changes rows and is not seen here."""
        assert self.before is not None
        known = {**self.before, **self.elsewhere}
        Session(self.database).execute(f"UPDATE t SET s = 'e' WHERE k = {key}")
        Session(self.database).execute(f"INSERT INTO t VALUES ({key}, 100, 'e')")
        self.elsewhere |= {id: (row[0], row[1], "e") for id, row in known.items() if row[0] == key}
        self.more = [(row[0], row[1], "e") if row[0] == key else row for row in self.more] + [(key, 100, "e")]

    @precondition(lambda self: self.before is not None)
    @rule()
    def commit(self) -> None:
        """COMMIT: refused where another session changed a row that this one did."""
        assert self.before is not None
        conflict = self.touched & self.elsewhere.keys() or (self.emptied and self.more)
        if conflict:
            with pytest.raises(SerializationFailure):
                self.run("COMMIT")
            self.settle({**self.before, **self.elsewhere}, self.more)
            return
        assert self.run("COMMIT") == {"transaction": "commit"}
        new = [row for id, row in self.rows.items() if id not in self.before]
        kept = {id: row for id, row in {**self.before, **self.elsewhere}.items() if id not in self.touched}
        kept |= {id: row for id, row in self.rows.items() if id in self.before and id in self.touched}
        self.settle(kept, new + self.more)

    @precondition(lambda self: self.before is not None)
    @rule()
    def rollback(self) -> None:
        """ROLLBACK."""
        assert self.before is not None
        self.run("ROLLBACK")
        self.settle({**self.before, **self.elsewhere}, self.more)

    def settle(self, known: dict[int, Row], new: list[Row]) -> None:
        """What the table holds after a transaction: rows under their ids, and new rows under ids not known yet."""
        self.before = None
        self.rows = known
        self.take_new(new)

    # --- what happens by itself ---

    @rule()
    def tier(self) -> None:
        """The tail to files."""
        self.database.tier()

    @rule()
    def upkeep(self) -> None:
        """A whole round: tiering, merging, a checkpoint."""
        self.database.lake.upkeep.round(force=True)

    @rule()
    def purge(self) -> None:
        """A round for which no deleted row is kept."""
        lake = self.database.lake
        kept = lake.options
        lake.options = type(kept)(
            **{name: getattr(kept, name) for name in kept.__slots__ if name != "keep_secs"}, keep_secs=0.0
        )
        lake.upkeep.round(force=True)
        lake.options = kept

    @precondition(lambda self: self.before is None)
    @rule()
    def reopen(self) -> None:
        """The lake closed and opened."""
        self.database.close()
        self.open()

    # --- what must hold ---

    @invariant()
    def holds_the_model(self) -> None:
        """The table is the model, by every way of counting."""
        assert self.found() == self.rows
        assert self.run("SELECT count(*) FROM t") == [(len(self.rows),)]
        if self.before is None:
            table = self.database.lake.state.table("t")
            assert self.database.lake.state.rows(table.id) == len(self.rows)
            self.past[self.database.version] = Counter(self.rows.values())

    @precondition(lambda self: len(self.past) > 1)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """A remembered version reads as it was, unless its time is over."""
        number = data.draw(st.sampled_from(sorted(self.past)))
        try:
            found = Session(self.database).execute(f"SELECT k, a, s FROM t AT (VERSION => {number})").rows()
        except InvalidParameter:
            assert number < self.database.lake.state.table("t").horizon
            return
        assert Counter(found) == self.past[number]


class LaidOut(Changes):
    """The same of a table whose files hold one partition each, rows on a curve: deleted rows move with their order."""

    clauses = "PARTITION BY k CLUSTER BY (a, s)"


def machine(of: type[Changes]) -> Any:
    """The test of a machine."""
    case = of.TestCase
    case.settings = settings(
        max_examples=10,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    return case


TestChanges = machine(Changes)
TestLaidOut = machine(LaidOut)
