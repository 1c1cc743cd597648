"""Window functions: OVER, named windows, frames, and the Window nodes that compute the collected calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    NumericOutOfRange,
    WindowingFailure,
    WrongObjectType,
    near_name,
)
from lake.sql import ast, plan
from lake.sql.ast import BoundKind, FrameUnit
from lake.sql.bind.aggregate import as_condition, bind_order, bind_parts, not_null_filter
from lake.sql.bind.arguments import bind_arguments, ordered_arguments
from lake.sql.bind.coerce import cast, is_numeric
from lake.sql.bind.overload import choose
from lake.sql.bind.scope import Env
from lake.sql.bound import (
    Column,
    Expr,
    Frame,
    FrameBound,
    Literal,
    Rule,
    SortKey,
    WindowCall,
    columns_of,
    map_expressions,
)
from lake.sql.registry import FUNCTIONS, Aggregate, Window
from lake.types import BIGINT, INTERVAL, Date, Integer, Time, Timestamp, Type

WHOLE: Final = Frame(
    FrameUnit.RANGE, FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.UNBOUNDED_FOLLOWING)
)
RUNNING: Final = Frame(FrameUnit.RANGE, FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.CURRENT_ROW))


SORTS_ITSELF: Final = frozenset(("fill",))  # of whole partitions, whatever the frame: their own order is the window's


class Over(Struct, frozen=True):
    """What a call's window is: rows parted, ordered."""

    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]


class Windows(Struct):
    """The window calls of one SELECT, each once, with the column that stands for it.

    named   WINDOW w AS (..)
    calls   calls by window, in the order they were met
    """

    named: Mapping[str, ast.Window] = field(default_factory=dict)
    calls: dict[Over, dict[WindowCall, Column]] = field(default_factory=dict)

    @property
    def ids(self) -> frozenset[int]:
        """Ids of the columns that stand for calls."""
        return frozenset(column.id for calls in self.calls.values() for column in calls.values())

    @property
    def used(self) -> frozenset[int]:
        """Ids of the columns that windows and calls need."""
        return columns_of(*(
            part for over, calls in self.calls.items() for part in (over.partition, over.order, *calls)
        ))  # fmt: skip

    def map(self, change: Rule) -> None:
        """Changes every expression of every window and call."""
        before, self.calls = self.calls, {}
        for over, calls in before.items():
            moved = Over(map_expressions(over.partition, change), map_expressions(over.order, change))
            place = self.calls.setdefault(moved, {})
            for call, column in calls.items():
                place[map_expressions(call, change)] = column

    def above(self, node: plan.Plan) -> plan.Plan:
        """``node`` with a Window for each partition and order on top."""
        for over, calls in self.calls.items():
            pairs = tuple((column, call) for call, column in calls.items())
            node = plan.Window(over.partition, over.order, pairs, node)
        return node


def bind_window_call(call: ast.Call, name: str, env: Env) -> Expr:
    """The column that stands for a call with OVER, which is collected.

    42P20  where no window function may stand, or inside another
    """
    windows = env.windows
    if windows is None:
        words = "window function calls cannot be nested" if env.clause == "window" else None
        words = words or (
            "aggregate function calls cannot contain window function calls"
            if env.clause == "aggregate"
            else f"window functions are not allowed in {env.clause}"
        )
        raise WindowingFailure(words, position=env.position(call))
    assert call.over is not None
    if call.within_group:
        raise FeatureNotSupported(f"OVER is not supported for {name} WITHIN GROUP", position=env.position(call))
    inner = replace(env, windows=None, clause="window")
    order: tuple[SortKey, ...] = ()
    function: Window | Aggregate
    overloads = [item for item in FUNCTIONS[name] if isinstance(item, Window)]
    has_aggregate = any(isinstance(item, Aggregate) for item in FUNCTIONS[name])
    window = resolve_window(call.over, windows.named, env)
    if overloads and call.order and name in SORTS_ITSELF:
        window, call = replace(window, order=call.order), replace(call, order=())
    if overloads and call.order and not has_aggregate:
        raise FeatureNotSupported(f"ORDER BY inside {name}() is not supported", position=env.position(call))
    if overloads and not call.order:
        values = ordered_arguments(call.arguments, overloads, name, inner)
        choice = choose(name, overloads, bind_arguments(values, name, overloads, inner), inner, env.position(call))
        assert isinstance(choice.function, Window)
        function, arguments, type = choice.function, choice.arguments, choice.type
    else:
        function, arguments, order, type = bind_parts(call, name, inner)
    over = Over(tuple(inner.bind(item) for item in window.partition), bind_order(window.order, inner))
    if name in SORTS_ITSELF and len(over.order) != 1:
        raise WindowingFailure(f"{name}() must have exactly one ORDER BY expression", position=env.position(call))
    try:
        frame = bind_frame(window, over.order, inner)
    except NumericOutOfRange:
        # An offset that the key's type does not hold reaches further than all its values.
        keys = tuple(replace(key, expr=cast(key.expr, BIGINT)) for key in over.order)
        if not all(isinstance(key.expr.type, Integer) for key in over.order):
            raise
        over = Over(over.partition, keys)
        frame = bind_frame(window, over.order, inner)
    filter = None if call.filter is None else as_condition(call.filter, replace(inner, clause="FILTER"), "FILTER")
    ignore_nulls = call.ignore_nulls
    if isinstance(function, Window):
        if filter is not None:
            raise WrongObjectType("FILTER is only for aggregate functions", position=env.position(call))
    elif ignore_nulls:
        filter, ignore_nulls = not_null_filter(filter, arguments), False
    made = WindowCall(type, function, arguments, frame, filter, call.distinct, ignore_nulls, order)
    calls = windows.calls.setdefault(over, {})
    found = calls.get(made)
    if found is None:
        found = calls[made] = env.shared.column(name, type)
    return found


def resolve_window(window: ast.Window, named: Mapping[str, ast.Window], env: Env, depth: int = 0) -> ast.Window:
    """The window with what its named base says filled in.

    42P20  a clause both say, or a base with a frame       42704  no window of that name
    """
    if window.base is None:
        return window
    base = named.get(window.base)
    if base is None or depth > len(named):
        hint = near_name(window.base, named)
        raise WindowingFailure(f'window "{window.base}" does not exist', hint=hint, position=env.position(window))
    base = resolve_window(base, named, env, depth + 1)
    if not window.partition and not window.order and window.frame is None:
        return replace(base, span=window.span)
    for given, words in ((window.partition, "PARTITION BY"), (window.order and base.order, "ORDER BY")):
        if given:
            raise WindowingFailure(
                f'cannot override {words} clause of window "{window.base}"', position=env.position(window)
            )
    if base.frame is not None:
        raise WindowingFailure(
            f'cannot copy window "{window.base}" because it has a frame clause', position=env.position(window)
        )
    return ast.Window(None, base.partition, window.order or base.order, window.frame, span=window.span)


# --- frames ----------------------------------------------------------------------------------------------------------


def bind_frame(window: ast.Window, order: tuple[SortKey, ...], env: Env) -> Frame:
    """The frame of a window: up to the current row's peers where it is ordered, all rows where it is not.

    42P20  a frame that cannot be
    """
    written = window.frame
    if written is None:
        return RUNNING if order else WHOLE
    start, end = written.start.kind, written.end.kind
    wrong = _impossible(start, end)
    has_offset = written.start.offset is not None or written.end.offset is not None
    if wrong is None and written.unit is FrameUnit.GROUPS and not order:
        wrong = "GROUPS mode requires an ORDER BY clause"
    if wrong is None and written.unit is FrameUnit.RANGE and has_offset and len(order) != 1:
        wrong = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
    if wrong is not None:
        raise WindowingFailure(wrong, position=env.position(written))
    type: Type = BIGINT
    if written.unit is FrameUnit.RANGE and has_offset:
        type = _range_offset(order[0].expr.type, env, written)
    ends = [_frame_bound(item, type, env) for item in (written.start, written.end)]
    return Frame(written.unit, ends[0], ends[1], written.exclusion)


def _impossible(start: BoundKind, end: BoundKind) -> str | None:
    if start is BoundKind.UNBOUNDED_FOLLOWING:
        return "frame start cannot be UNBOUNDED FOLLOWING"
    if end is BoundKind.UNBOUNDED_PRECEDING:
        return "frame end cannot be UNBOUNDED PRECEDING"
    if start is BoundKind.CURRENT_ROW and end is BoundKind.PRECEDING:
        return "frame starting from current row cannot have preceding rows"
    if start is BoundKind.FOLLOWING and end in (BoundKind.PRECEDING, BoundKind.CURRENT_ROW):
        return "frame starting from following row cannot have preceding rows"
    return None


def _range_offset(type: Type, env: Env, node: ast.Node) -> Type:
    """The type of a RANGE frame's offset over an order of ``type``."""
    if is_numeric(type):
        return type
    if isinstance(type, Date | Timestamp | Time):
        return INTERVAL
    raise DatatypeMismatch(
        f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {type.sql.lower()}",
        position=env.position(node),
    )


def _frame_bound(item: ast.FrameBound, type: Type, env: Env) -> FrameBound:
    if item.offset is None:
        return FrameBound(item.kind)
    inner = replace(env, scope=env.scope.over(()), aggregates=None, clause="window frame")
    offset = cast(inner.bind(item.offset), type, time_zone=env.time_zone)
    value = offset.value if isinstance(offset, Literal) else 0
    if value is None or (isinstance(value, int | float) and value < 0):
        words = "null" if value is None else "negative"
        raise WindowingFailure(f"frame offset must not be {words}", position=env.position(item))
    return FrameBound(item.kind, offset)


