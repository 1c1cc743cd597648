"""Spark's generators: functions that make several rows, or several columns, of one row.

    SELECT id, posexplode(tags) FROM t      ->   SELECT id, unnest(range(0, len(tags))) AS pos, unnest(tags) AS col FROM t

Each is written as calls of unnest side by side, one for each column it makes. In FROM and LATERAL VIEW it is a lateral query
of that one item. The *_outer forms keep a row without elements, its columns NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from lake.errors import FeatureNotSupported, InvalidColumnReference, InvalidParameter, UndefinedFunction
from lake.sql import ast
from lake.sql.bind.aggregate import Aggregates
from lake.sql.bind.arguments import function_name
from lake.sql.bind.overload import dialect_name
from lake.sql.bind.scope import Env, Ready
from lake.sql.bind.unnest import Unnests
from lake.sql.bind.window import Windows
from lake.sql.bound import Expr, Literal
from lake.sql.registry import FUNCTIONS, Generator, generator
from lake.types import List, Map, Null, Struct, Type

GROUP: Final = "generators"
Column = tuple[str, ast.Expr]


def _call(name: str, *arguments: ast.Expr) -> ast.Expr:
    return ast.Call(ast.Name((name,)), tuple(ast.Argument(item) for item in arguments))


def _rows(lists: Sequence[Column], counted: ast.Expr, outer: bool) -> list[Column]:
    """Elements of lists side by side; with ``outer`` one row of NULLs where ``counted``, one of the lists, has none."""
    made = []
    for name, value in lists:
        if outer:
            some = ast.Binary(">", _call("cardinality", counted), ast.Literal(0))
            value = ast.Case(None, ((some, value),), ast.ListLiteral((ast.Literal(None),)))
        made.append((name, _call("unnest", value)))
    return made


def _exploded(value: ast.Expr, type: Type, name: str, *, outer: bool, places: bool) -> list[Column]:
    """The columns of a list or map, each an element or entry a row."""
    match type:
        case List() | Null():
            lists = [("col", value)]
        case Map():
            lists = [("key", _call("map_keys", value)), ("value", _call("map_values", value))]
        case _:
            raise UndefinedFunction(f"function {name}({type.sql.lower()}) does not exist")
    counted = lists[0][1]
    if places:
        lists.insert(0, ("pos", _call("range", ast.Literal(0), _call("cardinality", counted))))
    return _rows(lists, counted, outer)


@generator("explode(rows ANY) -> ROWS", group=GROUP)
def explode(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """A row for each element of a list, or each entry of a map with its key and value.

    >>> SELECT explode(['a', 'b'])
    a / b
    """
    return _exploded(values[0], made[0].type, name, outer=False, places=False)


@generator("explode_outer(rows ANY) -> ROWS", group=GROUP)
def explode_outer(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """As explode, with a row of NULL for a list that has no elements.

    >>> SELECT explode_outer(['a', 'b'])
    a / b
    """
    return _exploded(values[0], made[0].type, name, outer=True, places=False)


@generator("posexplode(rows ANY) -> ROWS", group=GROUP)
def posexplode(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """As explode, with the place of each element before it, from 0.

    >>> SELECT posexplode(['a', 'b'])
    0 | a / 1 | b
    """
    return _exploded(values[0], made[0].type, name, outer=False, places=True)


@generator("posexplode_outer(rows ANY) -> ROWS", group=GROUP)
def posexplode_outer(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """As posexplode, with a row of NULLs for a list that has no elements.

    >>> SELECT posexplode_outer(['a'])
    0 | a
    """
    return _exploded(values[0], made[0].type, name, outer=True, places=True)


def _inlined(value: ast.Expr, type: Type, name: str, *, outer: bool) -> list[Column]:
    if not isinstance(type, List) or not isinstance(type.of, Struct):
        raise UndefinedFunction(f"function {name}({type.sql.lower()}) does not exist")
    ((_, row),) = _rows([("col", value)], value, outer)
    return [(field, ast.Subscript(row, ast.Literal(field))) for field, _ in type.of.fields]


@generator("inline(rows ANY) -> ROWS", group=GROUP)
def inline(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """A row for each struct of a list, a column for each of its fields.

    >>> SELECT inline([{a: 1, b: 'x'}, {a: 2, b: 'y'}])
    1 | x / 2 | y
    """
    return _inlined(values[0], made[0].type, name, outer=False)


@generator("inline_outer(rows ANY) -> ROWS", group=GROUP)
def inline_outer(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """As inline, with a row of NULLs for a list that has no elements.

    >>> SELECT inline_outer([{a: 1, b: 'x'}])
    1 | x
    """
    return _inlined(values[0], made[0].type, name, outer=True)


@generator("stack(count BIGINT, values ANY...) -> ROWS", group=GROUP)
def stack(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """The values dealt to so many rows, from left to right; what is missing in the last row is NULL.

    >>> SELECT stack(2, 1, 2, 3)
    1 | 2 / 3 | NULL

    22023  the number of rows is no constant above 0
    """
    count, cells = made[0].value if isinstance(made[0], Literal) else None, list(values[1:])
    if not isinstance(count, int) or count < 1:
        raise InvalidParameter("stack takes the number of its rows as a constant above 0")
    width = max(1, -(-len(cells) // count))
    cells += [ast.Literal(None)] * (width * count - len(cells))
    lists = [(f"col{place}", ast.ListLiteral(tuple(cells[place::width]))) for place in range(width)]
    return _rows(lists, lists[0][1], outer=False)


@generator("json_tuple(document VARCHAR, keys VARCHAR...) -> ROWS", group=GROUP)
def json_tuple(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """A column for each key, with the text that a JSON document has under it.

    >>> SELECT json_tuple('{"a":1, "b":2}', 'a', 'b')
    1 | 2
    """
    return [(f"c{place}", _call("json_as_text", values[0], key)) for place, key in enumerate(values[1:])]


def generator_of(name: str) -> Generator | None:
    """The generator of a name, if it is one."""
    return next((item for item in FUNCTIONS.get(name, ()) if isinstance(item, Generator)), None)


def _expand(name: str, values: Sequence[ast.Expr], made: Sequence[Expr]) -> list[Column]:
    """The columns that a call makes, by name.

    42883  a number of arguments that it does not take
    """
    function = generator_of(name)
    assert function is not None
    signature = function.signature
    if len(made) < signature.required or (len(made) > len(signature.parameters) and not signature.is_variadic):
        raise UndefinedFunction(f"function {name}() does not take {len(made)} arguments")
    columns: list[Column] = function.expand(name, values, made)
    return columns


def bind_generator(call: ast.Call, name: str, env: Env) -> Expr:
    """A generator inside an expression, where it can only make one column."""
    made = [env.bind(item.value) for item in call.arguments]
    values = [Ready(expr, name, span=item.value.span) for expr, item in zip(made, call.arguments, strict=True)]
    columns = _expand(name, values, made)
    if len(columns) != 1:
        words = f"{name}() makes {len(columns)} columns here, so it stands alone in a select list or in FROM"
        raise FeatureNotSupported(words, position=env.position(call))
    return env.bind(columns[0][1])


def expand_generators(items: Sequence[ast.SelectItem], env: Env) -> Sequence[ast.SelectItem]:
    """Select items with each generator as an item for each column it makes.

    42P10  more names than columns, or fewer
    """
    calls = [_generator_call(item.expr, env) for item in items]
    if not any(calls):
        _check_names(items, env)
        return items
    trial = replace(env, clause="SELECT", aggregates=Aggregates(), windows=Windows(), unnests=Unnests())
    made: list[ast.SelectItem] = []
    for item, call in zip(items, calls, strict=True):
        if call is None:
            _check_names((item,), env)
            made.append(item)
            continue
        values = [argument.value for argument in call.arguments]
        columns = _expand(function_name(call.name), values, [trial.bind(value) for value in values])
        given = item.names or ((item.alias,) if item.alias is not None else ())
        if given and len(given) != len(columns):
            words = f"{call.name}() makes {len(columns)} columns, but {len(given)} names are given"
            raise InvalidColumnReference(words, position=env.position(call))
        titles = given or [title for title, _ in columns]
        made += [ast.SelectItem(expr, title) for title, (_, expr) in zip(titles, columns, strict=True)]
    return made


def _generator_call(expr: ast.Expr, env: Env) -> ast.Call | None:
    if type(expr) is not ast.Call:
        return None
    name = dialect_name(function_name(expr.name), env.shared.settings)
    return expr if generator_of(name) is not None else None


def _check_names(items: Sequence[ast.SelectItem], env: Env) -> None:
    """42P10 where an item of one column is given names in parentheses."""
    for item in items:
        if item.names:
            raise InvalidColumnReference("an expression makes one column and takes one name", position=env.position(item))


def is_lateral(name: str) -> bool:
    """Whether a function in FROM is read as a query of it; explode alone is unnest there, whose column takes the alias."""
    return name != "explode" and generator_of(name) is not None


def lateral(source: ast.FunctionSource) -> ast.SubquerySource:
    """A generator in FROM as a query of its columns."""
    call = ast.Call(source.name, source.arguments, span=source.span)
    query = ast.Query(ast.Select((ast.SelectItem(call),)))
    alias = source.alias or ast.Alias(source.name.last)
    return ast.SubquerySource(query, alias, lateral=True, sample=source.sample, span=source.span)
