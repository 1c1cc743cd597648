"""Whether a bound plan reads columns that its caller may not.

Names are refused where they are looked up, which is where an error knows its place. This is the other side of the same
rule, held over the plan itself: whatever way a column came into it, its values are not read. What a view reads is none of
the caller's columns, because the view's scans carry no refusals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lake.errors import InsufficientPrivilege
from lake.sql import bound, plan
from lake.sql.bind.scope import Bound, unnamed


def check_reads(found: Bound, refused: Mapping[int, str]) -> None:
    """Returns where no expression of the plan and no column of its answer is one of ``refused``, by id.

    42501  one is; the message does not name it, because the statement may not either
    """
    for id in (*(column.id for column in found.columns), *_columns_read(found.plan)):
        if id in refused:
            raise InsufficientPrivilege(unnamed(refused[id]))


def _columns_read(node: plan.Plan) -> Iterator[int]:
    for each in plan.walk(node):
        expressions: Iterable[bound.Expr] = plan.expressions_of(each)
        if isinstance(each, plan.Project):
            # A column that is handed on under its own id is read only where somebody above reads it.
            pairs = zip(each.columns, each.exprs, strict=True)
            expressions = [expr for column, expr in pairs if not isinstance(expr, bound.Column) or expr.id != column.id]
        expressions = tuple(expressions)
        yield from bound.columns_of(expressions)
        for expr in expressions:
            for inner in bound.walk(expr):
                if isinstance(inner, bound.ScalarSubquery | bound.Exists | bound.Quantified):
                    yield from _columns_read(inner.plan)
