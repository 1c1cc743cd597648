"""The rows of INSERT, expressions over a table's columns, and all of TPC-H."""

from __future__ import annotations

import pytest

from lake.errors import DuplicateColumn, GroupingFailure, InvalidText, SyntaxFailure, UndefinedColumn
from lake.sql import ast
from lake.sql.bind import Binder
from lake.sql.bind.dml import InsertRows
from lake.sql.catalog import Settings, Table, TableColumn, TableStatistics
from lake.sql.parser import parse, parse_expression
from lake.types import BIGINT, DATE, INT, TEXT, Decimal, Type
from tests.sql.binding import Names, NoRows
from tests.sql.printer import plan_text, text
from tests.tpch import QUERIES

COLUMNS = (TableColumn("k", INT), TableColumn("day", DATE), TableColumn("note", TEXT))
DEFAULTS = {"note": parse_expression("'none'"), "day": parse_expression("DATE '2024-01-01' + 1")}


def insert(sql: str) -> InsertRows:
    """The rows of an INSERT into the table of ``COLUMNS``."""
    statement = parse(sql)[0]
    assert isinstance(statement, ast.Insert)
    return Binder(Names(), Settings(now=0)).insert(statement, COLUMNS, DEFAULTS)


def test_values_take_the_columns_types() -> None:
    made = insert("INSERT INTO x VALUES (1, '2024-02-29', DEFAULT), (2, NULL, 'a')")
    assert [column.type for column in made.columns] == [INT, DATE, TEXT]
    assert plan_text(made.plan) == (
        "Project k, day, note\n  Values (1::INT, 19782::DATE, 'none'), (2::INT, NULL::DATE, 'a')"
    )


def test_columns_left_out_take_their_defaults() -> None:
    made = insert("INSERT INTO x (k) SELECT a FROM t")
    assert made.given == {"k"}
    assert "day = (19723::DATE + 1), note = 'none'" in plan_text(made.plan)
    assert insert("INSERT INTO x DEFAULT VALUES").given == frozenset()
    assert insert("INSERT INTO x BY NAME SELECT 'n' AS note, 1 AS k").given == {"k", "note"}
    assert "day = 19723::DATE" in plan_text(insert("INSERT INTO x (day) SELECT '2024-01-01'").plan)


def test_a_value_that_does_not_cast_is_named() -> None:
    with pytest.raises(InvalidText) as failure:
        insert("INSERT INTO x VALUES (1, '2024-02-29', NULL), (2, 'soon', NULL)")
    assert (failure.value.message, failure.value.position) == ('invalid input syntax for type date: "soon"', 51)


def test_insert_errors() -> None:
    with pytest.raises(UndefinedColumn, match='column "kk" of relation "x" does not exist'):
        insert("INSERT INTO x (kk) VALUES (1)")
    with pytest.raises(DuplicateColumn):
        insert("INSERT INTO x (k, k) VALUES (1, 2)")
    with pytest.raises(SyntaxFailure, match="more expressions than target columns"):
        insert("INSERT INTO x (k) VALUES (1, 2)")
    with pytest.raises(SyntaxFailure, match="more target columns than expressions"):
        insert("INSERT INTO x (k, day) VALUES (1)")


def test_check_expressions() -> None:
    binder = Binder(Names(), Settings(now=0))
    columns = binder.columns(COLUMNS)
    made = binder.expression(parse_expression("x.k > 5 AND note <> ''"), columns, "x")
    assert text(made) == "(k > 5::INT AND note <> '')"
    with pytest.raises(GroupingFailure, match="aggregate functions are not allowed in check constraints"):
        binder.expression(parse_expression("sum(k) > 5"), columns, "x")


DECIMAL = Decimal(15, 2)
TPCH: dict[str, str] = {
    "part": "p_partkey b p_name t p_mfgr t p_brand t p_type t p_size i p_container t p_retailprice d p_comment t",
    "supplier": "s_suppkey b s_name t s_address t s_nationkey i s_phone t s_acctbal d s_comment t",
    "partsupp": "ps_partkey b ps_suppkey b ps_availqty i ps_supplycost d ps_comment t",
    "customer": "c_custkey b c_name t c_address t c_nationkey i c_phone t c_acctbal d c_mktsegment t c_comment t",
    "orders": "o_orderkey b o_custkey b o_orderstatus t o_totalprice d o_orderdate y o_orderpriority t o_clerk t "
    "o_shippriority i o_comment t",
    "lineitem": "l_orderkey b l_partkey b l_suppkey b l_linenumber i l_quantity d l_extendedprice d l_discount d l_tax d "
    "l_returnflag t l_linestatus t l_shipdate y l_commitdate y l_receiptdate y l_shipinstruct t l_shipmode t l_comment t",
    "nation": "n_nationkey i n_name t n_regionkey i n_comment t",
    "region": "r_regionkey i r_name t r_comment t",
}
LETTERS: dict[str, Type] = {"b": BIGINT, "i": INT, "t": TEXT, "d": DECIMAL, "y": DATE}


class Tpch(Names):
    """The tables of TPC-H."""

    def find(self, name: tuple[str, ...], at: tuple[str, object] | None) -> Table:
        """The table."""
        words = TPCH[name[-1]].split()
        columns = tuple(TableColumn(word, LETTERS[kind]) for word, kind in zip(words[::2], words[1::2], strict=True))
        return Table(name, columns, NoRows(), lambda: TableStatistics(0))


@pytest.mark.parametrize("number", QUERIES)
def test_tpch_binds(number: int) -> None:
    statement = parse(QUERIES[number])[0]
    assert isinstance(statement, ast.QueryStatement)
    made = Binder(Tpch(), Settings(now=0)).query(statement.query)
    assert made.plan.columns == made.columns
    assert not made.plan.outer_columns
