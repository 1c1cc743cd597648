"""``python -m tests model``: random statements against a plain model of what append tables are, were and become.

    python -m tests model --runs 2000 --steps 50 --seed 1

A run makes a lake in memory and takes random steps: rows in and out by every statement, ALTER, TRUNCATE, DROP and UNDROP,
RESTORE, CLONE, transactions with savepoints, tiering, merging, restarts and kills. After each step all tables are what the
model says; at every remembered version they are what they were; and the feed from any such version leads to the table. Rows
carry a number ``k`` of their own, by which the model knows them; their ``_row_id`` never changes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lake.clock import SystemClock
from lake.config import load
from lake.db.database import Database, storage_options
from lake.db.feed import Feed
from lake.db.session import Session
from lake.db.write import path
from lake.errors import LakeError, UndefinedTable
from lake.storage.lake import Lake
from lake.storage.objects import MemoryStore

NAMES: Final = ("t", "u", "v")
COLUMNS: Final = ("p", "q", "r", "s")
LOG_ROWS: Final = 12  # of one statement; more go to files, so that small tests have files
Row = dict[int, Any]  # by column id


@dataclass(slots=True)
class Column:
    """A column: its own number, its name, and what values it takes."""

    id: int
    name: str
    type: str


@dataclass(slots=True)
class Model:
    """A table as it should be; ``was`` are its columns and rows at remembered versions."""

    name: str
    columns: list[Column]
    rows: dict[int, Row] = field(default_factory=dict)
    ids: dict[int, int] = field(default_factory=dict)
    was: dict[int, tuple[list[Column], dict[int, Row]]] = field(default_factory=dict)
    born: int = 0
    next_column: int = 10
    missing: dict[int, Any] = field(default_factory=dict)  # by column, what rows have that were written before it
    laid_out: set[int] = field(default_factory=set)  # columns of PARTITION BY and CLUSTER BY, which stay

    def copy_of(self) -> tuple[list[Column], dict[int, Row]]:
        """Columns and rows, to be kept."""
        return ([Column(c.id, c.name, c.type) for c in self.columns], {k: dict(row) for k, row in self.rows.items()})

    def shown(self, columns: Sequence[Column], rows: dict[int, Row]) -> list[tuple[Any, ...]]:
        """Rows as SELECT answers them."""
        return sorted((k, *(row.get(column.id) for column in columns)) for k, row in rows.items())


class World:
    """A lake and its model."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.store = MemoryStore(SystemClock())
        self.tables: dict[str, Model] = {}
        self.dropped: list[Model] = []
        self.next_k = 1
        self.done: list[str] = []
        self.open()

    def open(self) -> None:
        """Opens the lake."""
        config = load(options={"lake": "memory:", "tier_secs": "0", "retain_secs": "0", "cores": "1"})
        options = storage_options(config)
        lake = Lake.open(self.store, options=type(options)(**{
            **{name: getattr(options, name) for name in options.__slots__}, "upkeep": False, "inline_bytes": 600,
            "checkpoint_commits": 8, "gc_secs": 0.0, "orphan_secs": 0.0,
        }))  # fmt: skip
        self.database = Database(lake, config, lake.clock)
        self.session = Session(self.database)

    def run(self, text: str) -> Any:
        """A statement's rows or outcome."""
        self.done.append(text)
        result = self.session.execute(text)
        return result.rows() if result.is_query else result.outcome

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One random step, and what must hold after it."""
        steps: list[tuple[int, Callable[[], None]]] = [
            (8, self.create), (24, self.insert), (14, self.update), (12, self.delete), (8, self.merge), (10, self.alter),
            (3, self.truncate), (4, self.drop), (4, self.undrop), (6, self.restore), (4, self.clone), (7, self.tier),
            (5, self.upkeep), (4, self.restart), (9, self.transaction), (4, self.copy_of_the_past), (6, self.feed),
        ]  # fmt: skip
        self.chance.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()
        self.check()

    def table(self) -> Model | None:
        """A random table."""
        return self.chance.choice(list(self.tables.values())) if self.tables else None

    def create(self) -> None:
        """CREATE TABLE under a free name."""
        free = [name for name in NAMES if name not in self.tables]
        if free:
            made = Model(self.chance.choice(free), [Column(1, "a", "INT"), Column(2, "b", "TEXT")])
            layout = self.chance.choice(("", "", "CLUSTER BY (k)", "CLUSTER BY (b, a)", "PARTITION BY a"))
            made.laid_out = {column.id for column in made.columns if f"({column.name}" in layout or f" {column.name}" in layout}
            self.run(f"CREATE TABLE {made.name} (k BIGINT NOT NULL, a INT, b TEXT) {layout}")
            made.born = self.database.version
            self.tables[made.name] = made

    def fresh(self, model: Model) -> Row:
        """Values of a new row."""
        return {column.id: self.value(column) for column in model.columns if self.chance.random() < 0.8}

    def value(self, column: Column) -> Any:
        """A value for a column."""
        if column.type == "TEXT":
            return self.chance.choice(("x", "yy", "", "ü", "x" * 90))
        return self.chance.choice((0, 1, -5, 100)) if column.type == "INT" else self.chance.choice((3, 1 << 40))

    def insert(self) -> None:
        """INSERT of a few rows, or of so many that they go to files."""
        model = self.table()
        if model is not None:
            self.insert_into(model, self.chance.choice((1, 1, 2, 3, LOG_ROWS + 3)))

    def insert_into(self, model: Model, count: int) -> None:
        """Inserts new rows; more than LOG_ROWS by INSERT .. SELECT."""
        rows = []
        for _ in range(count):
            row = self.fresh(model)
            model.rows[self.next_k] = row
            rows.append((self.next_k, *(row.get(column.id) for column in model.columns)))
            self.next_k += 1
        listed = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        names = ", ".join(["k", *(column.name for column in model.columns)])
        if count > LOG_ROWS:
            self.run(f"INSERT INTO {model.name} ({names}) SELECT * FROM (VALUES {listed}) AS w({names})")
        else:
            self.run(f"INSERT INTO {model.name} ({names}) VALUES {listed}")

    def some(self, model: Model) -> tuple[str, list[int]]:
        """A condition and the rows for which it holds."""
        by, rest = self.chance.choice((1, 2, 3, 5)), self.chance.randrange(3)
        return f"k % {by} = {rest}", [k for k in model.rows if k % by == rest]

    def update(self) -> None:
        """UPDATE."""
        model = self.table()
        if model is not None and model.columns:
            column = self.chance.choice(model.columns)
            value = self.value(column)
            condition, hit = self.some(model)
            counted = self.run(f"UPDATE {model.name} SET {column.name} = {literal(value)} WHERE {condition}")
            assert counted["updated"] == len(hit), counted
            for k in hit:
                model.rows[k][column.id] = value

    def delete(self) -> None:
        """DELETE."""
        model = self.table()
        if model is not None:
            condition, hit = self.some(model)
            assert self.run(f"DELETE FROM {model.name} WHERE {condition}")["deleted"] == len(hit)
            for k in hit:
                del model.rows[k]

    def merge(self) -> None:
        """MERGE with all kinds of clauses."""
        model = self.table()
        if model is None or not model.columns:
            return
        column = self.chance.choice(model.columns)
        known = self.chance.sample(sorted(model.rows), min(3, len(model.rows)))
        gone = known[:1] if self.chance.random() < 0.5 else []
        new = [self.next_k, self.next_k + 1]
        self.next_k += 2
        values = {k: self.value(column) for k in (*known, *new)}
        listed = ", ".join(f"({k}, {literal(value)}, {k in gone})" for k, value in values.items())
        self.run(
            f"MERGE INTO {model.name} USING (VALUES {listed}) AS w(k, x, gone) ON {model.name}.k = w.k "
            f"WHEN MATCHED AND w.gone THEN DELETE WHEN MATCHED THEN UPDATE SET {column.name} = w.x "
            f"WHEN NOT MATCHED THEN INSERT (k, {column.name}) VALUES (w.k, w.x)"
        )
        for k in known:
            if k in gone:
                del model.rows[k]
            else:
                model.rows[k][column.id] = values[k]
        model.rows |= {k: {column.id: values[k]} for k in new}

    def alter(self) -> None:
        """ADD, DROP, RENAME COLUMN, TYPE, RENAME TABLE."""
        model = self.table()
        if model is None:
            return
        free = [name for name in COLUMNS if name not in {column.name for column in model.columns}]
        column = self.chance.choice(model.columns) if model.columns else None
        match self.chance.randrange(5):
            case 0 if free:
                made = Column(model.next_column, free[0], self.chance.choice(("INT", "TEXT")))
                model.next_column += 1
                value = self.value(made) if self.chance.random() < 0.5 else None
                rule = self.chance.choice(("", " NOT NULL")) if value is not None else ""
                given = "" if value is None else f"{rule} DEFAULT {literal(value)}"
                self.run(f"ALTER TABLE {model.name} ADD COLUMN {made.name} {made.type}{given}")
                if value is not None:  # what later statements leave out is NULL, which the model is simpler with
                    self.run(f"ALTER TABLE {model.name} ALTER COLUMN {made.name} DROP DEFAULT")
                    model.missing[made.id] = value
                if rule:
                    self.run(f"ALTER TABLE {model.name} ALTER COLUMN {made.name} DROP NOT NULL")
                model.columns.append(made)
                for row in model.rows.values():
                    row[made.id] = value
            case 1 if column is not None and column.id not in model.laid_out:
                self.run(f"ALTER TABLE {model.name} DROP COLUMN {column.name}")
                model.columns.remove(column)
                for row in model.rows.values():
                    row.pop(column.id, None)
            case 2 if column is not None and free:
                self.run(f"ALTER TABLE {model.name} RENAME COLUMN {column.name} TO {free[-1]}")
                column.name = free[-1]
            case 3 if column is not None and column.type == "INT":
                self.run(f"ALTER TABLE {model.name} ALTER COLUMN {column.name} TYPE BIGINT")
                column.type = "BIGINT"
            case 4:
                names = [name for name in NAMES if name not in self.tables]
                if names:
                    self.run(f"ALTER TABLE {model.name} RENAME TO {names[0]}")
                    del self.tables[model.name]
                    model.name = names[0]
                    self.tables[model.name] = model

    def truncate(self) -> None:
        """TRUNCATE."""
        model = self.table()
        if model is not None:
            self.run(f"TRUNCATE {model.name}")
            model.rows = {}

    def drop(self) -> None:
        """DROP, with and without PURGE."""
        model = self.table()
        if model is not None:
            purge = self.chance.random() < 0.2
            self.run(f"DROP TABLE {model.name}{' PURGE' if purge else ''}")
            del self.tables[model.name]
            if not purge:
                self.dropped.append(model)

    def undrop(self) -> None:
        """UNDROP of the table dropped last under a name."""
        found = [model for model in self.dropped if model.name not in self.tables]
        if found:
            name = self.chance.choice(found).name
            model = [each for each in found if each.name == name][-1]
            self.run(f"UNDROP TABLE {name}")
            self.dropped.remove(model)
            self.tables[name] = model

    def restore(self) -> None:
        """RESTORE to a remembered version: rows as they were, columns as they are."""
        model = self.table()
        if model is not None and model.was:
            version = self.chance.choice(sorted(model.was))
            self.run(f"RESTORE TABLE {model.name} TO VERSION AS OF {version}")
            ids = {column.id for column in model.columns}
            columns, rows = model.was[version]
            before = {column.id for column in columns}
            added = {id: value for id, value in model.missing.items() if id in ids - before}
            model.rows = {k: added | {id: value for id, value in row.items() if id in ids} for k, row in rows.items()}

    def clone(self) -> None:
        """CLONE under a free name."""
        model, free = self.table(), [name for name in NAMES if name not in self.tables]
        if model is not None and free:
            self.run(f"CREATE TABLE {free[0]} CLONE {model.name}")
            columns, rows = model.copy_of()
            made = Model(free[0], columns, rows, dict(model.ids), next_column=model.next_column)
            made.missing, made.laid_out = dict(model.missing), set(model.laid_out)
            made.born = self.database.version
            self.tables[made.name] = made

    def tier(self) -> None:
        """The tail to files."""
        self.done.append("-- tier")
        self.database.tier()

    def upkeep(self) -> None:
        """A whole round: tiering, merging, expiry, a checkpoint, removal of commits and orphans."""
        self.done.append("-- upkeep")
        self.database.lake.upkeep.round(force=True)

    def restart(self) -> None:
        """The lake closed and opened, or left as by a kill."""
        kill = self.chance.random() < 0.5
        self.done.append("-- kill" if kill else "-- restart")
        if kill:
            self.database.lake._step_down()
        else:
            self.database.close()
        self.open()

    def transaction(self) -> None:
        """Several statements between BEGIN and its end, with a savepoint."""
        if not self.tables:
            return
        before = {name: model.copy_of()[1] for name, model in self.tables.items()}
        self.run("BEGIN")
        kept = before
        for number in range(self.chance.randrange(1, 6)):
            if number == 2:
                self.run("SAVEPOINT s")
                kept = {name: model.copy_of()[1] for name, model in self.tables.items()}
            self.chance.choice((self.insert, self.update, self.delete, self.merge, self.truncate))()
            self.check_now(ids=False)
            if number > 2 and self.chance.random() < 0.3:
                self.run("ROLLBACK TO s")
                self._take(kept)
                self.check_now(ids=False)
        if self.chance.random() < 0.3:
            self.run("ROLLBACK")
            self._take(before)
        else:
            self.run("COMMIT")

    def _take(self, rows: dict[str, dict[int, Row]]) -> None:
        for name, found in rows.items():
            self.tables[name].rows = {k: dict(row) for k, row in found.items()}

    def copy_of_the_past(self) -> None:
        """INSERT .. SELECT of what a table was, under new numbers."""
        model = self.table()
        if model is None or not model.was:
            return
        version = self.chance.choice(sorted(model.was))
        columns, rows = model.was[version]
        names = {column.name for column in model.columns}
        shared = [column for column in columns if column.name in names and column.type != "BIGINT"]
        targets = {column.name: column for column in model.columns}
        shared = [column for column in shared if (column.type == "TEXT") == (targets[column.name].type == "TEXT")]
        listed = ", ".join(["k", *(column.name for column in shared)])
        asked = ", ".join([f"k + {self.next_k}", *(column.name for column in shared)])
        form = self.chance.choice((f"AT (VERSION => {version})", f"VERSION AS OF {version}"))
        self.run(f"INSERT INTO {model.name} ({listed}) SELECT {asked} FROM {model.name} {form}")
        model.rows |= {
            k + self.next_k: {targets[c.name].id: row[c.id] for c in shared if row.get(c.id) is not None}
            for k, row in rows.items()
        }
        self.next_k += self.next_k

    def feed(self) -> None:
        """The feed from a remembered version, replayed on what the table was then, is the table."""
        model = self.table()
        if model is None or not model.was:
            return
        version = self.chance.choice(sorted(model.was))
        names = ["k", *(column.name for column in model.columns)]
        ids = [column.id for column in model.columns]
        columns, before = model.was[version]
        added = {id: value for id, value in model.missing.items() if id not in {column.id for column in columns}}
        rows = {k: (k, *((added | row).get(id) for id in ids)) for k, row in before.items()}
        feed = Feed.of(self.database, (model.name,), old=True)
        for batch in feed.read(version):
            for change in batch.rows.to_pylist():
                row = tuple(change[name] for name in names)
                if change["_change_type"] in ("delete", "update_preimage"):
                    assert rows.pop(row[0]) == row, f"the feed takes away {row}"
                else:
                    assert row[0] not in rows, f"the feed adds {row} again"
                    rows[row[0]] = row
        assert sorted(rows.values()) == model.shown(model.columns, model.rows), f"feed of {model.name} from {version}"

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """All tables are what the model says, at this moment and at a remembered one."""
        self.check_now(ids=True)
        version = self.database.version
        for model in self.tables.values():
            model.was[version] = model.copy_of()
            if len(model.was) > 12:
                del model.was[self.chance.choice(sorted(model.was))]
        model = self.table()
        if model is not None and model.was:
            self.look_back(model, self.chance.choice(sorted(model.was)))

    def check_now(self, *, ids: bool) -> None:
        """Rows, their number, and their ids."""
        for model in self.tables.values():
            names = ", ".join(["_row_id", "k", *(column.name for column in model.columns)])
            found = self.session.execute(f"SELECT {names} FROM {model.name}").rows()
            rows = sorted(row[1:] for row in found)
            assert rows == model.shown(model.columns, model.rows), f"{model.name}\n{rows}\n{model.rows}"
            counted = self.session.execute(f"SELECT count(*) FROM {model.name}").rows()
            assert counted == [(len(rows),)], f"{model.name} counts {counted}"
            if ids:
                for row in found:
                    assert model.ids.setdefault(row[1], row[0]) == row[0], f"{model.name}: row {row[1]} has another id"

    def look_back(self, model: Model, version: int) -> None:
        """A table at a remembered version, in one of the forms of AT."""
        columns, rows = model.was[version]
        names = ", ".join(["k", *(column.name for column in columns)])
        form = self.chance.choice((f"AT (VERSION => {version})", f"VERSION AS OF {version}"))
        found = self.session.execute(f"SELECT {names} FROM {model.name} {form}").rows()
        assert sorted(found) == model.shown(columns, rows), f"{model.name} at {version}"
        starred = self.session.execute(f"SELECT * FROM {model.name} {form}")
        assert sorted(starred.names) == sorted(["k", *(column.name for column in columns)])
        starred.run_through()
        try:
            self.session.execute(f"SELECT * FROM {model.name} AT (VERSION => {model.born - 1})").rows()
        except UndefinedTable:
            return
        raise AssertionError(f"{model.name} is read before it was there")

    def close(self) -> None:
        """Ends the lake."""
        self.database.close()


def literal(value: Any) -> str:
    """A value as SQL."""
    return "NULL" if value is None else str(value) if isinstance(value, int) else "'" + value + "'"


def play(chance: random.Random, steps: int) -> None:
    """One run.

    AssertionError, LakeError  something is not as the model says; the note lists the statements
    """
    kept, path.LOG_ROWS = path.LOG_ROWS, LOG_ROWS  # type: ignore[misc]
    world = World(chance)
    try:
        for _ in range(steps):
            world.step()
    except (AssertionError, LakeError) as failure:
        failure.add_note(";\n".join(world.done[-60:]))
        raise
    finally:
        path.LOG_ROWS = kept  # type: ignore[misc]
        world.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Plays the runs asked for; 1 at the first that fails."""
    options = argparse.ArgumentParser("python -m tests model")
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--steps", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--from-run", type=int, default=0)
    given = options.parse_args(argv)
    started = time.monotonic()
    for number in range(given.from_run, given.runs):
        try:
            play(random.Random(f"{given.seed}/{number}"), given.steps)
        except Exception:
            print(f"run {number} of seed {given.seed} failed", flush=True)
            raise
        if number % 100 == 99:
            print(f"{number + 1} runs, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{given.runs - given.from_run} runs of {given.steps} steps: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
