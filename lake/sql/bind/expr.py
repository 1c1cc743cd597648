"""Expressions: one function for each AST node, which answers it bound and typed.

Comparisons cast both sides to one type, CASE its branches, IN its items; arithmetic and the other operators become
calls of the registry. A left-leaning chain of operators (``1 + 1 + 1 ..``) is bound in a loop, so its length costs no stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as PyDecimal
from typing import Final

from msgspec.structs import replace

from lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    SyntaxFailure,
    UndefinedFunction,
    UndefinedParameter,
)
from lake.sql import ast, bound, literals, plan
from lake.sql.bind.aggregate import to_boolean
from lake.sql.bind.coerce import (
    COMPARISONS,
    Mixed,
    cast,
    common_type,
    compared_type,
    is_nullable,
    is_numeric,
    is_string_literal,
    merged_type,
    number_literal,
)
from lake.sql.bind.enums import cast_to_enum, enum_of
from lake.sql.bind.nested import field_of_column
from lake.sql.bind.overload import call_function, call_operator
from lake.sql.bind.scope import Bound, Env, Ready, binds, find_column, missing_column
from lake.sql.bind.type_names import bind_type
from lake.sql.bound import Compare, Expr, Literal, MakeList
from lake.sql.literals import says_zone
from lake.sql.registry import FUNCTIONS
from lake.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    INT,
    INTERVAL,
    NULL,
    TEXT,
    TIMESTAMPTZ,
    Decimal,
    Interval,
    List,
    Null,
    Text,
    Type,
)

# Functions that SQL calls without parentheses.
KEYWORD_FUNCTIONS: Final = frozenset(
    ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user", "session_user",
     "user", "current_role", "current_schema", "current_catalog", "current_database")
)  # fmt: skip


# --- literals and names ----------------------------------------------------------------------------------------------


@binds(ast.Literal)
def bind_literal(expr: ast.Literal, env: Env) -> Expr:
    """A constant as the text writes it."""
    match expr.value:
        case None:
            return Literal(NULL, None)
        case bool():
            return Literal(BOOLEAN, expr.value)
        case str():
            return Literal(TEXT, expr.value)
        case bytes():
            return Literal(BYTES, expr.value)
        case _:
            return _number(expr.value, env)


def _number(value: int | PyDecimal | float, env: Env) -> Literal:
    """A number; a whole one that 32 bits hold is an INT in Spark's dialect."""
    if isinstance(value, int) and -(1 << 31) <= value < 1 << 31 and env.shared.settings.dialect == "spark":
        return Literal(INT, value)
    return number_literal(value)


@binds(ast.TypedLiteral)
def bind_typed_literal(expr: ast.TypedLiteral, env: Env) -> Expr:
    """``DATE '2024-01-01'``."""
    enum = enum_of(expr.type, env)
    if enum is not None:
        return cast_to_enum(Literal(TEXT, expr.text), enum, env, expr, is_try=False)
    type = bind_type(expr.type)
    if isinstance(type, Decimal) and not expr.type.arguments:
        return number_literal(literals.parse_number(expr.text))
    return cast(Literal(TEXT, expr.text), type, time_zone=env.time_zone)


@binds(ast.IntervalLiteral)
def bind_interval(expr: ast.IntervalLiteral, env: Env) -> Expr:
    """``INTERVAL '1 day'``."""
    return Literal(INTERVAL, literals.parse_interval(expr.text, expr.unit))


@binds(ast.Parameter)
def bind_parameter(expr: ast.Parameter, env: Env) -> Expr:
    """The constant given for ``$name``.

    42P02  none was given
    """
    found = env.shared.parameters.get(expr.name)
    if found is None:
        raise UndefinedParameter(f"there is no parameter ${expr.name}", position=env.position(expr))
    return found


@binds(ast.ListLiteral)
def bind_list(expr: ast.ListLiteral, env: Env) -> Expr:
    """``[a, b]``: items of their common type."""
    items, of = unify([env.bind(item) for item in expr.items], "ARRAY", expr, env)
    return MakeList(List(of), items)


@binds(ast.Column)
def bind_column(expr: ast.Column, env: Env) -> Expr:
    """What a name means: a lambda's parameter, a column, a select alias, an outer query's column, a keyword function."""
    name, position = expr.name, env.position(expr)
    single = name.parts[0] if len(name.parts) == 1 else None
    if single is not None and single in env.locals:
        return env.locals[single]
    if env.aliases:
        found = find_column(env.scope, name, position, outward=False)
        if found is not None:
            return found
        if single is not None and single in env.aliases:
            rest = {key: value for key, value in env.aliases.items() if key != single}
            return replace(env, aliases=rest).bind(env.aliases[single])
    found = find_column(env.scope, name, position)
    if found is not None:
        return found
    if single is not None and single in KEYWORD_FUNCTIONS and single in FUNCTIONS:
        return call_function(single, (), env, expr)
    if single is None:
        found_field = field_of_column(name, env, expr)
        if found_field is not None:
            return found_field
    raise missing_column(env.scope, name, position, (*env.aliases, *env.locals))


@binds(ast.Star)
def bind_star(expr: ast.Star, env: Env) -> Expr:
    """42601: a star that is not in a select list or in count(*)."""
    raise SyntaxFailure("* is only an item of a select list or the argument of count(*)", position=env.position(expr))


@binds(ast.Columns)
def bind_columns(expr: ast.Columns, env: Env) -> Expr:
    """42601: COLUMNS(..) where no list of columns can stand."""
    raise SyntaxFailure(f"COLUMNS(..) is not allowed in {env.clause}", position=env.position(expr))


@binds(ast.Default)
def bind_default(expr: ast.Default, env: Env) -> Expr:
    """42601: DEFAULT outside the VALUES of an INSERT."""
    raise SyntaxFailure("DEFAULT is not allowed in this context", position=env.position(expr))


# --- operators -------------------------------------------------------------------------------------------------------


@binds(ast.Unary)
def bind_unary(expr: ast.Unary, env: Env) -> Expr:
    """Minus, plus, bitwise not and absolute value; the sign of a constant is part of it."""
    if expr.op == "-" and isinstance(expr.operand, ast.Literal) and expr.operand.value == 1 << 31:
        return _number(-(1 << 31), env)
    operand = env.bind(expr.operand)
    if expr.op == "-" and isinstance(operand, Literal):
        value = operand.value
        if isinstance(value, int | float) and is_numeric(operand.type):
            if operand.type == Decimal(19, 0) and value == 1 << 63:
                return Literal(BIGINT, -(1 << 63))
            if not (operand.type == BIGINT and value == -(1 << 63)):
                return Literal(operand.type, -value)
        if isinstance(operand.type, Interval) and isinstance(value, tuple):
            return Literal(INTERVAL, tuple(-part for part in value))  # type: ignore[operator]
    if expr.op == "+":
        if not is_numeric(operand.type) and not isinstance(operand.type, Interval | Null | Text):
            raise UndefinedFunction(
                f"operator does not exist: + {operand.type.sql.lower()}", position=env.position(expr)
            )
        return operand
    return call_function("abs" if expr.op == "@" else expr.op, (operand,), env, expr)


@binds(ast.Binary)
def bind_binary(expr: ast.Binary, env: Env) -> Expr:
    """An operator of two operands, and all that lean to its left."""
    spine: list[ast.Binary] = []
    node: ast.Expr = expr
    while type(node) is ast.Binary:
        spine.append(node)
        node = node.left
    if type(node) is ast.Row:
        made = _compare_rows(spine.pop(), env)
    else:
        made = env.bind(node)
    for item in reversed(spine):
        made = binary(item.op, made, env.bind(item.right), env, item)
    return made


def binary(op: str, left: Expr, right: Expr, env: Env, node: ast.Node) -> Expr:
    """``left op right`` over bound operands."""
    if op in COMPARISONS:
        return compare(op, left, right, env, node)
    if op == "^@":
        return call_function("starts_with", (left, right), env, node)
    return call_operator(op, left, right, env, node)


def compare(op: str, left: Expr, right: Expr, env: Env, node: ast.Node | None) -> Compare:
    """A comparison, both sides cast to the type they are compared in.

    42883  there is no such type
    """
    type = compared_type(left, right)
    if type is None:
        words = f"{left.type.sql.lower()} {op} {right.type.sql.lower()}"
        raise UndefinedFunction(
            f"operator does not exist: {words}",
            hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
            position=env.position(node),
        )
    if isinstance(type, Null):
        type = BOOLEAN
    zone = env.time_zone
    return Compare.of(op, cast(left, type, time_zone=zone), cast(right, type, time_zone=zone))


@binds(ast.And)
def bind_and(expr: ast.And, env: Env) -> Expr:
    """A conjunction."""
    return bound.And(BOOLEAN, tuple([condition(item, env, "AND") for item in expr.operands]))


@binds(ast.Or)
def bind_or(expr: ast.Or, env: Env) -> Expr:
    """A disjunction."""
    return bound.Or(BOOLEAN, tuple([condition(item, env, "OR") for item in expr.operands]))


@binds(ast.Not)
def bind_not(expr: ast.Not, env: Env) -> Expr:
    """NOT."""
    return bound.Not(BOOLEAN, condition(expr.operand, env, "NOT"))


def condition(expr: ast.Expr, env: Env, clause: str) -> Expr:
    """A bound boolean; 42804 for another type."""
    return to_boolean(env.bind(expr), clause, env.position(expr), env)


def negate(expr: Expr, negated: bool) -> Expr:
    """NOT ``expr`` where ``negated``."""
    return bound.Not(BOOLEAN, expr) if negated else expr


@binds(ast.IsNull)
def bind_is_null(expr: ast.IsNull, env: Env) -> Expr:
    """``IS [NOT] NULL``; of a row, all of whose values it asks."""
    if isinstance(expr.operand, ast.Row):
        parts = [bound.IsNull(BOOLEAN, env.bind(item)) for item in expr.operand.items]
        return bound.conjunction(tuple([negate(item, expr.negated) for item in parts]))
    return negate(bound.IsNull(BOOLEAN, env.bind(expr.operand)), expr.negated)


@binds(ast.IsTruth)
def bind_is_truth(expr: ast.IsTruth, env: Env) -> Expr:
    """``IS [NOT] TRUE``, ``FALSE`` and ``UNKNOWN``."""
    operand = condition(expr.operand, env, "IS TRUE")
    if expr.value is None:
        return negate(bound.IsNull(BOOLEAN, operand), expr.negated)
    return Compare.of("is distinct" if expr.negated else "is not distinct", operand, Literal(BOOLEAN, expr.value))


@binds(ast.IsDistinct)
def bind_is_distinct(expr: ast.IsDistinct, env: Env) -> Expr:
    """``IS [NOT] DISTINCT FROM``."""
    op = "is not distinct" if expr.negated else "is distinct"
    if isinstance(expr.left, ast.Row) and isinstance(expr.right, ast.Row):
        pairs = _row_pairs(expr.left, expr.right, env)
        parts = tuple([compare("is not distinct", left, right, env, expr) for left, right in pairs])
        return negate(bound.conjunction(parts), not expr.negated)
    return compare(op, env.bind(expr.left), env.bind(expr.right), env, expr)


@binds(ast.Between)
def bind_between(expr: ast.Between, env: Env) -> Expr:
    """``BETWEEN [SYMMETRIC]`` as two comparisons."""
    operand, low, high = env.bind(expr.operand), env.bind(expr.low), env.bind(expr.high)

    def inside(first: Expr, last: Expr) -> Expr:
        upper = again(expr.operand, operand, env)
        pair = (compare(">=", operand, first, env, expr), compare("<=", upper, last, env, expr))
        return bound.And(BOOLEAN, pair)

    made = inside(low, high)
    if expr.symmetric:
        operand = again(expr.operand, operand, env)
        made = bound.Or(BOOLEAN, (made, inside(again(expr.high, high, env), again(expr.low, low, env))))
    return negate(made, expr.negated)


@binds(ast.InList)
def bind_in_list(expr: ast.InList, env: Env) -> Expr:
    """``IN (a, b)``: operand and items in the one type in which they all are compared."""
    if isinstance(expr.operand, ast.Row):
        rows = [_compare_rows(ast.Binary("=", expr.operand, item, span=expr.span), env) for item in expr.items]
        return negate(bound.Or(BOOLEAN, tuple(rows)) if len(rows) > 1 else rows[0], expr.negated)
    operand = env.bind(expr.operand)
    items = [env.bind(item) for item in expr.items]
    if is_string_literal(operand) or isinstance(operand.type, Null):
        # Constants without a type of their own take the type of those that have one.
        merged = merged_type([operand, *items], Mixed.NUMBERS)
        if merged is not None and is_numeric(merged):
            items = [cast(item, merged, time_zone=env.time_zone) if is_string_literal(item) else item for item in items]
    pairs = [compare("=", operand, item, env, node) for item, node in zip(items, expr.items, strict=True)]
    type: Type | None = pairs[0].left.type
    for pair in pairs:
        type = None if type is None else common_type(type, pair.left.type)
    if type is not None:
        zone = env.time_zone
        values = tuple([cast(pair.right, type, time_zone=zone) for pair in pairs])
        return negate(bound.InList(BOOLEAN, cast(pairs[0].left, type, time_zone=zone), values), expr.negated)
    tests = [compare("=", again(expr.operand, operand, env), item, env, expr) for item in items]
    return negate(bound.Or(BOOLEAN, tuple(tests)), expr.negated)


@binds(ast.Like)
def bind_like(expr: ast.Like, env: Env) -> Expr:
    """LIKE, ILIKE and SIMILAR TO, which are functions of the registry."""
    name = expr.kind.value.lower().replace(" ", "_")
    arguments = [env.bind(expr.operand), env.bind(expr.pattern)]
    unlike = any(is_numeric(item.type) or isinstance(item.type, List) for item in arguments)
    if unlike and env.shared.settings.dialect != "spark":
        words = f" {expr.kind.value.upper()} ".join(item.type.sql.lower() for item in arguments)
        raise UndefinedFunction(f"operator does not exist: {words}", position=env.position(expr))
    if expr.escape is not None:
        arguments.append(env.bind(expr.escape))
    return negate(call_function(name, arguments, env, expr), expr.negated)


@binds(ast.Case)
def bind_case(expr: ast.Case, env: Env) -> Expr:
    """CASE with conditions or with values to compare, its results in their common type."""
    conditions: list[Expr] = []
    operand = None if expr.operand is None else env.bind(expr.operand)
    for when, _ in expr.whens:
        if expr.operand is None or operand is None:
            conditions.append(condition(when, env, "CASE/WHEN"))
        else:
            place = operand if not conditions else again(expr.operand, operand, env)
            conditions.append(compare("=", place, env.bind(when), env, when))
    results = [env.bind(then) for _, then in expr.whens]
    results.append(Literal(NULL, None) if expr.otherwise is None else env.bind(expr.otherwise))
    unified, type = unify(results, "CASE", expr, env)
    return bound.Case(type, tuple(zip(conditions, unified[:-1], strict=True)), unified[-1])


@binds(ast.Extract)
def bind_extract(expr: ast.Extract, env: Env) -> Expr:
    """``EXTRACT(field FROM x)``: a call of date_part."""
    name = "extract" if "extract" in FUNCTIONS else "date_part"
    return call_function(name, (Literal(TEXT, expr.field.lower()), env.bind(expr.operand)), env, expr)


@binds(ast.AtTimeZone)
def bind_at_time_zone(expr: ast.AtTimeZone, env: Env) -> Expr:
    """``x AT TIME ZONE zone``; a text that says a zone of its own is an instant."""
    operand = env.bind(expr.operand)
    if isinstance(operand, Literal) and is_string_literal(operand) and says_zone(str(operand.value)):
        operand = cast(operand, TIMESTAMPTZ, time_zone=env.time_zone)
    return call_function("at_time_zone", (operand, env.bind(expr.zone)), env, expr)


# --- rows ------------------------------------------------------------------------------------------------------------


def _row_pairs(left: ast.Row, right: ast.Row, env: Env) -> list[tuple[Expr, Expr]]:
    if len(left.items) != len(right.items):
        raise SyntaxFailure("unequal number of entries in row expressions", position=env.position(left))
    return [(env.bind(a), env.bind(b)) for a, b in zip(left.items, right.items, strict=True)]


def _compare_rows(expr: ast.Binary, env: Env) -> Expr:
    """``(a, b) op (c, d)``: equality by all values, order by the first that differs."""
    if isinstance(expr.right, ast.ScalarSubquery) and isinstance(expr.left, ast.Row):
        return _compare_with_query(expr, expr.left, expr.right, env)
    if not isinstance(expr.left, ast.Row) or not isinstance(expr.right, ast.Row) or expr.op not in COMPARISONS:
        raise FeatureNotSupported("row values outside comparisons are not supported", position=env.position(expr))
    pairs = _row_pairs(expr.left, expr.right, env)
    if expr.op in ("=", "<>"):
        equal = bound.conjunction(tuple([compare("=", left, right, env, expr) for left, right in pairs]))
        return negate(equal, expr.op == "<>")
    strict = expr.op[0]
    made: Expr = compare(expr.op, *pairs[-1], env, expr)
    for place in range(len(pairs) - 2, -1, -1):
        left, right = pairs[place]
        same = again(expr.left.items[place], left, env), again(expr.right.items[place], right, env)
        tie = bound.And(BOOLEAN, (compare("=", *same, env, expr), made))
        made = bound.Or(BOOLEAN, (compare(strict, left, right, env, expr), tie))
    return made


def _compare_with_query(expr: ast.Binary, row: ast.Row, subquery: ast.ScalarSubquery, env: Env) -> Expr:
    """``(a, b) op (SELECT c, d ..)``: the comparison made of the one row; NULL of none."""
    made = env.bind_query(subquery.query)
    columns = ast.Row(tuple(Ready(column, column.name) for column in made.columns))
    test = _compare_rows(ast.Binary(expr.op, row, columns, span=expr.span), env)
    return bound.ScalarSubquery(BOOLEAN, projected(made, [test], env))


# --- shared ----------------------------------------------------------------------------------------------------------


def unify(exprs: Sequence[Expr], clause: str, node: ast.Node, env: Env) -> tuple[tuple[Expr, ...], Type]:
    """The expressions cast to their common type, and the type; the results of CASE that mix text and numbers are text.

    42804  they have none
    """
    mixed = Mixed.ITEMS if clause == "CASE" else Mixed.NUMBERS
    type = merged_type(exprs, mixed)
    if type is None:
        first = exprs[0].type
        other = next((item.type for item in exprs if merged_type((exprs[0], item), mixed) is None), exprs[-1].type)
        words = f"{clause} types {first.sql.lower()} and {other.sql.lower()} cannot be matched"
        raise DatatypeMismatch(words, position=env.position(node))
    return tuple([cast(item, type, time_zone=env.time_zone) for item in exprs]), type


def again(node: ast.Expr, made: Expr, env: Env) -> Expr:
    """A second use of a bound expression: bound anew where it holds a subquery, whose columns stand once in a plan."""
    for part in bound.walk(made):
        if isinstance(part, bound.ScalarSubquery | bound.Exists | bound.Quantified | bound.Lambda):
            return env.bind(node)
    return made


def projected(made: Bound, exprs: Sequence[Expr], env: Env) -> plan.Plan:
    """The query's plan with ``exprs`` as its columns."""
    outputs = tuple(
        expr if isinstance(expr, bound.Column) else env.shared.column(name, expr.type, is_nullable(expr))
        for expr, name in zip(exprs, made.names, strict=False)
    )
    return plan.Project(outputs, tuple(exprs), made.plan)
