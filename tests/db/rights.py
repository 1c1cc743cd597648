"""A lake with users for the tests of rights, in this process.

    salaries   ann reads name and team; bob reads all and writes; cid may nothing
    teams      everybody reads
    wages      a view over salaries; ann reads its column total
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lake.config import load
from lake.db.database import Database
from lake.db.result import Result
from lake.db.rights.credentials import principal_of
from lake.db.session import Session
from lake.roles import OWNER, Principal, Role, Tokens

SETUP = """
CREATE TABLE salaries (name VARCHAR, team VARCHAR, pay INT, boss VARCHAR);
INSERT INTO salaries VALUES ('ann', 'red', 10, 'cid'), ('bob', 'red', 20, NULL), ('cid', 'blue', 30, 'bob');
CREATE TABLE teams (team VARCHAR, city VARCHAR);
INSERT INTO teams VALUES ('red', 'Rome'), ('blue', 'Bonn');
CREATE TABLE notes (note VARCHAR);
CREATE VIEW wages AS SELECT team, sum(pay) AS total, max(pay) AS most FROM salaries WHERE pay > 5 GROUP BY team;
CREATE VIEW hidden AS SELECT * FROM salaries;
CREATE USER ann PASSWORD 'password of ann';
CREATE USER bob PASSWORD 'password of bob';
CREATE USER cid PASSWORD 'password of cid';
CREATE USER zoe PASSWORD 'password of zoe' SUPERUSER;
CREATE ROLE staff;
GRANT SELECT (name, team) ON salaries TO ann;
GRANT SELECT (team, total) ON wages TO ann;
GRANT ALL ON salaries TO bob;
GRANT SELECT ON teams TO public;
"""


class Lake:
    """An open lake and its callers."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.owner = Session(database, OWNER)

    def session(self, who: str) -> Session:
        """A session of a user, or of the token of a role."""
        return Session(self.database, self.principal(who))

    def principal(self, who: str) -> Principal:
        """A user, the token of a role (``read``), or the owner."""
        if who == "owner":
            return OWNER
        if who in ("read", "write", "admin"):
            return Tokens.principal(Role[who.upper()])
        users = self.database.lake.state.users
        return principal_of(users[who], users)

    def run(self, who: str, text: str) -> Result:
        """What a statement answers to a user."""
        return self.session(who).execute(text)

    def rows(self, who: str, text: str) -> list[tuple[object, ...]]:
        """The rows that a user is answered."""
        return self.run(who, text).rows()


@contextmanager
def open_lake(folder: Path | None = None, setup: str = SETUP) -> Iterator[Lake]:
    """A lake in ``folder``, else in memory, with what ``setup`` makes."""
    database = Database.open(load(environ={}, options={"lake": "memory:" if folder is None else str(folder), "tier_secs": "0"}))
    database.start(None)
    try:
        lake = Lake(database)
        lake.owner.execute(setup)
        yield lake
    finally:
        database.close()
