"""Files outside the lake as tables. Spec: SQL, Function catalog, table functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lake
from lake.db.session import Session
from lake.embedded import EmbeddedConnection
from lake.errors import InsufficientPrivilege, InvalidParameter, InvalidText, IoFailure
from lake.roles import ANYONE

ROWS = pa.table({"id": [1, 2, 3], "name": ["ann", None, "cid"], "price": [1.5, 2.5, None]})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[EmbeddedConnection]:
    """A lake beside a folder of files."""
    with lake.open(tmp_path / "lake", tier_secs="0") as opened:
        assert isinstance(opened, EmbeddedConnection)
        yield opened


def test_parquet_by_path_glob_folder_and_list(db: EmbeddedConnection, tmp_path: Path) -> None:
    """One file, several, all of a folder; row groups that a filter rules out are not asked for."""
    folder = tmp_path / "data"
    folder.mkdir()
    for part in ("a", "b"):
        pq.write_table(ROWS, folder / f"{part}.parquet", row_group_size=1)
    for source in (f"'{folder}/*.parquet'", f"'{folder}'", f"read_parquet(['{folder}/a.parquet', '{folder}/b.parquet'])"):
        assert db.sql(f"SELECT count(*), sum(id) FROM {source}").rows() == [(6, 12)], source
    assert db.sql(f"SELECT name FROM '{folder}/a.parquet' WHERE id = 3").rows() == [("cid",)]


def test_parquet_columns_by_name(db: EmbeddedConnection, tmp_path: Path) -> None:
    """A column that a file lacks is NULL there; ``union_by_name`` takes columns of all files."""
    pq.write_table(ROWS.select(["id", "name"]), tmp_path / "a.parquet")
    pq.write_table(ROWS.select(["id", "price"]), tmp_path / "b.parquet")
    files = f"['{tmp_path}/a.parquet', '{tmp_path}/b.parquet']"
    assert db.sql(f"SELECT count(name) FROM read_parquet({files})").item() == 2
    both = db.sql(f"SELECT count(name), count(price) FROM read_parquet({files}, union_by_name => true)").rows()
    assert both == [(2, 2)]


def test_csv_and_its_options(db: EmbeddedConnection, tmp_path: Path) -> None:
    """Header, delimiter, quotes, NULL's spelling and names of columns."""
    path = tmp_path / "rows.csv"
    path.write_text('id,name\n1,"a,b"\n2,NA\n3,\n')
    assert db.sql(f"SELECT * FROM '{path}' ORDER BY id").rows() == [(1, "a,b"), (2, "NA"), (3, None)]
    assert db.sql(f"SELECT count(name) FROM read_csv('{path}', nullstr => 'NA')").item() == 1
    path.write_text("1|x\n2|y\n")
    text = f"read_csv('{path}', header => false, delim => '|', columns => {{n: 'BIGINT', word: 'VARCHAR'}})"
    assert db.sql(f"SELECT n, word FROM {text} ORDER BY n").rows() == [(1, "x"), (2, "y")]


def test_json_lines(db: EmbeddedConnection, tmp_path: Path) -> None:
    """A line is a row; a line that is no JSON is refused."""
    path = tmp_path / "rows.ndjson"
    path.write_text('{"id": 1, "tags": [1, 2]}\n{"id": 2}\n')
    assert db.sql(f"SELECT id, tags FROM '{path}' ORDER BY id").rows() == [(1, [1, 2]), (2, None)]
    path.write_text('{"id": 1}\nnonsense\n')
    with pytest.raises(InvalidText):
        db.sql(f"SELECT * FROM '{path}'")


def test_what_readers_refuse(db: EmbeddedConnection, tmp_path: Path) -> None:
    """A file that is not there, an unknown extension, an unknown option, bytes that are no Parquet; each by name."""
    (tmp_path / "odd.xyz").write_text("x")
    (tmp_path / "bad.parquet").write_text("not parquet")
    with pytest.raises(IoFailure, match="no file"):
        db.sql(f"SELECT * FROM '{tmp_path}/none.parquet'")
    with pytest.raises(InvalidParameter, match="no reader"):
        db.sql(f"SELECT * FROM '{tmp_path}/odd.xyz'")
    with pytest.raises(IoFailure, match=r"bad\.parquet"):
        db.sql(f"SELECT * FROM '{tmp_path}/bad.parquet'")
    with pytest.raises(InvalidParameter) as refused:
        db.sql(f"SELECT * FROM read_csv('{tmp_path}/odd.xyz', headr => true)")
    assert "headr" in refused.value.message
    assert "header" in (refused.value.hint or "")


def test_only_the_owner_reads_files(db: EmbeddedConnection, tmp_path: Path) -> None:
    """Whoever comes through a door does not read the node's disk. Spec: HTTP, What the service does 9."""
    pq.write_table(ROWS, tmp_path / "a.parquet")
    stranger = Session(db.database, ANYONE)
    for source in (f"'{tmp_path}/a.parquet'", f"read_parquet('{tmp_path}/a.parquet')"):
        with pytest.raises(InsufficientPrivilege):
            stranger.execute(f"SELECT * FROM {source}")
