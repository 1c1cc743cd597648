"""Tables without rows: TPC-H at scale 1 with its statistics written down, and a few small tables for the rules.

Distinct counts and ranges were counted on the generated data, so that join orders are checked without it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from lake.errors import UndefinedTable
from lake.rows import Part, Predicate
from lake.sql.catalog import ColumnStatistics, Table, TableColumn, TableStatistics
from lake.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TEXT, TIMESTAMP, Decimal, List, Type

MONEY = Decimal(15, 2)


class NoRows:
    """Rows that nobody reads."""

    def parts(self, columns: Sequence[str], predicates: Sequence[Predicate]) -> Sequence[Part]:
        """No parts."""
        return []


def _day(text: str) -> int:
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


Described = tuple[str, Type, float | None, object, object]

TPCH: dict[str, tuple[int, list[Described]]] = {
    "region": (5, [
        ("r_regionkey", BIGINT, 5, 0, 4), ("r_name", TEXT, 5, "AFRICA", "MIDDLE EAST"), ("r_comment", TEXT, 5, None, None),
    ]),
    "nation": (25, [
        ("n_nationkey", BIGINT, 25, 0, 24), ("n_name", TEXT, 25, "ALGERIA", "VIETNAM"), ("n_regionkey", BIGINT, 5, 0, 4),
        ("n_comment", TEXT, 25, None, None),
    ]),
    "supplier": (10_000, [
        ("s_suppkey", BIGINT, 10_000, 1, 10_000), ("s_name", TEXT, 10_000, "Supplier#000000001", "Supplier#000010000"),
        ("s_address", TEXT, 10_000, None, None), ("s_nationkey", BIGINT, 25, 0, 24),
        ("s_phone", TEXT, 10_000, "10-102-116-6785", "34-998-900-4911"), ("s_acctbal", MONEY, 9_955, -99_822, 999_972),
        ("s_comment", TEXT, 10_000, None, None),
    ]),
    "customer": (150_000, [
        ("c_custkey", BIGINT, 150_000, 1, 150_000), ("c_name", TEXT, 150_000, "Customer#000000001", "Customer#000150000"),
        ("c_address", TEXT, 150_000, None, None), ("c_nationkey", BIGINT, 25, 0, 24),
        ("c_phone", TEXT, 150_000, "10-100-106-1617", "34-999-618-6881"), ("c_acctbal", MONEY, 140_187, -99_999, 999_999),
        ("c_mktsegment", TEXT, 5, "AUTOMOBILE", "MACHINERY"), ("c_comment", TEXT, 149_968, None, None),
    ]),
    "part": (200_000, [
        ("p_partkey", BIGINT, 200_000, 1, 200_000), ("p_name", TEXT, 199_997, "almond antique", "yellow white"),
        ("p_mfgr", TEXT, 5, "Manufacturer#1", "Manufacturer#5"), ("p_brand", TEXT, 25, "Brand#11", "Brand#55"),
        ("p_type", TEXT, 150, "ECONOMY ANODIZED BRASS", "STANDARD POLISHED TIN"), ("p_size", INT, 50, 1, 50),
        ("p_container", TEXT, 40, "JUMBO BAG", "WRAP PKG"), ("p_retailprice", MONEY, 20_899, 90_100, 209_899),
        ("p_comment", TEXT, 131_753, None, None),
    ]),
    "partsupp": (800_000, [
        ("ps_partkey", BIGINT, 200_000, 1, 200_000), ("ps_suppkey", BIGINT, 10_000, 1, 10_000),
        ("ps_availqty", INT, 9_999, 1, 9_999), ("ps_supplycost", MONEY, 99_865, 100, 100_000),
        ("ps_comment", TEXT, 799_124, None, None),
    ]),
    "orders": (1_500_000, [
        ("o_orderkey", BIGINT, 1_504_932, 1, 6_000_000), ("o_custkey", BIGINT, 98_671, 1, 149_999),
        ("o_orderstatus", TEXT, 3, "F", "P"), ("o_totalprice", MONEY, 1_448_443, 85_771, 55_528_516),
        ("o_orderdate", DATE, 2_313, _day("1992-01-01"), _day("1998-08-02")),
        ("o_orderpriority", TEXT, 5, "1-URGENT", "5-LOW"), ("o_clerk", TEXT, 1_018, None, None),
        ("o_shippriority", INT, 1, 0, 0), ("o_comment", TEXT, 1_500_000, None, None),
    ]),
    "lineitem": (6_001_215, [
        ("l_orderkey", BIGINT, 1_504_932, 1, 6_000_000), ("l_partkey", BIGINT, 195_166, 1, 200_000),
        ("l_suppkey", BIGINT, 9_442, 1, 10_000), ("l_linenumber", INT, 7, 1, 7), ("l_quantity", MONEY, 50, 100, 5_000),
        ("l_extendedprice", MONEY, 1_035_753, 90_100, 10_494_950), ("l_discount", MONEY, 11, 0, 10),
        ("l_tax", MONEY, 9, 0, 8), ("l_returnflag", TEXT, 3, "A", "R"), ("l_linestatus", TEXT, 2, "F", "O"),
        ("l_shipdate", DATE, 2_411, _day("1992-01-02"), _day("1998-12-01")),
        ("l_commitdate", DATE, 2_375, _day("1992-01-31"), _day("1998-10-31")),
        ("l_receiptdate", DATE, 2_459, _day("1992-01-04"), _day("1998-12-31")),
        ("l_shipinstruct", TEXT, 4, "COLLECT COD", "TAKE BACK RETURN"), ("l_shipmode", TEXT, 7, "AIR", "TRUCK"),
        ("l_comment", TEXT, 4_748_355, None, None),
    ]),
}  # fmt: skip

SMALL: dict[str, tuple[int, list[Described]]] = {
    "t": (1_000, [("a", INT, 100, 0, 99), ("b", INT, 50, 0, 49), ("c", TEXT, 20, "a", "z"), ("d", DATE, None, None, None)]),
    "u": (100, [("a", INT, 100, 0, 99), ("x", INT, 10, 0, 9), ("y", DOUBLE, None, None, None)]),
    "v": (10, [("a", INT, 10, 0, 9), ("z", BOOLEAN, 2, None, None), ("at", TIMESTAMP, None, None, None),
               ("l", List(INT), None, None, None)]),
    "k": (500, [("id", INT, 500, 1, 500), ("n", BIGINT, 5, 0, 4), ("price", MONEY, 100, 0, 100_000)]),
}  # fmt: skip

NOT_NULL = frozenset(("id",))
UNIQUE: dict[str, tuple[tuple[str, ...], ...]] = {"k": (("id",),)}


def make_table(name: str, rows: int, described: Sequence[Described], *, nullable: bool) -> Table:
    """A table without rows that claims to have ``rows``."""
    known = {
        column: ColumnStatistics(low, high, 0.0, distinct)
        for column, _, distinct, low, high in described
        if distinct is not None
    }
    columns = tuple(TableColumn(column, type, nullable and column not in NOT_NULL) for column, type, *_ in described)
    statistics = TableStatistics(float(rows), known)
    return Table((name,), columns, NoRows(), lambda: statistics, UNIQUE.get(name, ()))


class TestCatalog:
    """The tables of this module; none has a view."""

    __test__ = False

    def __init__(self) -> None:
        self._tables: Mapping[str, Table] = {
            **{name: make_table(name, *described, nullable=False) for name, described in TPCH.items()},
            **{name: make_table(name, *described, nullable=True) for name, described in SMALL.items()},
        }

    def find(self, name: tuple[str, ...], at: tuple[str, object] | None) -> Table:
        """The table of that name; 42P01 where there is none."""
        found = self._tables.get(name[-1])
        if found is None:
            raise UndefinedTable(f'table "{".".join(name)}" does not exist')
        return found

    def find_file(self, path: str) -> Table:
        """No files."""
        raise UndefinedTable(f"no file {path}")
