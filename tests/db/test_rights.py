"""What a user may read and write, statement by statement. Spec: HTTP, Users, roles, grants; SQL, Users, roles, grants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.db.rights.shown import CUT, PLAIN
from lake.errors import InsufficientPrivilege, InvalidAuthorization, LakeError, UndefinedColumn, UndefinedTable
from lake.storage.catalog.state import State
from tests.db.rights import Lake, open_lake

NAMED = "SELECT (pay) on salaries"
UNNAMED = "SELECT on salaries"


@pytest.fixture
def lake() -> Iterator[Lake]:
    """The lake of ``tests.db.rights``."""
    with open_lake() as opened:
        yield opened


# Spec: HTTP, Users, roles, grants 1: a column that is not granted is refused, in a filter too, saying which.
REFUSED = [
    ("SELECT pay FROM salaries", NAMED),
    ("SELECT s.pay FROM salaries s", NAMED),
    ("SELECT name FROM salaries WHERE pay > 10", NAMED),
    ("SELECT name FROM salaries WHERE pay IS NOT NULL OR TRUE", NAMED),
    ("SELECT name FROM salaries ORDER BY pay", NAMED),
    ("SELECT count(pay) FROM salaries", NAMED),
    ("SELECT count(*) FILTER (WHERE pay > 1) FROM salaries", NAMED),
    ("SELECT sum(1) OVER (ORDER BY pay) FROM salaries", NAMED),
    ("SELECT team FROM salaries GROUP BY team HAVING max(pay) > 1", NAMED),
    ("SELECT count(*) FROM salaries GROUP BY pay", NAMED),
    ("SELECT name FROM salaries QUALIFY row_number() OVER (PARTITION BY pay) = 1", NAMED),
    ("SELECT DISTINCT ON (pay) name FROM salaries", NAMED),
    ("SELECT (SELECT max(pay) FROM salaries)", NAMED),
    ("SELECT city FROM teams t WHERE EXISTS (SELECT 1 FROM salaries s WHERE s.team = t.team AND s.pay > 1)", NAMED),
    ("SELECT 20 IN (SELECT pay FROM salaries)", NAMED),
    ("SELECT x FROM teams, LATERAL (SELECT pay AS x FROM salaries)", NAMED),
    ("SELECT a.name FROM salaries a JOIN salaries b ON a.pay < b.pay", NAMED),
    ("SELECT a.name FROM salaries a JOIN salaries b USING (pay)", NAMED),
    ("SELECT a.name FROM salaries a NATURAL JOIN salaries b", UNNAMED),
    ("SELECT * FROM salaries", UNNAMED),
    ("SELECT s.* FROM salaries s", UNNAMED),
    ("FROM salaries", UNNAMED),
    ("SELECT * EXCLUDE (boss) FROM salaries", UNNAMED),
    ("SELECT * RENAME (pay AS money) EXCLUDE (boss) FROM salaries", UNNAMED),
    ("SELECT COLUMNS('^p') FROM salaries", UNNAMED),
    ("SELECT max(COLUMNS(*)) FROM salaries", UNNAMED),
    ("SELECT count(*) FROM (SELECT DISTINCT * FROM salaries)", UNNAMED),
    ("WITH x AS (SELECT * FROM salaries) SELECT name FROM x", UNNAMED),
    ("SELECT name FROM (SELECT name, pay FROM salaries)", NAMED),
    ("SELECT pay FROM salaries UNION ALL SELECT 1", NAMED),
    ("PIVOT salaries ON pay USING count(name)", NAMED),
    ("PIVOT (SELECT name, team FROM salaries) ON team USING count(name) GROUP BY pay", "pay"),
    ("FROM salaries PIVOT (count(name) FOR team IN ('red'))", UNNAMED),
    ("UNPIVOT salaries ON pay INTO NAME n VALUE v", NAMED),
    ("SELECT pay FROM salaries AT (VERSION => 3)", NAMED),
    ("SELECT _version FROM salaries", "SELECT (_version) on salaries"),
    ("SELECT most FROM wages", "SELECT (most) on wages"),
    ("SELECT * FROM wages", "SELECT on wages"),
    ("SELECT name FROM hidden", "SELECT on hidden"),
    ("SELECT * FROM notes", "SELECT on notes"),
    ("EXPLAIN SELECT pay FROM salaries", NAMED),
    ("EXPLAIN ANALYZE SELECT total FROM wages", "EXPLAIN shows what wages reads"),
    ("DESCRIBE SELECT pay FROM salaries", NAMED),
    ("SUMMARIZE SELECT pay FROM salaries", NAMED),
    ("SUMMARIZE notes", "SELECT on notes"),
    ("DESCRIBE notes", "SELECT on notes"),
    ("SHOW COLUMNS FROM notes", "SELECT on notes"),
    ("SHOW CREATE TABLE notes", "SELECT on notes"),
    ("SHOW CREATE VIEW wages", "SHOW CREATE on wages"),
    ("PREPARE p AS SELECT pay FROM salaries; EXECUTE p", NAMED),
    ("INSERT INTO notes VALUES ('x')", "INSERT on notes"),
    ("INSERT INTO salaries (name) VALUES ('x')", "INSERT on salaries"),
    ("UPDATE salaries SET name = 'x'", "UPDATE on salaries"),
    ("DELETE FROM salaries", "DELETE on salaries"),
    ("TRUNCATE salaries", "DELETE on salaries"),
    ("MERGE INTO notes USING salaries s ON note = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.name)", "INSERT on notes"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text for text, _ in REFUSED])
def test_what_is_not_granted_is_refused(lake: Lake, text: str, words: str) -> None:
    """Whatever way a column comes into a statement; the error names it only where the statement does. HTTP Rights 6."""
    with pytest.raises(LakeError) as refused:
        lake.rows("ann", text)
    if words != "pay":
        assert refused.value.sqlstate == "42501"
        assert words in refused.value.message and "permission denied" in refused.value.message
    if "pay" not in text:
        assert "pay" not in str(refused.value)


def test_what_is_granted_is_answered(lake: Lake) -> None:
    """As on a table cut to the granted columns."""
    assert lake.rows("ann", "SELECT name FROM salaries WHERE team = 'red' ORDER BY name") == [("ann",), ("bob",)]
    assert lake.rows("ann", "SELECT count(*) FROM salaries") == [(3,)]
    assert lake.rows("ann", "SELECT * EXCLUDE (pay, boss) FROM salaries WHERE name = 'cid'") == [("cid", "blue")]
    assert lake.rows("ann", "SELECT city FROM teams NATURAL JOIN wages WHERE total = 30 ORDER BY 1") == [("Bonn",), ("Rome",)]
    assert lake.rows("ann", "DESCRIBE salaries") == [("name", "Utf8View", "YES"), ("team", "Utf8View", "YES")]
    assert [row[0] for row in lake.rows("ann", "SUMMARIZE salaries")] == ["name", "team"]
    assert "pay" not in str(lake.rows("ann", "SHOW CREATE TABLE salaries"))
    assert lake.rows("bob", "SELECT max(pay) FROM salaries") == [(30,)]


def test_a_view_is_read_with_its_makers_rights(lake: Lake) -> None:
    """Who may read the view need not be granted what it reads; a grant on the table gives nothing of the view."""
    assert lake.rows("ann", "SELECT team, total FROM wages ORDER BY team") == [("blue", 30), ("red", 30)]
    with pytest.raises(InsufficientPrivilege, match="SELECT on wages"):
        lake.rows("bob", "SELECT total FROM wages")
    lake.run("owner", "GRANT SELECT ON hidden TO cid")
    assert lake.rows("cid", "SELECT sum(pay) FROM hidden") == [(60,)]
    with pytest.raises(InsufficientPrivilege, match="SELECT on salaries"):
        lake.rows("cid", "SELECT sum(pay) FROM salaries")


def test_an_update_reads_what_it_names(lake: Lake) -> None:
    """UPDATE and DELETE need the right to read the columns of their conditions and values, and of RETURNING."""
    lake.run("owner", "GRANT UPDATE, DELETE, INSERT ON salaries TO ann")
    assert lake.run("ann", "UPDATE salaries SET pay = 1 WHERE name = 'ann'").count == 1
    for text in ("UPDATE salaries SET name = 'x' WHERE pay > 1", "UPDATE salaries SET name = pay::VARCHAR",
                 "DELETE FROM salaries WHERE pay > 1", "DELETE FROM salaries RETURNING pay",
                 "INSERT INTO salaries (name) VALUES ('x') RETURNING pay",
                 "INSERT INTO salaries (name) SELECT boss FROM salaries"):  # fmt: skip
        with pytest.raises(InsufficientPrivilege, match=r"SELECT \((pay|boss)\) on salaries"):
            lake.rows("ann", text)
    with pytest.raises(InsufficientPrivilege, match="SELECT on salaries"):
        lake.rows("ann", "DELETE FROM salaries RETURNING *")
    assert lake.rows("bob", "SELECT name, pay FROM salaries ORDER BY name") == [("ann", 1), ("bob", 20), ("cid", 30)]
    assert lake.rows("ann", "INSERT INTO salaries (name) VALUES ('dot') RETURNING name") == [("dot",)]
    assert lake.run("ann", "DELETE FROM salaries WHERE name = 'dot'").count == 1


def test_errors_do_not_name_what_is_hidden(lake: Lake) -> None:
    """Hints come from what the caller may read."""
    for text, kind in (("SELECT pya FROM salaries", UndefinedColumn), ("SELECT * EXCLUDE (pya) FROM salaries", UndefinedColumn),
                       ("SELECT * FROM note", UndefinedTable), ("DELETE FROM note", UndefinedTable)):  # fmt: skip
        with pytest.raises(kind) as failed:
            lake.rows("ann", text)
        assert failed.value.hint is None
    with pytest.raises(UndefinedColumn) as failed:
        lake.rows("ann", "SELECT nam FROM salaries")
    assert failed.value.hint == 'Did you mean "name"?'


def test_rights_change_at_once(lake: Lake) -> None:
    """For sessions that are open, with plans and answers they remember. Spec: SQL, DROP USER: effective at once."""
    ann, text = lake.session("ann"), "SELECT name FROM salaries ORDER BY name"
    assert len(ann.execute(text).rows()) == len(ann.execute(text).rows()) == 3
    lake.run("owner", "REVOKE SELECT (name) ON salaries FROM ann")
    with pytest.raises(InsufficientPrivilege, match=r"SELECT \(name\)"):
        ann.execute(text)
    lake.run("owner", "GRANT SELECT ON salaries TO ann")
    assert len(ann.execute("SELECT * FROM salaries").rows()) == 3
    lake.run("owner", "ALTER USER ann SUPERUSER")
    ann.execute("CREATE TABLE made (a INT)")
    lake.run("owner", "ALTER USER ann NOSUPERUSER")
    with pytest.raises(InsufficientPrivilege):
        ann.execute("CREATE TABLE more (a INT)")
    lake.run("owner", "DROP USER ann; CREATE USER ann PASSWORD 'another ann'; GRANT SELECT ON salaries TO ann")
    with pytest.raises(InvalidAuthorization, match="does not exist any more"):
        ann.execute(text)


def test_answers_are_not_shared(lake: Lake) -> None:
    """A remembered answer or plan of one caller is no other's."""
    text = "SELECT pay FROM salaries ORDER BY pay"
    for _ in range(2):
        assert lake.rows("bob", text) == [(10,), (20,), (30,)]
        with pytest.raises(InsufficientPrivilege):
            lake.rows("ann", text)


def test_grants_follow_what_they_are_on(lake: Lake) -> None:
    """A rename keeps them; another table or column of the name does not get them."""
    lake.run("owner", "ALTER TABLE salaries RENAME COLUMN name TO who; ALTER TABLE salaries RENAME TO wage_list")
    assert len(lake.rows("ann", "SELECT who FROM wage_list")) == 3
    lake.run("owner", "ALTER TABLE wage_list RENAME COLUMN pay TO name")
    with pytest.raises(InsufficientPrivilege, match=r"SELECT \(name\)"):
        lake.rows("ann", "SELECT name FROM wage_list")
    lake.run("owner", "DROP TABLE wage_list; CREATE TABLE wage_list (who VARCHAR)")
    with pytest.raises(InsufficientPrivilege, match="SELECT on wage_list"):
        lake.rows("ann", "SELECT who FROM wage_list")


def test_grants_on_schemas_and_the_lake(lake: Lake) -> None:
    """Spec: SQL, GRANT ON SCHEMA, ALL TABLES: tables of now and later."""
    lake.run("owner", "CREATE SCHEMA s; GRANT SELECT ON SCHEMA s TO cid; CREATE TABLE s.later AS SELECT 1 AS a")
    assert lake.rows("cid", "SELECT * FROM s.later") == [(1,)]
    with pytest.raises(InsufficientPrivilege, match="SELECT on notes"):
        lake.rows("cid", "SELECT * FROM notes")
    lake.run("owner", "GRANT INSERT ON ALL TABLES IN SCHEMA s TO cid; GRANT ALL ON ALL TABLES TO ann")
    lake.run("cid", "INSERT INTO s.later VALUES (2)")
    assert len(lake.rows("ann", "SELECT * FROM s.later")) == 2
    assert lake.rows("ann", "SELECT max(pay) FROM salaries") == [(30,)]
    lake.run("owner", "DROP SCHEMA s CASCADE; CREATE SCHEMA s; CREATE TABLE s.other AS SELECT 1 AS a")
    with pytest.raises(InsufficientPrivilege, match=r"SELECT on s\.other"):
        lake.rows("cid", "SELECT * FROM s.other")


def test_roles_hand_on_their_grants(lake: Lake) -> None:
    """GRANT r TO u, of a role to a role, and back."""
    lake.run("owner", "CREATE ROLE boss; GRANT SELECT ON notes TO staff; GRANT staff TO boss; GRANT boss TO cid")
    assert lake.rows("cid", "SELECT * FROM notes") == []
    with pytest.raises(LakeError, match="would be a role of itself"):
        lake.run("owner", "GRANT boss TO staff")
    lake.run("owner", "REVOKE staff FROM boss")
    with pytest.raises(InsufficientPrivilege):
        lake.rows("cid", "SELECT * FROM notes")
    lake.run("owner", "GRANT staff TO cid; DROP ROLE staff")
    with pytest.raises(InsufficientPrivilege):
        lake.rows("cid", "SELECT * FROM notes")


def test_a_column_is_revoked_from_a_whole_grant(lake: Lake) -> None:
    """REVOKE SELECT (c) takes just that column, whichever way it was granted."""
    lake.run("owner", "REVOKE SELECT (pay) ON salaries FROM bob")
    assert len(lake.rows("bob", "SELECT name, boss FROM salaries")) == 3
    with pytest.raises(InsufficientPrivilege, match=r"SELECT \(pay\)"):
        lake.rows("bob", "SELECT pay FROM salaries")
    lake.run("bob", "DELETE FROM salaries")


def test_listings_show_what_may_be_read(lake: Lake) -> None:
    """Spec: HTTP, Users, roles, grants 2. HTTP Rights 7."""
    own = "WHERE table_schema = 'public' ORDER BY ALL"
    assert lake.rows("ann", f"SELECT table_name FROM information_schema.tables {own}") == [("salaries",), ("teams",), ("wages",)]
    assert lake.rows("cid", f"SELECT table_name, column_name FROM information_schema.columns {own}") == [
        ("teams", "city"), ("teams", "team")]  # fmt: skip
    columns = lake.rows("ann", f"SELECT table_name, column_name FROM information_schema.columns {own}")
    assert ("salaries", "pay") not in columns and ("wages", "most") not in columns and len(columns) == 6
    assert lake.rows("cid", "SELECT name FROM lake.tables") == [("teams",)]
    assert not any("pay" in str(row) for row in lake.rows("ann", "SELECT * FROM lake.tables"))
    assert not any("pay" in str(row) for row in lake.rows("ann", "SELECT * FROM information_schema.views"))
    classes = "SELECT relname FROM pg_class WHERE relname IN ('salaries', 'notes', 'wages', 'hidden') ORDER BY 1"
    assert lake.rows("ann", classes) == [("salaries",), ("wages",)]
    attributes = "SELECT attname FROM pg_attribute JOIN pg_class c ON attrelid = c.oid WHERE relname = 'salaries' ORDER BY 1"
    assert lake.rows("ann", attributes) == [("name",), ("team",)]
    with pytest.raises(UndefinedTable):
        lake.rows("ann", "SELECT 'notes'::regclass")
    assert [row[2] for row in lake.rows("cid", "SHOW TABLES") if row[1] == "public"] == ["teams"]


def test_every_field_of_the_state_is_thought_of() -> None:
    """What a user is shown is cut field by field: a field that is new must be put in one of the two lists."""
    assert set(State.__struct_fields__) == CUT | PLAIN and not CUT & PLAIN


def test_users_are_there_after_a_restart(tmp_path: Path) -> None:
    """Users, grants and the key of sessions ride in commits and checkpoints."""
    with open_lake(tmp_path / "lake") as lake:
        before = lake.database.lake.state
    with open_lake(tmp_path / "lake", "CHECKPOINT") as lake:
        after = lake.database.lake.state
        assert dict(after.users) == dict(before.users) and after.signing_key == before.signing_key != ""
        assert lake.rows("ann", "SELECT count(*) FROM salaries") == [(3,)]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("CREATE USER ann PASSWORD 'long enough'", "42P07"),
        ("CREATE USER eve PASSWORD 'short'", "22023"),
        ("CREATE USER admin PASSWORD 'long enough'", "22023"),
        ("CREATE USER public", "22023"),
        ("ALTER USER nobody SUPERUSER", "42704"),
        ("ALTER USER staff PASSWORD 'long enough'", "0A000"),
        ("DROP USER nobody", "42704"),
        ("DROP ROLE ann", "42704"),
        ("DROP ROLE public", "42704"),
        ("GRANT ann TO bob", "42704"),
        ("GRANT SELECT ON nowhere TO ann", "42P01"),
        ("GRANT SELECT (nothing) ON salaries TO ann", "42703"),
        ("GRANT SELECT ON salaries TO nobody", "42704"),
        ("GRANT SELECT ON SCHEMA nowhere TO ann", "3F000"),
        ("GRANT UPDATE (pay) ON salaries TO ann", "0A000"),
        ("GRANT USAGE ON salaries TO ann", "0A000"),
        ("GRANT SELECT ON SECRET s TO ann", "0A000"),
        ("CREATE TOKEN t FOR nobody", "42704"),
        ("CREATE TOKEN t FOR staff", "42704"),
        ("CREATE TOKEN t FOR ann EXPIRES IN 'soon'", "22P02"),
        ("DROP TOKEN t FOR ann", "42704"),
        ("ALTER USER ann STATEMENT_TIMEOUT 'soon'", "22P02"),
    ],
)
def test_refusals_of_what_is_no_user(lake: Lake, text: str, sqlstate: str) -> None:
    """What is not there or makes no sense is refused by name."""
    with pytest.raises(LakeError) as failed:
        lake.run("owner", text)
    assert failed.value.sqlstate == sqlstate


def test_privileges_as_clients_ask_for_them() -> None:
    """has_table_privilege and its like tell what was granted. Spec: SQL, Users, roles, grants; HTTP Rights 21."""
    setup = (
        "CREATE TABLE t (a INT, b INT); CREATE TABLE o (a INT); CREATE VIEW w AS SELECT a FROM t;"
        "CREATE USER ann PASSWORD 'password of ann'; CREATE USER bob PASSWORD 'password of bob' SUPERUSER;"
        "GRANT SELECT (a) ON t TO ann; GRANT INSERT ON t TO ann; GRANT SELECT ON w TO ann"
    )
    asked = {
        "has_table_privilege('t', 'SELECT')": False, "has_table_privilege('t', 'INSERT')": True,
        "has_table_privilege('t', 'SELECT, INSERT')": True, "has_table_privilege('w', 'SELECT')": True,
        "has_table_privilege('t'::regclass, 'UPDATE')": False, "has_any_column_privilege('t', 'SELECT')": True,
        "has_column_privilege('t', 'a', 'SELECT')": True, "has_column_privilege('t', 'b', 'SELECT')": False,
        "has_column_privilege('t', 1, 'SELECT')": True, "has_table_privilege('ann', 't', 'INSERT')": True,
        "has_table_privilege('pg_catalog.pg_class', 'SELECT')": True, "has_table_privilege(1, 'SELECT')": None,
        "has_schema_privilege('public', 'USAGE')": True,
    }  # fmt: skip
    with open_lake(setup=setup) as lake:
        for text, answer in asked.items():
            assert lake.rows("ann", f"SELECT {text}") == [(answer,)], text
        assert lake.rows("owner", "SELECT has_table_privilege('ann', 'o', 'SELECT')") == [(False,)]
        assert lake.rows("owner", "SELECT has_table_privilege('bob', 'o', 'SELECT')") == [(True,)]
        assert lake.rows("owner", "SELECT has_table_privilege('o', 'DELETE')") == [(True,)]
        for text, kind in (("'o', 'SELECT'", "42P01"), ("'nobody', 't', 'SELECT'", "42704")):
            with pytest.raises(LakeError) as failure:
                lake.rows("ann", f"SELECT has_table_privilege({text})")
            assert failure.value.sqlstate == kind
