"""POST /sql: formats, pages, parameters, jobs, errors. Spec: HTTP, Query."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cluster import Node, Reply, running_node

VALUES = (
    "SELECT 1 AS i, 9007199254740993 AS big, 1.50 AS d, 0.5::DOUBLE AS f, 'a,\"b' AS s, '' AS e, NULL::INT AS n, true AS b, "
    "DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:30:00' AS at, X'00ff' AS x, [1, NULL, 3] AS l"
)


def ask(node: Node, body: str | bytes, query: str = "", **headers: str) -> Reply:
    """The answer to POST /sql."""
    wire = node.wire()
    try:
        return wire.send("POST", f"/sql?{query}", body, **headers)
    finally:
        wire.close()


def header(reply: Reply, name: str) -> str | None:
    """A header by its name in lower case."""
    return {key.lower(): value for key, value in reply.headers.items()}.get(name)


def test_json_leaves_nulls_out(node: Node) -> None:
    """The default: an array with an object for each row. Spec: HTTP, Query, answer rule 1. HTTP Query 5."""
    reply = ask(node, VALUES)
    assert (reply.status, header(reply, "content-type"), header(reply, "x-lake-tag")) == (200, "application/json", "SELECT")
    assert reply.json() == [
        {"i": 1, "big": 9007199254740993, "d": 1.5, "f": 0.5, "s": 'a,"b', "e": "", "b": True, "day": "2024-02-29",
         "at": "2024-02-29T12:30:00", "x": "00ff", "l": [1, None, 3]}
    ]  # fmt: skip
    assert b'"d":1.50' in reply.body, "decimals keep their digits"
    assert ask(node, "SELECT 1 AS a WHERE false").json() == []


def test_typed_tells_types_and_keeps_digits(node: Node) -> None:
    """Decimals, and integers beyond 2^53, are texts. Spec: HTTP, Query, answer rule 4. HTTP Query 9."""
    answer = ask(node, VALUES, "format=typed").json()
    assert [column["name"] for column in answer["columns"]][:3] == ["i", "big", "d"]
    assert [column["type"] for column in answer["columns"]][:3] == ["Int64", "Int64", "Decimal128(3, 2)"]
    assert answer["rows"][0][:7] == [1, "9007199254740993", "1.50", 0.5, 'a,"b', "", None]
    assert (answer["total"], answer["pages"]) == (1, None)


def test_text_formats(node: Node) -> None:
    """table is drawn; csv and tsv quote what must be; ndjson is a line a row. HTTP Query 7, 10."""
    drawn = ask(node, "SELECT 1 AS id, 'Ann' AS name, NULL AS gone", "format=table").body.decode()
    line = "+----+------+------+\n"
    assert drawn == f"{line}| id | name | gone |\n{line}|  1 | Ann  | NULL |\n{line}(1 row)\n"
    csv = ask(node, VALUES, "format=csv")
    assert csv.body.decode() == (
        "i,big,d,f,s,e,n,b,day,at,x,l\n"
        '1,9007199254740993,1.50,0.5,"a,""b","",,true,2024-02-29,2024-02-29T12:30:00,00ff,"[1, NULL, 3]"\n'
    )
    assert header(csv, "content-disposition") == 'attachment; filename="answer.csv"'
    assert ask(node, "SELECT 1 AS a, 'x\ty' AS b", "format=tsv").body == b'a\tb\n1\t"x\ty"\n'
    assert ask(node, "SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS t(a, b) ORDER BY 1", "format=ndjson").body == (
        b'{"a":1,"b":"x"}\n{"a":2}\n'
    )


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_binary_formats(node: Node, format: str) -> None:
    """Arrow and Parquet carry the types; an answer without rows has its columns. HTTP Query 8, 10."""
    def table(text: str) -> pa.Table:
        body = ask(node, text, f"format={format}").body
        return pa.ipc.open_stream(body).read_all() if format == "arrow" else pq.read_table(io.BytesIO(body))

    found = table(VALUES)
    assert found.schema.field("d").type == pa.decimal128(3, 2)
    assert found.to_pylist()[0]["l"] == [1, None, 3]
    empty = table("SELECT 1 AS a, 'x' AS b WHERE false")
    assert (empty.num_rows, empty.column_names) == (0, ["a", "b"])


def test_what_is_not_a_query_answers_an_object(node: Node) -> None:
    """In every format. Spec: HTTP, Query, answer rule 2. HTTP Query 6."""
    for number, format in enumerate(("json", "typed", "table", "arrow", "csv", "parquet")):
        table = f"made_{number}"
        reply = ask(node, f"CREATE TABLE {table} (a INT); INSERT INTO {table} VALUES (1), (2)", f"format={format}")
        assert (reply.json(), header(reply, "x-lake-tag")) == ({"rows": 2}, "INSERT 0")
    assert ask(node, "CREATE TABLE made (a INT)").json() == {"table": "made", "publish": None}


def test_pages_keep_an_answer(node: Node) -> None:
    """Later pages are of the same answer, though the table has changed; a page that is gone is 410. HTTP Query 17, 18, 19."""
    ask(node, "CREATE TABLE paged AS SELECT i FROM range(0, 25000) AS r(i)")
    first = ask(node, "SELECT i FROM paged ORDER BY i", "format=typed").json()
    assert (len(first["rows"]), first["total"]) == (10_000, 25_000)
    ask(node, "TRUNCATE TABLE paged")
    wire = node.wire()
    page = wire.send("GET", f"/sql/pages/{first['pages']}?from=24998&rows=10").json()
    assert (page["rows"], page["total"], page["pages"]) == ([[24998], [24999]], 25_000, first["pages"])
    assert wire.send("GET", f"/sql/pages/{first['pages']}?from=30000").json()["rows"] == []
    assert wire.send("GET", "/sql/pages/nonsense").status == 410
    small = ask(node, "SELECT i FROM range(0, 3) AS r(i) ORDER BY i", "format=typed&rows=2").json()
    assert (small["rows"], small["total"]) == ([[0], [1]], 3)
    assert len(wire.send("GET", f"/sql/pages/{small['pages']}").json()["rows"]) == 3


@pytest.mark.parametrize(
    ("query", "sqlstate"),
    [("format=nonsense", "22023"), ("format=typed&rows=0", "22023"),
     ("format=typed&rows=100001", "22023"), ("after=x", "22023"), ("after=-1", "22023"), ("stale_ms=x", "22023"), ("spread=2", "22023"), ("job=" + "j" * 300, "22023")],
)  # fmt: skip
def test_bad_query_strings(node: Node, query: str, sqlstate: str) -> None:
    """A parameter out of its domain is refused by name, whatever the statement. HTTP Query 12, 13, 14, 15, 17."""
    text = "CREATE TABLE never AS SELECT 1 AS a" if "job" in query else "SELECT 1"
    reply = ask(node, text, query)
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, sqlstate)


def sent(node: Node, sql: str, **params: Any) -> Reply:
    """A statement with parameters, as JSON."""
    return ask(node, json.dumps({"sql": sql, "params": params}), Content_Type="application/json")


def test_parameters(node: Node) -> None:
    """JSON values, lists, and expressions for what JSON cannot type; never pasted into the text. HTTP Query 2, 3."""
    reply = sent(node, "SELECT $a + 1 AS a, $b AS b, $c AS c, $d AS d", a=41, b="'; DROP TABLE x", c=[1, 2], d=None)
    assert reply.json() == [{"a": 42, "b": "'; DROP TABLE x", "c": [1, 2]}]
    reply = sent(node, "SELECT $day + INTERVAL '1 day' AS next", day={"sql": "DATE '2024-02-28'"})
    assert reply.json()[0]["next"].startswith("2024-02-29")
    assert sent(node, "SELECT $1 AS a, $2 AS b", **{"1": 1, "2": "x"}).json() == [{"a": 1, "b": "x"}]
    assert header(sent(node, "SELECT $missing"), "x-lake-sqlstate") == "42P02"
    assert header(sent(node, "SELECT $a", a={"sql": "SELECT"}), "x-lake-sqlstate") == "42601"


@pytest.mark.parametrize("body", ["{", "[]", '{"sql": 7}', '{"params": {}}', '{"sql": "SELECT 1", "params": []}', "",
                                  '{"sql": "SELECT 1", "views": []}', '{"sql": "SELECT 1", "views": {"a": 1}}',
                                  '{"sql": "SELECT 1", "tables": {"a": 1}}', '{"sql": "SELECT 1", "tables": {"a": [1]}}'])
def test_bad_json_bodies(node: Node, body: str) -> None:
    """A body that says it is JSON and is not such an object."""
    reply = ask(node, body, Content_Type="application/json")
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, "08P01")


def test_several_statements(node: Node) -> None:
    """They run in order, the answer is the last one's; those before a failed one stay done. HTTP Query 1."""
    assert ask(node, "CREATE TABLE steps (a INT); INSERT INTO steps VALUES (1); SELECT a FROM steps").json() == [{"a": 1}]
    assert ask(node, "INSERT INTO steps VALUES (2); SELECT * FROM nowhere").status == 500
    assert ask(node, "SELECT count(*) AS n FROM steps").json() == [{"n": 2}]
    assert ask(node, "").json() == {}


def test_a_job_is_applied_once(node: Node) -> None:
    """A write that is sent again with its job id answers that it is a duplicate. Spec: HTTP, Query, job. HTTP Query 16."""
    ask(node, "CREATE TABLE jobs (a INT)")
    assert ask(node, "INSERT INTO jobs VALUES (1)", "job=j1").json() == {"rows": 1}
    assert ask(node, "INSERT INTO jobs VALUES (1)", "job=j1").json() == {"duplicate": True}
    assert ask(node, "SELECT count(*) AS n FROM jobs").json() == [{"n": 1}]


def test_errors_tell_their_code_and_place(node: Node) -> None:
    """Status 500, the message as plain text, the code and the position as headers. Spec: HTTP, Query, answer rule 7. HTTP Query 22."""
    reply = ask(node, "SELECT nope FROM (SELECT 1 AS note)")
    assert (reply.status, header(reply, "x-lake-sqlstate"), header(reply, "x-lake-position")) == (500, "42703", "8")
    assert reply.body.decode().startswith('column "nope" does not exist')
    assert (header(reply, "content-type") or "").startswith("text/plain")
    syntax = ask(node, "SELECT FROM FROM t")
    assert header(syntax, "x-lake-sqlstate") == "42601" and b"^" in syntax.body
    late = ask(node, "SELECT 1 / (i - 5) FROM range(0, 10) AS r(i)", "format=csv")
    assert (late.status, header(late, "x-lake-sqlstate")) == (500, "22012"), "a small answer fails with its status"
    assert header(ask(node, b"\xff\xfe"), "x-lake-sqlstate") == "08P01"


def test_errors_name_what_they_are_about(node: Node) -> None:
    """Names come as JSON in a header, for programs."""
    reply = ask(node, "CREATE TABLE about (a INT CONSTRAINT positive CHECK (a > 0)); INSERT INTO about VALUES (0)")
    about = json.loads(header(reply, "x-lake-about") or "")
    assert about == {"schema": "public", "table": "about", "constraint": "positive"}


def test_files_of_the_machine_are_the_owners(node: Node) -> None:
    """SQL sent to a node reads no file of the node's disk. Spec: HTTP, What the service does 9. HTTP Rights 18."""
    for text in ("SELECT * FROM '/etc/passwd.csv'", "SELECT * FROM read_csv('/etc/passwd')"):
        reply = ask(node, text)
        assert (reply.status, header(reply, "x-lake-sqlstate")) == (403, "42501")
        reply = ask(node, text, x_lake_owner="guessed")
        assert reply.status == 403


def test_sessions_keep_settings(node: Node) -> None:
    """A session is named by a header, keeps what SET says, and ends. Spec: HTTP, Session. HTTP Query 21; HTTP Operations 10."""
    ask(node, "SET TIME ZONE 'Europe/Berlin'", x_lake_session="session-1")
    assert ask(node, "SHOW timezone", x_lake_session="session-1").json() == [{"timezone": "Europe/Berlin"}]
    assert ask(node, "SHOW timezone", x_lake_session="session-2").json() == [{"timezone": "UTC"}]
    wire = node.wire()
    assert wire.send("DELETE", "/sessions/session-1").json() == {"ended": True}
    assert ask(node, "SHOW timezone", x_lake_session="session-1").json() == [{"timezone": "UTC"}]
    assert header(ask(node, "SELECT 1", x_lake_session="short"), "x-lake-sqlstate") == "22023"


def test_after_waits_for_a_commit(node: Node) -> None:
    """An append's seg is what a later query may wait for. HTTP Query 13."""
    ask(node, "CREATE TABLE waited (a INT)")
    wire = node.wire()
    seg = wire.send("POST", "/append/waited", b'{"a": 1}').json()["seg"]
    assert ask(node, "SELECT count(*) AS n FROM waited", f"after={seg}").json() == [{"n": 1}]


def test_a_session_holds_a_transaction_and_temporary_tables(node: Node) -> None:
    """By ``x-lake-session``; nobody else sees them, and ending the session ends them. Spec: HTTP, Session. HTTP Rights 19."""
    node.sql("CREATE TABLE held (a INT)")

    def said(text: str, session: str) -> Any:
        reply = node.wire().send("POST", "/sql", text, x_lake_session=session)
        return reply.json() if reply.status == 200 else reply.headers["x-lake-sqlstate"]

    said("CREATE TEMP TABLE mine AS SELECT 7 AS a", "session-one")
    said("BEGIN", "session-one")
    said("INSERT INTO held SELECT a FROM mine", "session-one")
    said("SAVEPOINT s", "session-one")
    said("DELETE FROM held", "session-one")
    said("ROLLBACK TO s", "session-one")
    assert said("SELECT a FROM held", "session-one") == [{"a": 7}]
    assert said("SELECT a FROM held", "session-two") == []
    assert said("SELECT a FROM mine", "session-two") == "42P01"
    assert said("SELECT 1 / 0", "session-one") == "22012"
    assert said("SELECT 1", "session-one") == "25P02"
    assert said("ROLLBACK TO s", "session-one") == {"transaction": "rollback"}
    assert said("COMMIT", "session-one") == {"transaction": "commit"}
    assert said("SELECT a FROM held", "session-two") == [{"a": 7}]
    said("BEGIN; DELETE FROM held", "session-one")
    assert node.wire().send("DELETE", "/sessions/session-one").json() == {"ended": True}
    assert said("SELECT a FROM held", "session-one") == [{"a": 7}]
    assert said("SELECT a FROM mine", "session-one") == "42P01"


def test_a_request_without_a_session_leaves_nothing(node: Node) -> None:
    """Its statements see each other's temporary tables; an open transaction is rolled back at its end."""
    text = "CREATE TEMP TABLE brief AS SELECT i FROM range(1000) AS r(i); SELECT count(*) AS n FROM brief"
    assert node.sql(text) == [{"n": 1_000}]
    reply = node.wire().send("POST", "/sql", "SELECT * FROM brief")
    assert reply.headers["x-lake-sqlstate"] == "42P01"
    node.sql("CREATE TABLE brief_too (a INT); BEGIN; INSERT INTO brief_too VALUES (1)")
    assert node.sql("SELECT * FROM brief_too") == []


def test_notices(node: Node) -> None:
    """What a statement says beside its answer, as a JSON list in x-lake-notices. HTTP Query 20."""
    text = "CREATE TABLE IF NOT EXISTS noticed (a INT)"
    assert header(ask(node, text), "x-lake-notices") is None
    assert json.loads(header(ask(node, text), "x-lake-notices") or "") == ['relation "noticed" already exists, skipping']


@pytest.mark.parametrize("format", ["json", "typed"])
def test_a_statement_timeout_of_the_session(node: Node, format: str) -> None:
    """A statement without an end is stopped where its session says so, on both ways that answers are made."""
    session = f"limited-{format}"
    ask(node, "SET statement_timeout = '200ms'", x_lake_session=session)
    text = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n WHERE i < 10) SELECT * FROM n"
    reply = ask(node, text, f"format={format}", x_lake_session=session)
    assert header(reply, "x-lake-sqlstate") == "57014"
    assert b"statement timeout" in reply.body
    assert ask(node, "SELECT 1 AS a", x_lake_session=session).json() == [{"a": 1}]


def test_whole_answers_are_held_by_the_memory_of_queries(tmp_path: Path) -> None:
    """Those in pieces may be of any size; the others are refused where they would take the node's memory."""
    with running_node(tmp_path / "lake", environ={"LAKE_MEMORY_GB": "0.03"}) as small:
        for format in ("typed", "table"):
            reply = ask(small, "SELECT * FROM range(20000000)", f"format={format}")
            assert header(reply, "x-lake-sqlstate") == "53200", reply.body
            assert ask(small, "SELECT 1 AS a", f"format={format}").status == 200
        assert ask(small, "SELECT * FROM range(8000000)", "format=csv").status == 200
