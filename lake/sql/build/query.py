"""Builders of ``query.lark``: queries, SELECT and set operations. FROM is in ``query_from``."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lake.sql import ast
from lake.sql.build.base import BaseBuild


class Tail(Struct, frozen=True):
    """ORDER BY, LIMIT and OFFSET of a query, as fields of ``ast.Query``."""

    fields: dict[str, Any]


class QueryBuild(BaseBuild):
    """Queries."""

    def query(self, body: ast.Body, tail: Tail | None) -> ast.Query:
        """``body ORDER BY .. LIMIT ..``."""
        return ast.Query(_bare(body), **(tail.fields if tail else {}))

    def with_query(self, ctes: tuple[bool, tuple[ast.Cte, ...]], body: ast.Body, tail: Tail | None) -> ast.Query:
        """``WITH .. body ORDER BY .. LIMIT ..``."""
        recursive, parts = ctes
        return ast.Query(_bare(body), ctes=parts, recursive=recursive, **(tail.fields if tail else {}))

    def with_clause(self, ctes: tuple[ast.Cte, ...]) -> tuple[bool, tuple[ast.Cte, ...]]:
        """``WITH a AS (..)``."""
        return False, ctes

    def with_recursive(self, ctes: tuple[ast.Cte, ...]) -> tuple[bool, tuple[ast.Cte, ...]]:
        """``WITH RECURSIVE a AS (..)``."""
        return True, ctes

    def ctes(self, *ctes: ast.Cte) -> tuple[ast.Cte, ...]:
        """The parts of WITH."""
        return ctes

    def cte(
        self, name: str, columns: tuple[str, ...] | None, query: ast.Query, *, materialized: bool | None = None
    ) -> ast.Cte:
        """``a (b, c) AS (..)``."""
        return ast.Cte(name, columns or (), query, materialized)

    def materialized_cte(self, name: str, columns: tuple[str, ...] | None, query: ast.Query) -> ast.Cte:
        """``a AS MATERIALIZED (..)``."""
        return self.cte(name, columns, query, materialized=True)

    def inlined_cte(self, name: str, columns: tuple[str, ...] | None, query: ast.Query) -> ast.Cte:
        """``a AS NOT MATERIALIZED (..)``."""
        return self.cte(name, columns, query, materialized=False)

    def keyed_cte(
        self, name: str, columns: tuple[str, ...] | None, keys: tuple[ast.SelectItem, ...], query: ast.Query
    ) -> ast.Cte:
        """``a (b, c) USING KEY (b, max(c)) AS (..)``."""
        return ast.Cte(name, columns or (), query, keys=keys)

    def set_operation(self, left: ast.Body, words: str, right: ast.Body) -> ast.Body:
        """``a UNION ALL b``."""
        kind, *rest = words.split()
        return ast.SetOperation(ast.SetKind(kind.upper()), "all" in rest, _bare(left), _bare(right), "by" in rest)

    # --- ORDER BY and LIMIT ---

    def some_tail(self, *parts: tuple[ast.SortItem, ...] | Tail) -> Tail:
        """``ORDER BY a LIMIT b OFFSET c``, the last two in any order."""
        fields: dict[str, Any] = {}
        for part in parts:
            given = part.fields if isinstance(part, Tail) else {"order": part}
            for name in given:
                if name in fields:
                    raise self._failure(f"multiple {name.upper()} clauses not allowed")
            fields.update(given)
        return Tail(fields)

    def order_by_all(self, direction: str | None, nulls: str | None) -> Tail:
        """``ORDER BY ALL DESC``."""
        order: tuple[ast.SortItem, ...] = ()
        if direction or nulls:
            order = (ast.SortItem(ast.Star(), direction == "desc", None if nulls is None else nulls == "nulls first"),)
        return Tail({"order": order, "order_all": True})

    def limit(self, count: ast.Expr) -> Tail:
        """``LIMIT a``; NULL is no limit."""
        return Tail({"limit": count})

    def limit_all(self) -> Tail:
        """``LIMIT ALL``."""
        return Tail({"limit": None})

    def limit_percent(self, count: ast.Expr) -> Tail:
        """``LIMIT a PERCENT``."""
        return Tail({"limit": count, "limit_percent": True})

    def limit_percent_literal(self, count: Any) -> Tail:
        """``LIMIT 10%``."""
        return Tail({"limit": ast.Literal(count), "limit_percent": True})

    def offset(self, *parts: ast.Expr | None) -> Tail:
        """``OFFSET a ROWS``."""
        return Tail({"offset": parts[0]})

    def fetch(self, count: ast.Expr | None) -> Tail:
        """``FETCH FIRST a ROWS ONLY``."""
        return Tail({"limit": count or ast.Literal(1)})

    def fetch_percent(self, count: ast.Expr) -> Tail:
        """``FETCH FIRST a PERCENT ROWS ONLY``."""
        return self.limit_percent(count)

    def fetch_with_ties(self, count: ast.Expr | None) -> Tail:
        """``FETCH FIRST a ROWS WITH TIES``."""
        return Tail({"limit": count or ast.Literal(1), "with_ties": True})

    # --- SELECT ---

    def select(
        self, distinct: bool | tuple[ast.Expr, ...] | None, items: tuple[ast.SelectItem, ...], *parts: Any
    ) -> ast.Body:
        """``SELECT items INTO t FROM .. WHERE .. GROUP BY .. HAVING .. WINDOW .. QUALIFY .. USING SAMPLE ..``."""
        into, sources, *rest = parts
        select = self._select(distinct, items, sources or (), *rest)
        if into is not None:
            self.into.append((select, into))
        return select

    def from_select(
        self,
        sources: tuple[ast.Source, ...],
        distinct: bool | tuple[ast.Expr, ...] | None,
        items: tuple[ast.SelectItem, ...],
        *parts: Any,
    ) -> ast.Body:
        """``FROM t SELECT items WHERE ..``."""
        return self._select(distinct, items, sources, *parts)

    def from_only(self, sources: tuple[ast.Source, ...], sample: ast.Sample | None) -> ast.Body:
        """``FROM t``, all columns of it."""
        return ast.Select((_all_columns(),), sources, sample=sample)

    def _select(
        self,
        distinct: bool | tuple[ast.Expr, ...] | None,
        items: tuple[ast.SelectItem, ...],
        sources: tuple[ast.Source, ...],
        *parts: Any,
    ) -> ast.Select:
        where, group, having, windows, qualify, sample = parts
        return ast.Select(
            items=items,
            sources=sources,
            distinct=bool(distinct),
            distinct_on=distinct if isinstance(distinct, tuple) else (),
            where=where,
            group=() if group is True else group or (),
            group_all=group is True,
            having=having,
            windows=windows or (),
            qualify=qualify,
            sample=sample,
        )

    def values(self, *rows: tuple[ast.Expr, ...]) -> ast.Body:
        """``VALUES (a, b), (c, d)``."""
        if any(len(row) != len(rows[0]) for row in rows):
            raise self._failure("VALUES lists must all be the same length")
        return ast.Values(rows)

    def values_row(self, *values: ast.Expr) -> tuple[ast.Expr, ...]:
        """``(a, b)`` of VALUES."""
        return values

    def table_query(self, name: ast.Name) -> ast.Body:
        """``TABLE t``."""
        return ast.Select((_all_columns(),), (ast.TableSource(name, span=ast.Span(self.start, self.end)),))

    def distinct(self) -> bool:
        """``DISTINCT``."""
        return True

    def distinct_on(self, exprs: tuple[ast.Expr, ...]) -> tuple[ast.Expr, ...]:
        """``DISTINCT ON (a, b)``."""
        return exprs

    def select_items(self, *items: ast.SelectItem) -> tuple[ast.SelectItem, ...]:
        """The select list."""
        return items

    def select_item(self, spoken: tuple[ast.Expr, str], alias: str | None = None) -> ast.SelectItem:
        """``a AS b``."""
        expr, text = spoken
        return ast.SelectItem(expr, alias, text=text)

    def named_item(self, spoken: tuple[ast.Expr, str], names: tuple[str, ...]) -> ast.SelectItem:
        """``explode(m) AS (key, value)``."""
        return ast.SelectItem(spoken[0], names=names, text=spoken[1])

    def star_item(self, star: ast.Expr) -> ast.SelectItem:
        """``*`` in the select list."""
        return ast.SelectItem(star, text=self._words())

    def spoken(self, expr: Any) -> tuple[Any, str]:
        """An expression or query and its words."""
        return expr, self._words()

    def group_all(self) -> bool:
        """``GROUP BY ALL``."""
        return True

    def group_by(self, *items: ast.Expr | ast.GroupingSets) -> tuple[ast.Expr | ast.GroupingSets, ...]:
        """``GROUP BY a, b``."""
        return items

    def rollup(self, *items: ast.Expr | ast.GroupingSets) -> ast.GroupingSets:
        """``ROLLUP (a, b)``."""
        return ast.GroupingSets("rollup", tuple(_grouping_set(item) for item in items))

    def cube(self, *items: ast.Expr | ast.GroupingSets) -> ast.GroupingSets:
        """``CUBE (a, b)``."""
        return ast.GroupingSets("cube", tuple(_grouping_set(item) for item in items))

    def grouping_sets(self, *items: ast.Expr | ast.GroupingSets) -> ast.GroupingSets:
        """``GROUPING SETS ((a, b), a, ())``."""
        return ast.GroupingSets("grouping sets", tuple(_grouping_set(item) for item in items))

    def empty_set(self) -> ast.GroupingSets:
        """``()``: all rows in one group."""
        return ast.GroupingSets("grouping sets", ((),))

    def windows(self, *windows: tuple[str, ast.Window]) -> tuple[tuple[str, ast.Window], ...]:
        """``WINDOW w AS (..), v AS (..)``."""
        return windows

    def named_window(self, name: str, window: ast.Window) -> tuple[str, ast.Window]:
        """``w AS (..)``."""
        return name, window

    # --- samples ---

    def plain_sample(self, size: tuple[ast.Expr, bool | None], seed: int | None) -> ast.Sample:
        """``USING SAMPLE 10%``; a bare number counts rows."""
        amount, is_percent = size
        return ast.Sample(amount, bool(is_percent), seed=_seed(seed))

    def method_sample(self, method: str, size: tuple[ast.Expr, bool | None], seed: int | None) -> ast.Sample:
        """``bernoulli(10 PERCENT)``; a bare number is a percentage, but of a reservoir the rows."""
        amount, is_percent = size
        by_default = method != "reservoir"
        return ast.Sample(amount, by_default if is_percent is None else is_percent, method, _seed(seed))

    def sample_by(self, size: tuple[ast.Expr, bool | None], method: str) -> ast.Sample:
        """``USING SAMPLE 10 PERCENT (bernoulli)``."""
        amount, is_percent = size
        return ast.Sample(amount, bool(is_percent), method)

    def table_sample(self, size: tuple[ast.Expr, bool | None], seed: int | None) -> ast.Sample:
        """``TABLESAMPLE (10)``; a bare number is a percentage."""
        amount, is_percent = size
        return ast.Sample(amount, is_percent is not False, seed=_seed(seed))

    def percent_size(self, amount: Any) -> tuple[ast.Expr, bool | None]:
        """``10%``."""
        return _amount(amount), True

    def row_size(self, amount: Any) -> tuple[ast.Expr, bool | None]:
        """``10 ROWS``."""
        return _amount(amount), False

    def bare_size(self, amount: Any) -> tuple[ast.Expr, bool | None]:
        """``10``, whose unit is for the clause to say."""
        return _amount(amount), None


def _bare(body: ast.Body) -> ast.Body:
    """A query that is nothing but its body, without its parentheses."""
    if isinstance(body, ast.Query) and body == ast.Query(body.body):
        return body.body
    return body


def _all_columns() -> ast.SelectItem:
    return ast.SelectItem(ast.Star(), text="*")


def _grouping_set(item: ast.Expr | ast.GroupingSets) -> tuple[ast.Expr, ...] | ast.GroupingSets:
    match item:
        case ast.GroupingSets("grouping sets", ((),)):
            return ()
        case ast.GroupingSets():
            return item
        case ast.Row(items):
            return items
        case _:
            return (item,)


def _seed(seed: int | None) -> ast.Expr | None:
    return None if seed is None else ast.Literal(seed)


def _amount(amount: Any) -> ast.Expr:
    """A number, or the name of a parameter."""
    return ast.Parameter(amount) if isinstance(amount, str) else ast.Literal(amount)
