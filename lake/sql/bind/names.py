"""Names of columns that have no alias: the text of the expression in one canonical form.

    l_quantity          l_quantity          SUM( a )      sum(a)
    t.id                id                  a+1           a + 1
    ts::date            ts                  COUNT(*)      count(*)

What has no canonical form here keeps the user's text with its spaces made single.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lake.sql import ast
from lake.sql.bind.scope import Ready


def output_name(item: ast.SelectItem) -> str:
    """The name of a select item: its alias, the column's name, or the expression's text."""
    return item.alias if item.alias is not None else name_of(item.expr, item.text)


def name_of(expr: ast.Expr, text: str = "") -> str:
    """The name of an unnamed expression; ``text`` is what the user wrote."""
    while type(expr) is ast.Cast:
        expr = expr.operand
    if type(expr) is ast.Column:
        return expr.name.last
    if isinstance(expr, Ready):
        return expr.name
    return canonical(expr) or " ".join(text.split()) or "?column?"


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names with repeated ones numbered: ``id``, ``id_1``, ``id_2``."""
    taken, made = set(names), list[str]()
    seen: dict[str, int] = {}
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        if count == 0:
            made.append(name)
            continue
        fresh = f"{name}_{count}"
        while fresh in taken:
            count += 1
            fresh = f"{name}_{count}"
        seen[name] = count + 1
        taken.add(fresh)
        made.append(fresh)
    return tuple(made)


def output_names(items: Sequence[ast.SelectItem]) -> tuple[str, ...]:
    """The names of a select list, each once; ``ts::date`` is ``ts::DATE`` where another column has the name."""
    names = [output_name(item) for item in items]
    for place, item in enumerate(items):
        if item.alias is None and isinstance(item.expr, ast.Cast) and names.count(names[place]) > 1:
            inner = canonical(item.expr.operand) or names[place]
            names[place] = f"{inner}::{_type(item.expr.type)}"
    return unique_names(names)


def canonical(expr: ast.Expr) -> str | None:
    """The canonical text of an expression, or None where this file knows none for a part of it."""
    if isinstance(expr, ast.Binary):
        spine = []
        node: ast.Expr = expr
        while isinstance(node, ast.Binary):
            spine.append(node)
            node = node.left
        made, before = canonical(node), ""
        for item in reversed(spine):
            if before in ("+", "-") and item.op in ("*", "/", "%", "//", "^", "**"):
                made = f"({made})"
            before = item.op
            right = canonical(item.right)
            if isinstance(item.right, ast.Binary) and right is not None:
                right = f"({right})"
            made = None if made is None or right is None else f"{made} {item.op} {right}"
        return made
    return _plain(expr)


def _plain(expr: ast.Expr) -> str | None:
    match expr:
        case ast.Column(name=name):
            return name.last
        case Ready(name=word):
            return word
        case ast.Literal(value=value):
            return _literal(value)
        case ast.Star(qualifier=None, exclude=(), replace=(), rename=()):
            return "*"
        case ast.Parameter(name=word):
            return f"${word}"
        case ast.TypedLiteral(type=type, text=text):
            return f"{_type(type)} '{text}'"
        case ast.Unary(op=op, operand=operand):
            return _join("", (op, canonical(operand)))
        case ast.Not(operand=operand):
            return _join(" ", ("NOT", canonical(operand)))
        case ast.And(operands=operands):
            return _join(" AND ", map(canonical, operands))
        case ast.Or(operands=operands):
            return _join(" OR ", map(canonical, operands))
        case ast.IsNull(operand=operand, negated=negated):
            return _join(" ", (canonical(operand), "IS NOT NULL" if negated else "IS NULL"))
        case ast.Cast(operand=operand, type=type, is_try=is_try):
            inner = canonical(operand)
            return None if inner is None else f"{'TRY_CAST' if is_try else 'CAST'}({inner} AS {_type(type)})"
        case ast.Case():
            return _case(expr)
        case ast.ListLiteral(items=items):
            inner = _join(", ", map(canonical, items))
            return None if inner is None else f"[{inner}]"
        case ast.Call():
            return _call(expr)
        case _:
            return None


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case _:
            return str(value)


def _type(type: ast.TypeName) -> str:
    arguments = f"({','.join(map(str, type.arguments))})" if type.arguments else ""
    return type.name.upper() + arguments + "[]" * type.dimensions


def _case(expr: ast.Case) -> str | None:
    parts: list[str | None] = ["CASE"]
    if expr.operand is not None:
        parts.append(canonical(expr.operand))
    for when, then in expr.whens:
        parts += ["WHEN", canonical(when), "THEN", canonical(then)]
    if expr.otherwise is not None:
        parts += ["ELSE", canonical(expr.otherwise)]
    return _join(" ", (*parts, "END"))


def _call(expr: ast.Call) -> str | None:
    if expr.over is not None or expr.within_group or expr.filter is not None or expr.order:
        return None
    inner = _join(", ", (canonical(item.value) for item in expr.arguments))
    if inner is None or any(item.name is not None for item in expr.arguments):
        return None
    return f"{str(expr.name).lower()}({'DISTINCT ' if expr.distinct else ''}{inner})"


def _join(separator: str, parts: Iterable[str | None]) -> str | None:
    known = list(parts)
    return None if None in known else separator.join(part for part in known if part is not None)
