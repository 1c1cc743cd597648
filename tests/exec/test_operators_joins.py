"""Joins of every kind against a Python oracle: random rows with NULLs and duplicates, by hash, by loop and spilled."""

from __future__ import annotations

import random
from typing import Any

import pytest

import lake.exec.functions  # noqa: F401  fills the function table
from lake.errors import CardinalityViolation
from lake.sql import plan
from lake.sql.bound import Compare, Expr
from lake.sql.plan import JoinKind
from lake.types import BIGINT, BOOLEAN, TEXT
from tests.exec.memory_rows import column, rows_of, scan, table_of

LEFT = {"a": BIGINT, "b": TEXT, "c": BIGINT}
RIGHT = {"x": BIGINT, "y": TEXT, "z": BIGINT}
KINDS = [kind for kind in JoinKind if kind is not JoinKind.SINGLE]


def _random_rows(seed: int, count: int, spread: int) -> list[tuple[Any, ...]]:
    draw = random.Random(seed)

    def row() -> tuple[Any, ...]:
        number = draw.choice([None, *range(spread)])
        text = draw.choice([None, *"abcdef"[:spread]])
        return number, text, draw.choice([None, *range(4)])

    return [row() for _ in range(count)]


def _scan(name: str, types: dict[str, Any], rows: list[tuple[Any, ...]], pieces: int = 3) -> plan.Scan:
    data = {key: (type, [row[index] for row in rows]) for index, (key, type) in enumerate(types.items())}
    return scan(table_of(name, data, pieces)[0])


def _compare(op: str, left: Any, right: Any) -> bool | None:
    if op == "is not distinct":
        return bool(left == right)
    if left is None or right is None:
        return None
    return bool(left == right if op == "=" else left < right)


def _all_true(tests: list[bool | None]) -> bool | None:
    return False if False in tests else None if None in tests else True


def _oracle(
    kind: JoinKind, left: list[tuple[Any, ...]], right: list[tuple[Any, ...]], ops: tuple[str, ...], *, mark_nulls: bool
) -> list[tuple[Any, ...]]:
    answer = []
    used = set()
    for row in left:
        tests = [_all_true([_compare(op, row[at], other[at]) for at, op in enumerate(ops) if op]) for other in right]
        partners = [index for index, test in enumerate(tests) if test]
        used.update(partners)
        match kind:
            case JoinKind.SEMI:
                answer += [row] if partners else []
            case JoinKind.ANTI:
                answer += [] if partners else [row]
            case JoinKind.MARK:
                answer.append((*row, True if partners else None if mark_nulls and None in tests else False))
            case _:
                answer += [row + right[index] for index in partners]
                if not partners and kind in (JoinKind.LEFT, JoinKind.FULL):
                    answer.append((*row, None, None, None))
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        answer += [(None, None, None, *row) for index, row in enumerate(right) if index not in used]
    return answer


def _join(
    kind: JoinKind, left: plan.Scan, right: plan.Scan, ops: tuple[str, ...], *, mark_nulls: bool
) -> plan.Join:
    conditions: list[Expr] = [
        Compare.of(op, one, other) for op, one, other in zip(ops, left.outputs, right.outputs, strict=True) if op
    ]
    mark = column("mark", BOOLEAN) if kind is JoinKind.MARK else None
    return plan.Join(kind, left, right, tuple(conditions), mark, mark_nulls)


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple((value is None, str(value)) for value in row))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "ops",
    [
        ("=", "", ""), ("", "=", ""), ("=", "=", ""), ("=", "is not distinct", ""), ("=", "", "<"), ("", "", "<"),
        ("", "", ""), ("is not distinct", "=", "<"),
    ],
)  # fmt: skip
def test_joins_agree_with_python(kind: JoinKind, ops: tuple[str, ...]) -> None:
    """Every kind, on every mixture of keys, null-safe keys and other conditions."""
    for seed in range(4):
        left = _random_rows(seed, [40, 3, 0, 25][seed], 4 + seed)
        right = _random_rows(100 + seed, [30, 25, 10, 0][seed], 5)
        for mark_nulls in (False, True) if kind is JoinKind.MARK else (False,):
            node = _join(kind, _scan("l", LEFT, left), _scan("r", RIGHT, right), ops, mark_nulls=mark_nulls)
            got = rows_of(node)
            assert _sorted(got) == _sorted(_oracle(kind, left, right, ops, mark_nulls=mark_nulls))


@pytest.mark.parametrize("kind", KINDS)
def test_spilled_join_is_the_join(kind: JoinKind) -> None:
    """With a budget far below the build side rows go through the disk and come out the same."""
    draw = random.Random(5)
    left = [(draw.choice([None, *range(3000)]), f"l{index}", index % 7) for index in range(8_000)]
    right = [(draw.choice([None, *range(4000)]), f"r{index}" * 5, index % 5) for index in range(4_000)]
    for ops in (("=", "", ""), ("=", "", "<")):
        node = _join(kind, _scan("l", LEFT, left), _scan("r", RIGHT, right), ops, mark_nulls=False)
        plain = rows_of(node)
        assert _sorted(rows_of(node, memory=100_000)) == _sorted(plain)
        assert _sorted(rows_of(node, memory=100_000, workers=1)) == _sorted(plain)
    if kind is JoinKind.MARK:
        node = _join(kind, _scan("l", LEFT, left), _scan("r", RIGHT, right), ("=", "", ""), mark_nulls=True)
        assert _sorted(rows_of(node, memory=100_000)) == _sorted(rows_of(node))


def test_single_refuses_two_partners() -> None:
    """SINGLE is LEFT, but a second partner is 21000."""
    left = [(1, "a", 1), (2, "b", 1), (None, "c", 1)]
    for ops in (("=", "", ""), ("=", "", "<")):
        right = _scan("r", RIGHT, [(1, "u", 5), (3, "v", 5)])
        node = _join(JoinKind.SINGLE, _scan("l", LEFT, left), right, ops, mark_nulls=False)
        assert _sorted(rows_of(node)) == _sorted(
            [(1, "a", 1, 1, "u", 5), (2, "b", 1, None, None, None), (None, "c", 1, None, None, None)]
        )
        twice = _scan("r", RIGHT, [(1, "u", 5), (1, "v", 5)])
        with pytest.raises(CardinalityViolation):
            rows_of(_join(JoinKind.SINGLE, _scan("l", LEFT, left), twice, ops, mark_nulls=False))


def test_one_hot_key_is_joined_in_pieces() -> None:
    """A key with many rows on both sides makes more pairs than are listed at once."""
    left = _scan("l", LEFT, [(1, "a", index) for index in range(2000)])
    right = _scan("r", RIGHT, [(1, "b", index) for index in range(1500)])
    node = _join(JoinKind.INNER, left, right, ("=", "", ""), mark_nulls=False)
    count = plan.Project((left.outputs[2], right.outputs[2]), (left.outputs[2], right.outputs[2]), node)
    rows = rows_of(count)
    assert len(rows) == 3_000_000
    assert len(set(rows)) == 3_000_000
