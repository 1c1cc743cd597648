"""ASOF JOIN: equal keys, the one comparison of times that picks the nearest row, and what a partner must pass besides.

    a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts AND b.ok AND a.x + b.x > 3

    keys  a.k = b.k, TRUE = (CASE WHEN b.ok THEN TRUE END)      times  a.ts >= b.ts      conditions  a.x + b.x > 3

A condition over one side alone is a key: rows that fail it have no key, and match nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lake.errors import SyntaxFailure
from lake.sql import ast, bound, plan
from lake.sql.bind.aggregate import to_boolean
from lake.sql.bind.scope import Env, From
from lake.sql.bound import Case, Compare, Expr, Literal
from lake.types import BOOLEAN

KINDS: Final = {
    ast.JoinKind.INNER: plan.JoinKind.INNER,
    ast.JoinKind.LEFT: plan.JoinKind.LEFT,
    ast.JoinKind.RIGHT: plan.JoinKind.RIGHT,
    ast.JoinKind.FULL: plan.JoinKind.FULL,
    ast.JoinKind.SEMI: plan.JoinKind.SEMI,
    ast.JoinKind.ANTI: plan.JoinKind.ANTI,
}
MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
EQUALITIES: Final = ("=", "is not distinct")
TRUE: Final = Literal(BOOLEAN, True)


def bind_asof(source: ast.JoinSource, left: From, right: From, using: Sequence[Compare], env: Env) -> plan.AsofJoin:
    """The join of two items of FROM; ``using`` are the pairs of USING, whose last is the time's.

    With MATCH_CONDITION every left row stays; else the kind says which rows do.

    42601  no comparison of times, or two
    """
    tests: list[Expr] = list(using)
    if using and source.match is None:
        tests[-1] = Compare.of(">=", using[-1].left, using[-1].right)
    if source.on is not None:
        tests += bound.conjuncts(to_boolean(env.bind(source.on), "JOIN/ON", env.position(source.on), env))
    if source.match is not None:
        tests += bound.conjuncts(to_boolean(env.bind(source.match), "MATCH_CONDITION", env.position(source.match), env))
    lefts, rights = _ids(left), _ids(right)
    keys: list[tuple[Expr, Expr, bool]] = []
    times: list[tuple[Expr, str, Expr]] = []
    conditions: list[Expr] = []
    for test in tests:
        used = bound.columns_of(test)
        match _sides(test, lefts, rights):
            case (one, op, other) if op in EQUALITIES:
                keys.append((one, other, op != "="))
            case (one, op, other):
                times.append((one, op, other))
            case None if not used & rights:
                keys.append((_or_nothing(test), TRUE, False))
            case None if not used & lefts:
                keys.append((TRUE, _or_nothing(test), False))
            case None:
                conditions.append(test)
    if len(times) != 1:
        raise SyntaxFailure("ASOF JOIN takes exactly one of >= > <= <", position=env.position(source))
    time, op, right_time = times[0]
    kind = KINDS[source.kind]
    if source.match is not None and kind is plan.JoinKind.INNER:
        kind = plan.JoinKind.LEFT
    return plan.AsofJoin(
        left.plan, right.plan, tuple((one, other) for one, other, _ in keys), time, op, right_time, kind,
        tuple(is_safe for *_, is_safe in keys), tuple(conditions),
    )  # fmt: skip


def _ids(side: From) -> frozenset[int]:
    return frozenset(entry.column.id for entry in side.entries)


def _or_nothing(test: Expr) -> Expr:
    """TRUE where the test holds, else NULL."""
    return Case(BOOLEAN, ((test, TRUE),), Literal(BOOLEAN, None))


def _sides(test: Expr, lefts: frozenset[int], rights: frozenset[int]) -> tuple[Expr, str, Expr] | None:
    """The comparison with the left table's side first, or None where it is not one of both tables."""
    if not isinstance(test, Compare) or (test.op not in EQUALITIES and test.op not in MIRRORED):
        return None
    one, other = bound.columns_of(test.left), bound.columns_of(test.right)
    if one & lefts and not one & rights and other & rights and not other & lefts:
        return test.left, test.op, test.right
    if one & rights and not one & lefts and other & lefts and not other & rights:
        return test.right, MIRRORED.get(test.op, test.op), test.left
    return None
