"""Bad input at the HTTP door: every one gets an answer with a status and an SQLSTATE, and the node goes on.

    python -m tests fuzz --count 50000 --seed 1

Half of the inputs go to POST /sql (mutated statements, broken JSON, bytes), half to POST /append (broken lines, wrong
types, cut Arrow streams, bad query strings). An input fails the run when its answer is no HTTP answer, is a 500 without
SQLSTATE, or is an internal error (XX000), and when ``SELECT 1`` after each 200 inputs is not answered with 1.
Seeded: a failing input is printed and replayed by its number.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from tests import fuzz_pg
from tests.cluster import Node, Reply, running_node
from tests.tpch import QUERIES

CHECK_EVERY: Final = 200
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


@dataclass(frozen=True, slots=True)
class Input:
    """A request."""

    path: str
    body: bytes
    kind: str


def make_input(seed: int, number: int) -> Input:
    """The request of that number."""
    chance = random.Random(f"{seed}/{number}")
    makers: tuple[Callable[[random.Random], Input], ...] = (
        _mutated_sql, _mutated_sql, _bytes_as_sql, _json_sql, _json_lines, _json_lines, _arrow, _bad_query,
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
    sqlstate = {name.lower(): value for name, value in reply.headers.items()}.get("x-lake-sqlstate")
    if reply.status == 200:
        return None
    if reply.status not in (400, 401, 403, 404, 405, 413, 500, 503):
        return f"status {reply.status}"
    if reply.status == 500 and (sqlstate is None or sqlstate == "XX000"):
        return f"SQLSTATE {sqlstate}: {reply.body.decode(errors='replace')[:300]}"
    return None


def fuzz(node: Node, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Sends the inputs; counts by SQLSTATE, and what went wrong."""
    node.sql(TABLE)
    seen: Counter[str] = Counter()
    failures: list[str] = []
    wire = node.wire()
    for number in range(count):
        given = make_input(seed, number)
        try:
            reply = wire.send("POST", given.path, given.body, Content_Type=given.kind)
        except OSError as error:
            failures.append(f"input {number} {given}: no answer: {error!r}")
            break
        problem = wrong(reply)
        if problem is not None:
            failures.append(f"input {number} {given.path} {given.body[:2_000]!r}\n    {problem}")
        seen[{name.lower(): value for name, value in reply.headers.items()}.get("x-lake-sqlstate", str(reply.status))] += 1
        if number % CHECK_EVERY == 0:
            assert node.sql("SELECT 1 AS one") == [{"one": 1}], "the node does not answer SELECT 1"
    wire.close()
    return seen, failures


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzzes a node of its own; 1 when an input was answered wrongly."""
    options = argparse.ArgumentParser("python -m tests fuzz")
    options.add_argument("--count", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--door", choices=("http", "pg"), default="http")
    given = options.parse_args(argv)
    if given.door == "pg":
        return fuzz_pg.run(given.count, given.seed)
    with tempfile.TemporaryDirectory() as folder, running_node(Path(folder) / "lake") as node:
        seen, failures = fuzz(node, given.count, given.seed)
        rows = node.sql("SELECT count(*) AS rows FROM events")[0]["rows"]
    for failure in failures[:20]:
        print(failure)
    print(f"{given.count} inputs, {len(failures)} answered wrongly, {rows} rows; by SQLSTATE: {dict(seen.most_common())}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
