"""The abstract syntax tree, one file per subject, each with its twin in ``grammars/`` and ``build/``.

Reading order: ``base`` (nodes, spans, walking), ``expr``, ``query``, ``dml``, ``table``, ``session``, ``access``.
"""

from lake.sql.ast.access import *  # noqa: F403
from lake.sql.ast.base import *  # noqa: F403
from lake.sql.ast.change import *  # noqa: F403
from lake.sql.ast.dml import *  # noqa: F403
from lake.sql.ast.expr import *  # noqa: F403
from lake.sql.ast.object import *  # noqa: F403
from lake.sql.ast.query import *  # noqa: F403
from lake.sql.ast.session import *  # noqa: F403
from lake.sql.ast.table import *  # noqa: F403
