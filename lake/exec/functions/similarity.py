"""How alike texts are: Jaro, Jaro-Winkler, and edits with swaps."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lake.exec.decimals import Value
from lake.exec.functions.columns import map_rows, per_row
from lake.sql.registry import scalar

GROUP: Final = "text"
PREFIX_MAX: Final = 4
PREFIX_WEIGHT: Final = 0.1
WINKLER_LEAST: Final = 0.7


def jaro(one: str, two: str) -> float:
    """The Jaro similarity of two texts, from 0 to 1."""
    if one == two:
        return 1.0
    reach = max(max(len(one), len(two)) // 2 - 1, 0)
    taken = [False] * len(two)
    matched = []
    for place, char in enumerate(one):
        for other in range(max(0, place - reach), min(len(two), place + reach + 1)):
            if not taken[other] and two[other] == char:
                taken[other] = True
                matched.append(char)
                break
    count = len(matched)
    if count == 0:
        return 0.0
    others = [char for char, used in zip(two, taken, strict=True) if used]
    swaps = sum(a != b for a, b in zip(matched, others, strict=True)) // 2
    return (count / len(one) + count / len(two) + (count - swaps) / count) / 3


@scalar("jaro_similarity(a VARCHAR, b VARCHAR) -> DOUBLE", group=GROUP, origin="duckdb")
@per_row
def jaro_similarity(a: Value, b: Value) -> pa.Array:
    """The Jaro similarity, from 0 to 1. Goes row by row: there is no column operation for it.

    >>> jaro_similarity('duck', 'duckdb')
    0.8888888888888888
    """
    return map_rows(jaro, pa.float64(), a, b)


@scalar("jaro_winkler_similarity(a VARCHAR, b VARCHAR) -> DOUBLE", group=GROUP, origin="duckdb")
@per_row
def jaro_winkler_similarity(a: Value, b: Value) -> pa.Array:
    """The Jaro-Winkler similarity, from 0 to 1: a common beginning counts more. Goes row by row, as Jaro's.

    >>> jaro_winkler_similarity('duck', 'duckdb')
    0.9333333333333333
    """

    def winkler(one: str, two: str) -> float:
        alike = jaro(one, two)
        if alike <= WINKLER_LEAST:
            return alike
        same = 0
        for first, second in zip(one[:PREFIX_MAX], two[:PREFIX_MAX]):
            if first != second:
                break
            same += 1
        return alike + same * PREFIX_WEIGHT * (1 - alike)

    return map_rows(winkler, pa.float64(), a, b)


@scalar("damerau_levenshtein(a VARCHAR, b VARCHAR) -> BIGINT", group=GROUP, origin="duckdb")
@per_row
def damerau_levenshtein(a: Value, b: Value) -> pa.Array:
    """How many characters to insert, delete, change or swap with the next to make one text the other.

    Goes row by row: there is no column operation for it.

    >>> damerau_levenshtein('duckdb', 'udckbd')
    2
    """

    def distance(one: str, two: str) -> int:
        far = len(one) + len(two)
        last_rows: dict[str, int] = {}
        table: list[list[int]] = [[far] * (len(two) + 2), [far, *range(len(two) + 1)]]
        for row, char in enumerate(one, 1):
            line = [far, row]
            last_column = 0
            for column, other in enumerate(two, 1):
                last_row = last_rows.get(other, 0)
                swap = table[last_row][last_column] + (row - last_row - 1) + 1 + (column - last_column - 1)
                line.append(min(table[row][column] + (char != other), line[column] + 1, table[row][column + 1] + 1, swap))
                if char == other:
                    last_column = column
            table.append(line)
            last_rows[char] = row
        return table[-1][-1]

    return map_rows(distance, pa.int64(), a, b)
