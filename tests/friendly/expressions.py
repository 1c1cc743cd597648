"""Random expressions over the columns in reach, by the family of their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.friendly.tables import FriendlyTable
from tests.random_tables import Draw

COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
CONSTANTS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("1", "2", "0", "(-1)", "7"),
    "text": ("'a'", "'b'", "''", "'abc'"),
    "dbl": ("0.5::DOUBLE", "2::DOUBLE"),
    "dec": ("1.50", "0.25"),
    "bool": ("true", "false"),
    "date": ("DATE '2024-01-15'", "DATE '2000-01-01'"),
    "ts": ("TIMESTAMP '2024-01-15 10:00:00'", "TIMESTAMP '2000-01-01 00:00:00'"),
    "ints": ("[1, 2]", "[3]", "[4, NULL]"),
}
# Templates by family of the result: {i} an integer, {t} a text, {d} a double, {c} a decimal, {b} a boolean, {f} a date,
# {w} a timestamp, {l} a list of integers, {q} a fresh name for a lambda's parameter.
TEMPLATES: Final[dict[str, tuple[str, ...]]] = {
    "int": (
        "{i} + {i}", "{i} - {i}", "{i} * 2", "abs({i})", "{i} % 5", "coalesce({i}, {i})", "length({t})", "nullif({i}, {i})",
        "CASE WHEN {b} THEN {i} ELSE {i} END", "greatest({i}, {i})", "least({i}, {i})", "len({l})", "list_sum({l})::BIGINT",
        "list_max({l})", "list_min({l})", "list_count({l})", "{l}[1]", "{l}[-1]", "list_position({l}, {i})",
        "year({f})", "month({f})", "extract(day FROM {w})", "list_extract({l}, 2)", "if({b}, {i}, {i})",
        "list_reduce({l}, lambda {q}, {q}y: {q} + {q}y)", "{{'a': {i}, 'b': {t}}}.a", "struct_extract({{'v': {i}}}, 'v')",
        "list_any_value({l})", "date_diff('day', {f}, {f})", "strpos({t}, 'b')", "sign({i})::BIGINT", "({i} IS NULL)::INT",
        "list_unique({l})::BIGINT", "list_last({l})", "list_first({l})", "ascii('a' || {t})", "row({i}, {t})[1]",
        "len(list_filter({l}, {q} -> {q} > 1))", "MAP {{'a': {i}, 'b': 2}}['a']", "cardinality(MAP {{'a': {i}}})",
    ),
    "text": (
        "upper({t})", "lower({t})", "{t} || {t}", "reverse({t})", "substr({t}, 1, 2)", "replace({t}, 'b', 'xy')",
        "left({t}, 2)", "right({t}, 1)", "concat({t}, {t})", "CASE WHEN {b} THEN {t} ELSE {t} END", "coalesce({t}, {t})",
        "{i}::VARCHAR", "concat_ws('-', {t}, {t})", "lpad({t}, 4, '*')", "repeat({t}, 2)", "trim({t})",
        "{{'a': {i}, 'b': {t}}}.b", "split_part({t}, 'b', 1)", "[{t}, 'z'][1]", "array_to_string([{t}, 'q'], '/')",
        "string_split({t}, 'b')[1]", "{t}[1]", "{t}[1:2]", "translate({t}, 'ab', 'xy')", "list_aggregate([{t}, 'k'], 'max')",
        "chr((65 + abs({i}) % 20)::INT)", "regexp_replace({t}, '[ab]', '-')", "regexp_extract({t}, '[a-c]+')", "strftime({f}, '%Y-%m')",
        "rpad({t}, 3, '.')",
    ),
    "dbl": (
        "{d} + {d}", "{d} * 2", "abs({d})", "round({d}, 1)", "{i}::DOUBLE", "coalesce({d}, {d})", "floor({d})", "ceil({d})",
        "CASE WHEN {b} THEN {d} ELSE {d} END", "sqrt(abs({d}))", "greatest({d}, {d})", "list_avg({l})", "{d} - {i}",
        "list_median({l})", "trunc({d})", "pow({d}, 2)", "{i} * 0.5::DOUBLE",
    ),
    "dec": ("{c} + {c}", "{c} - {c}", "abs({c})", "coalesce({c}, {c})", "{c} * 2", "-{c}", "round({c}, 1)", "greatest({c}, {c})"),
    "bool": (
        "{i} {op} {i}", "{t} {op} {t}", "{d} {op} {d}", "{f} {op} {f}", "{w} {op} {w}", "{c} {op} {c}", "{i} IS NULL", "{t} IS NOT NULL",
        "{i} IN ({i}, {i}, 3)", "{i} BETWEEN {i} AND {i}", "NOT {b}", "{b} AND {b}", "{b} OR {b}", "{t} LIKE '%b%'",
        "{t} ILIKE 'A%'", "{i} IS DISTINCT FROM {i}", "list_contains({l}, {i})", "{i} = ANY(coalesce({l}, [1]))", "{i} <> ALL(coalesce({l}, [1]))",
        "starts_with({t}, 'a')", "contains({t}, 'b')", "{l} = {l}", "list_has_any({l}, [1, 7])",
        "{b} IS TRUE", "{i} IN (SELECT n FROM {table})", "EXISTS (SELECT 1 FROM {table} z WHERE z.k = {i})",
        "list_has_all({l}, [1])", "{t} SIMILAR TO '[a-c]*'", "suffix({t}, 'c')", "list_bool_and([{b}, true])",
    ),
    "date": ("{f} + {i}::INT", "coalesce({f}, {f})", "CASE WHEN {b} THEN {f} ELSE {f} END", "{w}::DATE", "last_day({f})",
             "greatest({f}, {f})", "make_date(2024, (1 + abs({i}) % 12)::BIGINT, 5)", "{f} - 3"),
    "ts": ("{w} + INTERVAL '1 day'", "coalesce({w}, {w})", "date_trunc('month', {w})", "{f}::TIMESTAMP", "least({w}, {w})",
           "CASE WHEN {b} THEN {w} ELSE {w} END", "{w} - INTERVAL '90 minutes'", "time_bucket(INTERVAL '1 day', {w})"),
    "ints": (
        "[{i}, {i}]", "list_transform({l}, {q} -> {q} + {i})", "list_filter({l}, {q} -> {q} > {i})",
        "[{q} * 2 FOR {q} IN {l} IF {q} > 0]", "[{q} + {i} FOR {q} IN {l}]", "list_concat({l}, coalesce({l}, [5]))", "list_reverse({l})",
        "{l}[1:2]", "{l}[2:]", "list_append({l}, {i})", "list_prepend({i}, {l})", "range(abs({i}) % 4)", "coalesce({l}, {l})",
        "flatten([{l}, {l}])", "list_sort(list_distinct(list_filter({l}, {q} -> {q} IS NOT NULL)))", "apply({l}, lambda {q}: {q} * {q})", "list_sort({l}, 'ASC', 'NULLS FIRST')",
        "list_sort({l}, 'DESC', 'NULLS LAST')", "list_slice({l}, 1, 2)", "CASE WHEN {b} THEN {l} ELSE {l} END", "coalesce({l}, [8]) || coalesce({l}, [6])",
        "list_sort(list_intersect({l}, [1, 2, 7]))", "generate_series(1, abs({i}) % 4)", "list_where([1, 2], [{b} IS TRUE, true])",
        "list_transform({l}, ({q}, {q}i) -> {q} + {q}i)", "map_values(MAP {{'a': {i}}})", "list_select({l}, [1])",
        "array(SELECT z.n FROM {table} z WHERE z.k = {i} ORDER BY z.id)", "list_resize({l}, 2)", "list_grade_up([3, 1, 2])",
    ),
}
LETTERS: Final = {"i": "int", "t": "text", "d": "dbl", "c": "dec", "b": "bool", "f": "date", "w": "ts", "l": "ints"}
FAMILIES: Final = ("int", "text", "dbl", "bool", "date", "ts", "ints", "dec")
DEPTH: Final = 2


class Expressions:
    """Makes expressions from choices. ``scope`` maps a family to what may be named of it."""

    def __init__(self, draw: Draw, tables: Sequence[FriendlyTable]) -> None:
        self.draw = draw
        self.tables = tables
        self._names = 0

    def fresh(self, stem: str) -> str:
        """A name that nothing else in the query has."""
        self._names += 1
        return f"{stem}{self._names}"

    def columns(self, table: FriendlyTable, alias: str = "") -> dict[str, list[str]]:
        """The scope of a table's columns, qualified where there is an alias."""
        dot = f"{alias}." if alias else ""
        return {family: [f"{dot}{name}" for name in table.of(family)] for family in FAMILIES}

    def expression(self, family: str, scope: dict[str, list[str]], depth: int = DEPTH) -> str:
        """An expression of a family."""
        options = scope.get(family, [])
        kind = self.draw.below(10)
        if depth == 0 or kind < 4:
            return self.draw.pick(options) if options and kind < 8 else self.draw.pick(CONSTANTS[family])
        return f"({self.filled(self.draw.pick(TEMPLATES[family]), scope, depth - 1)})"

    def filled(self, template: str, scope: dict[str, list[str]], depth: int) -> str:
        """A template with its places filled."""
        made, at = [], 0
        parameter = self.fresh("p")
        while at < len(template):
            if template[at] == "{" and template[at + 1] != "{":
                end = template.index("}", at)
                made.append(self._place(template[at + 1 : end], scope, depth, parameter))
                at = end + 1
            else:
                step = 2 if template[at : at + 2] in ("{{", "}}") else 1
                made.append(template[at])
                at += step
        return "".join(made)

    def _place(self, word: str, scope: dict[str, list[str]], depth: int, parameter: str) -> str:
        match word:
            case "op":
                return self.draw.pick(COMPARISONS)
            case "q":
                return parameter
            case "table":
                return self.draw.pick(self.tables).name
        return self.expression(LETTERS[word], scope, depth)

    def condition(self, scope: dict[str, list[str]]) -> str:
        """A boolean expression."""
        return self.filled(self.draw.pick(TEMPLATES["bool"]), scope, 1)
