"""Plans and bound expressions as short text, for tests to compare.

    Project a#1, a + 1#8
      Aggregate [a#1] [sum#7 = sum(x#4)]
        Scan t
"""

from __future__ import annotations

from lake.sql import bound, plan
from lake.sql.bound import Expr


def plan_text(node: plan.Plan, depth: int = 0) -> str:
    """A plan as an indented tree, columns by name and number."""
    lines = ["  " * depth + line_of(node)]
    lines += [plan_text(child, depth + 1) for child in node.inputs]
    return "\n".join(lines)


def line_of(node: plan.Plan) -> str:
    """One node on one line."""
    name = type(node).__name__
    match node:
        case plan.Scan(table=table):
            return f"Scan {'.'.join(table.name)}"
        case plan.Values(rows=rows):
            return "Values " + ", ".join(f"({', '.join(map(text, row))})" for row in rows)
        case plan.CteScan():
            return f"CteScan {node.name}"
        case plan.Filter(conjuncts=conjuncts):
            return "Filter " + " AND ".join(map(text, conjuncts))
        case plan.Project(outputs=outputs, exprs=exprs):
            parts = [text(e) if e == c else f"{c.name} = {text(e)}" for c, e in zip(outputs, exprs, strict=True)]
            return "Project " + ", ".join(parts)
        case plan.Aggregate(groups=groups, aggregates=calls):
            left = [text(e) if e == c else f"{c.name} = {text(e)}" for c, e in groups]
            right = [call(item) for _, item in calls]
            sets = "" if node.grouping_sets is None else f" sets {node.grouping_sets}".replace(",)", ")")
            mark = "" if node.grouping_id is None else " grouping_id"
            return f"Aggregate [{', '.join(left)}] [{', '.join(right)}]{sets}{mark}"
        case plan.Window(partition=partition, order=order, calls=calls):
            inner = ", ".join(f"{item.function.name}({', '.join(map(text, item.arguments))}) {frame(item.frame)}"
                              for _, item in calls)  # fmt: skip
            return f"Window [{', '.join(map(text, partition))}] [{keys(order)}] {inner}"
        case plan.Sort(keys=order):
            return f"Sort {keys(order)}"
        case plan.Limit(limit=limit, offset=offset):
            parts = [f"limit {text(limit)}" if limit else "", f"offset {text(offset)}" if offset else ""]
            parts += ["percent" if node.is_percent else "", f"ties {keys(node.ties)}" if node.ties else ""]
            return " ".join(["Limit", *[part for part in parts if part]])
        case plan.Distinct(on=on, order=order):
            return f"Distinct on [{', '.join(map(text, on))}] [{keys(order)}]" if on else "Distinct"
        case plan.Unnest(lists=lists):
            extra = (" ordinality" if node.ordinality else "") + (" outer" if node.is_outer else "")
            return f"Unnest {', '.join(f'{c.name} = {text(e)}' for c, e in lists)}{extra}"
        case plan.Sample():
            return f"Sample {node.amount}{'%' if node.is_percent else ''} seed {node.seed}"
        case plan.Join(kind=kind, conditions=conditions):
            extra = " dependent" if node.dependent else ""
            return f"Join {kind.value}{extra} " + " AND ".join(map(text, conditions))
        case plan.AsofJoin():
            pairs = ", ".join(f"{text(a)} = {text(b)}" for a, b in node.keys)
            kept = "" if node.kind is plan.JoinKind.INNER else f" {node.kind.value}"
            return f"AsofJoin{kept} [{pairs}] {text(node.left_time)} {node.op} {text(node.right_time)}"
        case plan.SetOperation(kind=kind):
            return f"SetOperation {kind.value}{' all' if node.all else ''}"
        case plan.Materialize():
            return f"Materialize {node.name}"
        case plan.Recursion():
            return f"Recursion {node.name}{' all' if node.all else ''}"
        case _:
            return name


def call(item: bound.AggregateCall) -> str:
    """An aggregate call."""
    inner = ("DISTINCT " if item.distinct else "") + (", ".join(map(text, item.arguments)) or "*")
    order = f" ORDER BY {keys(item.order)}" if item.order else ""
    test = f" FILTER {text(item.filter)}" if item.filter is not None else ""
    return f"{item.function.name}({inner}{order}){test}"


def frame(item: bound.Frame) -> str:
    """A window's frame."""
    ends = [f"{text(end.offset)} {end.kind.value}" if end.offset else end.kind.value for end in (item.start, item.end)]
    extra = "" if item.exclusion.value == "NO OTHERS" else f" EXCLUDE {item.exclusion.value}"
    return f"{item.unit.value} {ends[0]}..{ends[1]}{extra}"


def keys(order: tuple[bound.SortKey, ...]) -> str:
    """Sort keys."""
    return ", ".join(
        text(key.expr) + (" DESC" if key.descending else "") + (" NULLS FIRST" if key.nulls_first else "")
        for key in order
    )


def text(expr: Expr) -> str:
    """A bound expression; casts show, constants carry their type where it is not plain."""
    match expr:
        case bound.Column(name=name):
            return name
        case bound.Literal(value=value):
            plain = expr.type.sql in ("BIGINT", "VARCHAR", "BOOLEAN", "NULL")
            return constant(value) if plain else f"{constant(value)}::{expr.type.sql}"
        case bound.Call(function=function, arguments=arguments):
            inner = list(map(text, arguments))
            if len(inner) == 2 and not function.name[0].isalpha():
                return f"({inner[0]} {function.name} {inner[1]})"
            return f"{function.name}({', '.join(inner)})"
        case bound.Compare(op=op, left=left, right=right):
            return f"{text(left)} {op} {text(right)}"
        case bound.And(operands=operands):
            return "(" + " AND ".join(map(text, operands)) + ")"
        case bound.Or(operands=operands):
            return "(" + " OR ".join(map(text, operands)) + ")"
        case bound.Not(operand=operand):
            return f"NOT {text(operand)}"
        case bound.IsNull(operand=operand):
            return f"{text(operand)} IS NULL"
        case bound.InList(operand=operand, items=items):
            return f"{text(operand)} IN ({', '.join(map(text, items))})"
        case bound.Case(whens=whens, otherwise=otherwise):
            inner_text = " ".join(f"WHEN {text(when)} THEN {text(then)}" for when, then in whens)
            return f"CASE {inner_text} ELSE {text(otherwise)} END"
        case bound.Cast(operand=operand):
            return f"{'TRY_' if expr.is_try else ''}CAST({text(operand)} AS {expr.type.sql})"
        case bound.Lambda(parameters=parameters, body=body):
            return f"({', '.join(column.name for column in parameters)}) -> {text(body)}"
        case bound.MakeList(items=items):
            return f"[{', '.join(map(text, items))}]"
        case bound.ScalarSubquery(plan=inside):
            return f"scalar<{_flat(inside)}>"
        case bound.Exists(plan=inside):
            return f"exists<{_flat(inside)}>"
        case bound.Quantified(op=op, operands=operands, plan=inside, every=every):
            compared = ", ".join(map(text, operands))
            return f"{compared} {op} {'ALL' if every else 'ANY'} <{_flat(inside)}>"
        case _:
            return type(expr).__name__


def constant(value: object) -> str:
    """A constant in SQL's words for NULL and truth, else Python's."""
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _flat(node: plan.Plan) -> str:
    outer = f" outer {len(node.outer_columns)}" if node.outer_columns else ""
    return " / ".join(line.strip() for line in plan_text(node).splitlines()) + outer
