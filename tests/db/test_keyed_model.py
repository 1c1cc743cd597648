"""Tables with a key, against a dict: random statements with tiering, compaction and restarts between them.

Four machines share their rules: a plain keyed table, one with SEQUENCE BY, one whose files are partitioned and clustered,
and a merge table. Files, row groups and slices of a compaction are a few rows large, so that every edge is met. After each
step the table, read whole, by filters and key by key, is the model; and its feed from any position leads to it.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lake.config import load
from lake.db.database import Database
from lake.db.feed import Feed
from lake.db.session import Session
from lake.db.write import path
from lake.errors import InvalidParameter
from lake.storage.tables import write
from lake.storage.tiering import generations

Key = tuple[int, str]
Row = tuple[int | None, int]  # value, order
SMALL = ((path, "LOG_ROWS", 6), (write, "KEYED_GROUP_ROWS", 3), (generations, "SLICE_ROWS", 7))
KEYS = st.tuples(st.integers(-2, 6), st.sampled_from(["", "a", "a\0b", "ab"]))
ROWS = st.tuples(KEYS, st.one_of(st.none(), st.integers(-9, 9)), st.integers(0, 5))
NOTHING_DONE = {"rows": 0, "updated": 0, "deleted": 0, "inserted": 0}


def literal(value: object) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "E'" + value.replace("\0", "\\x00") + "'" if "\0" in value else f"'{value}'"
    return str(value)


def values(rows: list[tuple[Key, int | None, int]]) -> str:
    """Rows as VALUES."""
    return ", ".join(f"({k}, {literal(text)}, {literal(v)}, {s})" for (k, text), v, s in rows)


class Keyed(RuleBasedStateMachine):
    """A lake with one keyed table, and what it must hold."""

    columns = "k INT, w VARCHAR, v INT, s INT, PRIMARY KEY (w, k)"
    clauses = ""
    by_order = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="lake-keyed-")
        self.rows: dict[Key, Row] = {}
        self.gone: dict[Key, int] = {}  # orders of deleted rows, which later rows of less order do not pass
        self.before: tuple[dict[Key, Row], dict[Key, int]] | None = None
        self.was: list[tuple[int, dict[Key, Row]]] = []  # positions of the feed, and the rows then
        self.large = [getattr(module, name) for module, name, _ in SMALL]
        for module, name, size in SMALL:
            setattr(module, name, size)
        self.open()

    def open(self) -> None:
        """Opens the lake."""
        self.database = Database.open(load(options={"lake": self.folder, "tier_secs": "0"}))
        self.database.start(None)
        self.session = Session(self.database)

    def teardown(self) -> None:
        """Closes and removes the lake."""
        self.database.close()
        for (module, name, _), size in zip(SMALL, self.large):
            setattr(module, name, size)
        shutil.rmtree(self.folder)

    def run(self, text: str) -> Any:
        """A statement's outcome, or its rows."""
        result = self.session.execute(text)
        return result.rows() if result.is_query else result.outcome

    def take(self, key: Key, value: int | None, order: int) -> None:
        """What becomes of the model with one more row."""
        known = self.rows[key][1] if key in self.rows else self.gone.get(key)
        if self.by_order and known is not None and order < known:
            return
        self.rows[key] = (value, order)
        self.gone.pop(key, None)

    @initialize()
    def make(self) -> None:
        """The empty table."""
        self.run(f"CREATE TABLE t ({self.columns}) {self.clauses}")

    # --- statements ---

    @rule(rows=st.lists(ROWS, min_size=1, max_size=12))
    def insert(self, rows: list[tuple[Key, int | None, int]]) -> None:
        """INSERT through the log or into files: an upsert."""
        assert self.run(f"INSERT INTO t VALUES {values(rows)}") == {"rows": len(rows)}
        for key, value, order in rows:
            self.take(key, value, order)

    @rule(low=st.integers(-2, 6), by=st.integers(-2, 2))
    def update(self, low: int, by: int) -> None:
        """UPDATE by a condition on the key."""
        hit = {key: row for key, row in self.rows.items() if key[0] >= low}
        done = self.run(f"UPDATE t SET v = coalesce(v, 0) + {by} WHERE k >= {low}")
        assert done == {**NOTHING_DONE, "rows": len(hit), "updated": len(hit)}
        self.rows |= {key: ((row[0] or 0) + by, row[1]) for key, row in hit.items()}

    @rule(value=st.integers(-3, 3))
    def delete(self, value: int) -> None:
        """DELETE by a condition on a value."""
        hit = [key for key, row in self.rows.items() if row[0] is not None and row[0] >= value * 3]
        done = self.run(f"DELETE FROM t WHERE v >= {value * 3}")
        assert done == {**NOTHING_DONE, "rows": len(hit), "deleted": len(hit)}
        for key in hit:
            self.gone[key] = self.rows.pop(key)[1]

    @rule(key=KEYS)
    def delete_one(self, key: Key) -> None:
        """DELETE of a key."""
        done = self.run(f"DELETE FROM t WHERE k = {key[0]} AND w = {literal(key[1])}")
        assert done["deleted"] == (key in self.rows)
        if key in self.rows:
            self.gone[key] = self.rows.pop(key)[1]

    @rule(rows=st.lists(ROWS, min_size=1, max_size=5, unique_by=lambda row: row[0]), replaces=st.booleans())
    def conflict(self, rows: list[tuple[Key, int | None, int]], replaces: bool) -> None:
        """INSERT .. ON CONFLICT."""
        action = "UPDATE SET v = excluded.v, s = greatest(t.s, excluded.s)" if replaces else "NOTHING"
        done = self.run(f"INSERT INTO t VALUES {values(rows)} ON CONFLICT (k, w) DO {action}")
        there = [key for key, _, _ in rows if key in self.rows]
        assert done["inserted"] == len(rows) - len(there)
        assert done["updated"] == (len(there) if replaces else 0)
        for key, value, order in rows:
            if key not in self.rows:
                self.take(key, value, order)
            elif replaces:
                self.rows[key] = (value, max(order, self.rows[key][1]))

    @rule()
    def truncate(self) -> None:
        """TRUNCATE."""
        self.run("TRUNCATE t")
        self.rows, self.gone = {}, {}

    # --- transactions ---

    @precondition(lambda self: self.before is None)
    @rule()
    def begin(self) -> None:
        """BEGIN."""
        self.run("BEGIN")
        self.before = dict(self.rows), dict(self.gone)

    @precondition(lambda self: self.before is not None)
    @rule(keeps=st.booleans())
    def end(self, keeps: bool) -> None:
        """COMMIT or ROLLBACK."""
        assert self.before is not None
        self.run("COMMIT" if keeps else "ROLLBACK")
        if not keeps:
            self.rows, self.gone = self.before
        self.before = None

    @precondition(lambda self: self.before is not None)
    @rule(rows=st.lists(ROWS, min_size=1, max_size=3))
    def savepoint(self, rows: list[tuple[Key, int | None, int]]) -> None:
        """Rows that are taken back."""
        kept = dict(self.rows), dict(self.gone)
        self.run("SAVEPOINT s")
        self.insert(rows=rows)
        self.is_the_model()
        self.run("ROLLBACK TO s")
        self.rows, self.gone = kept

    # --- what happens by itself ---

    @rule()
    def tier(self) -> None:
        """The tail becomes a generation."""
        self.database.tier()

    @rule(few=st.integers(2, 4))
    def compact(self, few: int) -> None:
        """Generations become fewer."""
        kept, generations.GENERATIONS_MAX = generations.GENERATIONS_MAX, few
        try:
            self.database.lake.upkeep.round(force=True)
        finally:
            generations.GENERATIONS_MAX = kept

    @precondition(lambda self: self.before is None)
    @rule()
    def restart(self) -> None:
        """The lake is closed and opened again."""
        self.database.close()
        self.open()

    # --- the feed ---

    @precondition(lambda self: self.before is None)
    @rule()
    def remember(self) -> None:
        """A position, and what the table is there."""
        self.was.append((self.database.version, dict(self.rows)))

    def replayed(self, rows: dict[Key, Row], position: int) -> dict[Key, Row]:
        """Rows with what the feed tells since."""
        for batch in Feed.of(self.database, ("t",), old=True).read(position):
            for change in batch.rows.to_pylist():
                key = change["k"], change["w"]
                if change["_change_type"] == "delete":
                    rows.pop(key, None)
                else:
                    rows[key] = change["v"], change["s"]
        return rows

    @precondition(lambda self: self.before is None and self.was and not self.by_order)
    @rule()
    def replay(self) -> None:
        """From the oldest position that is kept; commits go with checkpoints."""
        position, rows = self.was[0]
        try:
            assert self.replayed(dict(rows), position) == self.rows
        except InvalidParameter:
            del self.was[0]

    # --- what holds ---

    @invariant()
    def is_the_model(self) -> None:
        """All rows, some of them, one of them and their number."""
        found = self.run("SELECT k, w, v, s FROM t")
        assert len(found) == len(self.rows)
        assert {(k, w): (v, s) for k, w, v, s in found} == self.rows
        assert self.run("SELECT count(*) FROM t") == [(len(self.rows),)]
        some = {key: row for key, row in self.rows.items() if row[0] is not None and row[0] > 0}
        assert {(k, w): (v, s) for k, w, v, s in self.run("SELECT k, w, v, s FROM t WHERE v > 0")} == some
        for key in [*list(self.rows)[:2], (0, "a"), (3, "")]:
            asked = self.run(f"SELECT v, s FROM t WHERE w = {literal(key[1])} AND k = {key[0]}")
            assert asked == ([self.rows[key]] if key in self.rows else [])


class Ordered(Keyed):
    """SEQUENCE BY: the greatest order wins."""

    clauses = "SEQUENCE BY s"
    by_order = True


class LaidOut(Keyed):
    """Files of one partition, rows on a curve."""

    clauses = "PARTITION BY s CLUSTER BY (v, k)"


class Merged(Keyed):
    """A merge table: values add, the greatest order stays."""

    columns = "k INT, w VARCHAR, v INT MERGE sum, s INT MERGE max, PRIMARY KEY (w, k)"

    def take(self, key: Key, value: int | None, order: int) -> None:
        """Values of one key are put together."""
        before, greatest = self.rows.get(key, (None, 0))
        total = value if before is None else before + (value or 0)
        self.rows[key] = (total, max(greatest, order))

    @precondition(lambda self: False)
    @rule()
    def update(self) -> None:
        """Refused, as ``tests/slt/statements/keyed.slt`` tells."""

    @precondition(lambda self: False)
    @rule()
    def delete(self) -> None:
        """Refused."""

    @precondition(lambda self: False)
    @rule()
    def delete_one(self) -> None:
        """Refused."""

    @precondition(lambda self: False)
    @rule()
    def conflict(self) -> None:
        """Refused."""

    @precondition(lambda self: False)
    @rule()
    def replay(self) -> None:
        """The feed tells what is added, not what it makes."""


def machine(of: type[Keyed]) -> Any:
    """The test of a machine."""
    case = of.TestCase
    case.settings = settings(
        max_examples=6, stateful_step_count=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    return case


TestKeyed = machine(Keyed)
TestOrdered = machine(Ordered)
TestLaidOut = machine(LaidOut)
TestMerged = machine(Merged)
