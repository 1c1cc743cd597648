"""A plan as text: EXPLAIN, and the golden plans of the tests.

    Project: o_custkey#2, count#9 (expected_rows=99996)
    └─ Aggregate: groups [o_custkey#2] aggregates [count#9 = count(*)] (expected_rows=99996)
       └─ Scan: orders [o_custkey#2, o_totalprice#4] filters [o_totalprice#4 > 100.00] (expected_rows=1500000)

A column is its name and its id in the plan. With what the engine measured, the tree is of operators, each with the rows it
answered and the milliseconds it took.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal as PythonDecimal
from typing import Final, Protocol

from lake.sql.bound import (
    AggregateCall,
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Exists,
    Expr,
    InList,
    IsNull,
    Lambda,
    Literal,
    MakeList,
    Not,
    Or,
    Quantified,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from lake.sql.catalog import Settings
from lake.sql.optimizer.planning import Planning
from lake.sql.optimizer.statistics import rows_of
from lake.sql.plan import (
    Aggregate,
    AsofJoin,
    CteScan,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Materialize,
    Plan,
    Project,
    Recursion,
    Sample,
    Scan,
    SetOperation,
    Sort,
    Unnest,
    Values,
    Window,
)
from lake.types import Date, Decimal, Time, Timestamp

EPOCH: Final = datetime.datetime(1970, 1, 1)
VALUES_SHOWN: Final = 5
INFIX: Final = frozenset(("+", "-", "*", "/", "//", "%", "||", "^", "&", "|", "#", "<<", ">>", "~", "like", "ilike"))


class Profile(Protocol):
    """What the engine measured of an operator; ``plan`` is the node it computes, None where it is a part of one."""

    @property
    def name(self) -> str: ...

    @property
    def describe(self) -> str: ...

    @property
    def plan(self) -> Plan | None: ...

    @property
    def rows(self) -> int: ...

    @property
    def ms(self) -> float: ...

    @property
    def spilled(self) -> int: ...

    @property
    def parts(self) -> int: ...

    @property
    def skipped(self) -> int: ...

    @property
    def inputs(self) -> Sequence[Profile]: ...


def explain(plan: Plan, profile: Profile | None = None) -> str:
    """The tree of ``plan`` with the rows expected of each node, or the engine's with what it measured."""
    planning = Planning.of(plan, Settings(now=0), None)
    rows_of(plan, planning)
    lines: list[str] = []
    if profile is None:
        _add_node(plan, lines, "", "", planning)
    else:
        _add_operator(profile, lines, "", "", planning)
    return "\n".join(lines)


def plan_text(plan: Plan) -> str:
    """The tree of ``plan`` without estimates."""
    lines: list[str] = []
    _add_node(plan, lines, "", "", None)
    return "\n".join(lines)


def _add_node(plan: Plan, lines: list[str], first: str, rest: str, planning: Planning | None) -> None:
    expected = "" if planning is None else f" (expected_rows={rows_of(plan, planning):.0f})"
    lines.append(first + node_text(plan) + expected)
    children = plan.inputs
    for index, child in enumerate(children):
        is_last = index == len(children) - 1
        _add_node(child, lines, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "), planning)


def _add_operator(profile: Profile, lines: list[str], first: str, rest: str, planning: Planning) -> None:
    facts = []
    if profile.plan is not None:
        facts.append(f"expected_rows={rows_of(profile.plan, planning):.0f}")
    facts.append(f"output_rows={profile.rows}")
    facts.append(f"ms={profile.ms:.2f}")
    if profile.parts:
        facts.append(f"parts={profile.parts}")
    if profile.skipped:
        facts.append(f"skipped={profile.skipped}")
    if profile.spilled:
        facts.append(f"spilled_bytes={profile.spilled}")
    text = f"{profile.name}: {profile.describe}" if profile.describe else profile.name
    lines.append(f"{first}{text} ({', '.join(facts)})")
    for index, child in enumerate(profile.inputs):
        is_last = index == len(profile.inputs) - 1
        _add_operator(child, lines, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "), planning)


# --- nodes -----------------------------------------------------------------------------------------------------------


def node_text(plan: Plan) -> str:
    """One node in one line."""
    match plan:
        case Scan(table=table, outputs=outputs, filters=filters):
            text = f"Scan: {'.'.join(table.name[-1:])} [{_list(outputs)}]"
            return f"{text} filters [{_list(filters)}]" if filters else text
        case Values(rows=rows, outputs=outputs):
            return _values_text(rows, outputs)
        case CteScan(cte=cte, name=name, outputs=outputs):
            return f"CteScan: {name}@{cte} [{_list(outputs)}]"
        case Filter(conjuncts=conjuncts):
            return f"Filter: {_list(conjuncts)}"
        case Project(outputs=outputs, exprs=exprs):
            items = zip(outputs, exprs, strict=True)
            return f"Project: {', '.join(_named(column, expr) for column, expr in items)}"
        case Aggregate():
            return _aggregate_text(plan)
        case Window(partition=partition, order=order, calls=calls):
            made = ", ".join(f"{expr_text(column)} = {call_text(call)}" for column, call in calls)
            return f"Window: partition [{_list(partition)}] order [{_keys(order)}] calls [{made}]"
        case Sort(keys=keys, limit=limit, offset=offset):
            kept = "" if limit is None else f", first {limit}" + (f" after {offset}" if offset else "")
            return f"Sort: {_keys(keys)}{kept}"
        case Limit():
            return _limit_text(plan)
        case Distinct(on=on, order=order):
            return f"Distinct: on [{_list(on)}] order [{_keys(order)}]" if on else "Distinct"
        case Unnest(lists=lists, ordinality=ordinality, is_outer=is_outer):
            made = ", ".join(f"{expr_text(column)} = {expr_text(expr)}" for column, expr in lists)
            counted = "" if ordinality is None else f", ordinality {expr_text(ordinality)}"
            return f"Unnest: {'outer, ' if is_outer else ''}{made}{counted}"
        case Sample(amount=amount, is_percent=is_percent):
            return f"Sample: {amount:g}{' percent' if is_percent else ' rows'}"
        case _:
            return _joining_text(plan)


def _joining_text(plan: Plan) -> str:
    match plan:
        case Join(kind=kind, conditions=conditions, mark=mark, dependent=dependent):
            words = [kind.value]
            if kind is JoinKind.MARK and mark is not None:
                words.append(f"{expr_text(mark)}{' with nulls' if plan.mark_nulls else ''}")
            if dependent:
                words.append("dependent")
            return f"Join: {', '.join([*words, *map(expr_text, conditions)])}"
        case AsofJoin(keys=keys, left_time=left, op=op, right_time=right, kind=kind, conditions=others):
            pairs = [f"{expr_text(one)} = {expr_text(two)}" for one, two in keys]
            times = f"{expr_text(left)} {op} {expr_text(right)}"
            return f"AsofJoin: {', '.join([kind.value, *pairs, times, *map(expr_text, others)])}"
        case SetOperation(kind=kind, all=keeps, outputs=outputs):
            return f"SetOperation: {kind.value}{' all' if keeps else ''} [{_list(outputs)}]"
        case Materialize(cte=cte, name=name):
            return f"Materialize: {name}@{cte}"
        case Recursion(cte=cte, name=name, all=keeps, outputs=outputs):
            return f"Recursion: {name}@{cte}{' all' if keeps else ''} [{_list(outputs)}]"
        case _:
            raise AssertionError(f"no text for {type(plan).__name__}")


def _values_text(rows: tuple[tuple[Expr, ...], ...], outputs: tuple[Column, ...]) -> str:
    shown = ", ".join(f"({_list(row)})" for row in rows[:VALUES_SHOWN])
    more = f", and {len(rows) - VALUES_SHOWN} more" if len(rows) > VALUES_SHOWN else ""
    return f"Values: [{_list(outputs)}] {shown}{more}".rstrip()


def _aggregate_text(plan: Aggregate) -> str:
    groups = ", ".join(_named(column, expr) for column, expr in plan.groups)
    calls = ", ".join(f"{expr_text(column)} = {call_text(call)}" for column, call in plan.aggregates)
    text = f"Aggregate: groups [{groups}] aggregates [{calls}]"
    if plan.grouping_sets is not None:
        text += " sets [" + ", ".join(f"({', '.join(map(str, members))})" for members in plan.grouping_sets) + "]"
    return text if plan.grouping_id is None else f"{text} id {expr_text(plan.grouping_id)}"


def _limit_text(plan: Limit) -> str:
    limit = "all" if plan.limit is None else expr_text(plan.limit) + ("%" if plan.is_percent else "")
    offset = "" if plan.offset is None else f" after {expr_text(plan.offset)}"
    ties = f" with ties [{_keys(plan.ties)}]" if plan.ties else ""
    return f"Limit: {limit}{offset}{ties}"


def _named(column: Column, expr: Expr) -> str:
    if isinstance(expr, Column) and expr.id == column.id:
        return expr_text(column)
    return f"{expr_text(column)} = {expr_text(expr)}"


def _list(exprs: Iterable[Expr]) -> str:
    return ", ".join(map(expr_text, exprs))


def _keys(keys: Iterable[SortKey]) -> str:
    return ", ".join(map(_key_text, keys))


def _key_text(key: SortKey) -> str:
    nulls = "" if key.nulls_first == key.descending else (" NULLS FIRST" if key.nulls_first else " NULLS LAST")
    return expr_text(key.expr) + (" DESC" if key.descending else "") + nulls


def call_text(call: AggregateCall | WindowCall) -> str:
    """An aggregate or window call."""
    arguments = _list(call.arguments) or ("*" if call.function.name == "count" else "")
    inside = ("DISTINCT " if call.distinct else "") + arguments
    if call.order:
        inside += f" ORDER BY {_keys(call.order)}"
    text = f"{call.function.name}({inside})"
    return text if call.filter is None else f"{text} FILTER ({expr_text(call.filter)})"


# --- expressions -----------------------------------------------------------------------------------------------------


def expr_text(expr: Expr) -> str:
    """An expression, compactly."""
    match expr:
        case Column(id=id, name=name):
            return f"{name}#{id}"
        case Literal():
            return literal_text(expr)
        case Compare(op=op, left=left, right=right):
            words = {"is distinct": "IS DISTINCT FROM", "is not distinct": "IS NOT DISTINCT FROM"}.get(op, op)
            return f"{_operand(left)} {words} {_operand(right)}"
        case And(operands=operands):
            return " AND ".join(_operand(item) for item in operands)
        case Or(operands=operands):
            return " OR ".join(_operand(item) for item in operands)
        case Not(operand=IsNull(operand=operand)):
            return f"{_operand(operand)} IS NOT NULL"
        case Not(operand=InList(operand=operand, items=items)):
            return f"{_operand(operand)} NOT IN ({_list(items)})"
        case Not(operand=operand):
            return f"NOT {_operand(operand)}"
        case IsNull(operand=operand):
            return f"{_operand(operand)} IS NULL"
        case InList(operand=operand, items=items):
            return f"{_operand(operand)} IN ({_list(items)})"
        case Case(whens=whens, otherwise=otherwise):
            branches = " ".join(f"WHEN {expr_text(one)} THEN {expr_text(two)}" for one, two in whens)
            return f"CASE {branches} ELSE {expr_text(otherwise)} END"
        case Cast(type=type, operand=operand, is_try=is_try):
            return f"{'TRY_CAST' if is_try else 'CAST'}({expr_text(operand)} AS {type})"
        case Call(function=function, arguments=arguments):
            if function.name in INFIX and len(arguments) == 2:
                word = function.name.upper()
                return f"{_operand(arguments[0])} {word} {_operand(arguments[1])}"
            return f"{function.name}({_list(arguments)})"
        case Lambda(parameters=parameters, body=body):
            return f"({_list(parameters)}) -> {expr_text(body)}"
        case MakeList(items=items):
            return f"[{_list(items)}]"
        case ScalarSubquery():
            return "(subquery)"
        case Exists():
            return "EXISTS (subquery)"
        case Quantified(op=op, operands=operands, every=every):
            return f"({_list(operands)}) {op} {'ALL' if every else 'ANY'} (subquery)"
        case _:
            return expr.__class__.__name__


def _operand(expr: Expr) -> str:
    text = expr_text(expr)
    is_infix = isinstance(expr, Call) and expr.function.name in INFIX and len(expr.arguments) == 2
    is_loose = isinstance(expr, Compare | And | Or | Not | IsNull | InList) or is_infix
    return f"({text})" if is_loose else text


def literal_text(literal: Literal) -> str:
    """A constant as SQL writes it."""
    value = literal.value
    match literal.type, value:
        case _, None:
            return "NULL"
        case Decimal(scale=scale), int():
            return str(PythonDecimal(value).scaleb(-scale)) if abs(value) < 10**27 else f"{value}e-{scale}"
        case Date(), int():
            return f"'{_moment(value * 86_400_000_000):%Y-%m-%d}'" if abs(value) < 700_000 else f"day {value}"
        case Timestamp(), int():
            is_known = abs(value) < 60_000_000_000_000_000
            return f"'{_moment(value).isoformat(sep=' ')}'" if is_known else f"instant {value}"
        case Time(), int():
            return f"'{_moment(value).time().isoformat()}'"
        case _, str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


def _moment(microseconds: int) -> datetime.datetime:
    return EPOCH + datetime.timedelta(microseconds=microseconds)
