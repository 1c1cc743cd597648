"""Being a database: sessions, rights, statements, and every row that is written.

Reading order: ``database`` (one lake, led), ``session`` (a statement from text to answer), ``catalog`` (what it can name),
``statements`` (what each does), ``write`` (rows on their way in), ``system`` (relations made when read), ``functions``.
"""

import lake.db.functions
import lake.db.statements.access
import lake.db.statements.dml
import lake.db.statements.dml_change
import lake.db.statements.enum_type
import lake.db.statements.external
import lake.db.statements.grants
import lake.db.statements.index
import lake.db.statements.object
import lake.db.statements.prepared
import lake.db.statements.query
import lake.db.statements.sequence
import lake.db.statements.session
import lake.db.statements.table
import lake.db.statements.table_alter
import lake.db.statements.table_or_alter
import lake.db.statements.table_past
import lake.db.statements.transaction
import lake.db.system.access
import lake.db.system.information_routines
import lake.db.system.information_rules
import lake.db.system.information_schema
import lake.db.system.lake
import lake.db.system.objects
import lake.db.system.pg_catalog
import lake.db.system.pg_catalog_server
import lake.db.system.recorded
import lake.exec.functions  # noqa: F401
