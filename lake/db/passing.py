"""What stands at the edges of a session: batches that pass through it, and parameters that are expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lake.sql import ast, parser

if TYPE_CHECKING:
    from lake.db.write.transaction import Transaction


def watched(batches: Iterable[pa.RecordBatch], transaction: Transaction) -> Iterator[pa.RecordBatch]:
    """Batches as they pass; a failure among them fails the transaction."""
    try:
        yield from batches
    except Exception:
        transaction.failed = True
        raise
    finally:
        close(batches)


def selected(batches: Iterable[pa.RecordBatch], positions: list[int]) -> Iterator[pa.RecordBatch]:
    """The columns at ``positions`` of batches as they pass."""
    try:
        for batch in batches:
            yield batch.select(positions)
    finally:
        close(batches)


def close(batches: Iterable[pa.RecordBatch]) -> None:
    """Lets go of what makes batches."""
    stop: Callable[[], None] | None = getattr(batches, "close", None)
    if stop is not None:
        stop()


def expression_of(value: Any) -> ast.Expr | None:
    """The expression that ``{"sql": text}`` or a list of such says; None of a plain value."""
    match value:
        case {"sql": str(text), **rest} if not rest:
            return parser.parse_expression(text)
        case list() if any(isinstance(item, Mapping) for item in value):
            return ast.ListLiteral(tuple(expression_of(item) or ast.Literal(item) for item in value))
        case _:
            return None
