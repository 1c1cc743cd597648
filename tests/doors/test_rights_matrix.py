"""The matrix of rights: every statement kind and every endpoint, by every role and by users with each grant.

Rows come from the registries: a statement or an endpoint without a row here fails. Spec: HTTP, Roles and tokens; Users, roles,
grants; SQL, Users, roles, grants, tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

import lake.doors.http.app  # noqa: F401  (fills ROUTES)
from lake.db.statements import STATEMENTS
from lake.doors.http.later import LATER
from lake.doors.http.routes import ROUTES
from lake.errors import LakeError
from lake.roles import Role
from lake.sql import ast
from tests.cluster import Node, running_node
from tests.db.rights import Lake, open_lake

SETUP: Final = """
CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 2);
CREATE TABLE o (a INT); INSERT INTO o VALUES (1);
CREATE VIEW w AS SELECT a, b FROM t;
CREATE TABLE keyed (id INT PRIMARY KEY, b INT); INSERT INTO keyed VALUES (1, 2);
CREATE SEQUENCE counter; CREATE TYPE mood AS ENUM ('a');
CREATE SCHEMA s;
CREATE USER nobody PASSWORD 'password of nobody';
CREATE USER selects PASSWORD 'password of selects'; GRANT SELECT ON t TO selects;
CREATE USER columns PASSWORD 'password of columns'; GRANT SELECT (a) ON t TO columns;
CREATE USER inserts PASSWORD 'password of inserts'; GRANT INSERT ON t TO inserts;
CREATE USER updates PASSWORD 'password of updates'; GRANT UPDATE ON t TO updates;
CREATE USER deletes PASSWORD 'password of deletes'; GRANT DELETE ON t TO deletes;
CREATE USER views PASSWORD 'password of views'; GRANT SELECT ON w TO views;
CREATE USER alls PASSWORD 'password of alls'; GRANT ALL ON t TO alls;
CREATE USER schemas PASSWORD 'password of schemas'; GRANT ALL ON SCHEMA public TO schemas;
CREATE USER everything PASSWORD 'password of everything'; GRANT ALL ON ALL TABLES TO everything;
CREATE USER supers PASSWORD 'password of supers' SUPERUSER;
CREATE ROLE r; CREATE USER victim PASSWORD 'password of victim'; CREATE TOKEN k FOR victim
"""
TOKENS: Final = ("read", "write", "admin")
USERS: Final = (
    "nobody", "selects", "columns", "inserts", "updates", "deletes", "views", "alls", "schemas", "everything", "supers",
)  # fmt: skip
CALLERS: Final = (*TOKENS, *USERS, "owner")

EVERYBODY = frozenset(CALLERS)
ADMINS = frozenset({"admin", "supers", "owner"})
OWNER = frozenset({"owner"})
LAKE = ADMINS | {"schemas", "everything"}  # who may do to every table what was granted
READERS = LAKE | {"read", "write", "selects", "alls"}
COLUMN_READERS = READERS | {"columns"}
VIEW_READERS = LAKE | {"read", "write", "views"}
INSERTERS = LAKE | {"write", "inserts", "alls"}
UPDATERS = LAKE | {"write", "updates", "alls"}
DELETERS = LAKE | {"write", "deletes", "alls"}
WRITERS_AND_READERS = LAKE | {"write", "alls"}


@dataclass(frozen=True, slots=True)
class Row:
    """A statement and who may run it; ``before`` is what the owner runs first."""

    text: str
    may: frozenset[str]
    before: str = ""


# What each kind of statement takes; ``*`` and its like stand for all columns of t.
MATRIX: Final[dict[type[ast.Statement], tuple[Row, ...]]] = {
    ast.QueryStatement: (
        Row("SELECT 1", EVERYBODY),
        Row("SELECT a FROM t", COLUMN_READERS),
        Row("SELECT b FROM t", READERS),
        Row("SELECT count(*) FROM t", COLUMN_READERS),
        Row("SELECT * FROM t", READERS),
        Row("SELECT a FROM t WHERE b = 2", READERS),
        Row("SELECT a FROM w", VIEW_READERS),
        Row("SELECT a FROM o", LAKE | {"read", "write"}),
        Row("SELECT _row_id FROM t", READERS),
        Row("SELECT b FROM t AT (VERSION => 2)", READERS),
        Row("SELECT * FROM information_schema.tables", EVERYBODY),
        Row("SELECT * FROM pg_catalog.pg_class", EVERYBODY),
        Row("SELECT * FROM lake.users", EVERYBODY),
        Row("SELECT * FROM 'nowhere.csv'", frozenset()),
        Row("SELECT * FROM files()", ADMINS | {"read", "write", "everything"}),
        Row("SELECT file_read('none')", ADMINS | {"read", "write", "everything"}),
        Row("SELECT nextval('counter')", ADMINS | {"write", "inserts", "updates", "deletes", "alls", "schemas", "everything"}),
    ),
    ast.Explain: (
        Row("EXPLAIN SELECT a FROM t", COLUMN_READERS),
        Row("EXPLAIN ANALYZE SELECT b FROM t", READERS),
        Row("EXPLAIN SELECT a FROM w", ADMINS | {"read", "write"}),
    ),
    ast.Describe: (Row("DESCRIBE t", COLUMN_READERS), Row("DESCRIBE SELECT b FROM t", READERS), Row("DESCRIBE w", VIEW_READERS)),
    ast.Summarize: (Row("SUMMARIZE t", COLUMN_READERS), Row("SUMMARIZE SELECT b FROM t", READERS)),
    ast.ShowColumns: (Row("SHOW COLUMNS FROM t", COLUMN_READERS),),
    ast.ShowCreate: (
        Row("SHOW CREATE TABLE t", COLUMN_READERS),
        Row("SHOW CREATE VIEW w", ADMINS | {"read", "write"}),
    ),
    ast.ShowObjects: (Row("SHOW TABLES", EVERYBODY), Row("SHOW USERS", EVERYBODY), Row("SHOW GRANTS", EVERYBODY)),
    ast.ShowSetting: (Row("SHOW timezone", EVERYBODY),),
    ast.SetSetting: (Row("SET timezone = 'UTC'", EVERYBODY),),
    ast.Transaction: (Row("BEGIN; COMMIT", EVERYBODY), Row("BEGIN; INSERT INTO t VALUES (1, 2); ROLLBACK", INSERTERS)),
    ast.Prepare: (Row("PREPARE p AS SELECT b FROM t", EVERYBODY),),
    ast.Execute: (
        Row("PREPARE p AS SELECT b FROM t; EXECUTE p", READERS),
        Row("PREPARE p AS INSERT INTO t VALUES (1, 2); EXECUTE p", INSERTERS),
    ),
    ast.Deallocate: (Row("DEALLOCATE ALL", EVERYBODY),),
    ast.Analyze: (Row("ANALYZE t", LAKE | {"write", "selects", "alls"}),),
    ast.Insert: (
        Row("INSERT INTO t VALUES (1, 2)", INSERTERS),
        Row("INSERT INTO t SELECT 1, 2", INSERTERS),
        Row("INSERT INTO t SELECT a, a FROM o", LAKE | {"write"}),
        Row("INSERT INTO t VALUES (1, 2) RETURNING b", WRITERS_AND_READERS),
        Row("INSERT INTO fresh SELECT 1 AS a", ADMINS | {"write"}, "DROP TABLE IF EXISTS fresh"),
    ),
    ast.Update: (
        Row("UPDATE t SET b = 3", UPDATERS),
        Row("UPDATE t SET b = a", WRITERS_AND_READERS),
        Row("UPDATE t SET b = 3 WHERE a = 1", WRITERS_AND_READERS),
    ),
    ast.Delete: (
        Row("DELETE FROM t", DELETERS),
        Row("DELETE FROM t WHERE b = 1", WRITERS_AND_READERS),
    ),
    ast.Merge: (
        Row("MERGE INTO t USING (SELECT 1 AS x) ON x = 2 WHEN NOT MATCHED THEN INSERT VALUES (1, 2)", INSERTERS),
        Row("MERGE INTO t USING (SELECT 1 AS x) ON x = a WHEN MATCHED THEN UPDATE SET b = 2", WRITERS_AND_READERS),
        Row("MERGE INTO t USING (SELECT 1 AS x) ON x = 2 WHEN MATCHED THEN DELETE", DELETERS),
    ),
    ast.Truncate: (Row("TRUNCATE t", DELETERS),),
    ast.Copy: (Row("COPY t TO '{folder}/out.csv'", OWNER),),
    ast.CreateTable: (
        Row("CREATE OR REPLACE TABLE fresh (a INT)", ADMINS),
        Row("CREATE OR REPLACE TABLE fresh AS SELECT b FROM t", ADMINS),
    ),
    ast.CreateOrAlterTable: (Row("CREATE OR ALTER TABLE altered (a INT)", ADMINS),),
    ast.CreateView: (Row("CREATE OR REPLACE VIEW fresh_view AS SELECT b FROM t", ADMINS),),
    ast.CreateSchema: (Row("CREATE SCHEMA IF NOT EXISTS s2", ADMINS),),
    ast.CreateExternal: (
        Row("CREATE OR REPLACE EXTERNAL TABLE e STORED AS CSV LOCATION '{folder}/in.csv'", OWNER),
    ),
    ast.CreateClone: (Row("CREATE TABLE clone CLONE t", ADMINS, "DROP TABLE IF EXISTS clone"),),
    ast.AlterTable: (Row("ALTER TABLE o ADD COLUMN IF NOT EXISTS c INT", ADMINS),),
    ast.CreateSequence: (Row("CREATE SEQUENCE IF NOT EXISTS seq", ADMINS),),
    ast.AlterSequence: (Row("ALTER SEQUENCE counter INCREMENT BY 2", ADMINS),),
    ast.RenameObject: (Row("ALTER SEQUENCE IF EXISTS missing RENAME TO other", ADMINS),),
    ast.CreateType: (Row("CREATE TYPE IF NOT EXISTS mood2 AS ENUM ('a')", ADMINS),),
    ast.AddValue: (Row("ALTER TYPE mood ADD VALUE IF NOT EXISTS 'b'", ADMINS),),
    ast.CreateIndex: (Row("CREATE INDEX IF NOT EXISTS t_b ON t (b)", ADMINS),),
    ast.Comment: (Row("COMMENT ON TABLE o IS 'x'", ADMINS),),
    ast.Drop: (Row("DROP TABLE IF EXISTS missing", ADMINS), Row("DROP TABLE gone", ADMINS, "CREATE OR REPLACE TABLE gone (a INT)")),
    ast.Undrop: (Row("UNDROP TABLE lost", ADMINS, "DROP TABLE IF EXISTS lost; CREATE TABLE lost (a INT); DROP TABLE lost"),),
    ast.Restore: (Row("RESTORE TABLE o TO VERSION AS OF 4", ADMINS),),
    ast.Checkpoint: (Row("CHECKPOINT", ADMINS),),
    ast.CreateUser: (Row("CREATE USER made PASSWORD 'password of made'", ADMINS, "DROP USER IF EXISTS made"),),
    ast.AlterUser: (Row("ALTER USER victim MAX_QUERIES 3", ADMINS), Row("ALTER USER {caller} SUPERUSER", frozenset())),
    ast.DropUser: (Row("DROP ROLE IF EXISTS missing", ADMINS),),
    ast.Grant: (Row("GRANT SELECT ON o TO victim", ADMINS), Row("REVOKE SELECT ON o FROM victim", ADMINS)),
    ast.GrantRoles: (Row("GRANT r TO victim", ADMINS),),
    ast.CreateToken: (Row("CREATE TOKEN made FOR victim", ADMINS, "DROP TOKEN IF EXISTS made FOR victim"),),
    ast.DropToken: (Row("DROP TOKEN IF EXISTS made FOR victim", ADMINS),),
}

MAY: Final = {None: EVERYBODY, Role.READ: EVERYBODY, Role.ADMIN: ADMINS}

# What each endpoint takes: path, body, and who may call it. Statements at /sql are the matrix above.
ENDPOINTS: Final[dict[tuple[str, str], tuple[str, str, frozenset[str]]]] = {
    ("GET", "/"): ("/", "", EVERYBODY),
    ("GET", "/stats"): ("/stats", "", EVERYBODY),
    ("GET", "/healthz"): ("/healthz", "", EVERYBODY),
    ("GET", "/ready"): ("/ready", "", EVERYBODY),
    ("POST", "/login"): ("/login", '{"user": "supers", "password": "password of supers"}', EVERYBODY),
    ("GET", "/whoami"): ("/whoami", "", EVERYBODY),
    ("GET", "/metrics"): ("/metrics", "", EVERYBODY),
    ("POST", "/sql"): ("/sql", "SELECT b FROM t", READERS),
    ("GET", "/sql/pages/{id}"): ("/sql/pages/none", "", EVERYBODY),
    ("DELETE", "/sessions/{id}"): ("/sessions/some-session", "", EVERYBODY),
    ("POST", "/append/{table}"): ("/append/t", '{"a": 1}', INSERTERS),
    ("POST", "/insert/{table}"): ("/insert/t", "SELECT 1, 2", INSERTERS),
    ("POST", "/tables/{name}"): ("/tables/made", '[["a", "Int64"]]', ADMINS),
    ("POST", "/tier"): ("/tier", "", ADMINS),
    ("GET", "/lookup/{table}/{key}"): ("/lookup/keyed/1", "", LAKE | {"read", "write"}),
    ("GET", "/watch/{table}"): ("/watch/t?after=1000000000", "", READERS),
    ("PUT", "/files/{path}"): ("/files/matrix", "x", ADMINS | {"write", "everything"}),
    ("GET", "/files/{path}"): ("/files/matrix", "", ADMINS | {"read", "write", "everything"}),
    ("POST", "/files/{path}"): ("/files/matrix?restore=none", "", ADMINS | {"write", "everything"}),
    ("DELETE", "/files/{path}"): ("/files/none", "", ADMINS | {"write", "everything"}),
    ("GET", "/objects"): ("/objects", "", EVERYBODY),
    ("GET", "/kinds"): ("/kinds", "", EVERYBODY),
    **{
        (method, path): (path.replace("{name}", "x").replace("{id}", "session-1"), "{}", MAY[role])
        for rows in LATER.values() for method, path, role in rows
    },
    ("GET", "/live"): ("/live?sql=SELECT%20nothing%20FROM%20t", "", EVERYBODY),
    ("POST", "/live"): ("/live", "{}", EVERYBODY),
}


@pytest.fixture(scope="module")
def filled() -> Iterator[Lake]:
    """A lake with a user for each grant."""
    with open_lake(setup=SETUP) as opened:
        yield opened


def test_every_statement_has_a_row() -> None:
    """A statement that is new says here who may run it."""
    assert set(MATRIX) == set(STATEMENTS)


@pytest.mark.parametrize("kind", MATRIX, ids=lambda kind: kind.__name__)
def test_statements(filled: Lake, kind: type[ast.Statement], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each row by each caller: it runs, or it is refused with 42501 and nothing else. HTTP Rights 20."""
    folder = tmp_path_factory.mktemp("matrix")
    (folder / "in.csv").write_text("a\n1\n")
    for row in MATRIX[kind]:
        for caller in CALLERS:
            if row.before:
                filled.run("owner", row.before)
            text = row.text.replace("{folder}", str(folder)).replace("{caller}", caller)
            if caller in (*TOKENS, "owner") and "{caller}" in row.text:
                continue
            if kind is ast.AlterUser and caller == "supers" and "{caller}" in row.text:
                continue
            verdict = _verdict(filled, caller, text)
            wanted = "runs" if caller in row.may else "42501"
            if "nowhere.csv" in text and caller == "owner":
                wanted = "58030"
            assert verdict == wanted, f"{caller}: {text}: {verdict}"


def _verdict(filled: Lake, caller: str, text: str) -> str:
    try:
        filled.run(caller, text).run_through()
    except LakeError as error:
        return error.sqlstate
    return "runs"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with tokens and users."""
    environ = {"LAKE_READ_TOKEN": "read-token", "LAKE_WRITE_TOKEN": "write-token", "LAKE_ADMIN_TOKEN": "admin-token"}
    with running_node(tmp_path_factory.mktemp("matrix") / "lake", "--tier-secs", "0", environ=environ) as running:
        reply = running.wire().send("POST", "/sql", SETUP, Authorization="Bearer admin-token")
        assert reply.status == 200, reply.body
        yield running


def test_every_endpoint_has_a_row() -> None:
    """An endpoint that is new says here who may call it."""
    assert {(route.method, route.path) for route in ROUTES} == set(ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=" ".join)
def test_endpoints(node: Node, endpoint: tuple[str, str]) -> None:
    """Each endpoint by each caller: 401 without a sign-in or with a wrong one, 403 without the right, else neither. HTTP Rights 20."""
    path, body, may = ENDPOINTS[endpoint]
    route = next(route for route in ROUTES if (route.method, route.path) == endpoint)
    for caller in ("", "wrong", *TOKENS, *USERS):
        wire = node.wire()
        sent = {"Authorization": f"Bearer {caller}-token" if caller in TOKENS else f"Bearer {caller}"} if caller else {}
        if caller in USERS:
            login = f'{{"user": "{caller}", "password": "password of {caller}"}}'
            sent["Authorization"] = f"Bearer {wire.send('POST', '/login', login).json()['token']}"
        status = wire.send(endpoint[0], path, body, **sent).status
        wire.close()
        if caller in ("", "wrong"):
            assert (status == 401) == (route.role is not None), f"{caller!r}: {status}"
        else:
            assert status not in (401,) and (status == 403) == (caller not in may), f"{caller}: {status}"


def test_the_size_of_the_matrix() -> None:
    """So many cells are held."""
    cells = sum(len(rows) for rows in MATRIX.values()) * len(CALLERS) + len(ENDPOINTS) * (len(TOKENS) + len(USERS) + 2)
    assert cells > 1_000
