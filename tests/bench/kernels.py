"""The kernels under joins, groups, sorts and windows against DuckDB's operators, two threads each.

    python -m tests bench kernels --rows 6000000 --save

Ours are kernels driven batch by batch without an engine around them: what an operator can hope for. Both sides have the
rows in memory and answer a number that is compared. The median of some runs counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.exec.kernels.aggregates import SumInteger
from lake.exec.kernels.exact_sum import ExactSum
from lake.exec.kernels.frames import frame_sums
from lake.exec.kernels.groups import GroupTable
from lake.exec.kernels.hashing import hash_columns
from lake.exec.kernels.join import JoinTable, KeyFilter
from lake.exec.kernels.order import Direction, boundaries, sort_rows, top_rows
from lake.exec.kernels.partition import deal_rows
from lake.exec.kernels.strings import like_mask
from lake.exec.kernels.views import to_array, values_of
from lake.exec.kernels.warming import warm
from tests.bench import Figure, median, save, table

THREADS: Final = 2
BATCH_ROWS: Final = 65_536
RUNS: Final = 3
PARTITION_BITS: Final = 4
NEAR, FAR = 1, 1_000_003  # distance between keys: a dense range, and one that must be hashed


def batches(*columns: pa.Array) -> list[list[pa.Array]]:
    """The columns in batches of rows."""
    starts = range(0, len(columns[0]), BATCH_ROWS)
    return [[column.slice(start, BATCH_ROWS) for column in columns] for start in starts]


def on_threads(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """What ``work`` answers for each item."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, items))


def group_sums(keys: list[pa.Array], values: pa.Array) -> int:
    """Groups and sums by a table for each worker, merged: the greatest sum."""
    parts = batches(*keys, values)

    def run(worker: int) -> tuple[GroupTable, SumInteger]:
        groups, sums = GroupTable(), SumInteger(pa.int64(), "bigint")
        for *batch, value in parts[worker::THREADS]:
            numbers = groups.insert(batch)
            sums.update(numbers, groups.count, [value])
        return groups, sums

    (groups, sums), *others = on_threads(run, range(THREADS))
    for other_groups, other_sums in others:
        mapping = groups.merge(other_groups)
        sums.merge(other_sums, mapping, groups.count)
    return int(values_of(sums.finish(groups.count)).max())


def group_sums_partitioned(keys: list[pa.Array], values: pa.Array) -> int:
    """The same with rows dealt to partitions first, each of which is grouped by one worker."""
    parts = batches(*keys, values)

    def deal(batch: list[pa.Array]) -> list[list[pa.Array]]:
        rows, starts = deal_rows(hash_columns(batch[:-1]), PARTITION_BITS)
        dealt = [column.take(to_array(rows, pa.int64())) for column in batch]
        return [[column.slice(start, stop - start) for column in dealt]
                for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]  # fmt: skip

    pieces = on_threads(deal, parts)

    def run(partition: int) -> int:
        *columns, value = (pa.concat_arrays(part) for part in zip(*(piece[partition] for piece in pieces), strict=True))
        groups, sums = GroupTable(), SumInteger(pa.int64(), "bigint")
        numbers = groups.insert(columns)
        sums.update(numbers, groups.count, [value])
        return int(values_of(sums.finish(groups.count)).max())

    return max(on_threads(run, range(1 << PARTITION_BITS)))


def join_sum(build_key: pa.Array, build_value: pa.Array, probe_key: pa.Array) -> int:
    """The sum of the build side's values over all pairs."""
    joined = JoinTable.build([build_key])
    values = values_of(build_value)

    def run(batch: list[pa.Array]) -> int:
        _, rows = joined.probe(batch)
        return int(values[rows].sum())

    return sum(on_threads(run, batches(probe_key)))


def filter_count(build_key: pa.Array, probe_key: pa.Array) -> int:
    """How many probe rows pass a filter of the build keys."""
    found = KeyFilter.from_keys(build_key)
    return sum(on_threads(lambda batch: int(np.count_nonzero(found.mask(batch[0]))), batches(probe_key)))


def sort_payload(key: pa.Array, payload: pa.Array) -> int:
    """The payload in the order of the key: its last value."""
    order = sort_rows([key], [Direction()], threads=THREADS)
    return int(values_of(payload)[order][-1])


def top_sum(key: pa.Array) -> float:
    """The sum of the hundred least keys: of each batch's hundred."""
    up = [Direction()]
    tops = on_threads(lambda batch: values_of(batch[0])[top_rows(batch, up, 100)], batches(key))
    return float(np.sort(np.concatenate(tops))[:100].sum())


def running_sum(part: pa.Array, when: pa.Array, value: pa.Array) -> int:
    """The greatest running sum by partition and time."""
    order = sort_rows([part, when], [Direction(), Direction()], threads=THREADS)
    rows = np.arange(len(order))
    first = boundaries([part.take(to_array(order, pa.int64()))], len(order))
    start = np.maximum.accumulate(np.where(first, rows, 0))
    return int(frame_sums(values_of(value)[order], [(start, rows + 1)])[:, 0].max())


def like_count(text: pa.Array, pattern: str) -> int:
    """How many texts match."""
    return sum(on_threads(lambda batch: int(np.count_nonzero(like_mask(batch[0], pattern))), batches(text)))


def exact_total(value: pa.Array) -> float:
    """The sum of doubles, the same in any order."""
    parts = batches(value)

    def run(worker: int) -> ExactSum:
        state = ExactSum()
        for batch in parts[worker::THREADS]:
            state.update(np.zeros(len(batch[0]), np.int64), 1, batch)
        return state

    state, *others = on_threads(run, range(THREADS))
    for other in others:
        state.merge(other, np.zeros(1, np.int64), 1)
    total: float = state.finish(1)[0].as_py()
    return total


def cases(rows: int) -> tuple[dict[str, pa.Table], list[tuple[str, Callable[[], Any], str]]]:
    """DuckDB's tables, and for each case its name, our run and the query of the same answer."""
    random = np.random.default_rng(1)
    some, few = rows // 4, rows // 6
    keys = random.integers(0, some, rows)
    fact = pa.table({
        "near": keys * NEAR, "far": keys * FAR, "small": random.integers(0, 6, rows), "v": random.integers(0, 1000, rows),
        "part": random.integers(0, 10_000, rows), "price": np.round(random.random(rows) * 1e5, 2),
        "name": pc.binary_join_element_wise("k", pa.array(random.integers(0, few, rows)).cast(pa.string()), ""),
    })  # fmt: skip
    fact = fact.append_column("flag", pa.array(np.array(["A", "N", "R"])[random.integers(0, 3, rows)]))
    dim_keys = random.permutation(some)
    dim = pa.table({"near": dim_keys * NEAR, "far": dim_keys * FAR, "w": random.integers(0, 1000, some)})
    words = np.array(["carefully", "special", "pending", "requests", "deposits", "ironic", "packages", "final"])
    texts = pa.table({"text": [" ".join(row) for row in words[random.integers(0, 8, (some, 6))]]})
    f = {name: fact[name].combine_chunks() for name in fact.column_names}
    d = {name: dim[name].combine_chunks() for name in dim.column_names}
    text = texts["text"].combine_chunks()
    group = "SELECT max(s) FROM (SELECT sum(v) s FROM fact GROUP BY {})"
    join = "SELECT sum(w) FROM fact JOIN dim USING ({})"
    sort = "CREATE OR REPLACE TEMP TABLE sorted AS SELECT {0}, v FROM fact ORDER BY {0}"
    listed: list[tuple[str, Callable[[], Any], str]] = [
        ("group by 3 x 6 values", lambda: group_sums([f["flag"], f["small"]], f["v"]), group.format("flag, small")),
        ("group by near keys", lambda: group_sums([f["near"]], f["v"]), group.format("near")),
        ("group by far keys", lambda: group_sums([f["far"]], f["v"]), group.format("far")),
        ("group by far keys, partitioned", lambda: group_sums_partitioned([f["far"]], f["v"]), group.format("far")),
        ("group by texts", lambda: group_sums([f["name"]], f["v"]), group.format("name")),
        ("group by texts, partitioned", lambda: group_sums_partitioned([f["name"]], f["v"]), group.format("name")),
        ("join near keys", lambda: join_sum(d["near"], d["w"], f["near"]), join.format("near")),
        ("join far keys", lambda: join_sum(d["far"], d["w"], f["far"]), join.format("far")),
        ("filter by join keys", lambda: filter_count(d["far"].slice(0, 1000), f["far"]),
         "SELECT count(*) FROM fact WHERE far IN (SELECT far FROM dim LIMIT 1000)"),
        ("sort with payload", lambda: sort_payload(f["near"], f["v"]), sort.format("near")),
        ("sort doubles", lambda: sort_payload(f["price"], f["v"]), sort.format("price")),
        ("top 100", lambda: top_sum(f["price"]), "SELECT sum(price) FROM (SELECT price FROM fact ORDER BY price LIMIT 100)"),
        ("running sum", lambda: running_sum(f["part"], f["near"], f["v"]),
         "SELECT max(s) FROM (SELECT sum(v) OVER (PARTITION BY part ORDER BY near ROWS UNBOUNDED PRECEDING) s FROM fact)"),
        ("LIKE with two parts", lambda: like_count(text, "%special%requests%"),
         "SELECT count(*) FROM texts WHERE text LIKE '%special%requests%'"),
        ("sum of doubles (fsum)", lambda: exact_total(f["price"]), "SELECT fsum(price) FROM fact"),
    ]
    return {"fact": fact, "dim": dim, "texts": texts}, listed


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Median milliseconds, after one run that does not count, and the answer."""
    answer, times = run(), []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return median(times), answer


def main(arguments: Sequence[str]) -> int:
    """Runs all cases and prints milliseconds and ratios."""
    parser = argparse.ArgumentParser(prog="python -m tests bench kernels", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--save", action="store_true", help="add the figures to results.csv")
    options = parser.parse_args(arguments)
    warm()
    tables, listed = cases(options.rows)
    rival = duckdb.connect(config={"threads": THREADS})
    for name, rows in tables.items():
        rival.register("arrow", rows)
        rival.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
    lines, figures = [], []
    for name, run, query in listed:
        ours, answer = timed(run)
        theirs, found = timed(lambda query=query: rival.execute(query).fetchone()[0])  # type: ignore[misc]
        if not query.startswith("CREATE") and not name.startswith(("filter", "running")):
            assert abs(float(answer) - float(found)) <= 1e-6 * abs(float(found)), (name, answer, found)
        lines.append([name, f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}"])
        figures.append(Figure(f"kernels {options.rows}", "kernels", name, ours, "ms", theirs / ours))
    print(table(["case", "ours ms", "duckdb ms", "ratio"], lines))
    if options.save:
        save(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
