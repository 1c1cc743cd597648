"""POST /append, /insert and /tables: rows in, exactly once, or refused by name. Spec: HTTP, Append and bulk insert."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.cluster import Node, Reply, Wire
from tests.doors.test_http_sql import header

ARROW = "application/vnd.apache.arrow.stream"
TABLE = (
    "CREATE TABLE events (id BIGINT NOT NULL, name VARCHAR DEFAULT 'unnamed', price DECIMAL(9,2) CHECK (price > 0), "
    "at TIMESTAMP, day DATE, ok BOOLEAN, tags INT[], share REAL, small SMALLINT)"
)


@pytest.fixture
def wire(node: Node) -> Iterator[Wire]:
    """A connection, and an empty table ``events``."""
    node.sql(f"DROP TABLE IF EXISTS events; {TABLE}")
    wire = node.wire()
    yield wire
    wire.close()


def lines(*rows: dict[str, object]) -> bytes:
    """Rows as newline-delimited JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def stream(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_json_lines_take_defaults(node: Node, wire: Wire) -> None:
    """Constraints 1.6, 1.7: what a row leaves out takes its default, an explicit null is a null; blank lines are nothing. HTTP Append 1, 3."""
    body = lines({"id": 1, "price": 2.5, "tags": [1, None]}, {"id": 2, "name": None, "at": "2024-02-29 12:00:00"}) + b"\n\n"
    done = wire.send("POST", "/append/events", body, Content_Type="application/x-ndjson").json()
    assert done["seg"] > 0 and done["ms"] > 0
    assert (done["duplicate"], done["conflict"], done["row"]) == (False, False, 0)
    assert node.sql("SELECT id, name, price, tags, at FROM events ORDER BY id") == [
        {"id": 1, "name": "unnamed", "price": 2.5, "tags": [1, None]}, {"id": 2, "at": "2024-02-29T12:00:00"},
    ]  # fmt: skip


def test_json_values_are_cast_as_sql_casts_them(node: Node, wire: Wire) -> None:
    """Numbers may be texts and texts may be dates; digits of decimals are never lost to doubles."""
    body = b'{"id": "7", "price": 1234567.89, "day": "2024-02-29", "ok": "true", "share": 1, "small": 3.0, "name": 5}\n'
    assert wire.send("POST", "/append/events", body).status == 200
    assert node.sql("SELECT id, price, day, ok, share, small, name FROM events") == [
        {"id": 7, "price": 1234567.89, "day": "2024-02-29", "ok": True, "share": 1.0, "small": 3, "name": "5"}
    ]


def test_an_arrow_stream(node: Node, wire: Wire) -> None:
    """Columns by name, in any order; types that hold the column's values are cast. HTTP Append 2."""
    table = pa.table(
        {
            "price": pa.array([1, None], pa.decimal128(12, 3)), "id": pa.array([1, 2], pa.int32()),
            "name": pa.array(["a", "b"]).dictionary_encode(), "at": pa.array([0, 1], pa.timestamp("ms")),
        }
    )  # fmt: skip
    assert wire.send("POST", "/append/events", stream(table), Content_Type=ARROW).status == 200
    assert node.sql("SELECT id, name, price FROM events ORDER BY id") == [
        {"id": 1, "name": "a", "price": 1.0}, {"id": 2, "name": "b"},
    ]  # fmt: skip
    assert wire.send("POST", "/append/events", stream(table.slice(0, 0)), Content_Type=ARROW).status == 200


def test_exactly_once(node: Node, wire: Wire) -> None:
    """A repeated seq is a duplicate, a prev that does not match a conflict; neither writes. Spec: HTTP, Append. HTTP Append 5, 6, 7."""
    def send(query: str) -> tuple[bool, bool]:
        done = wire.send("POST", f"/append/events?{query}", b'{"id": 1}').json()
        assert (done["seg"] > 0) == (not done["duplicate"] and not done["conflict"])
        return done["duplicate"], done["conflict"]

    producer = "producer=once"
    assert send(f"{producer}&seq=1") == (False, False)
    assert send(f"{producer}&seq=1") == (True, False)
    assert send(f"{producer}&seq=5&prev=4") == (False, True)
    assert send(f"{producer}&seq=2&prev=1") == (False, False)
    assert send(f"{producer}&seq=9") == (False, False), "without prev, gaps are the producer's affair"
    assert send(f"{producer}&seq=3") == (True, False)
    assert node.sql("SELECT count(*) AS n FROM events") == [{"n": 3}]


REFUSED = [
    (b'{"id": 1, "nope": 2}', "42703", '"nope"'),
    (b'{"name": "x"}', "23502", '"id"'),
    (b'{"id": 1}\n{"id": null}', "23502", '"id"'),
    (b'{"id": 1, "price": -1}', "23514", "price"),
    (b'{"id": "seven"}', "22P02", '"id"'),
    (b'{"id": "seven"}', "22P02", "seven"),
    (b'{"id": 1.5}', "22P02", '"id"'),
    (b'{"id": 1, "small": 40000}', "22003", '"small"'),
    (b'{"id": 1, "price": 99999999.99}', "22003", '"price"'),
    (b'{"id": 1, "at": "yesterday-ish"}', "22007 22P02", '"at"'),
    (b'{"id": 1, "tags": {"a": 1}}', "22P02", '"tags"'),
    (b'{"id": 1}\n[1]\n', "08P01", "line 2"),
    (b'{"id": 1}\n{"id": \n', "08P01", "line 2"),
    (b'{"id": 1}\n\xff\n', "08P01", "line 2"),
]


@pytest.mark.parametrize(("body", "place"), [
    (b"null", "line 1"), (b' null\n{"a": 1}\n', "line 1"), (b'{"a": 1}\nnull\n', "line 2"), (b'{"a": 1} null', "line 1"),
])  # fmt: skip
def test_null_is_no_row(node: Node, wire: Wire, body: bytes, place: str) -> None:
    """At the first of them pyarrow's reader, which reads plain columns, ended the node; HTTP Append 1."""
    node.sql("CREATE OR REPLACE TABLE plain_numbers (a BIGINT, b VARCHAR)")
    reply = wire.send("POST", "/append/plain_numbers", body)
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, "08P01")
    assert place in reply.body.decode()
    assert wire.send("POST", "/append/plain_numbers", b'{"a": null, "b": "null"}\n').status == 200
    assert node.sql("SELECT count(*) AS n, count(b) AS b FROM plain_numbers") == [{"n": 1, "b": 1}]


@pytest.mark.parametrize(("body", "sqlstates", "names"), REFUSED)
def test_rows_that_are_refused(node: Node, wire: Wire, body: bytes, sqlstates: str, names: str) -> None:
    """Constraints 1.3, 1.7, 2.2: the error names column, value or line, and none of the rows is written."""
    reply = wire.send("POST", "/append/events", body)
    assert reply.status == 500
    assert header(reply, "x-lake-sqlstate") in sqlstates.split(), reply.body
    assert names in reply.body.decode(), reply.body
    assert node.sql("SELECT count(*) AS n FROM events") == [{"n": 0}]


def arrow_refusals() -> list[tuple[bytes, str, str]]:
    """Arrow bodies that are refused: what, with which code, naming what."""
    whole = stream(pa.table({"id": [1, 2]}))
    return [
        (whole[:-8], "08P01", "cut off"),
        (whole[: len(whole) // 2], "08P01", "Arrow stream"),
        (b"nonsense", "08P01", "Arrow stream"),
        (b"", "08P01", "Arrow stream"),
        (stream(pa.table({"id": [1], "nope": [1]})), "42703", '"nope"'),
        (stream(pa.table({"id": ["x"]})), "22P02", "x"),
        (stream(pa.table({"id": [1], "name": [1]})).replace(b"name", b"n\xccme"), "08P01", "Arrow stream"),
        (stream(pa.table({"id": pa.array([None], pa.int64())})), "23502", '"id"'),
        (stream(pa.table({"id": [1], "small": [70_000]})), "22003", "70000"),
    ]


@pytest.mark.parametrize(("body", "sqlstate", "names"), arrow_refusals())
def test_arrow_that_is_refused(node: Node, wire: Wire, body: bytes, sqlstate: str, names: str) -> None:
    """A cut stream, an unknown column, a wrong type, a NULL: none of the rows is written."""
    reply = wire.send("POST", "/append/events", body, Content_Type=ARROW)
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, sqlstate), reply.body
    assert names in reply.body.decode(), reply.body
    assert node.sql("SELECT count(*) AS n FROM events") == [{"n": 0}]


@pytest.mark.parametrize(
    ("query", "sqlstate"),
    [("seq=0&producer=p", "22023"), ("seq=x&producer=p", "22023"), ("seq=1", "22023"), ("producer=p", "22023"),
     ("prev=1", "22023"), ("producer=&seq=1", "22023"), ("producer=" + "p" * 300 + "&seq=1", "22023")],
)  # fmt: skip
def test_bad_producers(wire: Wire, query: str, sqlstate: str) -> None:
    """seq counts from 1, and goes with its producer. HTTP Append 4."""
    reply = wire.send("POST", f"/append/events?{query}", b'{"id": 1}')
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, sqlstate)


def test_a_table_that_is_none(wire: Wire) -> None:
    """A near name is the hint; a view takes no rows."""
    reply = wire.send("POST", "/append/event", b'{"id": 1}')
    assert header(reply, "x-lake-sqlstate") == "42P01" and b"events" in reply.body
    wire.send("POST", "/sql", "CREATE OR REPLACE VIEW seen AS SELECT * FROM events")
    assert header(wire.send("POST", "/append/seen", b'{"id": 1}'), "x-lake-sqlstate") == "42809"
    wire.send("POST", "/sql", "DROP VIEW seen")


def test_insert_in_bulk(node: Node, wire: Wire) -> None:
    """The body's query is written, the table made if absent, a job once. Spec: HTTP, POST /insert. HTTP Append 8, 9."""
    node.sql("DROP TABLE IF EXISTS bulk")
    query = "SELECT i AS id, i * 2 AS twice FROM range(0, 20000) AS r(i)"
    assert wire.send("POST", "/insert/bulk?job=load", query).json() == {"rows": 20_000}
    assert wire.send("POST", "/insert/bulk?job=load", query).json() == {"duplicate": True}
    assert wire.send("POST", "/insert/bulk", query).json() == {"rows": 20_000}
    assert node.sql("SELECT count(*) AS n, sum(twice) AS s FROM bulk") == [{"n": 40_000, "s": 799_960_000}]
    assert header(wire.send("POST", "/insert/bulk", "DROP TABLE bulk"), "x-lake-sqlstate") == "42601"


def test_tables_are_defined(node: Node, wire: Wire) -> None:
    """An array or an object of columns; a later definition adds columns at the end. Spec: HTTP, Table definition. HTTP Definitions 1, 3."""
    node.sql("DROP TABLE IF EXISTS defined")
    first = [["id", "Int64"], ["name", "Utf8"]]
    assert wire.send("POST", "/tables/defined", json.dumps(first)).json() == {"table": "defined", "publish": None}
    more = {"columns": [*first, ["at", "Timestamp(Microsecond, None)"], ["ok", "Boolean"]]}
    wire.send("POST", "/append/defined", b'{"id": 1}')
    assert wire.send("POST", "/tables/defined", json.dumps(more)).status == 200
    assert [row["column_name"] for row in node.sql("DESCRIBE defined")] == ["id", "name", "at", "ok"]
    assert wire.send("POST", "/tier").status == 200, "rows older than a column are tiered too"
    assert node.sql("SELECT * FROM defined") == [{"id": 1}]

    def refused(body: str) -> str | None:
        reply: Reply = wire.send("POST", "/tables/defined", body)
        return header(reply, "x-lake-sqlstate")

    assert refused('[["id", "Utf8"]]') == "42804"
    assert refused('[["x", "Nonsense"]]') == "42704"
    assert refused('{"columns": [["x", "Int64"]], "key": ["x"]}') == "42P16"
    assert refused('{"columns": [], "key": "x"}') == "08P01"
    assert refused('{"columns": [], "merge": ["x"]}') == "08P01"
    assert refused('{"columns": [], "ttl": 5}') == "08P01"
    assert refused('{"columnz": []}') == "08P01"
    assert refused("{") == "08P01"
    assert refused('[["x"]]') == "08P01"


def test_tables_are_defined_with_a_key(node: Node, wire: Wire) -> None:
    """Key, merge and layout as members; later bodies add columns and layout, and refuse another key. Spec: HTTP, Table definition. HTTP Definitions 2, 3."""
    node.sql("DROP TABLE IF EXISTS sums; DROP TABLE IF EXISTS newest")

    def define(table: str, **body: object) -> str | None:
        return header(wire.send("POST", f"/tables/{table}", json.dumps(body)), "x-lake-sqlstate")

    columns = [["id", "Int64"], ["n", "Int64"]]
    assert define("sums", columns=columns, key=["id"], merge={"n": "sum"}) is None
    wire.send("POST", "/append/sums", lines({"id": 1, "n": 2}, {"id": 1, "n": 3}))
    more = [*columns, ["top", "Int64"]]
    assert define("sums", columns=more) == "42P16", "a merge table's column needs a function"
    assert define("sums", columns=more, key=["id"], merge={"n": "sum", "top": "max"}) is None
    wire.send("POST", "/append/sums", lines({"id": 1, "n": 1, "top": 9}))
    assert node.sql("SELECT * FROM sums") == [{"id": 1, "n": 6, "top": 9}]
    assert define("sums", columns=[], merge={"n": "max"}) == "42P16"
    columns = [["id", "Int64"], ["seen", "Timestamp(Microsecond, None)"], ["day", "Date32"]]
    layout = {"partition_by": "month(day)", "ttl": "seen:3600", "order_by": "seen", "cluster_by": ["day", "id"], "publish": []}
    assert define("newest", columns=columns, key=["id"], **layout) is None
    assert define("newest", columns=[*columns, ["more", "Utf8"]], cluster_by=["more"], partition_by="month(day)") is None
    (shown,) = node.sql("SHOW CREATE TABLE newest")
    assert shown["definition"].split("\n)\n")[1].split("\n") == [
        "PARTITION BY month(day)", "CLUSTER BY (more)", "SEQUENCE BY seen", "TTL seen + INTERVAL '3600 seconds'",
    ]  # fmt: skip
    assert define("newest", columns=[], key=["day"]) == "42P16"
    assert define("newest", columns=[], partition_by="day") == "42P16"
    assert define("plain", columns=columns, ttl="seen:60") == "42P16"
    assert define("plain", columns=columns, publish=["hudi"]) == "22023"


def test_tiering_keeps_every_row(node: Node, wire: Wire) -> None:
    """POST /tier moves rows to files; answers stay as they were. HTTP Operations 9."""
    wire.send("POST", "/append/events", lines(*({"id": number} for number in range(100))))
    assert wire.send("POST", "/tier").json()["rows_tiered"] >= 100
    wire.send("POST", "/append/events", b'{"id": 100}')
    assert node.sql("SELECT count(*) AS n, max(id) AS m FROM events") == [{"n": 101, "m": 100}]
    assert wire.send("POST", "/tier").json()["rows_tiered"] >= 1, "the node's own records may be tiered with it"
    assert wire.send("GET", "/stats").json()["untiered_rows"] < 100


def test_a_unique_table_takes_no_append(node: Node, wire: Wire) -> None:
    """Constraints 3.7: refused by name; a query's rows are SQL and are taken, or refused with the constraint's name."""
    node.sql("DROP TABLE IF EXISTS once; CREATE TABLE once (a INT UNIQUE)")
    refused = wire.send("POST", "/append/once", b'{"a": 1}')
    assert header(refused, "x-lake-sqlstate") == "0A000" and b"once_a_key" in refused.body
    assert wire.send("POST", "/insert/once", b"SELECT 1 AS a").json() == {"rows": 1}
    twice = wire.send("POST", "/insert/once", b"SELECT 1 AS a")
    assert header(twice, "x-lake-sqlstate") == "23505"
    assert json.loads(header(twice, "x-lake-about") or "")["constraint"] == "once_a_key"


def test_appends_outlive_an_alter(node: Node, wire: Wire) -> None:
    """A rule that comes between two appends holds for the second."""
    assert wire.send("POST", "/append/events", lines({"id": 1, "small": -5})).status == 200
    node.sql("ALTER TABLE events ADD CONSTRAINT positive CHECK (id > 0)")
    refused = wire.send("POST", "/append/events", lines({"id": -1}))
    assert header(refused, "x-lake-sqlstate") == "23514"
    assert wire.send("POST", "/append/events", lines({"id": 2})).status == 200
