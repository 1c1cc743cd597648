"""Builders of ``expr.lark``: operators, literals and types. Calls and windows are in ``expr_calls``."""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from lake.errors import FeatureNotSupported
from lake.sql import ast
from lake.sql.build.base import BaseBuild

_SAME_OPERATORS = {"!=": "<>", "==": "=", "~~": "LIKE", "~~*": "ILIKE", "!~~": "NOT LIKE", "!~~*": "NOT ILIKE"}

_WORD_TYPES = {"character varying": "varchar", "char varying": "varchar"}


class ExprBuild(BaseBuild):
    """Expressions."""

    # --- operators ---

    def disjunction(self, *operands: ast.Expr) -> ast.Expr:
        """``a OR b OR c``."""
        return ast.Or(operands)

    def conjunction(self, *operands: ast.Expr) -> ast.Expr:
        """``a AND b AND c``."""
        return ast.And(operands)

    def not_(self, operand: ast.Expr) -> ast.Expr:
        """``NOT a``."""
        return ast.Not(operand)

    def binary(self, left: ast.Expr, op: str, right: ast.Expr) -> ast.Expr:
        """``a op b``; words in disguise become those, and ``a DIV b`` the quotient without its fraction."""
        op = _SAME_OPERATORS.get(op, op)
        if op == "div":
            return ast.Cast(ast.Binary("/", left, right), ast.TypeName("bigint"))
        if op == "<=>":
            return ast.IsDistinct(left, right, negated=True)
        if op.endswith("LIKE"):
            return self.like(left, op.lower(), right)
        return ast.Binary(op, left, right)

    def unary(self, op: str, operand: ast.Expr) -> ast.Expr:
        """``- a``."""
        return ast.Unary(op, operand)

    def quantified(self, operand: ast.Expr, op: str, quantifier: str, source: ast.Query | ast.Expr) -> ast.Expr:
        """``a = ANY (..)``."""
        return ast.Quantified(_SAME_OPERATORS.get(op, op.upper()), operand, source, every=quantifier == "all")

    def is_null(self, operand: ast.Expr) -> ast.Expr:
        """``a IS NULL``."""
        return ast.IsNull(operand)

    def is_not_null(self, operand: ast.Expr) -> ast.Expr:
        """``a IS NOT NULL``."""
        return ast.IsNull(operand, negated=True)

    def is_truth(self, operand: ast.Expr, truth: str, *, negated: bool = False) -> ast.Expr:
        """``a IS TRUE``."""
        value = {"true": True, "false": False, "unknown": None}[truth]
        return ast.IsTruth(operand, value, negated)

    def is_not_truth(self, operand: ast.Expr, truth: str) -> ast.Expr:
        """``a IS NOT TRUE``."""
        return self.is_truth(operand, truth, negated=True)

    def is_distinct(self, left: ast.Expr, right: ast.Expr) -> ast.Expr:
        """``a IS DISTINCT FROM b``."""
        return ast.IsDistinct(left, right)

    def is_not_distinct(self, left: ast.Expr, right: ast.Expr) -> ast.Expr:
        """``a IS NOT DISTINCT FROM b``."""
        return ast.IsDistinct(left, right, negated=True)

    def in_list(self, operand: ast.Expr, word: str, items: tuple[ast.Expr, ...]) -> ast.Expr:
        """``a IN (1, 2)``."""
        return ast.InList(operand, items, negated=word != "in")

    def in_query(self, operand: ast.Expr, word: str, query: ast.Query) -> ast.Expr:
        """``a IN (SELECT ..)``."""
        return ast.InSubquery(operand, query, negated=word != "in")

    def like(self, operand: ast.Expr, word: str, pattern: ast.Expr, escape: ast.Expr | None = None) -> ast.Expr:
        """``a LIKE b ESCAPE c``."""
        kind = ast.LikeKind(word.removeprefix("not ").replace("regexp", "rlike").upper())
        return ast.Like(kind, operand, pattern, escape, negated=word.startswith("not "))

    def between(self, operand: ast.Expr, word: str, low: ast.Expr, high: ast.Expr) -> ast.Expr:
        """``a BETWEEN b AND c``."""
        negated, symmetric = word.startswith("not "), word.endswith("symmetric")
        return ast.Between(operand, low, high, negated, symmetric)

    def overlaps(self, left: ast.Expr, right: ast.Expr) -> ast.Expr:
        """``(a, b) OVERLAPS (c, d)``, as a call of four arguments."""
        items = [item for row in (left, right) for item in (row.items if isinstance(row, ast.Row) else ())]
        if len(items) != 4:
            raise self._failure("OVERLAPS stands between two pairs")
        return ast.Call(ast.Name(("overlaps",)), tuple(ast.Argument(item) for item in items))

    def at_time_zone(self, operand: ast.Expr, zone: ast.Expr) -> ast.Expr:
        """``a AT TIME ZONE b``."""
        return ast.AtTimeZone(operand, zone)

    def subscript(self, operand: ast.Expr, index: ast.Expr) -> ast.Expr:
        """``a[i]``."""
        return ast.Subscript(operand, index)

    def slice(
        self, operand: ast.Expr, low: ast.Expr | None, high: ast.Expr | None, stride: ast.Expr | None = None
    ) -> ast.Expr:
        """``a[i:j]`` or ``a[i:j:stride]``."""
        return ast.Slice(operand, low, high, stride)

    def field(self, operand: ast.Expr, label: str) -> ast.Expr:
        """``(a).b``, a subscript by the field's name."""
        return ast.Subscript(operand, ast.Literal(label))

    def cast(self, operand: ast.Expr, type_name: ast.TypeName) -> ast.Expr:
        """``CAST(a AS t)``."""
        return ast.Cast(operand, type_name)

    def try_cast(self, operand: ast.Expr, type_name: ast.TypeName) -> ast.Expr:
        """``TRY_CAST(a AS t)``."""
        return ast.Cast(operand, type_name, is_try=True)

    def infix_cast(self, operand: ast.Expr, type_name: ast.TypeName) -> ast.Expr:
        """``a::t``."""
        return ast.Cast(operand, type_name, is_infix=True)

    def collate(self, operand: ast.Expr, collation: ast.Name) -> ast.Expr:
        """``a COLLATE "C"``: texts are ordered by code points, so the collations that say so change nothing."""
        if collation.last.lower() not in ("c", "default", "posix", "ucs_basic", "c.utf8"):
            raise FeatureNotSupported(f'collation "{collation.last}" is not supported: texts are ordered by code points')
        return operand

    # --- atoms ---

    def column(self, path: ast.Name) -> ast.Expr:
        """``t.a``."""
        return ast.Column(path)

    def literal(self, value: int | Decimal | float | str | bytes) -> ast.Expr:
        """A number, a text or bytes."""
        return ast.Literal(value)

    def null(self) -> ast.Expr:
        """``NULL``."""
        return ast.Literal(None)

    def true(self) -> ast.Expr:
        """``TRUE``."""
        return ast.Literal(True)

    def false(self) -> ast.Expr:
        """``FALSE``."""
        return ast.Literal(False)

    def parameter(self, name: str) -> ast.Expr:
        """``$name`` or ``$1``."""
        return ast.Parameter(name)

    def next_parameter(self) -> ast.Expr:
        """``?``, numbered in the order of the text."""
        self.question_marks += 1
        return ast.Parameter(str(self.question_marks))

    def grouped(self, expr: ast.Expr) -> ast.Expr:
        """``(a)``, which answers ``a`` and remembers its parentheses."""
        self.grouped_nodes[id(expr)] = expr
        return expr

    def row(self, *items: ast.Expr) -> ast.Expr:
        """``(a, b)``."""
        return ast.Row(items)

    def expr_list(self, *exprs: ast.Expr) -> tuple[ast.Expr, ...]:
        """``a, b, c``."""
        return exprs

    def scalar_subquery(self, query: ast.Query) -> ast.Expr:
        """``(SELECT ..)``."""
        return ast.ScalarSubquery(query)

    def array_subquery(self, query: ast.Query) -> ast.Expr:
        """``ARRAY(SELECT ..)``."""
        return ast.ArraySubquery(query)

    def exists(self, query: ast.Query) -> ast.Expr:
        """``EXISTS (SELECT ..)``."""
        return ast.Exists(query)

    def case(
        self, operand: ast.Expr | None, whens: tuple[tuple[ast.Expr, ast.Expr], ...], otherwise: ast.Expr | None
    ) -> ast.Expr:
        """``CASE a WHEN b THEN c ELSE d END``."""
        return ast.Case(operand, whens, otherwise)

    def whens(self, *whens: tuple[ast.Expr, ast.Expr]) -> tuple[tuple[ast.Expr, ast.Expr], ...]:
        """The WHENs of a CASE."""
        return whens

    def when(self, condition: ast.Expr, result: ast.Expr) -> tuple[ast.Expr, ast.Expr]:
        """``WHEN a THEN b``."""
        return condition, result

    def list_literal(self, items: tuple[ast.Expr, ...] | None) -> ast.Expr:
        """``[a, b]``."""
        return ast.ListLiteral(items or ())

    def comprehension(self, body: ast.Expr, variable: str, source: ast.Expr, condition: ast.Expr | None) -> ast.Expr:
        """``[x * 2 FOR x IN l IF x > 0]``."""
        return ast.ListComprehension(body, variable, source, condition)

    def struct_literal(self, fields: tuple[tuple[str, ast.Expr], ...] | None) -> ast.Expr:
        """``{a: 1, b: 2}``."""
        return ast.StructLiteral(fields or ())

    def struct_fields(self, *fields: tuple[str, ast.Expr]) -> tuple[tuple[str, ast.Expr], ...]:
        """The fields of a struct."""
        return fields

    def struct_field(self, name: str, value: ast.Expr) -> tuple[str, ast.Expr]:
        """``a: 1``."""
        return name, value

    def map_literal(self, entries: tuple[tuple[ast.Expr, ast.Expr], ...] | None) -> ast.Expr:
        """``MAP {a: 1, b: 2}``, which is ``map([a, b], [1, 2])``."""
        lists = (tuple(part) for part in (zip(*entries, strict=True) if entries else ((), ())))
        return ast.Call(ast.Name(("map",)), tuple(ast.Argument(ast.ListLiteral(items)) for items in lists))

    def map_entries(self, *entries: tuple[ast.Expr, ast.Expr]) -> tuple[tuple[ast.Expr, ast.Expr], ...]:
        """The entries of a map."""
        return entries

    def map_entry(self, key: ast.Expr, value: ast.Expr) -> tuple[ast.Expr, ast.Expr]:
        """``a: 1``."""
        return key, value

    # --- types ---

    def type_name(self, plain: ast.TypeName) -> ast.TypeName:
        """A type without brackets."""
        return plain

    def list_type(self, element: ast.TypeName, length: int | None = None) -> ast.TypeName:
        """``t[]``; a length says nothing."""
        return replace(element, dimensions=element.dimensions + 1, span=None)

    def plain_type(self, name: ast.Name | ast.TypeName, arguments: tuple[int, ...] = ()) -> ast.TypeName:
        """``DECIMAL(15, 2)``."""
        return name if isinstance(name, ast.TypeName) else ast.TypeName(str(name), arguments)

    def zoned_type(self, name: ast.Name, arguments: tuple[int, ...] = ()) -> ast.TypeName:
        """``TIMESTAMP WITH TIME ZONE``."""
        return ast.TypeName(f"{name} with time zone", arguments)

    def varying_type(self, words: str, arguments: tuple[int, ...] = ()) -> ast.TypeName:
        """``CHARACTER VARYING(10)``."""
        return ast.TypeName(_WORD_TYPES[words], arguments)

    def unsigned_type(self, name: ast.Name, arguments: tuple[int, ...] = ()) -> ast.TypeName:
        """``INT UNSIGNED``."""
        return ast.TypeName(f"{name} unsigned")

    def enum_type(self, *labels: str) -> ast.TypeName:
        """``ENUM('a', 'b')``."""
        return ast.TypeName("enum", labels=labels)

    def struct_type(self, name: ast.Name, fields: tuple[tuple[str, ast.TypeName], ...]) -> ast.TypeName:
        """``STRUCT(a INT, b VARCHAR)``."""
        return ast.TypeName(str(name), fields=fields)

    def angled_struct_type(self, fields: tuple[tuple[str, ast.TypeName], ...]) -> ast.TypeName:
        """``STRUCT<a INT, b VARCHAR>``."""
        return ast.TypeName("struct", fields=fields)

    def map_type(self, key: ast.TypeName, value: ast.TypeName) -> ast.TypeName:
        """``MAP(VARCHAR, INT)``."""
        return ast.TypeName("map", fields=(("key", key), ("value", value)))

    def type_fields(self, *fields: tuple[str, ast.TypeName]) -> tuple[tuple[str, ast.TypeName], ...]:
        """``a INT, b VARCHAR``; a field without a name is called by its place, from c0."""
        return tuple((name or f"c{place}", of) for place, (name, of) in enumerate(fields))

    def type_field(self, name: str, type_name: ast.TypeName) -> tuple[str, ast.TypeName]:
        """``a INT``."""
        return name, type_name

    def unnamed_field(self, type_name: ast.TypeName) -> tuple[str, ast.TypeName]:
        """``INT`` in ``STRUCT<INT>``."""
        return "", type_name

    def negative_argument(self, number: int) -> int:
        """``-2``, of a scale before the point."""
        return -number

    def type_arguments(self, *arguments: int) -> tuple[int, ...]:
        """``15, 2``."""
        return arguments

    def double_precision(self) -> ast.TypeName:
        """``DOUBLE PRECISION``."""
        return ast.TypeName("double precision")

    def typed_literal(self, name: ast.Name | ast.TypeName, text: str) -> ast.Expr:
        """``DATE '2024-01-01'``."""
        return ast.TypedLiteral(name if isinstance(name, ast.TypeName) else ast.TypeName(str(name)), text)

    def zoned_literal(self, name: ast.Name, text: str) -> ast.Expr:
        """``TIMESTAMP WITH TIME ZONE '..'``."""
        return ast.TypedLiteral(self.zoned_type(name), text)

    def interval(self, amount: str | int | Decimal, unit: str | None) -> ast.Expr:
        """``INTERVAL '1 day'``, ``INTERVAL '1' DAY`` or ``INTERVAL 1 DAY``."""
        return ast.IntervalLiteral(str(amount), unit and unit.upper())

    def interval_of(self, amount: ast.Expr, unit: str) -> ast.Expr:
        """``INTERVAL (a) DAY``, which is ``a`` times a day."""
        if " " in unit:
            raise FeatureNotSupported(f"INTERVAL of an expression in {unit.upper()} is not supported")
        return ast.Binary("*", amount, ast.IntervalLiteral("1", unit.upper()))
