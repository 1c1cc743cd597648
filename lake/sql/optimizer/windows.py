"""Window calls that rules add: numbers of rows, ranks, counts."""

from __future__ import annotations

from typing import Final

from lake.errors import FeatureNotSupported
from lake.sql.ast.expr import BoundKind, FrameUnit
from lake.sql.bound import Column, Frame, FrameBound, WindowCall
from lake.sql.optimizer.planning import Planning
from lake.sql.registry import FUNCTIONS
from lake.sql.registry import Window as WindowFunction
from lake.types import BIGINT

WHOLE_PARTITION: Final = Frame(
    FrameUnit.ROWS, FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.UNBOUNDED_FOLLOWING)
)


def numbering(name: str, planning: Planning) -> tuple[Column, WindowCall]:
    """A column for ``row_number()`` or ``rank()``, and the call.

    0A000  the function is not in the table
    """
    for function in FUNCTIONS.get(name, ()):
        if isinstance(function, WindowFunction) and not function.signature.parameters:
            call = WindowCall(BIGINT, function, (), WHOLE_PARTITION)
            return planning.column(BIGINT, name, nullable=False), call
    raise FeatureNotSupported(f"window function {name}() is not there, and this query needs it")
