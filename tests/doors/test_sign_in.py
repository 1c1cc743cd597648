"""Signing in at both doors: users, their tokens, logins, once-users-exist. Spec: HTTP, Authentication; Endpoints, POST /login."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest

from tests.cluster import Node, Reply, free_port, running_node

PASSWORD = "pässword of ann"


@dataclass(frozen=True, slots=True)
class Users:
    """A node with users and without tokens, the tokens of its users, and the port of its Postgres door."""

    node: Node
    port: int
    tokens: dict[str, str]

    def ask(self, path: str = "/whoami", body: str = "", **headers: str) -> Reply:
        """The answer to a request."""
        wire = self.node.wire()
        try:
            return wire.send("GET" if path == "/whoami" else "POST", path, body, **headers)
        finally:
            wire.close()

    def sql(self, text: str, **headers: str) -> Reply:
        """The answer to a statement."""
        return self.ask("/sql", text, **headers)

    def dsn(self, user: str, password: str) -> str:
        """What libpq connects by."""
        return f"host=127.0.0.1 port={self.port} user={user} password='{password}' dbname=lake sslmode=disable"


def basic(user: str, password: str) -> str:
    """A Basic header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    """A node that was open until it had users: root may do everything, ann reads t, cid has only a token."""
    port = free_port()
    with running_node(tmp_path_factory.mktemp("users") / "lake", "--pg", f"127.0.0.1:{port}") as node:
        node.sql("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 2)")
        assert node.sql("SELECT count(*) AS n FROM lake.users") == [{"n": 0}]
        node.sql("CREATE USER root PASSWORD 'password of root' SUPERUSER")
        found = Users(node, port, {})
        root = basic("root", "password of root")
        for text in (f"CREATE USER ann PASSWORD '{PASSWORD}'", "CREATE USER cid", "GRANT SELECT (a) ON t TO ann, cid"):
            assert found.sql(text, Authorization=root).status == 200
        for user in ("ann", "cid", "root"):
            row = found.sql(f"CREATE TOKEN main FOR USER {user}", Authorization=root).json()[0]
            found.tokens[user] = row["token"]
        yield found


def test_once_users_exist(users: Users) -> None:
    """A node without tokens refuses whoever does not sign in, except where it stays open. HTTP Rights 9."""
    for path, body in (("/sql", "SELECT 1"), ("/whoami", ""), ("/append/t", "")):
        reply = users.ask(path, body)
        assert (reply.status, reply.headers["x-lake-sqlstate"]) == (401, "28000")
        assert reply.body == b"sign in with a token, or a user's name and password"
    wire = users.node.wire()
    assert [wire.send("GET", path).status for path in ("/stats", "/healthz", "/ready", "/")] == [200] * 4


@pytest.mark.parametrize(
    ("user", "password", "status"),
    [("ann", PASSWORD, 200), ("ann", PASSWORD, 200), ("ann", "wrong", 401), ("root", PASSWORD, 401), ("eve", PASSWORD, 401),
     ("cid", "", 401), ("", "", 401), ("admin", "", 401), ("\ud800".encode("utf-8", "replace").decode(), "x", 401)],
)  # fmt: skip
def test_names_and_passwords(users: Users, user: str, password: str, status: int) -> None:
    """Basic: right twice (the second time remembered), wrong password, another's, nobody's. HTTP Rights 4."""
    assert users.ask(Authorization=basic(user, password)).status == status


def test_who_am_i(users: Users) -> None:
    """Spec: HTTP, Who am I. HTTP Operations 5."""
    told = users.ask(Authorization=basic("ann", PASSWORD)).json()
    assert told == {"user": "ann", "role": "read", "superuser": False, "open": False}
    told = users.ask(Authorization=f"Bearer {users.tokens['root']}").json()
    assert told == {"user": "root", "role": "admin", "superuser": True, "open": False}


def test_tokens_of_users(users: Users) -> None:
    """Bearer, as a password, expired, dropped."""
    token = users.tokens["cid"]
    assert users.ask(Authorization=f"Bearer {token}").json()["user"] == "cid"
    assert users.ask(Authorization=basic("cid", token)).json()["user"] == "cid"
    assert users.ask(Authorization=basic("ann", token)).status == 401
    assert users.ask(Authorization=f"Bearer {token[:-1]}").status == 401
    root = f"Bearer {users.tokens['root']}"
    made = users.sql("CREATE TOKEN short FOR USER cid EXPIRES IN '1 millisecond'", Authorization=root).json()[0]
    while users.ask(Authorization=f"Bearer {made['token']}").status == 200:
        pass
    assert users.ask(Authorization=basic("cid", made["token"])).status == 401
    assert users.sql("DROP TOKEN short FOR USER cid", Authorization=root).status == 200
    listed = users.sql("SELECT tokens FROM lake.users WHERE name = 'cid'", Authorization=root).json()
    assert listed == [{"tokens": ["main"]}]


def test_a_login(users: Users) -> None:
    """POST /login gives a session token, which ends with the password it was given for. HTTP Rights 10; HTTP Operations 4."""
    root = f"Bearer {users.tokens['root']}"
    users.sql("CREATE USER dan PASSWORD 'password of dan'", Authorization=root)
    made = users.ask("/login", '{"user": "dan", "password": "password of dan"}').json()
    assert set(made) == {"token", "until"} and made["until"] > 1_700_000_000_000
    assert users.ask(Authorization=f"Bearer {made['token']}").json()["user"] == "dan"
    body, _, signature = made["token"].partition(".")
    for forged in (f"{body}.{signature[::-1]}", f"{body}x.{signature}", body, f"{body}.", "lakes_", "lakes_.", "lakes_é.a"):
        assert users.ask(Authorization=f"Bearer {forged}".encode().decode("latin-1")).status == 401
    for wrong, status in (('{"user": "dan", "password": "wrong"}', 401), ('{"user": "x", "password": "wrong"}', 401),
                          ("{}", 500), ("no", 500), ("[1]", 500)):  # fmt: skip
        assert users.ask("/login", wrong).status == status
    users.sql("ALTER USER dan PASSWORD 'another password'", Authorization=root)
    assert users.ask(Authorization=f"Bearer {made['token']}").status == 401
    assert users.ask(Authorization=basic("dan", "password of dan")).status == 401


def test_rights_hold_at_the_door(users: Users) -> None:
    """403 with the words of the specification. HTTP Rights 6, 8."""
    ann = basic("ann", PASSWORD)
    assert users.sql("SELECT a FROM t", Authorization=ann).json() == [{"a": 1}]
    for path, body, words in (
        ("/sql", "SELECT b FROM t", b"permission denied: SELECT (b) on t"),
        ("/sql", "DROP TABLE t", b"this user may not change the lake's tables"),
        ("/append/t", '{"a": 1}', b"permission denied: INSERT on t"),
        ("/insert/t", "SELECT 1, 2", b"permission denied: INSERT on t"),
        ("/tier", "", b"this needs more rights than this token's or user's"),
        ("/tables/x", "[]", b"this needs more rights"),
    ):
        reply = users.ask(path, body, Authorization=ann)
        assert (reply.status, reply.headers["x-lake-sqlstate"]) == (403, "42501") and reply.body.startswith(words)
    watched = users.node.wire().send("GET", "/watch/t", Authorization=ann)
    assert (watched.status, watched.body) == (403, b"permission denied: SELECT (b) on t")


def test_a_session_is_one_users(users: Users) -> None:
    """The same id names another session for another user."""
    for user, zone in (("ann", "Asia/Tokyo"), ("root", "UTC")):
        password = PASSWORD if user == "ann" else "password of root"
        mine: Any = {"Authorization": basic(user, password), "x_lake_session": "shared-id"}
        users.sql(f"SET timezone = '{zone}'", **mine)
    mine = {"Authorization": basic("ann", PASSWORD), "x_lake_session": "shared-id"}
    assert users.sql("SHOW timezone", **mine).json() == [{"timezone": "Asia/Tokyo"}]


def test_scram_with_each_client(users: Users) -> None:
    """psycopg, psycopg2, asyncpg and psql sign in by SCRAM-SHA-256 with passwords and with tokens. Spec: Doors, Postgres. HTTP Rights 11."""
    for user, password in (("ann", PASSWORD), ("cid", users.tokens["cid"]), ("ann", users.tokens["ann"])):
        with psycopg.connect(users.dsn(user, password), autocommit=True) as one:
            assert one.execute("SELECT a, current_user FROM t").fetchone() == (1, user)
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied: SELECT \(b\) on t"):
                one.execute("SELECT b FROM t")
        two = psycopg2.connect(users.dsn(user, password))
        with two.cursor() as cursor:
            cursor.execute("SELECT a FROM t")
            assert cursor.fetchall() == [(1,)]
        two.close()

        async def ask(user: str = user, password: str = password) -> Any:
            three = await asyncpg.connect(
                host="127.0.0.1", port=users.port, user=user, password=password, database="lake", ssl=False
            )
            try:
                return await three.fetchval("SELECT a FROM t")
            finally:
                await three.close()

        assert asyncio.run(ask()) == 1
        environ = {**os.environ, "PGPASSWORD": password, "PGCLIENTENCODING": "UTF8"}
        address = f"host=127.0.0.1 port={users.port} user={user} dbname=lake sslmode=disable require_auth=scram-sha-256"
        told = subprocess.run(["psql", address, "-Atc", "SELECT a FROM t"], env=environ, capture_output=True, text=True)
        if "invalid connection option" in told.stderr:
            address = address.replace(" require_auth=scram-sha-256", "")
            told = subprocess.run(["psql", address, "-Atc", "SELECT a FROM t"], env=environ, capture_output=True, text=True)
        assert told.stdout == "1\n", told.stderr


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("eve", PASSWORD), ("cid", "x"), ("reader", "x"), ("", "x")])
def test_scram_refuses(users: Users, user: str, password: str) -> None:
    """28P01 for a wrong password and for a user that nobody is."""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(users.dsn(user or "''", password))


def test_a_dropped_user_is_out_at_once(users: Users) -> None:
    """On connections that are open, too. Spec: SQL, DROP USER."""
    root = basic("root", "password of root")
    users.sql("CREATE USER fay PASSWORD 'password of fay'; GRANT SELECT ON t TO fay", Authorization=root)
    with psycopg.connect(users.dsn("fay", "password of fay"), autocommit=True) as fay:
        assert fay.execute("SELECT b FROM t").fetchall() == [(2,)]
        users.sql("REVOKE SELECT (b) ON t FROM fay", Authorization=root)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            fay.execute("SELECT b FROM t")
        users.sql("DROP USER fay", Authorization=root)
        with pytest.raises(psycopg.errors.InvalidAuthorizationSpecification, match="does not exist any more"):
            fay.execute("SELECT a FROM t")


def test_copy_asks_for_rights(users: Users) -> None:
    """COPY out reads and COPY in writes what was granted."""
    with psycopg.connect(users.dsn("ann", PASSWORD), autocommit=True) as ann, ann.cursor() as cursor:
        with cursor.copy("COPY t (a) TO STDOUT") as copy:
            assert b"".join(copy) == b"1\n"
        with pytest.raises(psycopg.errors.InsufficientPrivilege), cursor.copy("COPY t TO STDOUT") as copy:
            list(copy)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="INSERT on t"), cursor.copy("COPY t FROM STDIN") as copy:
            copy.write(b"1\t2\n")


def test_nothing_secret_is_told(users: Users, tmp_path: Path) -> None:
    """No token and no password in the log, in the process's title or in the folder."""
    secrets = [PASSWORD, "password of root", *users.tokens.values()]
    told = users.node.output() + Path(f"/proc/{users.node.process.pid}/cmdline").read_bytes().decode()
    assert not [secret for secret in secrets if secret in told]
    written = b"".join(path.read_bytes() for path in users.node.folder.rglob("*") if path.is_file())
    assert not [secret for secret in secrets if secret.encode() in written]
