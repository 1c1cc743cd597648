"""Builders of the FROM clause, PIVOT and UNPIVOT of ``query.lark``."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lake.sql import ast
from lake.sql.build.base import BaseBuild

_PivotOn = tuple[ast.Expr, tuple[ast.SelectItem, ...]]


class FromBuild(BaseBuild):
    """What a query reads."""

    def from_list(self, *sources: ast.Source) -> tuple[ast.Source, ...]:
        """``FROM a, b``."""
        return sources

    # --- tables ---

    def table_source(
        self, name: ast.Name, at: ast.TimeTravel | None, alias: ast.Alias | None, sample: ast.Sample | None
    ) -> ast.Source:
        """``t AT (..) AS a TABLESAMPLE (..)``."""
        return ast.TableSource(name, alias, at, sample)

    def file_source(self, path: str, alias: ast.Alias | None, sample: ast.Sample | None) -> ast.Source:
        """``'file.parquet' AS a``."""
        return ast.FileSource(path, alias, sample)

    def function_source(
        self,
        name: ast.Name,
        arguments: tuple[ast.Argument, ...] | None,
        ordinality: str | None,
        alias: ast.Alias | None,
        sample: ast.Sample | None,
    ) -> ast.Source:
        """``unnest(l) WITH ORDINALITY AS t(a, b)``."""
        return ast.FunctionSource(name, arguments or (), alias, ordinality is not None, sample)

    def lateral_view(
        self,
        left: ast.Source,
        word: str,
        name: ast.Name,
        arguments: tuple[ast.Argument, ...] | None,
        alias: str,
        columns: tuple[str, ...] | None,
    ) -> ast.Source:
        """``a LATERAL VIEW OUTER explode(l) t AS x``: a join with the function over each row."""
        query = ast.Query(ast.Select((ast.SelectItem(ast.Call(name, arguments or ())),)))
        right = ast.SubquerySource(query, ast.Alias(alias, columns or ()), lateral=True)
        if "outer" not in word:
            return ast.JoinSource(ast.JoinKind.CROSS, left, right)
        return ast.JoinSource(ast.JoinKind.LEFT, left, right, on=ast.Literal(True))

    def source_arguments(self, *arguments: ast.Argument) -> tuple[ast.Argument, ...]:
        """The arguments of a function in FROM."""
        return arguments

    def subquery_source(self, query: ast.Query, alias: ast.Alias | None, sample: ast.Sample | None) -> ast.Source:
        """``(SELECT ..) AS a``."""
        return ast.SubquerySource(query, alias, sample=sample)

    def lateral_source(self, query: ast.Query, alias: ast.Alias | None, sample: ast.Sample | None) -> ast.Source:
        """``LATERAL (SELECT ..) AS a``."""
        return ast.SubquerySource(query, alias, lateral=True, sample=sample)

    def first_values(self, *values: ast.Expr) -> tuple[ast.Expr, ...]:
        """``VALUES (a, b)`` in FROM."""
        return values

    def values_source(self, *parts: Any) -> ast.Source:
        """``VALUES (a, b), (c, d) AS t``."""
        *rows, alias = parts
        if any(len(row) != len(rows[0]) for row in rows):
            raise self._failure("VALUES lists must all be the same length")
        return ast.SubquerySource(ast.Query(ast.Values(tuple(rows))), alias)

    def grouped_source(self, source: ast.Source, alias: ast.Alias | None) -> ast.Source:
        """``(a JOIN b ON ..) AS c``."""
        match source, alias:
            case _, None:
                return source
            case ast.JoinSource() | ast.SubquerySource(alias=None) | ast.TableSource(alias=None), _:
                return replace(source, alias=alias, span=None)
            case _:
                raise self._failure("an alias after parentheses is for a join or a query")

    def alias(self, name: str, columns: tuple[str, ...] | None) -> ast.Alias:
        """``AS a (b, c)``."""
        return ast.Alias(name, columns or ())

    def travel_at(self, kind: str, value: ast.Expr) -> ast.TimeTravel:
        """``AT (VERSION => 3)``."""
        if kind not in ("version", "timestamp", "offset"):
            raise self._failure(f"AT takes VERSION, TIMESTAMP or OFFSET, not {kind}")
        return ast.TimeTravel(kind, value)

    def travel_as_of(self, words: str, value: ast.Expr) -> ast.TimeTravel:
        """``VERSION AS OF 3``, ``FOR SYSTEM_TIME AS OF '..'``."""
        return ast.TimeTravel("version" if "version" in words else "timestamp", value)

    # --- joins ---

    def join_on(self, left: ast.Source, words: str, right: ast.Source, condition: ast.Expr) -> ast.Source:
        """``a JOIN b ON c``."""
        left, right = _sides(words, left, right)
        return ast.JoinSource(_join_kind(words), left, right, on=condition)

    def bare_join(self, left: ast.Source, words: str, right: ast.Source) -> ast.Source:
        """``a JOIN b``, every row with every row."""
        if _join_kind(words) is not ast.JoinKind.INNER:
            raise self._failure(f"{words.upper()} needs ON or USING")
        return ast.JoinSource(ast.JoinKind.CROSS, left, right)

    def join_using(self, left: ast.Source, words: str, right: ast.Source, columns: tuple[str, ...]) -> ast.Source:
        """``a JOIN b USING (c)``."""
        left, right = _sides(words, left, right)
        return ast.JoinSource(_join_kind(words), left, right, using=columns)

    def asof_join(self, left: ast.Source, words: str, right: ast.Source, condition: ast.Expr) -> ast.Source:
        """``a ASOF JOIN b ON c``."""
        return ast.JoinSource(_join_kind(words), left, right, on=condition, asof=True)

    def asof_using(self, left: ast.Source, words: str, right: ast.Source, columns: tuple[str, ...]) -> ast.Source:
        """``a ASOF JOIN b USING (c)``, the last column compared by ``>=``."""
        return ast.JoinSource(_join_kind(words), left, right, using=columns, asof=True)

    def match_join(
        self, left: ast.Source, words: str, right: ast.Source, condition: ast.Expr, on: ast.Expr | None
    ) -> ast.Source:
        """``a ASOF JOIN b MATCH_CONDITION (c) ON d``."""
        return ast.JoinSource(_join_kind(words), left, right, on=on, asof=True, match=condition)

    def cross_join(self, left: ast.Source, right: ast.Source) -> ast.Source:
        """``a CROSS JOIN b``."""
        return ast.JoinSource(ast.JoinKind.CROSS, left, right)

    def natural_join(self, left: ast.Source, words: str, right: ast.Source) -> ast.Source:
        """``a NATURAL JOIN b``."""
        return ast.JoinSource(_join_kind(words), left, right, natural=True)

    # --- PIVOT and UNPIVOT ---

    def pivot_query(
        self,
        source: ast.Source,
        on: tuple[_PivotOn, ...] | None,
        using: tuple[ast.SelectItem, ...] | None,
        group: tuple[ast.Expr, ...] | None,
    ) -> ast.Body:
        """``PIVOT t ON a USING sum(b) GROUP BY c``; without USING the rows are counted."""
        if on is None and using is None and group is None:
            raise self._failure("PIVOT needs ON, USING or GROUP BY")
        if using is None:
            using = (ast.SelectItem(ast.Call(ast.Name(("count",)), ())),) if on else ()
        return self._all_of(ast.Pivot(source, on or (), using, group or ()))

    def pivot_source(
        self,
        source: ast.Source,
        using: tuple[ast.SelectItem, ...],
        on: tuple[_PivotOn, ...],
        group: tuple[ast.Expr, ...] | None,
        alias: ast.Alias | None,
    ) -> ast.Source:
        """``t PIVOT (sum(b) FOR a IN (1, 2))``."""
        return ast.Pivot(source, on, using, group or (), alias)

    def pivot_ons(self, *ons: _PivotOn) -> tuple[_PivotOn, ...]:
        """The columns of PIVOT .. ON."""
        return ons

    def pivot_on(self, on: ast.Expr | _PivotOn) -> _PivotOn:
        """``a`` or ``a IN (1, 2)``."""
        return (on, ()) if isinstance(on, ast.Expr) else on

    def pivot_fors(self, *ons: _PivotOn) -> tuple[_PivotOn, ...]:
        """The columns of PIVOT (.. FOR ..)."""
        return ons

    def pivot_for(self, expr: ast.Expr, values: tuple[ast.SelectItem, ...]) -> _PivotOn:
        """``a IN (1 AS one, 2)``."""
        return expr, values

    def unpivot_query(
        self,
        source: ast.Source,
        columns: tuple[ast.SelectItem, ...],
        name: str = "name",
        values: tuple[str, ...] = ("value",),
    ) -> ast.Body:
        """``UNPIVOT t ON a, b INTO NAME n VALUE v``; the two are called name and value where the text does not say."""
        return self._all_of(ast.Unpivot(source, columns, name, values))

    def unpivot_source(
        self,
        source: ast.Source,
        words: str,
        values: tuple[str, ...],
        name: str,
        columns: tuple[ast.SelectItem, ...],
        alias: ast.Alias | None,
    ) -> ast.Source:
        """``t UNPIVOT INCLUDE NULLS (v FOR n IN (a, b))``."""
        return ast.Unpivot(source, columns, name, values, "include" in words, alias)

    def unpivot_values(self, values: str | tuple[str, ...]) -> tuple[str, ...]:
        """``v`` or ``(v, w)``."""
        return (values,) if isinstance(values, str) else values

    def _all_of(self, source: ast.Source) -> ast.Body:
        return ast.Select(
            (ast.SelectItem(ast.Star(), text="*"),), (replace(source, span=ast.Span(self.start, self.end)),)
        )


def _sides(words: str, left: ast.Source, right: ast.Source) -> tuple[ast.Source, ast.Source]:
    """The sides of a join; a right semi or anti join is the left one turned around."""
    return (right, left) if words in ("right semi join", "right anti join") else (left, right)


def _join_kind(words: str) -> ast.JoinKind:
    """The kind that stands among the words of a join: ``left outer join`` is LEFT, ``left semi join`` SEMI."""
    given = words.upper().split()
    for kind in (ast.JoinKind.SEMI, ast.JoinKind.ANTI, ast.JoinKind.LEFT, ast.JoinKind.RIGHT, ast.JoinKind.FULL):
        if kind.value in given:
            return kind
    return ast.JoinKind.INNER
