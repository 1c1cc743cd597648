"""Golden plans: ``*.plan`` files of SQL, the rules to apply and the plan that must come out.

    # A filter over an outer join that drops padded rows makes it an inner one.
    rules decorrelate push_filters
    SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE u.x = 1
    ----
    Project: a#1
    ...

``rules`` names the rules to apply, after simplify and before prune_columns, which are always applied; ``rules all`` applies
all. Records are divided by a line of ``====``. ``python -m tests.plans.runner --update`` writes the plans that come out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import lake.exec.functions  # noqa: F401 - fills the table of functions
from lake.exec.evaluate import fold
from lake.sql import ast, parser
from lake.sql.bind import Binder
from lake.sql.catalog import Settings
from lake.sql.explain import explain, plan_text
from lake.sql.optimizer import RULES, optimize
from lake.sql.plan import Aggregate, CteScan, Join, Materialize, Plan, Scan
from tests.plans.catalog import TestCatalog
from tests.tpch import QUERIES

FOLDER = Path(__file__).parent
BETWEEN = "\n====\n"
ALWAYS = frozenset(("simplify", "prune_columns"))
CATALOG = TestCatalog()
SETTINGS = Settings(now=0)


@dataclass(frozen=True, slots=True)
class Record:
    """One golden plan: comments above, names of rules, SQL, and the plan."""

    comment: str
    rules: tuple[str, ...]
    sql: str
    plan: str

    @property
    def title(self) -> str:
        """The comment's first line."""
        return self.comment.splitlines()[0].removeprefix("# ") if self.comment else self.sql

    def text(self) -> str:
        """The record as the file holds it."""
        head = f"{self.comment}\n" if self.comment else ""
        return f"{head}rules {' '.join(self.rules)}\n{self.sql}\n----\n{self.plan}\n"


def read_records(path: Path) -> list[Record]:
    """The records of a file."""
    return [_parse(part) for part in path.read_text().strip("\n").split(BETWEEN)]


def _parse(text: str) -> Record:
    above, _, plan = f"{text.strip()}\n".partition("\n----\n")
    lines = above.splitlines()
    comment = [line for line in lines if line.startswith("#")]
    rest = [line for line in lines if not line.startswith("#")]
    assert rest and rest[0].startswith("rules "), f"a record begins with its rules: {text[:60]}"
    return Record("\n".join(comment), tuple(rest[0].split()[1:]), "\n".join(rest[1:]), plan.rstrip("\n"))


def bind(sql: str) -> Plan:
    """The plan a query means, over the tables of ``tests.plans.catalog``."""
    statement = parser.parse(sql)[0]
    statement = getattr(statement, "statement", statement)
    assert isinstance(statement, ast.QueryStatement)
    return Binder(CATALOG, SETTINGS).query(statement.query).plan


def plan_after(sql: str, rules: tuple[str, ...], *, with_rows: bool = False) -> str:
    """The plan of ``sql`` after ``rules``, as text."""
    wanted = {name for name, _ in RULES} if "all" in rules else ALWAYS | set(rules)
    plan = optimize(bind(sql), SETTINGS, fold, without=[name for name, _ in RULES if name not in wanted])
    return explain(plan) if with_rows else plan_text(plan)


def run(record: Record) -> str:
    """The plan that comes out for ``record``."""
    return plan_after(record.sql, record.rules)


def join_tree(plan: Plan) -> str:
    """The joins of a plan in one line: the right side of each is built."""
    match plan:
        case Scan(table=table):
            return table.name[-1]
        case CteScan(name=name):
            return f"@{name}"
        case Join(kind=kind, left=left, right=right):
            return f"({join_tree(left)} {kind.value} {join_tree(right)})"
        case Materialize(name=name, definition=definition, input=source):
            return f"{name} := {join_tree(definition)}; {join_tree(source)}"
        case Aggregate(input=source):
            return f"group {join_tree(source)}"
        case _:
            return " and ".join(map(join_tree, plan.inputs)) or type(plan).__name__.lower()


def tpch_orders() -> str:
    """The join order of every query of TPC-H at scale 1, a line each."""
    lines = []
    for number, sql in QUERIES.items():
        lines.append(f"{number} {join_tree(optimize(bind(sql), SETTINGS, fold))}")
    return "\n".join(lines) + "\n"


def golden_files() -> Iterator[Path]:
    """All files of golden plans."""
    yield from sorted(FOLDER.glob("*.plan"))


def update(path: Path) -> None:
    """Writes the plans that come out into the file."""
    records = [replace(record, plan=run(record)) for record in read_records(path)]
    path.write_text(BETWEEN.join(record.text().rstrip("\n") for record in records) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--update"]:
        for file in golden_files():
            update(file)
        (FOLDER / "tpch_orders.txt").write_text(tpch_orders())
    else:
        print(plan_after(sys.argv[1], tuple(sys.argv[2:]) or ("all",), with_rows=True))
