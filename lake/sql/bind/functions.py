"""Functions in FROM: unnest, table functions over constants, lists of series over columns, and scalar functions.

    FROM t, generate_series(1, t.n) AS g       Unnest: g = generate_series(1, t.n)
                                               └─ Scan: t
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msgspec.structs import replace

from lake.errors import (
    FeatureNotSupported,
    InvalidColumnReference,
    LakeError,
    SyntaxFailure,
    UndefinedFunction,
    WrongObjectType,
)
from lake.sql import ast, parser, plan
from lake.sql.bind.arguments import function_name
from lake.sql.bind.coerce import is_nullable, python_value
from lake.sql.bind.overload import call_function, choose, table_overloads, unknown_function
from lake.sql.bind.scope import Entry, Env, From, Scope
from lake.sql.bind.window import RUNNING
from lake.sql.bound import Column, Expr, Literal, MakeList, WindowCall
from lake.sql.registry import FUNCTIONS, Scalar, TableFunction, Window
from lake.sql.unparse import unparse
from lake.types import BIGINT, DECIMAL_SPELLINGS, TEXT, List, Map, Struct

ONE_ROW = plan.Values(((),), ())


def _constant_list(expr: Expr) -> Expr:
    """A list of constants as one constant; other expressions as they are."""
    if isinstance(expr, MakeList) and all(isinstance(item, Literal) for item in expr.items):
        return Literal(expr.type, tuple(item.value for item in expr.items if isinstance(item, Literal)))
    return expr


def bind_function(source: ast.FunctionSource, env: Env) -> From:
    """A function in FROM under its alias; ``env`` sees the columns to its left.

    42883  no such function     0A000  a table function over something that is not constant
    """
    name = function_name(source.name)
    if name in ("unnest", "explode", "flatten"):
        return _bind_unnest(source, name, env)
    if name == "spark_sql":
        return _bind_spark_query(source, env)
    overloads = table_overloads(name)
    if not overloads:
        return _bind_scalar(source, name, env)
    given = [_as_named(item) for item in source.arguments]
    named = {item.name: item.value for item in given if item.name is not None}
    arguments = [_constant_list(env.bind(item.value)) for item in given if item.name is None]
    if all(isinstance(item, Literal) for item in arguments):
        choice = choose(name, overloads, arguments, env, env.position(source))
        if all(isinstance(item, Literal) for item in choice.arguments):
            assert isinstance(choice.function, TableFunction)
            return _scan(source, name, choice.function, choice.arguments[: len(arguments)], named, env)
    lists = next((item.lists for item in overloads if item.lists is not None), None)
    if lists is None or named:
        raise FeatureNotSupported(f"the arguments of {name}() must be constants", position=env.position(source))
    return _unnest(source, name, [call_function(lists, arguments, env, source)], env)


def _as_named(item: ast.Argument) -> ast.Argument:
    """``header = true``, as a table function's option may be written, as ``header => true``."""
    value = item.value
    if item.name is None and isinstance(value, ast.Binary) and value.op == "=" and isinstance(value.left, ast.Column):
        if len(value.left.name.parts) == 1:
            return ast.Argument(value.right, value.left.name.last, span=item.span)
    return item


def _bind_spark_query(source: ast.FunctionSource, env: Env) -> From:
    """``spark_sql('SELECT ..')``: a query in Spark's dialect, as if it stood here in parentheses.

    42601  not one query in a text     Spec: SQL, Queries.
    """
    position = env.position(source)
    texts = [env.bind(item.value) for item in source.arguments if item.name is None]
    text = texts[0].value if len(texts) == len(source.arguments) == 1 and isinstance(texts[0], Literal) else None
    if not isinstance(text, str):
        raise SyntaxFailure("spark_sql() takes the text of one query", position=position)
    try:
        statements = parser.parse(text, "spark")
    except LakeError as error:
        error.position = position
        raise
    if len(statements) != 1 or not isinstance(statements[0], ast.QueryStatement):
        raise SyntaxFailure("spark_sql() takes the text of one query", position=position)
    shared, settings = env.shared, env.shared.settings
    shared.settings = dataclasses.replace(settings, dialect="spark")
    shared.view_depth += 1
    try:
        made = shared.bind_query(statements[0].query, Scope(), shared)
    finally:
        shared.settings = settings
        shared.view_depth -= 1
    return _under_alias(source, "spark_sql", made.plan, made.columns, made.names, None, env)


def _bind_unnest(source: ast.FunctionSource, name: str, env: Env) -> From:
    lists = [env.bind(item.value) for item in source.arguments]
    if not lists:
        raise UndefinedFunction(f"function {name}() does not exist", position=env.position(source))
    if len(lists) == 1 and isinstance(lists[0].type, Struct):
        return _fields(source, name, lists[0], lists[0].type, env)
    for place, item in enumerate(lists):
        if isinstance(item.type, Map):
            lists[place] = item = call_function("map_entries", (item,), env, source)
        if not isinstance(item.type, List):
            words = f"function {name}({item.type.sql.lower()}) does not exist"
            raise UndefinedFunction(words, position=env.position(source))
    return _unnest(source, name, lists, env)


def _unnest(source: ast.FunctionSource, name: str, lists: Sequence[Expr], env: Env) -> From:
    """The elements of lists as rows."""
    columns = []
    for item in lists:
        assert isinstance(item.type, List)
        columns.append(env.shared.column(name, item.type.of))
    count = env.shared.column("ordinality", BIGINT, nullable=False) if source.ordinality else None
    made = plan.Unnest(tuple(zip(columns, lists, strict=True)), ONE_ROW, count)
    titles = [name] * len(columns) if len(columns) == 1 else _numbered(name, len(columns))
    return _under_alias(source, name, made, columns, titles, count, env)


def _fields(source: ast.FunctionSource, name: str, struct: Expr, type: Struct, env: Env) -> From:
    """The fields of a struct as the columns of one row."""
    exprs = [call_function("get_field", (struct, Literal(TEXT, key)), env, source) for key, _ in type.fields]
    columns = [env.shared.column(key, of) for key, of in type.fields]
    made = plan.Project(tuple(columns), tuple(exprs), ONE_ROW)
    return _under_alias(source, name, made, columns, [key for key, _ in type.fields], None, env)


def _numbered(name: str, count: int) -> list[str]:
    return [name, *[f"{name}_{place}" for place in range(1, count)]]


def _scan(
    source: ast.FunctionSource,
    name: str,
    function: TableFunction,
    arguments: Sequence[Expr],
    named: dict[str, ast.Expr],
    env: Env,
) -> From:
    """The table that a table function makes of constants."""
    values = [python_value(item) for item in arguments if isinstance(item, Literal)]
    options = {key: _option(value, env) for key, value in named.items()}
    table = function.make(env.shared.settings, *values, **options)
    columns = [env.shared.column(item.name, item.type, item.nullable) for item in table.columns]
    titles = [item.name for item in table.columns]
    made: plan.Plan = plan.Scan(table, tuple(columns), tuple(titles))
    count = None
    if source.ordinality:
        number = next(item for item in FUNCTIONS["row_number"] if isinstance(item, Window))
        count = env.shared.column("ordinality", BIGINT, nullable=False)
        made = plan.Window((), (), ((count, WindowCall(BIGINT, number, (), RUNNING)),), made)
    return _under_alias(source, name, made, columns, titles, count, env)


def _option(value: ast.Expr, env: Env) -> object:
    """A named argument as a Python value; ``{a: 'int'}`` is a dict."""
    if isinstance(value, ast.StructLiteral):
        return {key: _option(item, env) for key, item in value.fields}
    if isinstance(value, ast.ListLiteral):
        return [_option(item, env) for item in value.items]
    if isinstance(value, ast.Column) and len(value.name.parts) == 1:
        return value.name.last
    if isinstance(value, ast.Call) and value.arguments and value.name.last.lower() in DECIMAL_SPELLINGS:
        return unparse(value)
    made = env.bind(value)
    if not isinstance(made, Literal):
        raise FeatureNotSupported("named arguments in FROM must be constants", position=env.position(value))
    return python_value(made)


def _bind_scalar(source: ast.FunctionSource, name: str, env: Env) -> From:
    """One row with a scalar function's value."""
    overloads = FUNCTIONS.get(name)
    if not overloads:
        raise unknown_function(name, None, env.position(source))
    if not any(isinstance(item, Scalar) for item in overloads):
        raise WrongObjectType(f"{name}() is not a function for FROM", position=env.position(source))
    expr = replace(env, clause="functions in FROM").bind(ast.Call(source.name, source.arguments, span=source.span))
    column = env.shared.column(name, expr.type, is_nullable(expr))
    outputs: tuple[Column, ...] = (column,)
    exprs: tuple[Expr, ...] = (expr,)
    count = None
    if source.ordinality:
        count = env.shared.column("ordinality", BIGINT, nullable=False)
        outputs, exprs = (column, count), (expr, Literal(BIGINT, 1))
    made = plan.Project(outputs, exprs, ONE_ROW)
    return _under_alias(source, name, made, [column], [name], count, env)


def _under_alias(
    source: ast.FunctionSource,
    name: str,
    made: plan.Plan,
    columns: Sequence[Column],
    titles: Sequence[str],
    count: Column | None,
    env: Env,
) -> From:
    """The columns in reach: a lone column takes the alias as its name, and answers to its own too.

    42P10  more names than columns
    """
    alias = source.alias
    path = (name if alias is None else alias.name,)
    all_columns = [*columns] if count is None else [*columns, count]
    all_titles = [*titles] if count is None else [*titles, "ordinality"]
    given = () if alias is None else alias.columns
    if alias is not None and len(given) > len(all_columns):
        raise InvalidColumnReference(
            f'table "{alias.name}" has {len(all_columns)} columns available but {len(given)} columns specified',
            position=env.position(alias),
        )
    titles_now = [*given, *all_titles[len(given) :]]
    entries: list[Entry] = []
    if len(columns) == 1 and not given:
        if alias is not None:
            titles_now[0] = alias.name
        others = {all_titles[0], name} - {titles_now[0]}
        entries = [Entry(other, columns[0], path, hidden=True) for other in sorted(others)]
    shown = [Entry(title, column, path) for title, column in zip(titles_now, all_columns, strict=True)]
    return From(made, (*shown, *entries))
