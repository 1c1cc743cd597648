"""The engine: a logical plan to Arrow batches, on worker threads. It knows no user, session or commit.

    answer = run(plan, Context(settings))
    for batch in answer.batches():
        ...
    answer.profile()
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from msgspec import Struct

from lake.exec.context import Context
from lake.exec.lower import lower_plan
from lake.exec.operators.base import Operator, column_name
from lake.exec.operators.batches import make_batch
from lake.exec.pipeline import Break, Flow, answer_flow
from lake.sql.bound import Column
from lake.sql.explain import node_text
from lake.sql.plan import Plan

__all__ = ["Answer", "Context", "Profile", "run"]


class Profile(Struct, frozen=True):
    """What one operator did.

    plan     the plan's node it was made for, whose estimate EXPLAIN ANALYZE shows; None where there is none
    ms       its own time, of all workers together, without that of the operators that feed it
    """

    name: str
    describe: str
    plan: Plan | None
    rows: int
    ms: float
    bytes: int
    spilled: int
    parts: int
    skipped: int
    inputs: tuple[Profile, ...]


@dataclass(eq=False)
class Answer:
    """A running query's answer: it runs as its batches are asked for.

    columns   what is answered; batches hold them in this order, named ``c<id>``, in physical types
    """

    columns: tuple[Column, ...]
    flow: Flow
    context: Context
    _iterator: Iterator[pa.RecordBatch] | None = field(default=None, init=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, once; closing the iterator stops the query."""
        assert self._iterator is None, "an answer is read once"
        self._iterator = self._run()
        return self._iterator

    def profile(self) -> Profile:
        """What the operators did so far, as a tree."""
        return _profile(self.flow)

    def _run(self) -> Iterator[pa.RecordBatch]:
        names = [column_name(column) for column in self.columns]
        batches = answer_flow(self.flow, self.context)
        try:
            for batch in batches:
                if batch.schema.names == names:
                    yield batch
                else:
                    yield make_batch(names, [batch.column(name) for name in names], batch.num_rows)
        finally:
            batches.close()  # type: ignore[attr-defined]


def run(plan: Plan, context: Context) -> Answer:
    """Makes a plan ready to run: nothing is read before the first batch is asked for.

    0A000  a node that the engine does not run
    """
    return Answer(plan.columns, lower_plan(plan, context), context)


def _profile(flow: Flow) -> Profile:
    """The tree below a flow's last operator."""
    if flow.streams:
        below = Flow(flow.source, flow.streams[:-1])
        return _told(flow.streams[-1], [_profile(below)])
    if isinstance(flow.source, Break):
        return _told(flow.source.breaker, [_profile(flow.source.flow)])
    return _told(flow.source, [])


def _told(operator: Operator, inputs: list[Profile]) -> Profile:
    measured = operator.metrics
    text = operator.describe() if operator.plan is None else node_text(operator.plan).partition(": ")[2]
    inputs += [_profile(side) for side in operator.sides()]
    return Profile(
        operator.name, text, operator.plan, measured.rows, measured.ns / 1e6, measured.bytes,
        measured.spilled, measured.parts, measured.skipped, tuple(inputs),
    )  # fmt: skip
