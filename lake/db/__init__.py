"""Being a database: sessions, rights, statements, and every row that is written.

Reading order: ``database`` (one lake, led), ``session`` (a statement from text to answer), ``catalog`` (what it can name),
``statements`` (what each does), ``write`` (rows on their way in), ``system`` (relations made when read), ``functions``.
"""

from importlib import import_module

import lake.db.functions
import lake.exec.functions  # noqa: F401
from lake.db.statements import STATEMENTS
from lake.db.system import SYSTEM_TABLES
from lake.sql.registry import FUNCTIONS


def import_all() -> None:
    """Imports what a statement imports when it is the first to need it: a node does so before it is ready."""
    for table in (FUNCTIONS, STATEMENTS, SYSTEM_TABLES):
        table.fill()
    for name in ("lake.exec.lower_joins", "lake.exec.lower_breakers", "lake.db.system.pg_catalog_names"):
        import_module(name)
