"""Builders of the calls, lambdas, windows and stars of ``expr.lark``."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lake.sql import ast
from lake.sql.build.base import BaseBuild

Arguments = tuple[tuple[ast.Argument, ...], tuple[ast.SortItem, ...] | None, str | None]

_TRIMS = {"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}

# Aggregates that no NULL ever counts in, so that it cannot be asked to.
WITHOUT_NULLS = frozenset(
    ("median", "approx_median", "percentile_cont", "percentile_disc", "approx_percentile_cont",
     "approx_percentile_cont_with_weight")
)  # fmt: skip

# Operators that bind tighter than ``->``: in ``x -> a + b`` all of the sum is the arrow's.
_TIGHT_OPERATORS = frozenset(("+", "-", "*", "/", "//", "%", "^", "**"))


class CallBuild(BaseBuild):
    """Calls and what stands in and around them."""

    def call(self, path: ast.Name, arguments: Arguments | None = None, *, distinct: bool = False) -> ast.Expr:
        """``f(a, b ORDER BY c)``."""
        values, order, nulls = arguments or ((), None, None)
        match path.parts, values:
            case ("columns",), (ast.Argument(pattern, None),) if not distinct and not order:
                return ast.Columns(pattern)
            case ("struct" | "struct_pack",), _ if any(argument.name for argument in values):
                return _named_struct(values)
            case ("struct_insert",), (first, *rest) if rest and all(argument.name for argument in rest):
                return _call("struct_concat", first.value, _named_struct(tuple(rest)))
            case ("row",), _ if not distinct and not order:
                return ast.Row(tuple(argument.value for argument in values))
        return self._with_nulls(ast.Call(path, values, distinct, order or ()), nulls)

    def distinct_call(self, path: ast.Name, arguments: Arguments) -> ast.Expr:
        """``f(DISTINCT a)``."""
        return self.call(path, arguments, distinct=True)

    def call_from(self, path: ast.Name, operand: ast.Expr, first: ast.Expr, second: ast.Expr | None = None) -> ast.Expr:
        """``EXTRACT(year FROM a)``, ``SUBSTRING(a FROM b FOR c)``, ``TRIM(a FROM b)``."""
        match path.last, operand, second:
            case "extract", ast.Column(ast.Name((field,))) | ast.Literal(str(field)), None:
                return ast.Extract(field.lower(), first)
            case "substring" | "substr", _, _:
                return _call("substring", operand, first, second)
            case "trim", _, None:
                return _call("btrim", first, operand)
        raise self._failure(f"{path.last} takes no FROM here")

    def call_for(self, path: ast.Name, operand: ast.Expr, length: ast.Expr) -> ast.Expr:
        """``SUBSTRING(a FOR b)``."""
        if path.last not in ("substring", "substr"):
            raise self._failure(f"{path.last} takes no FOR")
        return _call("substring", operand, ast.Literal(1), length)

    def call_placing(
        self, path: ast.Name, operand: ast.Expr, placed: ast.Expr, start: ast.Expr, length: ast.Expr | None = None
    ) -> ast.Expr:
        """``OVERLAY(a PLACING b FROM c FOR d)``."""
        if path.last != "overlay":
            raise self._failure(f"{path.last} takes no PLACING")
        return _call("overlay", operand, placed, start, length)

    def trim_call(self, path: ast.Name, side: str, letters: ast.Expr | None, operand: ast.Expr) -> ast.Expr:
        """``TRIM(LEADING a FROM b)``."""
        if path.last != "trim":
            raise self._failure(f"{path.last} takes no {side.upper()}")
        return _call(_TRIMS[side], operand, letters)

    def trim_side_call(self, path: ast.Name, side: str, operand: ast.Expr) -> ast.Expr:
        """``TRIM(LEADING a)``."""
        return self.trim_call(path, side, None, operand)

    def position_call(self, part: ast.Expr, whole: ast.Expr) -> ast.Expr:
        """``POSITION(a IN b)``, which is ``strpos(b, a)``."""
        return _call("strpos", whole, part)

    def position_plain_call(self, arguments: Arguments) -> ast.Expr:
        """``position(a, b)``."""
        return self.call(ast.Name(("position",)), arguments)

    def word_call(self, word: str, arguments: Arguments) -> ast.Expr:
        """``exists(l, x -> x > 1)``, ``array(a, b)``: functions that are named as keywords."""
        return self.call(ast.Name((word,)), arguments)

    def special_call(self, word: str, precision: int | None = None) -> ast.Expr:
        """``CURRENT_DATE`` and the like, which are calls without parentheses."""
        return ast.Call(ast.Name((word,)))

    def filter_call(self, call: ast.Expr, condition: ast.Expr) -> ast.Expr:
        """``f(a) FILTER (WHERE b)``."""
        return replace(self._suffixed(call), filter=condition)

    def within_group_call(self, call: ast.Expr, order: tuple[ast.SortItem, ...]) -> ast.Expr:
        """``f(a) WITHIN GROUP (ORDER BY b)``."""
        return replace(self._suffixed(call), within_group=order)

    def nulls_call(self, call: ast.Expr, nulls: str) -> ast.Expr:
        """``f(a) IGNORE NULLS``."""
        return self._with_nulls(self._suffixed(call), nulls)

    def _with_nulls(self, call: ast.Call, nulls: str | None) -> ast.Call:
        """The call as IGNORE NULLS or RESPECT NULLS has it; 42601 for the latter where NULLs never count."""
        if nulls == "respect nulls" and call.name.last.lower() in WITHOUT_NULLS:
            raise self._failure(f"RESPECT NULLS is not for {call.name.last}")
        return replace(call, ignore_nulls=nulls == "ignore nulls")

    def over_name(self, call: ast.Expr, name: str) -> ast.Expr:
        """``f(a) OVER w``."""
        return self.over(call, ast.Window(base=name))

    def over(self, call: ast.Expr, window: ast.Window) -> ast.Expr:
        """``f(a) OVER (..)``; the NULLS of ``f(g(a) IGNORE NULLS) OVER ..`` are of ``f``."""
        outer = self._suffixed(call)
        match outer.arguments:
            case (*before, ast.Argument(ast.Call(ignore_nulls=True, over=None) as inner, name)) if not (
                outer.ignore_nulls or id(inner) in self.grouped_nodes
            ):
                arguments = (*before, ast.Argument(replace(inner, ignore_nulls=False), name))
                outer = replace(outer, arguments=arguments, ignore_nulls=True)
        return replace(outer, over=window)

    def _suffixed(self, call: ast.Expr) -> ast.Call:
        if not isinstance(call, ast.Call):
            raise self._failure("FILTER, WITHIN GROUP and OVER follow a function")
        return replace(call, span=None)

    def arguments(self, *parts: Any) -> Arguments:
        """``a, b ORDER BY c IGNORE NULLS``."""
        *arguments, order, nulls = parts
        return tuple(arguments), order, nulls

    def argument(self, value: ast.Expr) -> ast.Argument:
        """``a``."""
        return ast.Argument(value)

    def named_argument(self, name: str, value: ast.Expr) -> ast.Argument:
        """``name => a``."""
        return ast.Argument(value, name)

    def aliased_argument(self, value: ast.Expr, name: str) -> ast.Argument:
        """``a AS b``, in ``struct(a AS b)``."""
        return ast.Argument(value, name)

    # --- lambdas ---

    def arrow(self, left: ast.Name | ast.Expr, body: ast.Expr) -> ast.Expr:
        """``x -> e`` as an argument: a lambda where ``e`` speaks of ``x``, else JSON's operator.

        ``f(x -> 1)`` is left to the binder, which knows whether ``f`` takes a lambda: it is Binary("->", x, 1).
        """
        operand = ast.Column(left) if isinstance(left, ast.Name) else left
        parameters = _parameters(operand)
        if parameters and (isinstance(operand, ast.Row) or _speaks_of(body, parameters)):
            return ast.Lambda(parameters, body)
        return self._json_arrow(operand, body)

    def _json_arrow(self, operand: ast.Expr, body: ast.Expr) -> ast.Expr:
        """``operand -> body`` with the arrow as tight as the grammar has it elsewhere.

        The body was read as loosely as a lambda's, so the arrow moves down its left side: a -> (b = c) is (a -> b) = c.
        """
        if id(body) in self.grouped_nodes:
            return ast.Binary("->", operand, body)
        match body:
            case ast.Or(operands) | ast.And(operands):
                return replace(body, operands=(self._json_arrow(operand, operands[0]), *operands[1:]))
            case ast.Binary(op, left, _) if op not in _TIGHT_OPERATORS:
                return replace(body, left=self._json_arrow(operand, left))
            case ast.IsDistinct(left, _):
                return replace(body, left=self._json_arrow(operand, left))
            case (
                ast.IsNull(inner) | ast.IsTruth(inner) | ast.InList(inner) | ast.InSubquery(inner) | ast.Between(inner)
            ) | ast.Like(_, inner):
                return replace(body, operand=self._json_arrow(operand, inner))
            case ast.Quantified(_, inner):
                return replace(body, operand=self._json_arrow(operand, inner))
            case _:
                return ast.Binary("->", operand, body)

    def lambda_(self, parameters: tuple[str, ...], body: ast.Expr) -> ast.Expr:
        """``LAMBDA x, y: e``."""
        return ast.Lambda(parameters, body)

    # --- order and windows ---

    def order_by(self, *items: ast.SortItem) -> tuple[ast.SortItem, ...]:
        """``ORDER BY a, b DESC``."""
        return items

    def sort_item(self, expr: ast.Expr, direction: str | None, nulls: str | None) -> ast.SortItem:
        """``a DESC NULLS LAST``."""
        return ast.SortItem(expr, direction == "desc", None if nulls is None else nulls == "nulls first")

    def window_definition(
        self,
        base: str | None,
        partition: tuple[ast.Expr, ...] | None,
        order: tuple[ast.SortItem, ...] | None,
        frame: ast.Frame | None,
    ) -> ast.Window:
        """``(w PARTITION BY a ORDER BY b ROWS ..)``."""
        return ast.Window(base, partition or (), order or (), frame)

    def frame(self, unit: str, start: ast.FrameBound, end: ast.FrameBound, exclusion: str | None) -> ast.Frame:
        """``ROWS BETWEEN a AND b EXCLUDE c``."""
        left_out = ast.Exclusion(exclusion.removeprefix("exclude ").upper() if exclusion else "NO OTHERS")
        if start.kind is ast.BoundKind.UNBOUNDED_FOLLOWING:
            raise self._failure("frame start cannot be UNBOUNDED FOLLOWING")
        if end.kind is ast.BoundKind.UNBOUNDED_PRECEDING:
            raise self._failure("frame end cannot be UNBOUNDED PRECEDING")
        return ast.Frame(ast.FrameUnit(unit.upper()), start, end, left_out)

    def short_frame(self, unit: str, start: ast.FrameBound, exclusion: str | None) -> ast.Frame:
        """``ROWS a``, which ends at the current row."""
        return self.frame(unit, start, ast.FrameBound(ast.BoundKind.CURRENT_ROW), exclusion)

    def frame_bound(self, words: str) -> ast.FrameBound:
        """``UNBOUNDED PRECEDING`` or ``CURRENT ROW``."""
        return ast.FrameBound(ast.BoundKind(words.upper()))

    def offset_bound(self, offset: ast.Expr, side: str) -> ast.FrameBound:
        """``3 PRECEDING``."""
        return ast.FrameBound(ast.BoundKind(side.upper()), offset)

    # --- stars ---

    def star(self, qualifier: ast.Name | None = None) -> ast.Expr:
        """``*`` or ``t.*``."""
        return ast.Star(qualifier)

    def star_exclude(self, star: ast.Star, *names: ast.Name) -> ast.Expr:
        """``* EXCLUDE (a, b)``."""
        return replace(star, exclude=star.exclude + names, span=None)

    def star_replace(self, star: ast.Star, *replacements: tuple[ast.Expr, str]) -> ast.Expr:
        """``* REPLACE (a + 1 AS a)``."""
        return replace(star, replace=star.replace + replacements, span=None)

    def star_rename(self, star: ast.Star, *renamings: tuple[str, str]) -> ast.Expr:
        """``* RENAME (a AS b)``."""
        return replace(star, rename=star.rename + renamings, span=None)

    def replacement(self, expr: ast.Expr, name: str) -> tuple[ast.Expr, str]:
        """``a + 1 AS a``."""
        return expr, name

    def renaming(self, old: str, new: str) -> tuple[str, str]:
        """``a AS b``."""
        return old, new


def _call(name: str, *arguments: ast.Expr | None) -> ast.Call:
    return ast.Call(ast.Name((name,)), tuple(ast.Argument(value) for value in arguments if value is not None))


def _parameters(operand: ast.Expr) -> tuple[str, ...]:
    """The names that ``x`` or ``(x, y)`` gives to a lambda's parameters, or none where it is something else."""
    columns = operand.items if isinstance(operand, ast.Row) else (operand,)
    names = [column.name.parts for column in columns if isinstance(column, ast.Column)]
    if len(names) < len(columns) or any(len(parts) > 1 for parts in names):
        return ()
    return tuple(parts[0] for parts in names)


def _speaks_of(body: ast.Expr, parameters: tuple[str, ...]) -> bool:
    return any(isinstance(node, ast.Column) and node.name.parts[0] in parameters for node in ast.walk(body))


def _named_struct(arguments: tuple[ast.Argument, ...]) -> ast.Expr:
    """``struct(a AS b, c)`` as named_struct; a field without a name is called by its place, from c0."""
    parts: list[ast.Expr] = []
    for place, argument in enumerate(arguments):
        parts += [ast.Literal(argument.name or f"c{place}"), argument.value]
    return _call("named_struct", *parts)
