"""Syntax tree to text: names of columns, EXPLAIN and SHOW CREATE.

``parse(unparse(tree))`` is the tree again. Parentheses stand only where the grammar needs them; levels number the layers
of ``expr.lark``, loosest first.
"""

from __future__ import annotations

from collections.abc import Iterable

from lake.sql import ast
from lake.sql.quoting import function_text, name_text, quote_literal, quote_text, type_text
from lake.sql.quoting import quote_name as quote_name

OR, AND, NOT, COMPARISON, MEMBERSHIP, OPERATION, SUM, PRODUCT, POWER, ZONED, UNARY, POSTFIX, ATOM = range(1, 14)

# Level of an operator's result; its left operand may be of that level, its right one must bind tighter.
_OPERATOR_LEVELS = (
    dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), COMPARISON)
    | dict.fromkeys(("+", "-"), SUM)
    | dict.fromkeys(("*", "/", "//", "%"), PRODUCT)
    | dict.fromkeys(("^", "**"), POWER)
)

# Functions that are written without parentheses.
_BARE_CALLS = frozenset(
    "current_catalog current_date current_role current_schema current_time current_timestamp current_user localtime"
    " localtimestamp session_user".split()
)


def unparse(node: ast.Node) -> str:
    """The SQL of a statement, query, expression or part of one.

    >>> unparse(ast.Binary("*", ast.Binary("+", ast.Literal(1), ast.Literal(2)), ast.Literal(3)))
    '(1 + 2) * 3'
    """
    match node:
        case ast.Expr():
            return _expr(node, 0)
        case ast.Body():
            return _body(node)
        case ast.Source():
            return _source(node)
        case ast.Name():
            return name_text(node)
        case ast.TypeName():
            return type_text(node)
        case ast.SelectItem():
            return _item(node)
        case ast.SortItem():
            return _sort_item(node)
        case ast.Window():
            return _window(node)
        case ast.GroupingSets():
            return _grouping_sets(node)
    raise AssertionError(f"{type(node).__name__} is not SQL by itself")


# --- expressions -----------------------------------------------------------------------------------------------------


def _expr(expr: ast.Expr, level: int) -> str:
    """The text of ``expr``, in parentheses where it binds looser than ``level``."""
    own, text = _leveled(expr)
    return f"({text})" if own < level else text


def _leveled(expr: ast.Expr) -> tuple[int, str]:
    match expr:
        case ast.Or(operands):
            return OR, " OR ".join(_expr(operand, AND) for operand in operands)
        case ast.And(operands):
            return AND, " AND ".join(_expr(operand, NOT) for operand in operands)
        case ast.Not(operand):
            return NOT, f"NOT {_expr(operand, NOT)}"
        case ast.Binary(op, left, right):
            level = _OPERATOR_LEVELS.get(op, OPERATION)
            return level, f"{_expr(left, level)} {op} {_expr(right, level + 1)}"
        case ast.Unary(op, operand):
            text = _expr(operand, UNARY)
            return UNARY, f"{op} {text}" if text[0] in "-+~@" else f"{op}{text}"
        case ast.AtTimeZone(operand, zone):
            return ZONED, f"{_expr(operand, ZONED)} AT TIME ZONE {_expr(zone, UNARY)}"
        case ast.Literal(value):
            text = quote_literal(value)
            return (UNARY if text.startswith("-") else ATOM), text
        case ast.Cast(operand, type_name, is_try, is_infix):
            if is_infix:
                return POSTFIX, f"{_expr(operand, POSTFIX)}::{type_text(type_name)}"
            return ATOM, f"{'TRY_CAST' if is_try else 'CAST'}({_expr(operand, 0)} AS {type_text(type_name)})"
        case ast.Subscript(operand, index):
            return POSTFIX, f"{_indexed(operand)}[{_expr(index, 0)}]"
        case ast.Slice(operand, low, high, stride):
            bounds = ":".join(_expr(item, 0) if item else "" for item in (low, high))
            return POSTFIX, f"{_indexed(operand)}[{bounds}{f':{_expr(stride, 0)}' if stride else ''}]"
        case ast.Lambda(parameters, body):
            return 0, _lambda(parameters, body)
    predicate = _predicate(expr)
    return predicate or (ATOM, _atom(expr))


def _predicate(expr: ast.Expr) -> tuple[int, str] | None:
    """Tests that are words."""
    match expr:
        case ast.IsNull(operand, negated):
            return COMPARISON, f"{_expr(operand, COMPARISON)} IS {_not(negated)}NULL"
        case ast.IsTruth(operand, value, negated):
            word = "UNKNOWN" if value is None else quote_literal(value)
            return COMPARISON, f"{_expr(operand, COMPARISON)} IS {_not(negated)}{word}"
        case ast.IsDistinct(left, right, negated):
            return COMPARISON, f"{_expr(left, COMPARISON)} IS {_not(negated)}DISTINCT FROM {_expr(right, MEMBERSHIP)}"
        case ast.Between(operand, low, high, negated, symmetric):
            word = f"{_not(negated)}BETWEEN{' SYMMETRIC' if symmetric else ''}"
            bounds = f"{_expr(low, OPERATION)} AND {_expr(high, OPERATION)}"
            return MEMBERSHIP, f"{_expr(operand, MEMBERSHIP)} {word} {bounds}"
        case ast.InList(operand, items, negated):
            return MEMBERSHIP, f"{_expr(operand, MEMBERSHIP)} {_not(negated)}IN ({_list(items)})"
        case ast.InSubquery(operand, query, negated):
            return MEMBERSHIP, f"{_expr(operand, MEMBERSHIP)} {_not(negated)}IN {_parens(query)}"
        case ast.Like(kind, operand, pattern, escape, negated):
            text = f"{_expr(operand, MEMBERSHIP)} {_not(negated)}{kind.value} {_expr(pattern, OPERATION)}"
            return MEMBERSHIP, text + (f" ESCAPE {_expr(escape, OPERATION)}" if escape else "")
        case ast.Quantified(op, operand, source, every):
            level = MEMBERSHIP if op[-1].isalpha() else COMPARISON
            text = _parens(source) if isinstance(source, ast.Query) else f"({_expr(source, 0)})"
            return level, f"{_expr(operand, level)} {op} {'ALL' if every else 'ANY'} {text}"
    return None


def _atom(expr: ast.Expr) -> str:
    match expr:
        case ast.Column(name):
            return name_text(name)
        case ast.Call():
            return _call(expr)
        case ast.TypedLiteral(type_name, text):
            return f"{type_text(type_name)} {quote_text(text)}"
        case ast.IntervalLiteral(text, unit):
            return f"INTERVAL {quote_text(text)}" + (f" {unit}" if unit else "")
        case ast.ListLiteral(items):
            return f"[{_list(items)}]"
        case ast.StructLiteral(fields):
            return f"{{{', '.join(f'{quote_name(name, is_label=True)}: {_expr(value, 0)}' for name, value in fields)}}}"
        case ast.Parameter(name):
            return f"${name}"
        case ast.Star():
            return _star(expr)
        case ast.Columns(pattern):
            return f"COLUMNS({_expr(pattern, 0)})"
        case ast.Case(operand, whens, otherwise):
            parts = ["CASE", *([_expr(operand, 0)] if operand else [])]
            parts += [f"WHEN {_expr(condition, 0)} THEN {_expr(result, 0)}" for condition, result in whens]
            return " ".join([*parts, *([f"ELSE {_expr(otherwise, 0)}"] if otherwise else []), "END"])
        case ast.Extract(field, operand):
            return f"EXTRACT({quote_name(field)} FROM {_expr(operand, 0)})"
        case ast.Row(items):
            return f"({_list(items)})" if len(items) > 1 else f"ROW({_list(items)})"
        case ast.ListComprehension(body, variable, source, condition):
            test = f" IF {_expr(condition, 0)}" if condition else ""
            return f"[{_expr(body, 0)} FOR {quote_name(variable)} IN {_expr(source, 0)}{test}]"
        case ast.ScalarSubquery(query):
            return _parens(query)
        case ast.ArraySubquery(query):
            return f"ARRAY{_parens(query)}"
        case ast.Exists(query):
            return f"EXISTS {_parens(query)}"
        case ast.Default():
            return "DEFAULT"
    raise AssertionError(f"{type(expr).__name__} is not an expression of the grammar")


def _call(call: ast.Call) -> str:
    if call.name.last in _BARE_CALLS and call == ast.Call(call.name):
        return call.name.last.upper()
    inside = "DISTINCT " if call.distinct else ""
    inside += ", ".join(_argument(argument) for argument in call.arguments)
    if call.order:
        inside += f" {_order(call.order)}"
    text = f"{function_text(call.name)}({inside})"
    if call.within_group:
        text += f" WITHIN GROUP ({_order(call.within_group)})"
    if call.filter:
        text += f" FILTER (WHERE {_expr(call.filter, 0)})"
    if call.ignore_nulls:
        text += " IGNORE NULLS"
    if call.over:
        is_name = call.over.base is not None and call.over == ast.Window(call.over.base)
        text += f" OVER {quote_name(call.over.base or '') if is_name else _window(call.over)}"
    return text


def _argument(argument: ast.Argument) -> str:
    """An argument; parentheses keep JSON's arrow from a lambda's, and IGNORE NULLS from the call around it."""
    text = _expr(argument.value, 0)
    inner = argument.value
    if _begins_with_arrow(inner) or (isinstance(inner, ast.Call) and inner.ignore_nulls):
        text = f"({text})"
    return text if argument.name is None else f"{quote_name(argument.name)} => {text}"


def _begins_with_arrow(expr: ast.Expr) -> bool:
    """Whether the text of ``expr`` begins with ``x ->``, where ``->`` is the operator."""
    while True:
        match expr:
            case ast.Binary("->", ast.Column() | ast.Row(), _):
                return True
            case ast.Binary(_, left, _) | ast.IsDistinct(left, _):
                expr = left
            case ast.Or(operands) | ast.And(operands):
                expr = operands[0]
            case (
                ast.IsNull(inner) | ast.IsTruth(inner) | ast.InList(inner) | ast.InSubquery(inner) | ast.Between(inner)
            ):
                expr = inner
            case ast.Like(_, inner) | ast.Quantified(_, inner):
                expr = inner
            case _:
                return False


def _lambda(parameters: tuple[str, ...], body: ast.Expr) -> str:
    names = ", ".join(quote_name(name) for name in parameters)
    if len(parameters) > 1:
        return f"({names}) -> {_expr(body, 0)}"
    is_used = any(isinstance(node, ast.Column) and node.name.parts[0] in parameters for node in ast.walk(body))
    return f"{names} -> {_expr(body, 0)}" if is_used else f"LAMBDA {names}: {_expr(body, 0)}"


def _indexed(operand: ast.Expr) -> str:
    """The operand of brackets, which after ``::`` would belong to the type."""
    text = _expr(operand, POSTFIX)
    return f"({text})" if isinstance(operand, ast.Cast) and operand.is_infix else text


def _star(star: ast.Star) -> str:
    text = f"{name_text(star.qualifier)}.*" if star.qualifier else "*"
    if star.exclude:
        text += f" EXCLUDE ({', '.join(map(name_text, star.exclude))})"
    if star.replace:
        text += f" REPLACE ({', '.join(f'{_expr(e, 0)} AS {quote_name(name)}' for e, name in star.replace)})"
    if star.rename:
        text += f" RENAME ({', '.join(f'{quote_name(old)} AS {quote_name(new)}' for old, new in star.rename)})"
    return text


def _sort_item(item: ast.SortItem) -> str:
    nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[item.nulls_first]
    return f"{_expr(item.expr, 0)}{' DESC' if item.descending else ''}{nulls}"


def _order(items: Iterable[ast.SortItem]) -> str:
    return f"ORDER BY {', '.join(map(_sort_item, items))}"


def _window(window: ast.Window) -> str:
    parts = [quote_name(window.base)] if window.base is not None else []
    if window.partition:
        parts.append(f"PARTITION BY {_list(window.partition)}")
    if window.order:
        parts.append(_order(window.order))
    if window.frame:
        frame = window.frame
        parts.append(f"{frame.unit.value} BETWEEN {_bound(frame.start)} AND {_bound(frame.end)}")
        if frame.exclusion is not ast.Exclusion.NO_OTHERS:
            parts.append(f"EXCLUDE {frame.exclusion.value}")
    return f"({' '.join(parts)})"


def _bound(bound: ast.FrameBound) -> str:
    return f"{_expr(bound.offset, OPERATION)} {bound.kind.value}" if bound.offset else bound.kind.value


def _list(exprs: Iterable[ast.Expr]) -> str:
    return ", ".join(_expr(expr, 0) for expr in exprs)


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


# --- queries ---------------------------------------------------------------------------------------------------------


def _body(body: ast.Body) -> str:
    match body:
        case ast.Query():
            return _query(body)
        case ast.Select():
            return _select(body)
        case ast.SetOperation():
            return _set_operation(body)
        case ast.Values(rows):
            return f"VALUES {', '.join(f'({_list(row)})' for row in rows)}"
    raise AssertionError(f"{type(body).__name__} is not a query")


def _parens(query: ast.Query) -> str:
    return f"({_query(query)})"


def _query(query: ast.Query) -> str:
    parts = []
    if query.ctes:
        parts.append(f"WITH {'RECURSIVE ' if query.recursive else ''}{', '.join(map(_cte, query.ctes))}")
    parts.append(f"({_body(query.body)})" if isinstance(query.body, ast.Query) else _body(query.body))
    if query.order_all:
        item = _sort_item(query.order[0]).removeprefix("*") if query.order else ""
        parts.append(f"ORDER BY ALL{item}")
    elif query.order:
        parts.append(_order(query.order))
    if query.with_ties:
        parts.append(f"FETCH FIRST {_expr(query.limit or ast.Literal(1), OPERATION)} ROWS WITH TIES")
    elif query.limit:
        parts.append(f"LIMIT {_expr(query.limit, OPERATION)}{' PERCENT' if query.limit_percent else ''}")
    if query.offset:
        parts.append(f"OFFSET {_expr(query.offset, OPERATION)}")
    return " ".join(parts)


def _cte(cte: ast.Cte) -> str:
    how = {None: "", True: "MATERIALIZED ", False: "NOT MATERIALIZED "}[cte.materialized]
    keys = f" USING KEY ({_items(cte.keys)})" if cte.keys else ""
    return f"{quote_name(cte.name)}{_columns(cte.columns)}{keys} AS {how}{_parens(cte.query)}"


def _columns(columns: tuple[str, ...]) -> str:
    return f" ({', '.join(map(quote_name, columns))})" if columns else ""


def _set_operation(operation: ast.SetOperation) -> str:
    words = f"{operation.kind.value}{' ALL' if operation.all else ''}{' BY NAME' if operation.by_name else ''}"
    left, right = _body(operation.left), _body(operation.right)
    is_tight = operation.kind is ast.SetKind.INTERSECT
    match operation.left:
        case ast.Query():
            left = f"({left})"
        case ast.SetOperation(kind) if is_tight and kind is not ast.SetKind.INTERSECT:
            left = f"({left})"
    match operation.right:
        case ast.Query():
            right = f"({right})"
        case ast.SetOperation(kind) if is_tight or kind is not ast.SetKind.INTERSECT:
            right = f"({right})"
    return f"{left} {words} {right}"


def _select(select: ast.Select) -> str:
    pivot = _pivot_statement(select)
    if pivot:
        return pivot
    distinct = " DISTINCT" if select.distinct else ""
    if select.distinct_on:
        distinct += f" ON ({_list(select.distinct_on)})"
    parts = [f"SELECT{distinct} {', '.join(map(_item, select.items))}"]
    if select.sources:
        parts.append(f"FROM {', '.join(map(_source, select.sources))}")
    if select.where:
        parts.append(f"WHERE {_expr(select.where, 0)}")
    if select.group_all:
        parts.append("GROUP BY ALL")
    elif select.group:
        parts.append(f"GROUP BY {', '.join(map(unparse, select.group))}")
    if select.having:
        parts.append(f"HAVING {_expr(select.having, 0)}")
    if select.windows:
        parts.append(f"WINDOW {', '.join(f'{quote_name(name)} AS {_window(w)}' for name, w in select.windows)}")
    if select.qualify:
        parts.append(f"QUALIFY {_expr(select.qualify, 0)}")
    if select.sample:
        size = _sample_size(select.sample)
        method = select.sample.method
        parts.append(f"USING SAMPLE {f'{quote_name(method)}({size})' if method else size}{_seed(select.sample)}")
    return " ".join(parts)


def _item(item: ast.SelectItem) -> str:
    if item.names:
        return f"{_expr(item.expr, 0)} AS {_columns(item.names).strip()}"
    return _expr(item.expr, 0) + (f" AS {quote_name(item.alias, is_label=True)}" if item.alias is not None else "")


def _items(items: Iterable[ast.SelectItem]) -> str:
    return ", ".join(map(_item, items))


def _grouping_sets(grouping: ast.GroupingSets) -> str:
    texts = []
    for member in grouping.sets:
        if isinstance(member, ast.GroupingSets):
            texts.append(_grouping_sets(member))
        else:
            texts.append(_list(member) if len(member) == 1 else f"({_list(member)})")
    return f"{grouping.kind.upper()} ({', '.join(texts)})"


# --- sources ---------------------------------------------------------------------------------------------------------


def _source(source: ast.Source) -> str:
    match source:
        case ast.TableSource(name, alias, at, sample):
            travel = f" AT ({at.kind.upper()} => {_expr(at.value, 0)})" if at else ""
            return f"{name_text(name)}{travel}{_alias(alias)}{_sample(sample)}"
        case ast.FileSource(path, alias, sample):
            return f"{quote_text(path)}{_alias(alias)}{_sample(sample)}"
        case ast.FunctionSource(name, arguments, alias, ordinality, sample):
            call = f"{name_text(name)}({', '.join(map(_argument, arguments))})"
            return f"{call}{' WITH ORDINALITY' if ordinality else ''}{_alias(alias)}{_sample(sample)}"
        case ast.SubquerySource(query, alias, lateral, sample):
            return f"{'LATERAL ' if lateral else ''}{_parens(query)}{_alias(alias)}{_sample(sample)}"
        case ast.JoinSource():
            return _join(source)
        case ast.Pivot(inner, on, using, group, alias):
            values = " ".join(f"{_expr(expr, OPERATION)} IN ({_items(items)})" for expr, items in on)
            return f"{_source(inner)} PIVOT ({_items(using)} FOR {values}{_pivot_group(group)}){_alias(alias)}"
        case ast.Unpivot(inner, columns, name, values, include_nulls, alias):
            word = "UNPIVOT INCLUDE NULLS" if include_nulls else "UNPIVOT"
            value = quote_name(values[0]) if len(values) == 1 else _columns(values).strip()
            return f"{_source(inner)} {word} ({value} FOR {quote_name(name)} IN ({_items(columns)})){_alias(alias)}"
    raise AssertionError(f"{type(source).__name__} is not a source")


def _join(join: ast.JoinSource) -> str:
    kind = f"{join.kind.value} " if join.kind is not ast.JoinKind.INNER else ""
    words = f"{'NATURAL ' if join.natural else ''}{'ASOF ' if join.asof else ''}{kind}JOIN"
    right = _source(join.right)
    if isinstance(join.right, ast.JoinSource) and not join.right.alias:
        right = f"({right})"
    text = f"{_source(join.left)} {words} {right}"
    if join.match:
        text += f" MATCH_CONDITION ({_expr(join.match, 0)})"
    if join.on:
        text += f" ON {_expr(join.on, 0)}"
    if join.using:
        text += f" USING{_columns(join.using)}"
    return f"({text}){_alias(join.alias)}" if join.alias else text


def _alias(alias: ast.Alias | None) -> str:
    return f" AS {quote_name(alias.name)}{_columns(alias.columns)}" if alias else ""


def _sample(sample: ast.Sample | None) -> str:
    if sample is None:
        return ""
    method = f"{quote_name(sample.method)} " if sample.method else ""
    return f" TABLESAMPLE {method}({_sample_size(sample)}){_seed(sample)}"


def _sample_size(sample: ast.Sample) -> str:
    return f"{_expr(sample.amount, 0)} {'PERCENT' if sample.is_percent else 'ROWS'}"


def _seed(sample: ast.Sample) -> str:
    return f" REPEATABLE ({_expr(sample.seed, 0)})" if sample.seed else ""


def _pivot_statement(select: ast.Select) -> str | None:
    """``PIVOT t ON ..`` where the other form, which lists all values, cannot say it."""
    match select:
        case ast.Select((ast.SelectItem(ast.Star(None, (), (), ()), None),), (ast.Pivot(alias=None) as pivot,)):
            if pivot.using and all(items for _, items in pivot.on):
                return None
            on = [_expr(expr, OPERATION) + (f" IN ({_items(items)})" if items else "") for expr, items in pivot.on]
            using = f" USING {_items(pivot.using)}" if pivot.using else ""
            return f"PIVOT {_source(pivot.source)} ON {', '.join(on)}{using}{_pivot_group(pivot.group)}"
    return None


def _pivot_group(group: tuple[ast.Expr, ...]) -> str:
    return f" GROUP BY {_list(group)}" if group else ""
