"""Random SELECTs: joins, grouping, windows, set operations, common tables, order and limits.

    generate(Draw(random.Random(7)), tables)  ->  Query(text="SELECT ..", ordered=True)

Every answer is one that SQL defines: LIMIT, DISTINCT ON, row numbers and the like come with an order that has no ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.random_query import Expressions, Scope
from tests.random_tables import COLUMNS, Column, Draw, RandomTable
from tests.random_templates import (
    AGGREGATES,
    COMPARISONS,
    FAMILIES,
    FRAMED,
    LAST_AGGREGATES,
    RANKS,
    RISKS,
    WINDOWED,
)

STARTS: Final = ("UNBOUNDED PRECEDING", "1 PRECEDING", "2 PRECEDING", "CURRENT ROW", "1 FOLLOWING")
ENDS: Final = ("CURRENT ROW", "1 FOLLOWING", "UNBOUNDED FOLLOWING", "1 PRECEDING", "3 FOLLOWING")
EXCLUSIONS: Final = ("", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")
# Frames by distance from the value of the one key of the order, by its family.
DISTANCES: Final[dict[str, tuple[str, ...]]] = {
    "int": ("1", "3", "0"),
    "dec": ("1.5", "0"),
    "dbl": ("1e0", "5e-1"),
    "date": ("INTERVAL '40 days'", "INTERVAL '1 month'"),
    "ts": ("INTERVAL '1 day'", "INTERVAL '1 year'"),
    "time": ("INTERVAL '1 hour'",),
    "tz": ("INTERVAL '1 day'", "INTERVAL '90 minutes'"),
    "real": ("1e0",),
}
RANGES: Final = (
    "RANGE BETWEEN {} PRECEDING AND CURRENT ROW", "RANGE BETWEEN {} PRECEDING AND {} FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND {} FOLLOWING", "RANGE BETWEEN {} FOLLOWING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN {} PRECEDING AND {} PRECEDING", "RANGE BETWEEN {} PRECEDING AND {} FOLLOWING EXCLUDE GROUP",
)
SETS: Final = ("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({0}), ())", "GROUPING SETS (({0}), {0})", "{0}, ROLLUP ({0})",
               "GROUPING SETS (ROLLUP ({0}), CUBE ({0}))", "CUBE ({0}), ROLLUP ({0})", "GROUPING SETS ((), (), ({0}))")
MEETING: Final = ("int", "dec", "dbl")  # numbers of which any two have one common type, there as here
# Aggregates of one more column that keep the order of rows, over a total order.
COLLECTED: Final = {"text": ("string_agg({}, '-')",)}
SORTS: Final = ("", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST")


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, and whether the order of its rows is defined."""

    text: str
    ordered: bool


def generate(draw: Draw, tables: Sequence[RandomTable]) -> Query:
    """The query that the choices make."""
    return Selects(draw, tables).query()


class Selects(Expressions):
    """Makes one SELECT from choices."""

    _is_branch = False

    def query(self) -> Query:
        """A whole query: a select, or several with set operations, perhaps under WITH; perhaps ordered and cut."""
        if self.draw.chance(4):
            return self.risk()
        common = self.common_table() if self.draw.chance(12) else ""
        families = [self.draw.pick(FAMILIES) for _ in range(1 + self.draw.below(4))]
        body = self.set_operation(families) if self.draw.chance(15) else self.select(families)
        ordered = self.draw.chance(45)
        if not ordered:
            return Query(common + body, False)
        order = ", ".join(f"{number + 1}{self.draw.pick(SORTS)}" for number in range(len(families)))
        return Query(f"{common}{body}\nORDER BY {order}{self.limit()}", True)

    def risk(self) -> Query:
        """What may fail, alone over one table: both must refuse it for the same reason, or answer it."""
        table, alias = self.draw.pick(self.tables), self.name("r")
        scope = Scope(self.columns_of(table, alias), [f"{alias}.id"])
        where = f"\nWHERE {alias}.id {self.draw.pick(COMPARISONS)} {self.draw.pick('123')}" if self.draw.chance(50) else ""
        return Query(f"SELECT {self.filled(self.draw.pick(RISKS), scope)} AS a\nFROM {table.name} {alias}{where}", False)

    def limit(self) -> str:
        """LIMIT and OFFSET in their spellings, or neither."""
        match self.draw.below(6):
            case 1:
                return f"\nLIMIT {self.draw.pick(('1', '3', '0', '100'))}"
            case 2:
                return f"\nLIMIT {self.draw.pick('25')} OFFSET {self.draw.pick(('1', '3', '50'))}"
            case 3:
                return f"\nOFFSET {self.draw.pick('12')} ROWS FETCH FIRST {self.draw.pick('14')} ROWS ONLY"
            case 4:
                return f"\nOFFSET {self.draw.pick('12')}"
        return ""

    def set_operation(self, families: Sequence[str]) -> str:
        """Two or three selects of the same families."""
        # The common type of two branches could carry the scale of an average out of the rule for decimals.
        self._is_branch = True
        parts = [self.select(families)]
        for _ in range(1 + self.draw.below(2)):
            word = self.draw.pick(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
            # Branches of other numbers, which meet in one type.
            kinds = [self.draw.pick(MEETING) if each in MEETING and self.draw.chance(12) else each for each in families]
            parts += [word, f"({self.select(kinds)})"]
        return "\n".join([f"({parts[0]})", *parts[1:]])

    def common_table(self) -> str:
        """WITH: a table of the run in another form, which may be used in its place; or one that counts."""
        name = self.name("c")
        if self.draw.chance(20):
            return self.walk(name)
        if self.draw.chance(35):
            most = self.draw.pick(("3", "5", "1"))
            first = "SELECT 0::BIGINT AS id, 1::BIGINT AS b"
            text = f"{first} UNION ALL SELECT id + 1, b * 2 FROM {name} WHERE id < {most}"
            columns = tuple(each for each in COLUMNS if each.column.name == "b")
            self.tables = [RandomTable(name, columns, ()), *self.tables]
            return f"WITH RECURSIVE {name} AS ({text})\n"
        table = self.draw.pick(self.tables)
        where = self.boolean(Scope(self.columns_of(table, table.name)), 1)
        # First, so that a query that shrinks keeps to it.
        self.tables = [RandomTable(name, table.columns, ()), *self.tables]
        how = self.draw.pick(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
        text = f"WITH {name} AS {how}(SELECT * FROM {table.name} WHERE {where})"
        if self.draw.chance(25):  # one more, which uses the first
            second, condition = self.name("c"), self.boolean(Scope(self.columns_of(table, name)), 1)
            self.tables = [RandomTable(second, table.columns, ()), *self.tables]
            text += f", {second} AS (SELECT * FROM {name} WHERE {condition} UNION ALL SELECT * FROM {name})"
        return f"{text}\n"

    def walk(self, name: str) -> str:
        """WITH RECURSIVE over a table whose rows point at others, each row met once."""
        table = self.draw.pick(self.tables)
        to = self.draw.pick([each.column.name for each in table.columns if each.column.family == "int"] or ["id"])
        word = self.draw.pick(("JOIN", "JOIN", "LEFT JOIN"))
        start = self.draw.pick(("id = 0", "id < 3", f"{to} IS NULL"))
        step = f"SELECT r.id, r.{to}::BIGINT FROM {name} w {word} {table.name} r ON r.id = w.b OR r.id = w.id + 2"
        text = f"SELECT id, {to}::BIGINT AS b FROM {table.name} WHERE {start} UNION {step}"
        columns = tuple(each for each in COLUMNS if each.column.name == "b")
        self.tables = [RandomTable(name, columns, ()), *self.tables]
        return f"WITH RECURSIVE {name} AS ({text})\n"

    def select(self, families: Sequence[str]) -> str:
        """One SELECT of columns of these families: plain, grouped, or with windows."""
        source, scope = self.source()
        where = f"\nWHERE {self.boolean(scope, 3)}" if self.draw.chance(60) else ""
        match self.draw.below(10):
            case 5 | 6:
                return self.grouped(families, source, scope, where)
            case 7:
                return self.totals(families, source, scope, where)
            case 8:
                return self.windowed(families, source, scope, where)
            case 9 if scope.keys:
                return self.distinct_on(families, source, scope, where)
        items = [self.expression(family, scope, 3) for family in families]
        if self.draw.chance(4):
            return self.unnested(families, items, source, scope, where)
        if scope.keys and self.draw.chance(8):
            return self.cut(items, source, scope, where)
        distinct = "DISTINCT " if self.draw.chance(20) else ""
        return f"SELECT {distinct}{self._listed(items)}\nFROM {source}{where}"

    def unnested(self, families: Sequence[str], items: Sequence[str], source: str, scope: Scope, where: str) -> str:
        """Lists taken apart in the select list, side by side, where the families have some."""
        lists = {"int": "ints", "text": "texts"}
        made = [f"unnest({self.expression(lists[family], scope, 1)})" if family in lists and self.draw.chance(70) else item
                for family, item in zip(families, items, strict=True)]  # fmt: skip
        return f"SELECT {self._listed(made)}\nFROM {source}{where}"

    def cut(self, items: Sequence[str], source: str, scope: Scope, where: str) -> str:
        """The first rows by an expression that is not selected, as a subquery."""
        family = self.draw.pick([each for each in FAMILIES if each not in ("bool",)])
        key = self.expression(family, scope, 2)
        key = key if any(each.name in key for each in scope.columns) else scope.keys[0]  # Postgres refuses a constant
        order = f"{key}{self.draw.pick(SORTS)}, {', '.join(scope.keys)}"
        text = f"SELECT {self._listed(items)}\nFROM {source}{where}\nORDER BY {order}{self.limit()}"
        return f"SELECT * FROM ({text}) {self.name('q')}"

    def _listed(self, items: Sequence[str]) -> str:
        """The select list, each item under a name of its own."""
        return ", ".join(f"{item} AS {self.name('a')}" for item in items)

    # FROM.

    def source(self) -> tuple[str, Scope]:
        """FROM items joined in all ways, and what they bring into scope."""
        text, scope = self.item()
        joins = self.draw.pick((0, 0, 1, 1, 2, 3))
        for _ in range(joins):
            text, scope = self.join(text, scope, alone=joins == 1)
        if self.draw.chance(5):
            right, other = self.item()
            return f"{text}, {right}", Scope(scope.columns + other.columns, scope.keys + other.keys)
        return text, scope

    def item(self) -> tuple[str, Scope]:
        """A table, a subquery, or VALUES."""
        table, alias = self.draw.pick(self.tables), self.name("r")
        scope = Scope(self.columns_of(table, alias), [f"{alias}.id"])
        match self.draw.below(17):
            case 15:
                value = self.draw.pick(("ARRAY[3, 1, NULL]", "ARRAY[1, 1]"))
                columns = [Column(f"{alias}.v", "int"), Column(f"{alias}.id", "int")]
                return f"unnest({value}::BIGINT[]) WITH ORDINALITY {alias}(v, id)", Scope(columns, [f"{alias}.id"])
            case 12:
                return self.derived(alias)
            case 13:
                return self.joined(alias)
            case 14:
                start, stop = self.draw.pick(("1, 3", "0, 0", "3, 1")).split(", ")
                columns = [Column(f"{alias}.id", "int")]
                return f"generate_series({start}::BIGINT, {stop}::BIGINT) {alias}(id)", Scope(columns, [f"{alias}.id"])
            case 10:
                inner = self.name("q")
                where = self.boolean(Scope(self.columns_of(table, inner)), 2)
                return f"(SELECT * FROM {table.name} {inner} WHERE {where}) {alias}", scope
            case 11:
                columns = [Column(f"{alias}.id", "int"), Column(f"{alias}.v", "text")]
                return f"(VALUES (1, 'a'), (2, NULL), (3, 'a')) {alias}(id, v)", Scope(columns, [f"{alias}.id"])
        return f"{table.name} {alias}", scope

    def derived(self, alias: str) -> tuple[str, Scope]:
        """Groups of a table, or its rows with a window function, as an item."""
        table, inner = self.draw.pick(self.tables), self.name("q")
        scope = Scope(self.columns_of(table, inner), [f"{inner}.id"])
        where = f" WHERE {self.boolean(scope, 1)}" if self.draw.chance(40) else ""
        family = self.draw.pick(FAMILIES)
        columns = [Column(f"{alias}.id", "int"), Column(f"{alias}.v", family, False)]
        if self.draw.chance(50):
            value = self.aggregate(family, scope)
            key = self.draw.pick(scope.of("int", small=True))
            text = f"SELECT {key} AS id, {value} AS v FROM {table.name} {inner}{where} GROUP BY 1"
        else:
            value = self.window(family, scope)
            text = f"SELECT {inner}.id, {value} AS v FROM {table.name} {inner}{where}"
        return f"({text}) {alias}", Scope(columns, [f"{alias}.id"])

    def joined(self, alias: str) -> tuple[str, Scope]:
        """A set operation, or an outer join of two tables, as an item."""
        one, two = self.draw.pick(self.tables), self.draw.pick(self.tables)
        columns = [Column(f"{alias}.id", "int"), Column(f"{alias}.v", "int", False)]
        first, second = self.name("q"), self.name("q")
        here, there = (Scope(self.columns_of(table, name)) for table, name in ((one, first), (two, second)))
        if self.draw.chance(50):
            word = self.draw.pick(("UNION", "EXCEPT", "INTERSECT"))
            text = f"SELECT {first}.id, {self.typed('int', here)} AS v FROM {one.name} {first} {word} " \
                   f"SELECT {second}.id, {self.typed('int', there)} FROM {two.name} {second}"
            return f"({text}) {alias}", Scope(columns, [f"{alias}.id", f"{alias}.v"])
        kind = self.draw.pick(("LEFT JOIN", "FULL JOIN", "RIGHT JOIN"))
        text = f"SELECT id, {self.typed('int', here)} AS v FROM {one.name} {first} {kind} {two.name} {second} USING (id)"
        return f"({text}) {alias}", Scope(columns, [f"{alias}.id"])

    def join(self, left: str, scope: Scope, *, alone: bool) -> tuple[str, Scope]:
        """``left`` joined with one more item."""
        if self.draw.chance(8):
            return self.lateral(left, scope)
        right, other = self.item()
        if self.draw.chance(6):  # a join in brackets, on the right
            more, third = self.item()
            kind = self.draw.pick(("JOIN", "LEFT JOIN", "FULL JOIN"))
            right = f"({right} {kind} {more} ON {self.equality(other, third)})"
            other, alone = Scope(other.columns + third.columns, other.keys + third.keys), False
        both = Scope(scope.columns + other.columns, scope.keys + other.keys)
        kind = self.draw.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"))
        if kind == "CROSS JOIN":
            return f"{left} CROSS JOIN {right}", both
        if alone and _agree(scope, other) and self.draw.chance(6):
            return f"{left} NATURAL {kind} {right}", both
        if alone and self.draw.chance(15):
            return f"{left} {kind} {right} USING (id)", Scope([*both.columns, Column("id", "int")], both.keys)
        equal = self.equality(scope, other)
        # Postgres joins FULL by equalities alone.
        more = f" AND {self.boolean(both, 1)}" if kind != "FULL JOIN" and self.draw.chance(30) else ""
        if kind != "FULL JOIN" and self.draw.chance(10):
            return f"{left} {kind} {right} ON {self.boolean(both, 2)}", both
        return f"{left} {kind} {right} ON {equal}{more}", both

    def equality(self, left: Scope, right: Scope) -> str:
        """An equality of a column of each side."""
        pairs = [
            (one.name, two.name)
            for one in left.columns
            for two in right.columns
            if one.family == two.family and one.family not in ("bool", "json")
        ]
        one, two = self.draw.pick(pairs)
        return f"{one} = {two}"

    def lateral(self, left: str, scope: Scope) -> tuple[str, Scope]:
        """A subquery that uses the items before it."""
        table, inner, alias = self.draw.pick(self.tables), self.name("q"), self.name("r")
        here = Scope(self.columns_of(table, inner), [f"{inner}.id"], scope.columns)
        where = self.boolean(here, 1)
        if (lists := scope.of("ints")) and self.draw.chance(30):
            columns = [*scope.columns, Column(f"{alias}.v", "int"), Column(f"{alias}.id", "int")]
            call = f"unnest({self.draw.pick(lists)}) WITH ORDINALITY {alias}(v, id)"
            if self.draw.chance(25):
                call = f"generate_series(1::BIGINT, {self.draw.pick(scope.of('int'))} % 4) WITH ORDINALITY {alias}(v, id)"
            word = self.draw.pick((f"CROSS JOIN {call}", f"LEFT JOIN {call} ON true", f"LEFT JOIN {call} ON {alias}.v > 1"))
            return f"{left} {word}", Scope(columns, [*scope.keys, f"{alias}.id"])
        if self.draw.chance(30):
            family = self.draw.pick(FAMILIES)
            value = self.filled(self.draw.pick(AGGREGATES[family]), Scope(here.columns, here.keys))
            text = f"LATERAL (SELECT {value} AS v FROM {table.name} {inner} WHERE {where}) {alias}"
            both = Scope([*scope.columns, Column(f"{alias}.v", family, False)], scope.keys)
            return f"{left} LEFT JOIN {text} ON true" if self.draw.chance(50) else f"{left} CROSS JOIN {text}", both
        order = f"ORDER BY {inner}.id LIMIT {self.draw.pick('12')}" if self.draw.chance(70) else ""
        text = f"LATERAL (SELECT * FROM {table.name} {inner} WHERE {where} {order}) {alias}"
        both = Scope(scope.columns + self.columns_of(table, alias), [*scope.keys, f"{alias}.id"])
        return f"{left} LEFT JOIN {text} ON true" if self.draw.chance(50) else f"{left} CROSS JOIN {text}", both

    # Grouping.

    def aggregate(self, family: str, scope: Scope, *, last: bool = False) -> str:
        """An aggregate that answers the family."""
        if last and family == "dbl" and not self._is_branch and self.draw.chance(30):
            return self.filled(self.draw.pick(LAST_AGGREGATES), scope)
        text = self.filled(self.draw.pick(AGGREGATES[family]), scope)
        filtered = text.endswith(")") and "CAST(" not in text and self.draw.chance(15)
        return f"{text} FILTER (WHERE {self.boolean(scope, 1)})" if filtered else text

    def totals(self, families: Sequence[str], source: str, scope: Scope, where: str) -> str:
        """Aggregates over all rows: one row, also of none."""
        items = [self.aggregate(family, scope, last=True) for family in families]
        having = f"\nHAVING {self.having(scope)}" if self.draw.chance(15) else ""
        return f"SELECT {self._listed(items)}\nFROM {source}{where}{having}"

    def having(self, scope: Scope) -> str:
        """A condition over an aggregate."""
        match self.draw.below(4):
            case 3:
                return f"count(*) {self.draw.pick(('>', '<='))} (SELECT count(*) / 4 FROM {self.draw.pick(self.tables).name})"
            case 0:
                return f"count(*) {self.draw.pick(('>', '=', '<='))} {self.draw.pick('120')}"
            case 1:
                return f"{self.aggregate('int', scope)} > {self.draw.pick('105')}"
            case _:
                return f"{self.aggregate('dec', scope)} IS NOT NULL"

    def grouped(self, families: Sequence[str], source: str, scope: Scope, where: str) -> str:
        """Groups by one or two expressions, or by grouping sets of columns, with aggregates."""
        kinds = self.draw.some(families, 2)
        sets = self.draw.chance(25) and all(scope.of(kind) for kind in kinds)
        if sets:
            keys = [self.draw.pick(scope.of(kind)) for kind in kinds]
            text = self.draw.pick(SETS).format(", ".join(keys))
        else:
            keys = [self.expression(kind, scope, 2) for kind in kinds]
            # Their positions: an expression with a subquery is not the same expression when written again.
            text = ""
        left = list(zip(kinds, keys, strict=True))
        items, positions = [], []
        for number, family in enumerate(families, 1):
            key = next((pair for pair in left if pair[0] == family), None)
            if key:
                left.remove(key)
                positions.append(str(number))
            items.append(key[1] if key else self.aggregate(family, scope, last=True))
        text = text or ", ".join(positions)
        if sets and self.draw.chance(30) and "int" in families:
            asked = ", ".join(keys) if self.draw.chance(50) else keys[0]
            items = [f"grouping({asked})" if family == "int" and item not in keys else item
                     for family, item in zip(families, items, strict=True)]
        having = f"\nHAVING {self.having(scope)}" if self.draw.chance(25) else ""
        if not sets and not any(word in key for key in keys for word in ("SELECT", "ANY (", "ALL (")) and self.draw.chance(12):
            # A window over the groups, which its order tells apart.
            order = f"ORDER BY {', '.join(keys)}"
            inner = "count(*)" if self.draw.chance(50) else self.filled("max({int})", scope)
            items = [f"sum({inner}) OVER ({order})" if family == "dec" and item not in keys else
                     f"lag({inner}) OVER ({order})" if family == "int" and item not in keys else item
                     for family, item in zip(families, items, strict=True)]
        return f"SELECT {self._listed(items)}\nFROM {source}{where}\nGROUP BY {text}{having}"

    # Windows and DISTINCT ON.

    def windowed(self, families: Sequence[str], source: str, scope: Scope, where: str) -> str:
        """Columns of window functions among plain ones."""
        if scope.keys and self.draw.chance(20):
            return self.named_windows(families, source, scope, where)
        items = [
            self.window(family, scope) if self.draw.chance(70) else self.expression(family, scope, 1)
            for family in families
        ]
        # A window function in an expression.
        items = [f"COALESCE({item}, {self.leaf(family, scope)})" if self.draw.chance(10) else item
                 for family, item in zip(families, items, strict=True)]  # fmt: skip
        return f"SELECT {self._listed(items)}\nFROM {source}{where}"

    def named_windows(self, families: Sequence[str], source: str, scope: Scope, where: str) -> str:
        """Aggregates and neighbours over windows that WINDOW names, one made of the other."""
        one, two = self.name("w"), self.name("w")
        order = f"ORDER BY {self.leaf(self.draw.pick(FAMILIES), scope)}{self.draw.pick(SORTS)}, {', '.join(scope.keys)}"
        items = []
        for family in families:
            text = self.filled(self.draw.pick(AGGREGATES[family][:WINDOWED]), scope)
            plain = not any(word in text for word in ("DISTINCT", "ORDER BY", "CAST("))
            over = self.draw.pick((two, one, f"({two} {self.frame('ROWS')})", f"({one} {order})"))
            items.append(f"{text} OVER {over}" if plain else f"lag({self.typed(family, scope)}) OVER {two}")
        partition = f"PARTITION BY {self.leaf(self.draw.pick(FAMILIES), scope)}" if self.draw.chance(70) else ""
        return f"SELECT {self._listed(items)}\nFROM {source}{where}\nWINDOW {one} AS ({partition}), {two} AS ({one} {order})"

    def window(self, family: str, scope: Scope) -> str:
        """A window function of the family: ranks and neighbours over a total order, aggregates over any."""
        partition = ""
        if self.draw.chance(50):
            partition = f"PARTITION BY {self.leaf(self.draw.pick(FAMILIES), scope)} "
        first = f"{self.leaf(self.draw.pick(FAMILIES), scope)}{self.draw.pick(SORTS)}"
        total = f"ORDER BY {', '.join([first, *scope.keys])}"
        match self.draw.below(4):
            case 2 if ranged := [kind for kind in DISTANCES if scope.of(kind, small=True)]:
                key = self.draw.pick(ranged)
                distance = self.draw.pick(DISTANCES[key])
                text = self.filled(self.draw.pick(AGGREGATES[family][:WINDOWED]), scope)
                if not any(word in text for word in ("DISTINCT", "ORDER BY", "CAST(")):
                    order = f"{self.draw.pick(scope.of(key, small=True))}{self.draw.pick(SORTS)}"
                    frame = self.draw.pick(RANGES).replace("{}", distance)
                    return f"{text} OVER ({partition}ORDER BY {order} {frame})"
            case 0:
                text = self.filled(self.draw.pick((*AGGREGATES[family][:WINDOWED], *FRAMED.get(family, ()))), scope)
                if text.endswith(")") and self.draw.chance(15):
                    text = f"{text} FILTER (WHERE {self.boolean(scope, 1)})"
                if not any(word in text for word in ("DISTINCT", "ORDER BY", "CAST(sum")):
                    frame = self.frame()
                    order = total if "ROWS" in frame else f"ORDER BY {first}"
                    return f"{text} OVER ({partition}{order} {frame})".replace(" )", ")")
            case 1 if family == "int":
                return f"{self.draw.pick(RANKS[:4])} OVER ({partition}{total})"
            case 1 if family == "dbl":
                return f"{self.draw.pick(RANKS[4:])} OVER ({partition}ORDER BY {first})"
        function = self.draw.pick(("lag({})", "lead({})", "lag({}, 2)", "first_value({})", "last_value({})",
                                   "nth_value({}, 2)", "lead({}, 1, {})", *COLLECTED.get(family, ())))
        frame = "" if function.startswith("l") and "value" not in function else self.frame("ROWS")
        return f"{function.format(self.typed(family, scope), self.typed(family, scope))} OVER ({partition}{total} {frame})".replace(" )", ")")

    def frame(self, unit: str = "") -> str:
        """A frame of rows, of peers, or up to them, with what it leaves out; or none."""
        if not self.draw.chance(80):
            return ""
        unit = unit or self.draw.pick(("ROWS", "GROUPS", "RANGE"))
        start, end = self.draw.pick(STARTS), self.draw.pick(ENDS)
        if unit == "RANGE":
            start, end = self.draw.pick((STARTS[0], STARTS[3])), self.draw.pick((ENDS[0], ENDS[2]))
        if start == "1 FOLLOWING" and end in ("CURRENT ROW", "1 PRECEDING"):
            end = "3 FOLLOWING"
        if start == "CURRENT ROW" and end == "1 PRECEDING":
            end = "CURRENT ROW"
        bounds = start if self.draw.chance(10) and "FOLLOWING" not in start else f"BETWEEN {start} AND {end}"
        return f"{unit} {bounds}{self.draw.pick(EXCLUSIONS) if self.draw.chance(30) else ''}"

    def distinct_on(self, families: Sequence[str], source: str, scope: Scope, where: str) -> str:
        """DISTINCT ON, whose order has no ties; as a subquery, so that the query may be ordered otherwise."""
        on = self.draw.pick([each for each in scope.columns if each.family != "json"]).name
        items = [self.expression(family, scope, 1) for family in families]
        order = f"{on}{self.draw.pick(SORTS)}, {', '.join(scope.keys)}"
        inner = f"SELECT DISTINCT ON ({on}) {self._listed(items)}\nFROM {source}{where}\nORDER BY {order}"
        return f"SELECT * FROM ({inner}) {self.name('q')}"


def _agree(left: Scope, right: Scope) -> bool:
    """Whether columns of one name are of one family, as a natural join needs."""
    families = {column.name.rpartition(".")[2]: column.family for column in left.columns}
    if any(column.family == "json" and column.name.rpartition(".")[2] in families for column in right.columns):
        return False
    return all(
        families.get(column.name.rpartition(".")[2], column.family) == column.family for column in right.columns
    )
