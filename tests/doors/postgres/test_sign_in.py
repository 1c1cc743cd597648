"""Tokens as passwords of admin, writer and reader. Spec: HTTP, Roles and tokens."""

from __future__ import annotations

import psycopg
import pytest

from tests.doors.postgres.conftest import PgNode


def test_roles_may_what_they_may(locked_pg: PgNode) -> None:
    """A reader reads, a writer writes, an admin defines."""
    with psycopg.connect(locked_pg.dsn("admin", "rules"), autocommit=True) as admin:
        admin.execute("CREATE TABLE t (a INT)")
    with psycopg.connect(locked_pg.dsn("writer", "writes"), autocommit=True) as writer:
        writer.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute("CREATE TABLE u (a INT)")
    with psycopg.connect(locked_pg.dsn("reader", "reads"), autocommit=True) as reader:
        assert reader.execute("SELECT * FROM t").fetchall() == [(1,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), reader.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write("2\n")


@pytest.mark.parametrize(
    ("user", "password"), [("admin", "wrong"), ("admin", "reads"), ("reader", "rules"), ("somebody", "rules")]
)
def test_a_wrong_password_is_refused(locked_pg: PgNode, user: str, password: str) -> None:
    """28P01, whatever of the two is wrong."""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(locked_pg.dsn(user, password))
