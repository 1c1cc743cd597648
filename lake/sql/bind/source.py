"""FROM: tables, views, files, subqueries, functions and joins, each bound to a plan and the columns it brings in reach.

    FROM a, b JOIN LATERAL (SELECT .. a.x ..) c ON ..

    Join inner dependent                     what is right of a uses a's columns
    ├─ Scan a
    └─ Join inner
       ├─ Scan b
       └─ (SELECT .. a.x ..)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from lake.errors import (
    AmbiguousColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidParameter,
    LakeError,
    StatementTooComplex,
    UndefinedColumn,
    UndefinedTable,
    near_name,
)
from lake.sql import ast, bound, plan
from lake.sql.bind import pivot
from lake.sql.bind.aggregate import to_boolean
from lake.sql.bind.arguments import function_name
from lake.sql.bind.asof import bind_asof
from lake.sql.bind.coerce import cast, python_value
from lake.sql.bind.expr import compare, unify
from lake.sql.bind.functions import bind_function
from lake.sql.bind.generators import is_lateral, lateral
from lake.sql.bind.scope import (
    VIEW_DEPTH_MAX,
    Bound,
    Cte,
    Entry,
    Env,
    From,
    ReadySource,
    Scope,
    Shared,
    aliased,
    check_aliases,
)
from lake.sql.bound import Column, Compare, Expr, Literal
from lake.sql.catalog import Table, View
from lake.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMPTZ, Float, Integer

SUBQUERIES: Final = (bound.ScalarSubquery, bound.Exists, bound.Quantified)
KINDS: Final = {
    ast.JoinKind.INNER: plan.JoinKind.INNER,
    ast.JoinKind.CROSS: plan.JoinKind.INNER,
    ast.JoinKind.LEFT: plan.JoinKind.LEFT,
    ast.JoinKind.RIGHT: plan.JoinKind.RIGHT,
    ast.JoinKind.FULL: plan.JoinKind.FULL,
    ast.JoinKind.SEMI: plan.JoinKind.SEMI,
    ast.JoinKind.ANTI: plan.JoinKind.ANTI,
}


def bind_from(sources: Sequence[ast.Source], scope: Scope, shared: Shared) -> tuple[plan.Plan, Scope]:
    """The rows of FROM, and the scope of what stands over them; one empty row where there is no FROM."""
    if not sources:
        return plan.Values(((),), ()), scope.over(())
    made = bind_source(sources[0], scope, shared, ())
    for source in sources[1:]:
        right = bind_source(source, scope, shared, made.entries)
        check_aliases(made.entries, right.entries, shared.position(source))
        made = From(join(plan.JoinKind.INNER, made.plan, right.plan, (), source, shared), made.entries + right.entries)
    return made.plan, scope.over(made.entries)


def bind_source(source: ast.Source, scope: Scope, shared: Shared, visible: tuple[Entry, ...]) -> From:
    """One item of FROM; ``visible`` are the columns to its left, for LATERAL."""
    match source:
        case ReadySource():
            return source.made
        case ast.TableSource():
            made = _bind_table(source, scope, shared)
        case ast.FileSource():
            made = scan(shared.catalog.find_file(source.path), shared, None)
        case ast.SubquerySource():
            query = _bind_subquery(source, scope, shared, visible)
            named = zip(query.names, query.columns)
            within = shared.tables
            made = From(query.plan, tuple(Entry(name, item, within=within.get(item.id, "")) for name, item in named))
        case ast.FunctionSource() if is_lateral(function_name(source.name)):
            return bind_source(lateral(source), scope, shared, visible)
        case ast.FunctionSource():
            around = Scope(visible, scope.outer, scope.ctes)
            made = bind_function(source, Env(shared, around.inside(), "functions in FROM"))
        case ast.JoinSource():
            made = _bind_join(source, scope, shared, visible)
        case ast.Pivot() | ast.Unpivot():
            inside = bind_source(source.source, scope, shared, visible)
            env = Env(shared, scope.over(inside.entries), "PIVOT")
            if isinstance(source, ast.Pivot):
                made = pivot.bind_pivot(source, inside, env)
            else:
                made = pivot.bind_unpivot(source, inside, env)
        case _:
            raise FeatureNotSupported(f"{source.__class__.__name__} in FROM is not supported")
    alias = getattr(source, "alias", None)
    if alias is not None and not isinstance(source, ast.FunctionSource):
        made = From(made.plan, rename(made.entries, alias, shared))
    tablesample = getattr(source, "sample", None)
    if tablesample is not None:
        made = From(bind_sample(made.plan, tablesample, Env(shared, scope, "TABLESAMPLE")), made.entries)
    if type(source) is not ast.JoinSource:
        for entry in made.entries:
            if entry.path:
                shared.tables.setdefault(entry.column.id, entry.path[-1])
    return made


def _bind_subquery(source: ast.SubquerySource, scope: Scope, shared: Shared, visible: tuple[Entry, ...]) -> Bound:
    """The query of a FROM item. One that names what only the items to its left have is LATERAL, said or not."""
    beside = Scope(visible, scope.outer, scope.ctes).inside()
    if source.lateral:
        return shared.bind_query(source.query, beside, shared)
    try:
        return shared.bind_query(source.query, Scope((), scope.outer, scope.ctes), shared)
    except (UndefinedColumn, UndefinedTable) as unknown:
        if not visible:
            raise
        try:
            return shared.bind_query(source.query, beside, shared)
        except LakeError:
            raise unknown from None


def rename(entries: tuple[Entry, ...], alias: ast.Alias, shared: Shared) -> tuple[Entry, ...]:
    """The columns under an alias, which may give them names.

    42P10  more names than columns
    """
    found = aliased(entries, alias.name)
    visible = [entry for entry in found if not entry.hidden]
    if len(alias.columns) > len(visible):
        raise InvalidColumnReference(
            f'table "{alias.name}" has {len(visible)} columns available but {len(alias.columns)} columns specified',
            position=shared.position(alias),
        )
    if not alias.columns:
        return found
    names = {entry.column.id: name for entry, name in zip(visible, alias.columns)}
    return tuple(replace(entry, name=names.get(entry.column.id, entry.name)) for entry in found)


def scan(table: Table, shared: Shared, name: tuple[str, ...] | None) -> From:
    """All columns of a table."""
    numbers = shared.next_ids(len(table.columns))
    outputs = tuple([Column(item.type, number, item.name, item.nullable) for number, item in zip(numbers, table.columns)])
    names = tuple([item.name for item in table.columns])
    path = name or table.name
    entries = tuple(
        [
            Entry(item.name, column, path, hidden=item.hidden, refusal=item.refusal)
            for item, column in zip(table.columns, outputs)
        ]
    )
    shared.refused.update([(entry.column.id, entry.refusal) for entry in entries if entry.refusal])
    return From(plan.Scan(table, outputs, names), entries)


# --- tables, views and common table expressions ----------------------------------------------------------------------


def _bind_table(source: ast.TableSource, scope: Scope, shared: Shared) -> From:
    parts = source.name.parts
    if ".".join(parts) in scope.ctes and source.at is None:
        return _bind_cte(scope.ctes[".".join(parts)], shared)
    at = None if source.at is None else _time_travel(source.at, scope, shared)
    try:
        found = shared.catalog.find(parts, at)
    except LakeError as error:
        if error.position is None:
            error.position = shared.position(source)
        raise
    if isinstance(found, Table):
        return scan(found, shared, max(parts, found.name, key=len))
    return _bind_view(found, parts, shared)


def _bind_view(view: View, parts: tuple[str, ...], shared: Shared) -> From:
    """The view's query, bound as if it stood alone."""
    if shared.view_depth >= VIEW_DEPTH_MAX:
        raise StatementTooComplex(f'views nest too deep at "{parts[-1]}"')
    shared.view_depth += 1
    around, shared.catalog = shared.catalog, view.catalog or shared.catalog
    try:
        made = shared.bind_query(view.query, Scope(), shared)
    finally:
        shared.view_depth -= 1
        shared.catalog = around
    names = view.columns + made.names[len(view.columns) :]
    entries = tuple(
        Entry(name, column, view.name or parts, refusal=view.refusals.get(name, ""))
        for name, column in zip(names, made.columns)
    )
    return From(made.plan, entries)


def _bind_cte(cte: Cte, shared: Shared) -> From:
    """A use of a common table expression: its query once more, or a scan of what was materialised."""
    if cte.query is not None:
        made = shared.bind_query(cte.query, cte.scope, shared)
        names = cte.renames + made.names[len(cte.renames) :]
        entries = tuple(Entry(name, column, (cte.name,)) for name, column in zip(names, made.columns))
        return From(made.plan, entries)
    outputs = tuple(shared.column(name, type) for name, type in cte.outputs)
    return From(
        plan.CteScan(cte.number, cte.name, outputs), tuple(Entry(item.name, item, (cte.name,)) for item in outputs)
    )


def _time_travel(at: ast.TimeTravel, scope: Scope, shared: Shared) -> tuple[str, object]:
    """The kind of time travel and its value: BIGINT, TIMESTAMPTZ or DOUBLE; an expression where it is to be folded yet."""
    value = Env(shared, scope.over(()), "AT").bind(at.value)
    if isinstance(value, Literal) and value.value is None:
        raise InvalidParameter(f"AT ({at.kind.upper()}) takes a constant", position=shared.position(at.value))
    type = {"version": BIGINT, "timestamp": TIMESTAMPTZ, "offset": DOUBLE}[at.kind]
    value = cast(value, type, time_zone=shared.settings.time_zone)
    return at.kind, value.value if isinstance(value, Literal) else value


def bind_sample(node: plan.Plan, item: ast.Sample, env: Env) -> plan.Plan:
    """``node`` sampled as TABLESAMPLE or USING SAMPLE says.

    22023  an amount that is none
    """
    inner = replace(env, scope=env.scope.over(()), clause="TABLESAMPLE")
    amount, seed = inner.bind(item.amount), None if item.seed is None else inner.bind(item.seed)
    if not isinstance(amount, Literal) or amount.value is None:
        raise InvalidParameter("a sample takes a constant", position=env.position(item))
    made = cast(amount, DOUBLE)
    assert isinstance(made, Literal) and isinstance(made.value, float)
    if made.value < 0 or (item.is_percent and made.value > 100):
        raise InvalidParameter("sample percentage must be between 0 and 100", position=env.position(item))
    if seed is not None and not (isinstance(seed, Literal) and isinstance(seed.type, Integer | Float)):
        raise InvalidParameter("REPEATABLE takes a number", position=env.position(item))
    number = None if seed is None else int(python_value(seed))  # type: ignore[call-overload]
    return plan.Sample(made.value, item.is_percent, number, node)


# --- joins -----------------------------------------------------------------------------------------------------------


def _bind_join(source: ast.JoinSource, scope: Scope, shared: Shared, visible: tuple[Entry, ...]) -> From:
    left = bind_source(source.left, scope, shared, visible)
    right = bind_source(source.right, scope, shared, visible + left.entries)
    check_aliases(left.entries, right.entries, shared.position(source.right))
    using = _natural(left, right) if source.natural else source.using
    kind = KINDS[source.kind]
    both = left.entries + right.entries
    env = Env(shared, scope.over(both), "JOIN conditions")
    conditions: tuple[Expr, ...] = ()
    pairs: list[tuple[Entry, Entry, Compare]] = []
    if using:
        pairs = [_using_pair(name, left, right, source, env) for name in using]
        conditions = tuple(pair for _, _, pair in pairs)
    elif source.on is not None and not source.asof:
        conditions = bound.conjuncts(to_boolean(env.bind(source.on), "JOIN/ON", env.position(source.on), env))
    made: plan.Plan
    if source.asof:
        made = nearest = bind_asof(source, left, right, [pair for *_, pair in pairs], env)
        kind = nearest.kind
    else:
        conditions = tuple(item for item in conditions if item != bound.conjunction(()))
        made = _filtered(kind, left.plan, right.plan, conditions) or join(
            kind, left.plan, right.plan, conditions, source, shared
        )
    if kind in (plan.JoinKind.SEMI, plan.JoinKind.ANTI):
        return From(made, left.entries)
    lefts = _nullable(left.entries) if kind in (plan.JoinKind.RIGHT, plan.JoinKind.FULL) else left.entries
    rights = _nullable(right.entries) if kind in (plan.JoinKind.LEFT, plan.JoinKind.FULL) else right.entries
    return _merge(kind, made, pairs, lefts, rights, env) if using else From(made, lefts + rights)


def _filtered(
    kind: plan.JoinKind, left: plan.Plan, right: plan.Plan, conditions: tuple[Expr, ...]
) -> plan.Plan | None:
    """A semi or anti join with subqueries in its condition as a filter by EXISTS; None for other joins."""
    holds = any(isinstance(part, SUBQUERIES) for condition in conditions for part in bound.walk(condition))
    if kind not in (plan.JoinKind.SEMI, plan.JoinKind.ANTI) or not holds:
        return None
    exists: Expr = bound.Exists(BOOLEAN, plan.Filter(conditions, right))
    return plan.Filter((bound.Not(BOOLEAN, exists) if kind is plan.JoinKind.ANTI else exists,), left)


def join(
    kind: plan.JoinKind, left: plan.Plan, right: plan.Plan, conditions: tuple[Expr, ...], node: ast.Node, shared: Shared
) -> plan.Plan:
    """A join, dependent where the right side uses columns of the left; lists unnested over the left need no join.

    42P10  LATERAL under RIGHT or FULL
    """
    if not right.outer_columns & left.ids:
        return plan.Join(kind, left, right, conditions)
    if kind in (plan.JoinKind.RIGHT, plan.JoinKind.FULL):
        raise InvalidColumnReference(
            "the combining JOIN type must be INNER or LEFT for a LATERAL reference", position=shared.position(node)
        )
    if isinstance(right, plan.Unnest) and right.input == plan.Values(((),), ()):
        if kind is plan.JoinKind.INNER:
            unnested = replace(right, input=left)
            return plan.Filter(conditions, unnested) if conditions else unnested
        if kind is plan.JoinKind.LEFT and not conditions:
            return replace(right, input=left, is_outer=True)
    return plan.Join(kind, left, right, conditions, dependent=True)


def _natural(left: From, right: From) -> tuple[str, ...]:
    """The names both sides have."""
    names = {entry.name for entry in right.entries if not entry.hidden and not entry.shadowed}
    found = (entry.name for entry in left.entries if not entry.hidden and not entry.shadowed)
    return tuple(dict.fromkeys(name for name in found if name in names))


def _using_pair(name: str, left: From, right: From, node: ast.JoinSource, env: Env) -> tuple[Entry, Entry, Compare]:
    entries = [_using_column(name, side, word, node, env) for side, word in ((left, "left"), (right, "right"))]
    one, other = (entry.read(env.position(node), is_named=not node.natural) for entry in entries)
    pair = compare("=", one, other, env, node)
    return entries[0], entries[1], pair


def _using_column(name: str, side: From, word: str, node: ast.Node, env: Env) -> Entry:
    found = [entry for entry in side.entries if entry.name == name and not entry.shadowed]
    found = found or [entry for entry in side.entries if entry.name.lower() == name.lower() and not entry.shadowed]
    if not found:
        raise UndefinedColumn(
            f'column "{name}" specified in USING clause does not exist in {word} table',
            hint=near_name(name, [entry.name for entry in side.entries if not entry.refusal]),
            position=env.position(node),
        )
    if len({entry.column.id for entry in found}) > 1:
        raise AmbiguousColumn(
            f'common column name "{name}" appears more than once in {word} table', position=env.position(node)
        )
    return found[0]


def _nullable(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    return tuple(replace(entry, column=replace(entry.column, nullable=True)) for entry in entries)


def _merge(
    kind: plan.JoinKind,
    made: plan.Plan,
    pairs: Sequence[tuple[Entry, Entry, Compare]],
    lefts: tuple[Entry, ...],
    rights: tuple[Entry, ...],
    env: Env,
) -> From:
    """USING's columns once and first; the two sides' own stay in reach by their tables' names.

    The merged column is the side's that is never missing; of a FULL join the one that is there.
    """
    merged: list[Entry] = []
    extra: list[tuple[Column, Expr]] = []
    for left, right, _ in pairs:
        if kind is plan.JoinKind.FULL:
            sides = [replace(left.column, nullable=True), replace(right.column, nullable=True)]
            (first, second), type = unify(sides, "JOIN/USING", ast.Node(), env)
            is_null = bound.IsNull(BOOLEAN, first)
            column = env.shared.column(left.name, type)
            extra.append((column, bound.Case(type, ((is_null, second),), first)))
        else:
            column = right.column if kind is plan.JoinKind.RIGHT else left.column
        merged.append(Entry(left.name, column))
    if extra:
        outputs = made.columns + tuple(column for column, _ in extra)
        made = plan.Project(outputs, made.columns + tuple(expr for _, expr in extra), made)
    gone = {entry.column.id for pair in pairs for entry in pair[:2]}
    rest = tuple(replace(entry, shadowed=True) if entry.column.id in gone else entry for entry in lefts + rights)
    return From(made, (*merged, *rest))
