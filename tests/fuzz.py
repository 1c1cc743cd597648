"""Bad input at the HTTP door: every one gets an answer with a status and an SQLSTATE, and the node goes on.

    python -m tests fuzz --count 50000 --seed 1

Inputs go to POST /sql (mutated statements, broken JSON, bytes), to POST /append (broken lines, wrong types, cut Arrow
streams), to every other endpoint with values of chance, and some are bytes that are hardly HTTP. An input fails the run
when its answer is no HTTP answer, is a 500 without SQLSTATE, or is an internal error (XX000), and when ``SELECT 1`` after
each hundred is not answered with 1. Several connections send at a time, each in a session with a statement timeout: some
mutated recursions have no end. The table is emptied now and then, or its joins would take the time. At the end the node
holds the memory it held after the first tenth, but for some slack. Seeded: a failing input is printed and replayed by its
number.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pyarrow as pa

from lake.types import BIGINT, DATE, INT, TEXT
from tests import fuzz_pg
from tests.cluster import Node, Reply, Wire, running_node
from tests.plans.catalog import MONEY, TPCH
from tests.tpch import QUERIES

CHECK_EVERY: Final = 100
WIRES: Final = 4
EMPTY_EVERY: Final = 1_000
ROWS: Final = 5  # of the tables of TPC-H: few enough for joins that lost their condition
HANG_SECS: Final = 60.0
STATEMENT_SECS: Final = 5.0
NODE: Final = {"LAKE_MEMORY_GB": "0.25"}
QUIET_SECS: Final = 0.1  # a node that says nothing for so long waits for more of a request
TABLE: Final = (
    "CREATE TABLE events (id BIGINT NOT NULL, name VARCHAR, price DECIMAL(9,2), at TIMESTAMP, tags INT[], ok BOOLEAN)"
)
STATEMENTS: Final = (
    *QUERIES.values(),
    "SELECT count(*), sum(id), max(name) FROM events WHERE price > 1.5 GROUP BY ok ORDER BY 1",
    "SELECT id, row_number() OVER (PARTITION BY ok ORDER BY at) FROM events LIMIT 5",
    "INSERT INTO events VALUES (1, 'a', 1.50, TIMESTAMP '2024-01-01 00:00:00', [1, 2], true)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT * FROM n",
    "SELECT CASE WHEN id / 0 = 1 THEN 'x' END, CAST(name AS INT), substr(name, -1, 99) FROM events",
    "EXPLAIN ANALYZE SELECT * FROM events e JOIN events f USING (id)",
    "CREATE TABLE other (a INT DEFAULT 1 CHECK (a > 0)); DROP TABLE other",
    "SELECT DATE '2024-02-30', INTERVAL '1 yeer', 'x'::INT, 1e400, $1, $name",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(x, y) WHERE y LIKE 'a%' ESCAPE '%'",
)
WORDS: Final = (
    "SELECT", "FROM", "WHERE", "(", ")", ",", "'", '"', "--", "/*", ";", "NULL", "0", "-1", "99999999999999999999", "1e309",
    "GROUP BY", "HAVING", "UNION", "EXCEPT", "JOIN", "LATERAL", "OVER", "::", "[", "]", "{", "}", "$1", "\x00", "\ud7ff", "é",
    "DATE", "INTERVAL", "CAST", "AS", "*", "CASE", "END", "IN", "EXISTS", "LIMIT", "OFFSET", "events", "id", "name",
)  # fmt: skip
SCHEMA: Final = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(9, 2)), ("at", pa.timestamp("us"))]
)

# Method, path and names of parameters. What streams without end is asked in forms that end.
ENDPOINTS: Final = (
    ("GET", "/lookup/{}/{}", ()), ("GET", "/sql/pages/{}", ("from", "rows")), ("DELETE", "/sessions/{}", ()),
    ("GET", "/watch/none", ("after", "marks", "changes")), ("POST", "/live", ("every_ms",)), ("POST", "/login", ()),
    ("POST", "/tables/{}", ()), ("POST", "/insert/{}", ("job",)), ("GET", "/whoami", ()), ("GET", "/stats", ()),
    ("PUT", "/files/{}", ()), ("GET", "/files/{}", ("versions", "version")), ("DELETE", "/files/{}", ()),
    ("POST", "/files/{}", ("restore",)), ("POST", "/append/{}", ("producer", "seq", "prev")), ("GET", "/objects", ()),
    ("GET", "/kinds", ()), ("POST", "/sql", ("format", "after", "stale_ms", "job", "rows", "spread")), ("PATCH", "/{}", ()),
    ("POST", "/views/{}", ("window",)), ("POST", "/tasks/{}", ()), ("POST", "/functions/{}", ()), ("GET", "/secrets/{}", ()),
    ("GET", "/sessions/{}/python", ()), ("POST", "/python/format", ()), ("GET", "/databases", ()), ("GET", "/openapi.json", ()),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Input:
    """A request; without a method its body is all that is sent."""

    path: str
    body: bytes
    kind: str
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = ()


def make_input(seed: int, number: int) -> Input:
    """The request of that number."""
    chance = random.Random(f"{seed}/{number}")
    makers: tuple[Callable[[random.Random], Input], ...] = (
        _mutated_sql, _mutated_sql, _bytes_as_sql, _json_sql, _json_lines, _json_lines, _arrow, _bad_query, _endpoint,
        _endpoint, _raw,
    )  # fmt: skip
    return chance.choice(makers)(chance)


def _mutated_sql(chance: random.Random) -> Input:
    tokens = chance.choice(STATEMENTS).split(" ")
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(tokens))
        match chance.randrange(5):
            case 0:
                del tokens[at : at + chance.randint(1, 3)]
            case 1:
                tokens.insert(at, chance.choice(WORDS))
            case 2:
                tokens[at] = chance.choice(WORDS)
            case 3:
                tokens[at:at] = tokens[at : at + chance.randint(1, 8)]
            case _:
                tokens[at] = tokens[at][: chance.randint(0, 4)]
        tokens = tokens or [""]
    format = chance.choice(("json", "typed", "table", "arrow", "csv", "ndjson", "parquet", "nonsense"))
    return Input(f"/sql?format={format}", " ".join(tokens).encode("utf-8", "surrogatepass"), "text/plain")


def _bytes_as_sql(chance: random.Random) -> Input:
    return Input("/sql", chance.randbytes(chance.randint(0, 200)), "text/plain")


def _json_sql(chance: random.Random) -> Input:
    params = {"a": chance.choice([1, "x", None, [1, "b"], {"sql": "DATE '2024-01-01'"}, {"sql": ")"}, {"x": 1}, 1e308])}
    body = json.dumps({"sql": chance.choice(["SELECT $a", "SELECT $a + 1, $b", 7, None]), "params": params}).encode()
    return Input("/sql", _cut(chance, body), "application/json")


def _json_lines(chance: random.Random) -> Input:
    values = (1, -1, 2**63, 1.5, "x", "2024-01-01", "12.345", None, True, [1], {"a": 1}, "1" * 40, "\ud800", "NaN")
    names = ("name", "price", "at", "tags", "ok", "no")
    rows = []
    for number in range(chance.randint(1, 4)):
        row = {"id": number} if chance.random() < 0.8 else {}
        rows.append(json.dumps(row | {name: chance.choice(values) for name in chance.sample(names, chance.randint(0, 2))}))
    return Input(_append_path(chance), _cut(chance, "\n".join(rows).encode()), "application/x-ndjson")


def _arrow(chance: random.Random) -> Input:
    rows = chance.randint(0, 50)
    batch = pa.record_batch(
        [pa.array(range(rows), pa.int64()), pa.array(["n"] * rows), *(pa.nulls(rows, type) for type in SCHEMA.types[2:])],
        schema=SCHEMA,
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch)
    return Input(_append_path(chance), _cut(chance, sink.getvalue().to_pybytes()), "application/vnd.apache.arrow.stream")


def _bad_query(chance: random.Random) -> Input:
    path = chance.choice(
        ("/append/events?seq=0&producer=p", "/append/events?seq=x&producer=p", "/append/events?prev=1", "/append/none",
         "/sql?rows=0&format=typed", "/sql?after=-1", "/sql?after=x", "/append/a.b.c.d", "/append/%00",
         "/sql?job=" + "j" * 400, "/insert/events", "/tables/events", "/tables/other", "/sql/pages/x", "/nowhere")
    )  # fmt: skip
    return Input(path, b'{"id": 1}' if "append" in path else b"SELECT 1", "text/plain")


def _endpoint(chance: random.Random) -> Input:
    """An endpoint with a path, parameters, headers and a body of chance."""
    method, path, names = chance.choice(ENDPOINTS)
    word = chance.choice(("events", "a", "\u00e9", "..", "a.b", "a/b", "", "%", "x" * 300, "\x00", "1,2", "'; --", "session-1"))
    path = path.replace("{}", quote(word, safe="/,"))
    values = ("", "1", "0", "-1", "x", "1e9", "9" * 30, "true", "\u00e9", "SELECT 1", "SELECT id FROM events", "events", "%00")
    query = "&".join(f"{name}={quote(chance.choice(values))}" for name in names if chance.random() < 0.5)
    headers = tuple(
        (name, chance.choice(values[:9]).encode("ascii", "ignore").decode())
        for name in ("x-lake-session", "x-lake-owner", "Authorization", "If-Match", "If-None-Match", "Accept-Encoding")
        if chance.random() < 0.2
    )
    bodies = (b"", b"{}", b"[]", b"null", b'{"queries": [{"id": 1, "sql": "SELECT nothing"}]}', b'{"user": "a", "password": "b"}',
              b'[["a", "Int64"]]', b'{"sql": "SELECT 1", "views": {"v": "SELECT 1"}, "tables": {"t": [{"a": 1}]}}',
              chance.randbytes(20))  # fmt: skip
    kind = chance.choice(("application/json", "text/plain", "application/vnd.apache.arrow.stream", "x", ""))
    return Input(f"{path}?{query}" if query else path, _cut(chance, chance.choice(bodies)), kind, method, headers)


def _raw(chance: random.Random) -> Input:
    """A request whose very bytes are changed."""
    given = chance.choice((_json_sql, _mutated_sql, _endpoint))(chance)
    head = [f"{given.method} {given.path} HTTP/1.1", "Host: x", f"Content-Length: {len(given.body)}", "Connection: close"]
    head += [f"{name}: {value}" for name, value in given.headers]
    if chance.random() < 0.3:
        head.insert(1, chance.choice(("Transfer-Encoding: chunked", "Content-Encoding: gzip", "Expect: 100-continue", "Upgrade: x",
                                      "Content-Length: -1", "X: " + "y" * 9_000, "Content-Type: application/json")))  # fmt: skip
    sent = bytearray("\r\n".join(head).encode() + b"\r\n\r\n" + given.body)
    for _ in range(chance.choice((0, 1, 1, 3))):
        sent[chance.randrange(min(len(sent), 200))] = chance.randrange(256)
    return Input("", bytes(sent), "", "")


def _append_path(chance: random.Random) -> str:
    once = f"?producer=p{chance.randrange(4)}&seq={chance.randint(1, 10**6)}"
    return "/append/events" + (once if chance.random() < 0.5 else "")


def _cut(chance: random.Random, body: bytes) -> bytes:
    """The body as it is, cut short, or with some bytes changed."""
    match chance.randrange(6):
        case 0 if body:
            return body[: chance.randrange(len(body))]
        case 1 if body:
            changed = bytearray(body)
            for _ in range(chance.randint(1, 4)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            return bytes(changed)
        case _:
            return body


def wrong(reply: Reply) -> str | None:
    """What is wrong with an answer, or None."""
    sqlstate = _sqlstate(reply)
    if reply.status == 200:
        return None
    if reply.status not in (304, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 417, 500, 503):
        return f"status {reply.status}"
    if reply.status == 500 and (sqlstate is None or sqlstate == "XX000"):
        return f"SQLSTATE {sqlstate}: {reply.body.decode(errors='replace')[:300]}"
    return None


def _sqlstate(reply: Reply) -> str | None:
    return {name.lower(): value for name, value in reply.headers.items()}.get("x-lake-sqlstate")


def fuzz(node: Node, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Sends the inputs, a hundred at a time; counts by SQLSTATE, and what went wrong."""
    for text in (TABLE, *_tables()):
        node.sql(text)
    seen: Counter[str] = Counter()
    failures: list[str] = []
    wires = threading.local()
    before = 0.0

    def send(number: int) -> tuple[str, str | None]:
        given = make_input(seed, number)
        try:
            code, problem = _converse(node, given.body) if not given.method else _ask(node, wires, given)
        except OSError as error:
            code, problem = "no answer", f"no answer: {error!r}"
        return code, problem and f"input {number} {given.method} {given.path} {given.body[:2_000]!r}\n    {problem}"

    with ThreadPoolExecutor(WIRES) as pool:
        for start in range(0, count, CHECK_EVERY):
            for code, problem in pool.map(send, range(start, min(count, start + CHECK_EVERY))):
                seen[code] += 1
                failures += [problem] if problem else []
            assert node.sql("SELECT 1 AS one") == [{"one": 1}], "the node does not answer SELECT 1"
            if start % EMPTY_EVERY == 0:
                node.sql("DELETE FROM events")
            if before == 0.0 and start >= count // 10:
                before = fuzz_pg.resident_mb(node)
    after = fuzz_pg.resident_mb(node)
    print(f"memory {before:.0f} to {after:.0f} MB")
    if after > before + fuzz_pg.GROWTH_MB_MAX:
        failures.append(f"memory grew from {before:.0f} to {after:.0f} MB")
    return seen, failures


def _tables() -> list[str]:
    """Statements that make the tables of TPC-H, of few rows: what is mutated shall be bound and run, where it still can be."""
    values = {BIGINT: "k", INT: "k", TEXT: "'x' || k", MONEY: "k + 0.25", DATE: "DATE '1995-01-01' + k"}
    return [
        f"CREATE TABLE {name} AS SELECT {', '.join(f'{values[type]} AS {column}' for column, type, *_ in columns)} "
        f"FROM (SELECT value::INT AS k FROM range({ROWS})) AS r"
        for name, (_, columns) in TPCH.items()
    ]


def _ask(node: Node, wires: threading.local, given: Input) -> tuple[str, str | None]:
    """Status or SQLSTATE of the answer, and what is wrong with it."""
    wire = getattr(wires, "wire", None)
    if wire is None:
        wire = wires.wire = Wire(node.port, HANG_SECS)
        wires.session = {"x_lake_session": f"fuzz-{threading.get_ident()}"}
        wire.send("POST", "/sql", f"SET statement_timeout = '{STATEMENT_SECS:g}s'", **wires.session)
    headers = {name.replace("-", "_"): value for name, value in given.headers}
    if not given.headers and given.path.startswith("/sql"):
        headers = wires.session
    started = time.monotonic()
    try:
        reply = wire.send(given.method, given.path, given.body, Content_Type=given.kind, **headers)
    except (OSError, http.client.HTTPException) as error:
        wire.close()
        wires.wire = None
        if time.monotonic() - started > STATEMENT_SECS and not isinstance(error, TimeoutError):
            return "cut short", None  # a streamed answer has no other way to tell of 57014
        return "no answer", f"no answer: {error!r}"
    return _sqlstate(reply) or str(reply.status), wrong(reply)


def _converse(node: Node, sent: bytes) -> tuple[str, str | None]:
    """The status of the answer to bytes, ``waits`` where the node waits for more of them, and what is wrong."""
    answer = b""
    with socket.create_connection(("127.0.0.1", node.port), timeout=HANG_SECS) as raw:
        try:
            raw.sendall(sent)
            raw.settimeout(QUIET_SECS)
            while data := raw.recv(1 << 16):
                answer += data
        except TimeoutError:
            return "raw waits", None
        except OSError:
            return "raw closed", None
    if not answer:
        return "raw closed", None
    status = answer[:12].decode("latin-1").partition(" ")[2]
    bad = status == "500" and (b"x-lake-sqlstate" not in answer.lower() or b"XX000" in answer)
    return f"raw {status}", f"{answer[:500]!r}" if bad or not status.isdigit() else None


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzzes a node of its own; 1 when an input was answered wrongly."""
    options = argparse.ArgumentParser("python -m tests fuzz")
    options.add_argument("--count", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--door", choices=("http", "pg"), default="http")
    given = options.parse_args(argv)
    if given.door == "pg":
        return fuzz_pg.run(given.count, given.seed)
    with tempfile.TemporaryDirectory() as folder, running_node(Path(folder) / "lake", environ=NODE) as node:
        seen, failures = fuzz(node, given.count, given.seed)
        rows = node.sql("SELECT count(*) AS rows FROM events")[0]["rows"]
    for failure in failures[:20]:
        print(failure)
    print(f"{given.count} inputs, {len(failures)} answered wrongly, {rows} rows; by SQLSTATE: {dict(seen.most_common())}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
