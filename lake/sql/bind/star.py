"""Stars in select lists: ``*``, ``t.*``, EXCLUDE, REPLACE, RENAME and COLUMNS(..), each made into plain items.

    SELECT * EXCLUDE (b) FROM t(a, b, c)          a, c
    SELECT max(COLUMNS('^x')) FROM t(x1, x2, y)   max(x1), max(x2)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from lake.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidRegularExpression,
    SyntaxFailure,
    UndefinedColumn,
    UndefinedTable,
    near_name,
)
from lake.sql import ast
from lake.sql.bind.scope import Entry, Env, Ready, entries_of_table, find_column
from lake.types import Struct

COMPARE: Final = {
    "=": operator.eq, "==": operator.eq, "<>": operator.ne, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
# Patterns of % and _, which conditions on names may use.
LIKES: Final = (ast.LikeKind.LIKE, ast.LikeKind.ILIKE)


def expand_items(items: Sequence[ast.SelectItem], env: Env) -> list[ast.SelectItem]:
    """The select list with every star in it replaced by the columns it stands for."""
    made: list[ast.SelectItem] = []
    for item in items:
        if isinstance(item.expr, ast.Star):
            made += expand_star(item.expr, env)
        else:
            made += _expand_columns(item, env)
    return made


def expand_star(star: ast.Star, env: Env) -> list[ast.SelectItem]:
    """The columns of ``*`` or ``t.*``, with what EXCLUDE, REPLACE and RENAME make of them."""
    entries = star_entries(star.qualifier, env, star)
    if not entries:
        return _fields_of(star, env)
    names = {entry.name.lower(): entry.refusal for entry in entries}
    if len({name.last.lower() for name in star.exclude}) < len(star.exclude):
        raise DuplicateColumn("a column is named twice in EXCLUDE", position=env.position(star))
    excluded = _known({name.last.lower() for name in star.exclude}, names, "EXCLUDE", star, env)
    replaced = {name.lower(): expr for expr, name in star.replace}
    left = {name: refusal for name, refusal in names.items() if name not in excluded}
    _known(set(replaced), left, "REPLACE", star, env)
    renamed = {old.lower(): new for old, new in star.rename}
    _known(set(renamed), left, "RENAME", star, env)
    made: list[ast.SelectItem] = []
    for entry in entries:
        key = entry.name.lower()
        if key in excluded:
            continue
        expr = replaced.get(key) or _ready(entry, star, env)
        made.append(ast.SelectItem(expr, renamed.get(key, entry.name), span=star.span))
    if not made and star.exclude:
        raise SyntaxFailure("EXCLUDE leaves no column", position=env.position(star))
    return made


def _fields_of(star: ast.Star, env: Env) -> list[ast.SelectItem]:
    """The fields of ``s.*`` where s is a struct, less those that EXCLUDE names."""
    assert star.qualifier is not None
    column = find_column(env.scope, star.qualifier, env.position(star))
    if column is None or not isinstance(column.type, Struct) or star.replace or star.rename:
        raise FeatureNotSupported("REPLACE and RENAME over a struct's fields are not supported", position=env.position(star))
    excluded = {name.last.lower() for name in star.exclude}
    _known(excluded, {name.lower(): "" for name, _ in column.type.fields}, "EXCLUDE", star, env)
    struct = Ready(column, column.name, span=star.span)
    return [
        ast.SelectItem(ast.Subscript(struct, ast.Literal(name)), name, span=star.span)
        for name, _ in column.type.fields
        if name.lower() not in excluded
    ]


def star_entries(qualifier: ast.Name | None, env: Env, node: ast.Node) -> list[Entry]:
    """The columns a star stands for, hidden ones left out; none where its qualifier is a struct.

    42601  there is no FROM     42P01  no table of that name
    """
    if qualifier is None:
        if not env.scope.entries:
            raise SyntaxFailure("SELECT * with no tables specified is not valid", position=env.position(node))
        return [entry for entry in env.scope.entries if not entry.hidden and not entry.shadowed]
    found = entries_of_table(env.scope, qualifier.parts)
    column = None if found else find_column(env.scope, qualifier, env.position(node))
    if column is not None and isinstance(column.type, Struct):
        return []
    if not found:
        tables = [entry.path[-1] for entry in env.scope.entries if entry.path]
        raise UndefinedTable(
            f'missing FROM-clause entry for table "{qualifier.last}"',
            hint=near_name(qualifier.last, tables),
            position=env.position(node),
        )
    return [entry for entry in found if not entry.hidden]


def picks_columns(expr: ast.Expr) -> bool:
    """Whether COLUMNS(..) stands anywhere in ``expr``."""
    return ast.holds(expr, ast.Columns)


def expand_condition(expr: ast.Expr, env: Env) -> ast.Expr:
    """A condition over COLUMNS(..): true where it is true of each of them."""
    if not picks_columns(expr):
        return expr
    parts = tuple(item.expr for item in _expand_columns(ast.SelectItem(expr, span=expr.span), env))
    return parts[0] if len(parts) == 1 else ast.And(parts, span=expr.span)


def _ready(entry: Entry, node: ast.Node, env: Env) -> Ready:
    return Ready(entry.read(env.position(node), is_named=False), entry.name, span=node.span)


def _known(wanted: set[str], names: Mapping[str, str], clause: str, node: ast.Node, env: Env) -> set[str]:
    for name in sorted(wanted - names.keys()):
        raise UndefinedColumn(
            f'column "{name}" in {clause} list does not exist',
            hint=near_name(name, [known for known, refusal in names.items() if not refusal]),
            position=env.position(node),
        )
    return wanted


def _expand_columns(item: ast.SelectItem, env: Env) -> list[ast.SelectItem]:
    """The item once for each column its COLUMNS(..) picks; several of them pick alike."""
    if not picks_columns(item.expr):
        return [item]
    patterns = [node for node in ast.walk(item.expr) if isinstance(node, ast.Columns)]
    picked = _pick(patterns[0], env)
    if any(node.pattern != patterns[0].pattern for node in patterns):
        raise FeatureNotSupported(
            "several different COLUMNS(..) in one expression are not supported", position=env.position(item)
        )
    made = []
    for one in picked:

        def put(node: ast.Node, one: ast.SelectItem = one) -> ast.Node:
            return one.expr if isinstance(node, ast.Columns) else node

        alias = item.alias
        if isinstance(item.expr, ast.Columns) and alias is None:
            alias = one.alias
        made.append(replace(item, expr=ast.rewrite(item.expr, put), alias=alias, text=""))
    return made


def _pick(node: ast.Columns, env: Env) -> list[ast.SelectItem]:
    """The columns COLUMNS(..) picks.

    42703  it picks none
    """
    pattern = node.pattern
    if isinstance(pattern, ast.Star):
        return expand_star(pattern, env)
    entries = star_entries(None, env, node)
    match pattern:
        case ast.Literal(value=str() as text):
            try:
                regex = re.compile(text)
            except re.error as problem:
                raise InvalidRegularExpression(f"invalid regular expression: {problem}") from None
            found = [entry for entry in entries if regex.search(entry.name)]
        case ast.ListLiteral(items=items):
            wanted = [item.value for item in items if isinstance(item, ast.Literal) and isinstance(item.value, str)]
            by_name = {entry.name.lower(): entry for entry in entries}
            refusals = {name: entry.refusal for name, entry in by_name.items()}
            _known({name.lower() for name in wanted}, refusals, "COLUMNS", node, env)
            found = [by_name[name.lower()] for name in wanted]
        case ast.Lambda(parameters=(parameter,), body=body):
            found = [entry for entry in entries if _holds(body, parameter, entry.name, env)]
        case ast.Binary(op="->", left=ast.Column(name=name), right=body):
            found = [entry for entry in entries if _holds(body, name.last, entry.name, env)]
        case _:
            raise FeatureNotSupported("this form of COLUMNS(..) is not supported", position=env.position(node))
    if not found:
        raise UndefinedColumn("no columns match COLUMNS(..)", position=env.position(node))
    return [ast.SelectItem(_ready(entry, node, env), entry.name) for entry in found]


def _holds(expr: ast.Expr, parameter: str, name: str, env: Env) -> bool:
    """Whether a lambda over column names is true of ``name``; it may compare, match patterns and combine those."""

    def text(part: ast.Expr) -> str:
        if isinstance(part, ast.Column) and part.name.parts == (parameter,):
            return name
        if isinstance(part, ast.Literal) and isinstance(part.value, str):
            return part.value
        raise FeatureNotSupported("this lambda in COLUMNS(..) is not supported", position=env.position(part))

    match expr:
        case ast.And(operands=parts):
            return all(_holds(part, parameter, name, env) for part in parts)
        case ast.Or(operands=parts):
            return any(_holds(part, parameter, name, env) for part in parts)
        case ast.Not(operand=part):
            return not _holds(part, parameter, name, env)
        case ast.Binary(op=op, left=left, right=right) if op in COMPARE:
            return bool(COMPARE[op](text(left), text(right)))
        case ast.Binary(op="~", left=left, right=right):
            return re.search(text(right), text(left)) is not None
        case ast.InList(operand=part, items=items, negated=negated):
            return (text(part) in [text(item) for item in items]) != negated
        case ast.Like(kind=kind, operand=part, pattern=pattern, negated=negated) if kind in LIKES:
            flags = re.IGNORECASE | re.DOTALL if kind is ast.LikeKind.ILIKE else re.DOTALL
            regex = "".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in text(pattern))
            return (re.fullmatch(regex, text(part), flags) is not None) != negated
        case ast.Call(name=ast.Name(parts=("starts_with",)), arguments=(first, second)):
            return text(first.value).startswith(text(second.value))
        case ast.Call(name=ast.Name(parts=("contains",)), arguments=(first, second)):
            return text(second.value) in text(first.value)
        case _:
            raise FeatureNotSupported("this lambda in COLUMNS(..) is not supported", position=env.position(expr))
