"""Builders: one method for each rule of the grammar, called with the values of its parts as soon as it is read.

Reading order: ``base`` (the text at hand, names), ``expr``, ``expr_calls``, ``query``, ``query_from``, ``dml``, ``table``,
``session``, ``access``; each holds the rules of the grammar file of its name. A method's name is its rule's name or alias.
"""

from __future__ import annotations

from lake.sql.build.access import AccessBuild
from lake.sql.build.change import ChangeBuild
from lake.sql.build.dml import DmlBuild
from lake.sql.build.expr import ExprBuild
from lake.sql.build.expr_calls import CallBuild
from lake.sql.build.object import ObjectBuild
from lake.sql.build.query import QueryBuild
from lake.sql.build.query_from import FromBuild
from lake.sql.build.session import SessionBuild
from lake.sql.build.table import TableBuild


class Build(
    ExprBuild, CallBuild, QueryBuild, FromBuild, DmlBuild, ChangeBuild, TableBuild, ObjectBuild, SessionBuild, AccessBuild
):
    """All builders, for one run of the parser over one text."""
