"""Random queries in friendly forms, one function a form.

    generate(Draw(random.Random(7)), tables)  ->  Friendly(text="FROM t0 SELECT * EXCLUDE (g)", ordered=False)

Every answer is one that both engines define: row numbers, DISTINCT ON and the like come with an order without ties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.friendly.expressions import FAMILIES, Expressions
from tests.friendly.tables import COLUMNS, FriendlyTable
from tests.random_tables import Draw

AGGREGATES: Final = (
    ("count(*)", ""), ("sum({})", "int"), ("min({})", "int"), ("max({})", "text"), ("avg({})", "int"), ("count({})", "text"),
    ("count(DISTINCT {})", "int"), ("sum({})", "dbl"), ("bool_and({})", "bool"), ("bool_or({})", "bool"), ("max({})", "date"),
    ("min({})", "ts"), ("sum(DISTINCT {})", "int"), ("list({} ORDER BY id)", "int"), ("string_agg({}, ',' ORDER BY id)", "text"),
    ("median({})", "int"), ("quantile_disc({}, 0.5)", "int"), ("quantile_cont({}, [0.25, 0.75])", "int"), ("stddev_samp({})", "int"),
    ("var_pop({})", "int"), ("first({} ORDER BY id)", "text"), ("last({} ORDER BY id DESC)", "int"), ("any_value({} ORDER BY id)", "int"),
    ("arg_max(coalesce({}, 'z'), id)", "text"), ("min_by(coalesce({}, 0), id)", "int"), ("max({})", "ints"), ("sum({})", "dec"), ("max({})", "dec"),
    ("product({})", "int"), ("bit_or({})", "int"), ("array_agg({} ORDER BY id DESC)", "text"),
    ("mode({} ORDER BY id)", "int"), ("histogram({})", "text"), ("list(DISTINCT {} ORDER BY ALL)", ""), ("entropy({})", "text"),
    ("mad({})", "dbl"), ("list({} ORDER BY id) FILTER (WHERE {b})", "int"), ("sum({}) FILTER (WHERE {b})", "int"),
    ("count(*) FILTER ({b})", ""), ("quantile_cont({}, 0.25)", "dbl"), ("max({}, 2)", "int"),
    ("arg_min(coalesce({}, 'z'), id, 2)", "text"), ("approx_count_distinct({})", "int"), ("favg({})", "dbl"),
)  # fmt: skip
# Of doubles alone: DuckDB cuts a whole number between two values and rounds one beyond them, where the lake always cuts.
FILLED: Final = ("fill(d) OVER (ORDER BY id)", "fill(d ORDER BY id) OVER (PARTITION BY g ORDER BY n)", "fill(d) OVER (PARTITION BY k ORDER BY id DESC)")
RUNNING: Final = (
    "row_number()", "rank()", "dense_rank()", "ntile(2)", "lag({})", "lead({}, 2)", "lag({} IGNORE NULLS)", "first_value({})",
    "last_value({} IGNORE NULLS)", "nth_value({}, 2)", "first_value({} IGNORE NULLS)", "lead({}, 1, {})", "percent_rank()", "cume_dist()",
)
FRAMED: Final = ("sum({})", "count({})", "min({})", "max({})", "avg({})", "list({})", "first_value({})", "last_value({})", "nth_value({}, 2)",
                 "count(*)", "median({})", "any_value({} ORDER BY id)")  # fmt: skip
STARTS: Final = ("UNBOUNDED PRECEDING", "1 PRECEDING", "CURRENT ROW", "2 PRECEDING")
ENDS: Final = ("CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING")
EXCLUSIONS: Final = ("", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")
ASOF_KINDS: Final = ("", "LEFT ", "RIGHT ", "FULL ", "SEMI ", "ANTI ")


@dataclass(frozen=True, slots=True)
class Friendly:
    """A query, and whether the order of its rows is defined."""

    text: str
    ordered: bool = False


class Queries(Expressions):
    """Makes one query from choices."""

    def __init__(self, draw: Draw, tables: Sequence[FriendlyTable]) -> None:
        super().__init__(draw, tables)
        self.forms: tuple[Callable[[], str], ...] = (
            self.stars, self.columns_forms, self.grouped, self.reused, self.pivoted, self.unpivoted, self.asof, self.qualified,
            self.computed, self.distinct_on, self.lateral, self.unnested, self.grouping_sets, self.windowed, self.structs,
            self.by_name, self.joined, self.recursive, self.correlated, self.from_first,
        )  # fmt: skip

    def query(self) -> Friendly:
        """A query of one form, perhaps inside another, perhaps ordered by all its columns."""
        text = self.draw.pick(self.forms)()
        match self.draw.below(6):
            case 1:
                text = f"SELECT * FROM (\n{text}\n)"
            case 2:
                text = f"WITH w AS {self.draw.pick(('', 'MATERIALIZED '))}(\n{text}\n)\nFROM w"
            case 3:
                text = f"FROM (\n{text}\n)"
        if self.draw.chance(40):
            direction = self.draw.pick(("", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
            return Friendly(f"SELECT * FROM (\n{text}\n) AS o\nORDER BY ALL{direction}", ordered=True)
        return Friendly(text)

    def table(self) -> FriendlyTable:
        """One of the tables."""
        return self.draw.pick(self.tables)

    def where(self, scope: dict[str, list[str]]) -> str:
        """WHERE, or nothing."""
        return f"\nWHERE {self.condition(scope)}" if self.draw.chance(40) else ""

    def items(self, scope: dict[str, list[str]], most: int = 3) -> list[str]:
        """Expressions with names of their own."""
        return [
            f"{self.expression(self.draw.pick(FAMILIES), scope)} AS {self.fresh('a')}" for _ in range(1 + self.draw.below(most))
        ]

    def aggregates(self, scope: dict[str, list[str]], most: int = 3) -> list[str]:
        """Aggregate calls with names of their own."""
        made = []
        for _ in range(1 + self.draw.below(most)):
            template, family = self.draw.pick(AGGREGATES)
            if not family:
                family = "int"
                template = template.replace("list(DISTINCT {} ORDER BY ALL)", "list_sort(list(DISTINCT {}), 'ASC', 'NULLS LAST')")
            argument = self.expression(family, scope, 1)
            text = template.replace("{b}", self.condition(scope)).replace("{}", argument)
            made.append(f"{text} AS {self.fresh('g')}")
        return made

    # --- select lists ---

    def star(self, table: FriendlyTable, scope: dict[str, list[str]], prefix: str = "") -> str:
        """``*`` with some of EXCLUDE, REPLACE and RENAME."""
        left = list(table.columns)
        text = f"{prefix}*"
        if self.draw.chance(50):
            gone = self.draw.some(left, 3)
            left = [name for name in left if name not in gone]
            text += f" EXCLUDE ({', '.join(gone)})" if len(gone) > 1 or self.draw.chance(50) else f" EXCLUDE {gone[0]}"
        if self.draw.chance(40):
            name = self.draw.pick(left)
            left.remove(name)
            text += f" REPLACE ({self.expression(self.draw.pick(FAMILIES), scope, 1)} AS {name})"
        if self.draw.chance(30):
            name = self.draw.pick(left)
            text += f" RENAME ({name} AS {self.fresh('r')})"
        return text

    def stars(self) -> str:
        """Stars with changes."""
        table = self.table()
        alias = self.draw.pick(("", "z"))
        scope = self.columns(table, alias)
        star = self.star(table, scope, f"{alias}." if alias else "")
        more = f", {', '.join(self.items(scope, 2))}" if self.draw.chance(30) else ""
        return f"SELECT {star}{more}\nFROM {table.name} {alias}{self.where(scope)}"

    def from_first(self) -> str:
        """FROM before SELECT."""
        table = self.table()
        scope = self.columns(table)
        if self.draw.chance(25):
            return f"FROM {table.name}"
        return f"FROM {table.name}\nSELECT {', '.join(self.items(scope))}{self.where(scope)}"

    def columns_forms(self) -> str:
        """COLUMNS(..) in its forms."""
        table = self.table()
        scope = self.columns(table)
        match self.draw.below(8):
            case 0:
                return f"SELECT COLUMNS('{self.draw.pick(('^[kn]$', 'id|g', '[dm]', 's'))}') FROM {table.name}"
            case 1:
                return f"SELECT COLUMNS(['{self.draw.pick('kn')}', 'm']) + {self.draw.pick('12')} FROM {table.name}"
            case 2:
                names = ", ".join(self.draw.some(table.columns[:6], 3))
                return f"SELECT COLUMNS(* EXCLUDE ({names})) FROM {table.name}"
            case 3:
                function = self.draw.pick(("max", "min", "count"))
                return f"SELECT {function}(COLUMNS(* EXCLUDE (l, b))) FROM {table.name}"
            case 4:
                test = self.draw.pick(("x = 'n'", "x LIKE '%d'", "x IN ('k', 's')", "x <> 'id' AND x < 'e'"))
                return f"SELECT COLUMNS(lambda x: {test}) FROM {table.name}"
            case 5:
                test = self.draw.pick(("IS NOT NULL", "> 1", "= 2"))
                return f"SELECT id FROM {table.name} WHERE COLUMNS('^[kn]$') {test}"
            case 6:
                return f"SELECT coalesce(COLUMNS(['k', 'n', 'm']), {self.expression('int', scope, 1)}) FROM {table.name}"
        return f"SELECT id, COLUMNS('^(k|n)$')::VARCHAR, COLUMNS('^(k|n)$') * 2 FROM {table.name}"

    def reused(self) -> str:
        """Aliases used in later items and in WHERE."""
        table = self.table()
        scope = self.columns(table)
        first = f"{self.expression('int', scope)} AS aa"
        second = self.draw.pick(("aa + 1", "aa * n", "aa IS NULL", "[aa, 1]", "coalesce(aa, 0) - 1"))
        test = self.draw.pick(("aa > 0", "aa IS NOT NULL", "aa IN (1, 2)", "aa < k"))
        return f"SELECT id, {first}, {second} AS bb\nFROM {table.name}\nWHERE {test}"

    def computed(self) -> str:
        """Expressions of every family."""
        table = self.table()
        scope = self.columns(table)
        return f"SELECT id, {', '.join(self.items(scope, 4))}\nFROM {table.name}{self.where(scope)}"

    def structs(self) -> str:
        """Structs made, read, listed and compared."""
        table = self.table()
        scope = self.columns(table)
        one, two = self.expression("int", scope, 1), self.expression("text", scope, 1)
        struct = self.draw.pick(("{{'a': {0}, 'b': {1}}}", "struct_pack(a := {0}, b := {1})")).format(one, two)
        form = self.draw.pick((
            "SELECT id, {0} AS v FROM {1}", "SELECT id, ({0}).a AS v, ({0}).b AS u FROM {1}",
            "SELECT v.a, v.b FROM (SELECT {0} AS v FROM {1})", "SELECT v.* FROM (SELECT {0} AS v FROM {1})",
            "SELECT id, [{0}] AS v FROM {1}", "SELECT unnest({0}) FROM {1}",
            "SELECT v.a AS a, count(*) AS c FROM (SELECT {0} AS v FROM {1}) GROUP BY ALL",
            "SELECT id, list_transform([{0}], x -> x.a) AS v FROM {1}", "SELECT id, {0} = {{'a': 1, 'b': 'a'}} AS v FROM {1}",
            "SELECT id, struct_insert({0}, z := id) AS v FROM {1}", "SELECT max({0}) AS v FROM {1}", "SELECT DISTINCT {0} AS v FROM {1}",
            "SELECT id, {0}['a'] AS v, struct_extract({0}, 'b') AS u FROM {1}", "SELECT list({0} ORDER BY id) AS v FROM {1}",
        ))  # fmt: skip
        return form.format(struct, table.name)

    # --- groups ---

    def grouped(self) -> str:
        """GROUP BY ALL, with HAVING."""
        table = self.table()
        scope = self.columns(table)
        keys = [f"{self.key(scope)} AS {self.fresh('k')}" for _ in range(self.draw.below(3))]
        having = self.draw.pick(("", "", "\nHAVING count(*) > 1", "\nHAVING max(id) > 2"))
        group = "\nGROUP BY ALL" if keys or self.draw.chance(50) else ""
        return f"SELECT {', '.join([*keys, *self.aggregates(scope)])}\nFROM {table.name}{self.where(scope)}{group}{having}"

    def key(self, scope: dict[str, list[str]]) -> str:
        """An expression to group by, which uses a column: DuckDB does not group by a constant."""
        family = self.draw.pick(("text", "int", "bool", "date"))
        text = self.expression(family, scope, 1)
        words = set(re.findall(r"\w+", re.sub(r"'[^']*'", "", text)))
        return text if words & COLUMNS.keys() else scope[family][0]

    def grouping_sets(self) -> str:
        """ROLLUP, CUBE and GROUPING SETS."""
        table = self.table()
        scope = self.columns(table)
        one, two = self.draw.pick(("g", "k", "b", "f")), self.draw.pick(("m", "s", "n"))
        sets = self.draw.pick(("ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}, {1}), ({0}), ())", "GROUPING SETS ({0}, {1})",
                               "{0}, ROLLUP ({1})"))  # fmt: skip
        grouping = f", grouping({one}, {two}) AS gr" if self.draw.chance(50) else ""
        return f"SELECT {one} AS x1, {two} AS x2{grouping}, {', '.join(self.aggregates(scope))}\nFROM {table.name}{self.where(scope)}\n" \
               f"GROUP BY {sets.format(one, two)}"

    def pivoted(self) -> str:
        """PIVOT in its spellings."""
        table = self.table()
        on = self.draw.pick(("g", "k", "b"))
        key = self.draw.pick([name for name in ("k", "g", "m", "b") if name != on])
        call = self.draw.pick(("sum(n)", "count(*)", "max(s)", "min(d)", "list(n ORDER BY id)", "sum(n) + 0", "max(c)"))
        values = {"g": ("'a'", "'b'", "'c'"), "k": ("1", "2", "3"), "b": ("true", "false")}[on]
        listed = ", ".join(values[: 1 + self.draw.below(len(values))])
        match self.draw.below(6):
            case 0:
                return f"PIVOT (SELECT {key}, {on}, id, n, s, d, c FROM {table.name}) ON {on} USING {call} GROUP BY {key}"
            case 1:
                return f"PIVOT {table.name} ON {on} IN ({listed}) USING {call} AS v GROUP BY {key}"
            case 2:
                return f"FROM (SELECT {key}, {on}, n FROM {table.name}) PIVOT (sum(n) FOR {on} IN ({listed}))"
            case 3:
                return f"PIVOT (SELECT {key}, {on}, n FROM {table.name}) ON {on} USING sum(n), count(n) AS c"
            case 4:
                return f"PIVOT (SELECT {key}, {on} FROM {table.name}) ON {on}"
        return f"PIVOT {table.name} ON {on} IN ({listed}) USING {call}, max(id) AS most"

    def unpivoted(self) -> str:
        """UNPIVOT in its spellings."""
        table = self.table()
        match self.draw.below(5):
            case 0:
                return f"UNPIVOT (SELECT id, k, n, m FROM {table.name}) ON k, n, m INTO NAME nm VALUE vl"
            case 1:
                nulls = self.draw.pick(("", "INCLUDE NULLS ", "EXCLUDE NULLS "))
                return f"SELECT * FROM (SELECT id, g, s FROM {table.name}) UNPIVOT {nulls}(v FOR c IN (g, s))"
            case 2:
                return f"UNPIVOT (SELECT id, k, n FROM {table.name}) ON COLUMNS(* EXCLUDE (id))"
            case 3:
                return f"UNPIVOT (SELECT id, k, n, g, s FROM {table.name}) ON (k, g), (n, s) INTO NAME nm VALUE v1, v2"
        return f"UNPIVOT (SELECT id, k, n FROM {table.name}) ON k AS one, n AS two INTO NAME nm VALUE vl"

    # --- windows ---

    def window(self, *, total: bool) -> str:
        """What stands in OVER (..): with ``total`` in an order without ties."""
        partition = self.draw.pick(("", "PARTITION BY g ", "PARTITION BY k ", "PARTITION BY b, g "))
        order = self.draw.pick(("ORDER BY id", "ORDER BY n, id", "ORDER BY d DESC, id")) if total else "ORDER BY n"
        return f"{partition}{order}"

    def frame(self, *, total: bool) -> str:
        """A frame; frames of rows only in an order without ties."""
        unit = self.draw.pick(("ROWS", "GROUPS", "RANGE") if total else ("GROUPS", "RANGE"))
        start, end = self.draw.pick(STARTS), self.draw.pick(ENDS)
        if unit == "RANGE":
            start, end = start.replace("1 P", "UNBOUNDED P").replace("2 P", "UNBOUNDED P"), end.replace("1 F", "UNBOUNDED F")
        return f"{unit} BETWEEN {start} AND {end}{self.draw.pick(EXCLUSIONS)}"

    def windowed(self) -> str:
        """Window calls over a named window, with frames."""
        table = self.table()
        scope = self.columns(table)
        calls = []
        for _ in range(1 + self.draw.below(3)):
            if self.draw.chance(8):
                calls.append(f"{self.draw.pick(FILLED)} AS {self.fresh('v')}")
                continue
            if self.draw.chance(45):
                call = self.draw.pick(RUNNING).replace("{}", self.draw.pick(("n", "k", "m")))
                over = self.draw.pick(("w", f"({self.window(total=True)})"))
            else:
                call = self.draw.pick(FRAMED).replace("{}", self.draw.pick(("n", "k", "m")))
                over = f"({self.window(total=True)} {self.frame(total=True)})"
                if call.startswith(("sum", "count", "min", "max", "avg")) and self.draw.chance(30):
                    call += f" FILTER (WHERE {self.condition(scope)})"
            calls.append(f"{call} OVER {over} AS {self.fresh('v')}")
        return f"SELECT id, {', '.join(calls)}\nFROM {table.name}{self.where(scope)}\nWINDOW w AS ({self.window(total=True)})"

    def qualified(self) -> str:
        """QUALIFY."""
        table = self.table()
        scope = self.columns(table)
        call = self.draw.pick((
            f"row_number() OVER ({self.window(total=True)}) <= 2", f"rank() OVER ({self.window(total=False)}) = 1",
            f"sum(n) OVER ({self.window(total=True)}) > 2", f"lag(n) OVER ({self.window(total=True)}) IS NULL", "rn = 1",
        ))  # fmt: skip
        number = f"row_number() OVER ({self.window(total=True)}) AS rn"
        return f"SELECT id, g, {number}, {', '.join(self.items(scope, 2))}\nFROM {table.name}{self.where(scope)}\nQUALIFY {call}"

    def distinct_on(self) -> str:
        """DISTINCT ON in an order without ties, in a query of its own."""
        table = self.table()
        scope = self.columns(table)
        key = self.draw.pick(("g", "k", "b"))
        order = self.draw.pick(("id", "id DESC", "n, id", "n DESC NULLS LAST, id"))
        return f"(SELECT DISTINCT ON ({key}) {key}, id, {', '.join(self.items(scope, 2))}\nFROM {table.name}{self.where(scope)}\n" \
               f"ORDER BY {key}, {order})"

    # --- several items in FROM ---

    def asof(self) -> str:
        """ASOF joins over times without ties."""
        left, right = self.table(), self.table()
        kind = self.draw.pick(ASOF_KINDS)
        both = "" if kind in ("SEMI ", "ANTI ") else ", y.id AS yid, y.n AS yn"
        if self.draw.chance(15):
            return f"SELECT x.id AS xid{both}\nFROM {left.name} x ASOF {kind}JOIN {right.name} y USING (g, id)"
        tests = [f"x.id {self.draw.pick(('>=', '>', '<=', '<'))} y.id"]
        if self.draw.chance(60):
            tests.append(self.draw.pick(("x.g = y.g", "x.k = y.k", "x.g = y.g AND x.b = y.b", "x.k IS NOT DISTINCT FROM y.k")))
        if kind not in ("RIGHT ", "FULL ") and self.draw.chance(35):
            tests.append(self.draw.pick(("y.n > 0", "x.k > 1", "x.n + y.n > 1", "y.b", "x.s <> y.s")))
        return f"SELECT x.id AS xid{both}\nFROM {left.name} x ASOF {kind}JOIN {right.name} y ON {' AND '.join(tests)}"

    def joined(self) -> str:
        """Joins by USING, NATURAL, SEMI, ANTI and POSITIONAL, and conditions of every kind."""
        left, right = self.table(), self.table()
        scope = {family: [*self.columns(left, "x")[family], *self.columns(right, "y")[family]] for family in FAMILIES}
        match self.draw.below(6):
            case 0:
                kind = self.draw.pick(("", "LEFT ", "RIGHT ", "FULL "))
                return f"SELECT {self.draw.pick(('g', 'k'))} AS u, x.id AS xid, y.id AS yid FROM {left.name} x {kind}JOIN {right.name} y " \
                       f"USING (g, k)"
            case 1:
                kind = self.draw.pick(("SEMI", "ANTI"))
                return f"SELECT x.id, x.g FROM {left.name} x {kind} JOIN {right.name} y ON {self.condition(scope)}"
            case 2:
                kind = self.draw.pick(("SEMI", "ANTI"))
                return f"FROM {left.name} {kind} JOIN {right.name} USING ({self.draw.pick(('g', 'k', 'id, g'))}) SELECT id, n, s"
            case 3:
                return f"SELECT id, g, k, n FROM (SELECT id, g, k FROM {left.name}) NATURAL {self.draw.pick(('', 'LEFT ', 'FULL '))}JOIN " \
                       f"(SELECT k, g, n FROM {right.name})"
        kind = self.draw.pick(("", "LEFT ", "RIGHT ", "FULL "))
        test = f"x.k = y.k AND {self.condition(scope)}" if kind == "FULL " else self.condition(scope)
        return f"SELECT x.id AS xid, y.id AS yid, {', '.join(self.items(scope, 2))}\nFROM {left.name} x {kind}JOIN {right.name} y ON {test}"

    def lateral(self) -> str:
        """LATERAL queries, said and unsaid."""
        left, right = self.table(), self.table()
        word = self.draw.pick((", LATERAL ", ", ", " CROSS JOIN LATERAL ", " LEFT JOIN LATERAL "))
        inner = self.draw.pick((
            "SELECT y.id AS yid, y.n + x.n AS v FROM {0} y WHERE y.k = x.k", "SELECT x.n + 1 AS v",
            "SELECT max(y.id) AS v, count(*) AS c FROM {0} y WHERE y.g = x.g", "SELECT unnest(x.l) AS v",
            "SELECT y.n AS v FROM {0} y WHERE y.id > x.id ORDER BY y.id LIMIT 1", "SELECT list_transform(x.l, e -> e + x.n) AS v",
            "SELECT y.g AS v, sum(y.n) AS c FROM {0} y WHERE y.k <= x.k GROUP BY ALL", "SELECT DISTINCT y.g AS v FROM {0} y WHERE y.k = x.k",
        )).format(right.name)  # fmt: skip
        on = " ON true" if "JOIN" in word and "LEFT" in word else ""
        return f"SELECT x.id, z.*\nFROM {left.name} x{word}({inner}) z{on}"

    def unnested(self) -> str:
        """UNNEST in its places."""
        table = self.table()
        scope = self.columns(table)
        values = self.expression("ints", scope, 1)
        form = self.draw.pick((
            "SELECT id, unnest({0}) AS u FROM {1}", "SELECT x.id, u.e FROM {1} x, unnest(x.l) u(e)",
            "SELECT id, unnest({0}) + 1 AS u, n FROM {1}", "SELECT u.e, u.o FROM {1} x, unnest(x.l) WITH ORDINALITY u(e, o)",
            "SELECT x.id, u.e FROM {1} x LEFT JOIN LATERAL (SELECT unnest(x.l)) u(e) ON true", "SELECT unnest([1, NULL, 3]) AS u",
            "SELECT id, unnest(l) AS u, unnest([10, 20]) AS v FROM {1}", "SELECT u, count(*) AS c FROM (SELECT unnest({0}) AS u FROM {1}) GROUP BY ALL",

            "SELECT e FROM generate_series(1, 4) r(e) WHERE e % 2 = 0", "SELECT e, o FROM range(3) WITH ORDINALITY r(e, o)",
        ))  # fmt: skip
        return form.format(values, table.name)

    def by_name(self) -> str:
        """Set operations by name and by position."""
        left, right = self.table(), self.table()
        if self.draw.chance(50):
            one, two = self.draw.some(("id", "g", "n", "s", "d"), 3), self.draw.some(("id", "g", "n", "k", "f"), 3)
            word = self.draw.pick(("UNION ALL BY NAME", "UNION BY NAME"))
            return f"SELECT {', '.join(one)} FROM {left.name}\n{word}\nSELECT {', '.join(two)} FROM {right.name}"
        word = self.draw.pick(("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"))
        names = ", ".join(self.draw.some(("k", "g", "b", "l"), 2))
        return f"SELECT {names} FROM {left.name}\n{word}\nSELECT {names} FROM {right.name}"

    def recursive(self) -> str:
        """Recursive common table expressions that end."""
        table = self.table()
        body = self.draw.pick((
            "SELECT 1 AS i, 'a' AS v UNION ALL SELECT i + 1, v || 'b' FROM r WHERE i < 4",
            "SELECT id AS i, g AS v FROM {0} WHERE id = 1 UNION SELECT y.id, y.g FROM r, {0} y WHERE y.id = r.i + 1",
            "SELECT 0 AS i, [0] AS v UNION ALL SELECT i + 1, list_append(v, i) FROM r WHERE i < 3",
            "SELECT k AS i, 1 AS v FROM {0} UNION SELECT i + 1, v FROM r WHERE i < 5",
        )).format(table.name)  # fmt: skip
        return f"WITH RECURSIVE r AS ({body}) SELECT * FROM r"

    def correlated(self) -> str:
        """Subqueries as values that use the query around them."""
        left, right = self.table(), self.table()
        scope = self.columns(left, "x")
        inner = self.draw.pick((
            "(SELECT max(y.n) FROM {0} y WHERE y.k = x.k)", "(SELECT count(*) FROM {0} y WHERE y.id < x.id AND y.g = x.g)",
            "EXISTS (SELECT 1 FROM {0} y WHERE y.n > x.n)", "x.n IN (SELECT y.n FROM {0} y WHERE y.g = x.g)",
            "(SELECT y.s FROM {0} y WHERE y.id = x.id)", "x.n > ALL (SELECT y.n FROM {0} y WHERE y.k = x.k)",
            "(SELECT list(y.n ORDER BY y.id) FROM {0} y WHERE y.k = x.k)", "(SELECT sum(y.n + x.n) FROM {0} y)",
            "ARRAY(SELECT y.n FROM {0} y WHERE y.k = x.k ORDER BY y.id DESC)", "(x.k, x.g) IN (SELECT y.k, y.g FROM {0} y)",
            "(SELECT y.n FROM {0} y WHERE y.k = x.k ORDER BY y.id LIMIT 1)", "(SELECT sum(e) FROM unnest(x.l) u(e))",
        )).format(right.name)  # fmt: skip
        where = f"\nWHERE {inner}" if inner.startswith(("EXISTS", "x.n", "(x.k")) and self.draw.chance(40) else ""
        return f"SELECT x.id, {inner} AS v, {', '.join(self.items(scope, 1))}\nFROM {left.name} x{where}"


def generate(draw: Draw, tables: Sequence[FriendlyTable]) -> Friendly:
    """The query that the choices make."""
    return Queries(draw, tables).query()
