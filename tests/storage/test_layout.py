"""Where rows are put: one partition a file, rows sorted or on a curve, and what a filter then leaves unread."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import lake
from lake.connection import Connection
from lake.embedded import EmbeddedConnection
from lake.storage.tables.arrange import hilbert, unit_numbers


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """An empty lake."""
    return lake.open(str(tmp_path_factory.mktemp("layout")), tier_secs="0")


def parts(db: Connection, query: str) -> tuple[int, int]:
    """How many parts a query's scan reads, and how many it skips."""
    text = "\n".join(str(row[-1]) for row in db.sql(f"EXPLAIN ANALYZE {query}").rows())
    found = re.search(r"parts=(\d+)(?:, skipped=(\d+))?", text)
    assert found is not None, text
    return int(found[1]), int(found[2] or 0)


@pytest.mark.parametrize(
    ("unit", "files"), [("year(ts)", 2), ("month(ts)", 3), ("day(ts)", 4), ("hour(ts)", 5), ("v", 3)]
)
def test_a_file_holds_one_partition(db: Connection, unit: str, files: int) -> None:
    """Options 4; Tables 29: of each unit, times before 1970 and NULL too; the log's rows when tiered, bulk rows at once."""
    db.sql(f"CREATE OR REPLACE TABLE p (ts TIMESTAMP, v INT) PARTITION BY {unit}")
    times = "'1969-12-31 23:59:59.5', '2024-01-01 00:00:00', '2024-01-31 10:00:00', '2024-01-31 11:30:00', '2024-02-01 00:00:00'"
    db.sql(f"INSERT INTO p SELECT t::TIMESTAMP, i % 3 FROM (SELECT unnest([{times}]) AS t), generate_series(1, 4000) g(i)")
    assert parts(db, "SELECT count(*) FROM p")[0] == files
    db.sql("INSERT INTO p VALUES (NULL, 1), ('2024-02-01 12:00:00', 1)")
    db.sql("CHECKPOINT")
    wanted = "v = 2" if unit == "v" else "ts = TIMESTAMP '2024-01-31 10:00:00'"
    read, skipped = parts(db, f"SELECT count(*) FROM p WHERE {wanted}")
    assert (read, skipped > 0) == (1, True)


def test_clusters_let_filters_skip(db: Connection) -> None:
    """Options 6, 7: one column sorts; of two on a curve either lets row groups be skipped."""
    rows = "SELECT (i * 7919) % 100003 AS a, (i * 104729) % 100019 AS b FROM generate_series(1, 1000000) g(i)"
    db.sql(f"CREATE TABLE plain AS {rows}")
    db.sql(f"CREATE TABLE sorted CLUSTER BY (b) AS {rows}")
    db.sql(f"CREATE TABLE curved (a BIGINT, b BIGINT) CLUSTER BY (a, b) AS {rows}")
    asked = "SELECT count(*), sum(a), sum(b) FROM {table} WHERE {test}"
    for test in ("a < 2000", "b BETWEEN 50000 AND 51000"):
        answers = {table: db.sql(asked.format(table=table, test=test)).rows() for table in ("plain", "sorted", "curved")}
        assert len({tuple(answer) for answer in answers.values()}) == 1
        assert parts(db, asked.format(table="plain", test=test))[1] == 0
        assert parts(db, asked.format(table="curved", test=test))[1] >= 3
    assert parts(db, asked.format(table="sorted", test="b BETWEEN 50000 AND 51000"))[0] <= 2


def test_the_curve_visits_every_point_once_by_single_steps() -> None:
    """Of a square of 16 by 16 and a cube of 8: neighbours on the curve are neighbours in space."""
    for dimensions, bits in ((2, 4), (3, 3)):
        points = np.stack(np.meshgrid(*[np.arange(1 << bits)] * dimensions)).reshape(dimensions, -1).astype(np.int64)
        places = np.empty(points.shape[1], np.int64)
        hilbert(points.copy(), bits, places)
        assert sorted(places) == list(range(points.shape[1]))
        steps = np.abs(np.diff(points[:, np.argsort(places)], axis=1)).sum(axis=0)
        assert (steps == 1).all()


def test_units_of_times() -> None:
    """Whole units since 1970, rounded down before it; NULL is a unit of its own."""
    values = pa.array([0, -1, 86_400_000_000 * 31, None], pa.int64()).cast(pa.timestamp("us"))
    assert unit_numbers(values, "day", is_date=False).tolist()[:3] == [0, -1, 31]
    assert unit_numbers(values, "month", is_date=False).tolist()[:3] == [0, -1, 1]
    assert unit_numbers(values, "year", is_date=False).tolist()[:3] == [0, -1, 0]
    assert unit_numbers(values, "day", is_date=False)[3] == np.iinfo(np.int64).min
    days = pa.array([0, -1, 31], pa.int32()).cast(pa.date32())
    assert unit_numbers(days, "month", is_date=True).tolist() == [0, -1, 1]


def test_files_follow_the_layout_they_were_written_under(db: Connection) -> None:
    """Tables 19: ALTER .. CLUSTER BY orders files from then on; older ones stay as they are."""
    db.sql("CREATE TABLE later (a INT)")
    db.sql("INSERT INTO later VALUES (3), (1), (2)")
    db.sql("CHECKPOINT")
    db.sql("ALTER TABLE later CLUSTER BY (a)")
    db.sql("INSERT INTO later VALUES (6), (4), (5)")
    db.sql("CHECKPOINT")
    assert [row[0] for row in db.sql("SELECT a FROM later").rows()] == [3, 1, 2, 4, 5, 6]


def test_small_inserts_become_one_file(db: Connection) -> None:
    """Tables 31: a hundred statements on each of two tables are one file of each after a tiering."""
    db.sql("CREATE TABLE one (a INT); CREATE TABLE two (a INT)")
    for number in range(100):
        db.sql(f"INSERT INTO one VALUES ({number}); INSERT INTO two VALUES ({number})")
    assert isinstance(db, EmbeddedConnection)
    storage = db.database.lake
    storage.tier()
    assert [storage.state.table(name).file_count for name in ("one", "two")] == [1, 1]
    assert db.sql("SELECT count(*), sum(a) FROM one").rows() == [(100, 4950)]
