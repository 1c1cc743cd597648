"""Files outside the lake as tables. Spec: SQL, Function catalog, table functions."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lake
from lake.db.session import Session
from lake.embedded import EmbeddedConnection
from lake.errors import InsufficientPrivilege, InvalidParameter, InvalidText, IoFailure, UndefinedColumn
from lake.roles import ANYONE

ROWS = pa.table({"id": [1, 2, 3], "name": ["ann", None, "cid"], "price": [1.5, 2.5, None]})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[EmbeddedConnection]:
    """A lake beside a folder of files."""
    with lake.open(tmp_path / "lake", tier_secs="0") as opened:
        assert isinstance(opened, EmbeddedConnection)
        yield opened


@pytest.mark.parametrize("text", [
    "null", ' \n null\n{"id": 1}\n', '{"id": 1}\nnull\n', '{"id": 1}\n' * 450_000 + "null\n" * 4,
], ids=["alone", "first", "second", "later block"])  # fmt: skip
def test_json_rows_that_are_null_are_refused(db: EmbeddedConnection, tmp_path: Path, text: str) -> None:
    """A row is an object; at a null in the place of a block's first, pyarrow's reader would end the process."""
    (tmp_path / "rows.json").write_text(text)
    for source in (f"'{tmp_path}/rows.json'", f"read_json('{tmp_path}/rows.json', columns => {{'id': 'BIGINT'}})"):
        with pytest.raises(InvalidText, match="a row that is null"):
            db.sql(f"SELECT count(*), sum(id) FROM {source}")


def test_null_within_a_json_row_is_a_value(db: EmbeddedConnection, tmp_path: Path) -> None:
    """As a value, and as a part of texts."""
    (tmp_path / "rows.json").write_text('{"id": null, "name": "} null"}\n{"id": 1, "name": "\\nnull"}\n')
    assert db.sql(f"SELECT id, name FROM '{tmp_path}/rows.json'").rows() == [(None, "} null"), (1, "\nnull")]


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


REGIONS = (("eu", "2024-01-02", [1, 2]), ("us", "2024-01-03", [3]), ("__HIVE_DEFAULT_PARTITION__", "2024-01-04", [4]))


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """A folder of files with keys in their paths."""
    for region, day, ids in REGIONS:
        folder = tmp_path / "sales" / f"region={region}" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), folder / "part-0.parquet")
        (folder / "rows.csv").write_text("id\n" + "".join(f"{id}\n" for id in ids))
    return tmp_path / "sales"


def test_hive_keys(db: EmbeddedConnection, sales: Path) -> None:
    """Keys in paths are columns of the types that they look like, or that are given. Spec: SQL, Function catalog."""
    files = f"'{sales}/*/*/*.parquet'"
    text = f"SELECT id, region, day::VARCHAR FROM read_parquet({files}, hive_partitioning => true) ORDER BY id"
    assert db.sql(text).rows() == [
        (1, "eu", "2024-01-02"), (2, "eu", "2024-01-02"), (3, "us", "2024-01-03"), (4, None, "2024-01-04"),
    ]  # fmt: skip
    typed = f"read_parquet({files}, hive_types => {{day: VARCHAR}})"
    assert db.sql(f"SELECT typeof(day), typeof(region) FROM {typed} LIMIT 1").rows() == [("VARCHAR", "VARCHAR")]
    with pytest.raises(InvalidParameter, match="no partition key"):
        db.sql(f"SELECT * FROM read_parquet({files}, hive_types => {{town: VARCHAR}})")
    with pytest.raises(InvalidText, match="region"):
        db.sql(f"SELECT * FROM read_parquet({files}, hive_types => {{region: INT}})")


def test_partitions_of_external_tables(db: EmbeddedConnection, sales: Path) -> None:
    """PARTITIONED BY names the columns that stand in the names of folders, of given types where columns are given."""
    db.sql(
        "CREATE EXTERNAL TABLE typed (id BIGINT, day DATE, region VARCHAR) STORED AS CSV PARTITIONED BY (region, day) "
        f"LOCATION '{sales}/*/*/*.csv' OPTIONS ('format.has_header' 'true')"
    )
    assert db.sql("SELECT id, region FROM typed WHERE day > DATE '2024-01-02' ORDER BY id").rows() == [(3, "us"), (4, None)]
    db.sql(f"CREATE EXTERNAL TABLE found STORED AS PARQUET PARTITIONED BY (region, day) LOCATION '{sales}/*/*/*.parquet'")
    assert db.sql("SELECT count(*), max(region) FROM found").rows() == [(4, "us")]
    with pytest.raises(UndefinedColumn, match="town"):
        db.sql(f"CREATE EXTERNAL TABLE e (id BIGINT) STORED AS CSV PARTITIONED BY (town) LOCATION '{sales}/*/*/*.csv'")


def test_hive_keys_leave_files_unread(db: EmbeddedConnection, sales: Path) -> None:
    """A file that a filter on its keys rules out is not read: here it could not be."""
    next((sales / "region=eu").glob("*/*.csv")).write_text("id\nnot a number\n")
    found = f"read_csv('{sales}/*/*/*.csv', hive_partitioning => true, columns => {{id: BIGINT}})"
    assert db.sql(f"SELECT id FROM {found} WHERE region = 'us'").rows() == [(3,)]
    assert db.sql(f"SELECT id FROM {found} WHERE day > DATE '2024-01-03'").rows() == [(4,)]
    assert db.sql(f"SELECT count(*) FROM {found} WHERE region IS NULL AND day IN ('2024-01-04')").item() == 1
    with pytest.raises(InvalidText):
        db.sql(f"SELECT id FROM {found} WHERE region = 'eu'").rows()


def test_csv_comments_returns_and_compression(db: EmbeddedConnection, tmp_path: Path) -> None:
    """Lines that are comments, lines that end with a carriage return, tabulators, files that are compressed."""
    path = tmp_path / "rows.csv"
    path.write_text("# made today\nid,name\n1,a\n# between\n2,#b\n# the end")
    assert db.sql(f"SELECT * FROM read_csv('{path}', comment => '#') ORDER BY id").rows() == [(1, "a"), (2, "#b")]
    path.write_bytes(b"id,name\r1,a\r2,b\r")
    assert db.sql(f"SELECT count(*), sum(id) FROM read_csv('{path}', new_line = '\\r')").rows() == [(2, 3)]
    with gzip.open(tmp_path / "rows.tsv.gz", "wt") as file:
        file.write("id\tname\n1\ta\n")
    assert db.sql(f"SELECT * FROM '{tmp_path}/rows.tsv.gz'").rows() == [(1, "a")]
    with gzip.open(tmp_path / "rows.ndjson.gz", "wt") as file:
        file.write('{"id": 7}\n')
    assert db.sql(f"SELECT id FROM '{tmp_path}/rows.ndjson.gz'").item() == 7
    path.write_text("1;'a;b'\n2;'c''d'\n")
    options = "header = false, sep = ';', quote = '''', columns = {id: DECIMAL(5,1), name: VARCHAR}"
    rows = db.sql(f"SELECT id::VARCHAR, name FROM read_csv('{path}', {options}) ORDER BY id").rows()
    assert rows == [("1.0", "a;b"), ("2.0", "c'd")]


def test_texts_by_name(db: EmbeddedConnection, tmp_path: Path) -> None:
    """``union_by_name`` takes the columns of all text files; types that differ are the wider."""
    (tmp_path / "a.csv").write_text("id,x\n1,1\n")
    (tmp_path / "b.csv").write_text("id,x,y\n2,1.5,z\n")
    rows = db.sql(f"SELECT id, x, y FROM read_csv('{tmp_path}/*.csv', union_by_name => true) ORDER BY id").rows()
    assert rows == [(1, 1.0, None), (2, 1.5, "z")]
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    (tmp_path / "b.json").write_text('{"id": 2, "tag": "t"}\n')
    rows = db.sql(f"SELECT id, tag FROM read_json('{tmp_path}/*.json', union_by_name => true) ORDER BY id").rows()
    assert rows == [(1, None), (2, "t")]


def test_arrow_files(db: EmbeddedConnection, tmp_path: Path) -> None:
    """Arrow IPC, as a file and as a stream."""
    with pa.ipc.new_file(tmp_path / "rows.arrow", ROWS.schema) as file:
        file.write_table(ROWS)
    with pa.ipc.new_stream(tmp_path / "stream.arrow", ROWS.schema) as stream:
        stream.write_table(ROWS)
    for name in ("rows", "stream"):
        assert db.sql(f"SELECT count(*), sum(id), max(name) FROM '{tmp_path}/{name}.arrow'").rows() == [(3, 6, "cid")]


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
    assert 'Did you mean "header"?' in (refused.value.hint or "")
    assert "known options: header, delim" in (refused.value.hint or "")
    for option, words in (("header => 'x'", "true or false"), ("delim => '||'", "one ASCII"), ("columns => 1", "a struct")):
        with pytest.raises(InvalidParameter, match=words):
            db.sql(f"SELECT * FROM read_csv('{tmp_path}/odd.xyz', {option})")


def test_only_the_owner_reads_files(db: EmbeddedConnection, tmp_path: Path) -> None:
    """Whoever comes through a door does not read the node's disk. Spec: HTTP, What the service does 9."""
    pq.write_table(ROWS, tmp_path / "a.parquet")
    stranger = Session(db.database, ANYONE)
    for source in (f"'{tmp_path}/a.parquet'", f"read_parquet('{tmp_path}/a.parquet')"):
        with pytest.raises(InsufficientPrivilege):
            stranger.execute(f"SELECT * FROM {source}")


@pytest.mark.parametrize("extension", ["parquet", "csv", "csv.gz", "json", "ndjson.zst", "arrow"])
def test_copy_to_and_back(db: EmbeddedConnection, tmp_path: Path, extension: str) -> None:
    """What COPY writes the readers read; the format and the compression come from the name."""
    path = tmp_path / f"rows.{extension}"
    assert db.sql(f"COPY (SELECT n AS id, 'x' || n AS name FROM range(5) t(n)) TO '{path}'").outcome == {
        "rows": 5, "to": str(path),
    }  # fmt: skip
    assert db.sql(f"SELECT count(*), sum(id), max(name) FROM '{path}'").rows() == [(5, 10, "x4")]


def test_copy_options(db: EmbeddedConnection, tmp_path: Path) -> None:
    """Row groups and codecs of Parquet, delimiters of CSV, values that only text holds; unknown options list the known ones."""
    path = tmp_path / "rows.parquet"
    db.sql(f"COPY (SELECT * FROM range(10)) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 4)")
    written = pq.ParquetFile(path).metadata
    assert (written.num_row_groups, written.row_group(0).column(0).compression) == (3, "ZSTD")
    text = tmp_path / "rows.csv"
    db.sql(f"COPY (SELECT 1 AS a, [1, 2] AS l, INTERVAL '1 day' AS i) TO '{text}' (HEADER false, DELIMITER ';')")
    assert text.read_text() == '1;"[1, 2]";"1 days"\n'
    with pytest.raises(InvalidParameter) as refused:
        db.sql(f"COPY (SELECT 1) TO '{text}' (HEADR true)")
    assert refused.value.hint == 'Did you mean "header"? known options: header, has_header, delim, delimiter, sep, compression'
    with pytest.raises(InvalidParameter, match="no compression"):
        db.sql(f"COPY (SELECT 1) TO '{path}' (COMPRESSION zip)")
