"""SELECT, FROM and what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from lake.sql.ast.base import Name, Node
from lake.sql.ast.expr import Argument, Expr, SortItem, Window


@dataclass(frozen=True, slots=True)
class Body(Node):
    """What a query is made of before ORDER BY and LIMIT: Select, SetOperation, Values, or a Query in parentheses."""


@dataclass(frozen=True, slots=True)
class Cte(Node):
    """``name (columns) [USING KEY (keys)] AS [[NOT] MATERIALIZED] (query)``.

    materialized  None where the text does not say
    keys          of a recursive query that keeps one row a key: the key's columns, and aggregates of others
    """

    name: str
    columns: tuple[str, ...]
    query: Query
    materialized: bool | None = None
    keys: tuple[SelectItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Query(Body):
    """``WITH .. body ORDER BY .. LIMIT .. OFFSET ..``.

    order_all   ORDER BY ALL, with its direction in ``order[0]`` (an empty ``order`` is ascending)
    with_ties   FETCH FIRST n ROWS WITH TIES
    """

    body: Body
    ctes: tuple[Cte, ...] = ()
    recursive: bool = False
    order: tuple[SortItem, ...] = ()
    order_all: bool = False
    limit: Expr | None = None
    offset: Expr | None = None
    limit_percent: bool = False
    with_ties: bool = False


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """An item of the select list; ``text`` is what the user wrote, for the names of unnamed columns.

    names  of the columns of a generator: ``AS (key, value)``
    """

    expr: Expr
    alias: str | None = None
    names: tuple[str, ...] = ()
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class GroupingSets(Node):
    """``GROUPING SETS``, ``ROLLUP`` or ``CUBE`` inside GROUP BY; a set is a tuple of expressions, or nested sets.

    kind   ``grouping sets``, ``rollup`` or ``cube``; ``GROUP BY ()`` is grouping sets of one empty set
    """

    kind: str
    sets: tuple[tuple[Expr, ...] | GroupingSets, ...]


@dataclass(frozen=True, slots=True)
class Sample(Node):
    """``TABLESAMPLE method (10 PERCENT | 100 ROWS) REPEATABLE (seed)`` or ``USING SAMPLE``."""

    amount: Expr
    is_percent: bool
    method: str | None = None
    seed: Expr | None = None


@dataclass(frozen=True, slots=True)
class Select(Body):
    """``SELECT [DISTINCT [ON (..)]] items FROM .. WHERE .. GROUP BY .. HAVING .. WINDOW .. QUALIFY ..``.

    sources       FROM items parted by commas
    group_all     GROUP BY ALL
    """

    items: tuple[SelectItem, ...]
    sources: tuple[Source, ...] = ()
    distinct: bool = False
    distinct_on: tuple[Expr, ...] = ()
    where: Expr | None = None
    group: tuple[Expr | GroupingSets, ...] = ()
    group_all: bool = False
    having: Expr | None = None
    windows: tuple[tuple[str, Window], ...] = ()
    qualify: Expr | None = None
    sample: Sample | None = None


class SetKind(Enum):
    """Which set operation."""

    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(frozen=True, slots=True)
class SetOperation(Body):
    """``left UNION [ALL] [BY NAME] right``."""

    kind: SetKind
    all: bool
    left: Body
    right: Body
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Values(Body):
    """``VALUES (1, 'a'), (2, 'b')``; the rows of a long INSERT are ``lake.sql.plain_rows``."""

    rows: Sequence[tuple[Expr, ...]]


# --- FROM ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source(Node):
    """An item of FROM."""


@dataclass(frozen=True, slots=True)
class Alias(Node):
    """``AS name (columns)``."""

    name: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeTravel(Node):
    """``AT (VERSION => n)``, ``TIMESTAMP AS OF ..`` and the like; ``kind`` is version, timestamp or offset."""

    kind: str
    value: Expr


@dataclass(frozen=True, slots=True)
class TableSource(Source):
    """A table, view or CTE by name."""

    name: Name
    alias: Alias | None = None
    at: TimeTravel | None = None
    sample: Sample | None = None


@dataclass(frozen=True, slots=True)
class FileSource(Source):
    """``FROM 'file.parquet'``: the reader is chosen by the extension."""

    path: str
    alias: Alias | None = None
    sample: Sample | None = None


@dataclass(frozen=True, slots=True)
class FunctionSource(Source):
    """``[LATERAL] f(args) [WITH ORDINALITY] AS t(a, b)``; ``unnest(..)`` too."""

    name: Name
    arguments: tuple[Argument, ...]
    alias: Alias | None = None
    ordinality: bool = False
    sample: Sample | None = None


@dataclass(frozen=True, slots=True)
class SubquerySource(Source):
    """``[LATERAL] (query) AS t(a, b)``."""

    query: Query
    alias: Alias | None = None
    lateral: bool = False
    sample: Sample | None = None


class JoinKind(Enum):
    """Which rows without a partner stay."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    CROSS = "CROSS"
    SEMI = "SEMI"
    ANTI = "ANTI"


@dataclass(frozen=True, slots=True)
class JoinSource(Source):
    """``left [NATURAL] kind JOIN right ON condition | USING (columns)``; with ``alias`` where it stands in parentheses.

    asof   ASOF JOIN; ``match`` holds the condition of MATCH_CONDITION where that form is written
    """

    kind: JoinKind
    left: Source
    right: Source
    on: Expr | None = None
    using: tuple[str, ...] = ()
    natural: bool = False
    asof: bool = False
    match: Expr | None = None
    alias: Alias | None = None


@dataclass(frozen=True, slots=True)
class Pivot(Source):
    """``PIVOT t ON columns IN (..) USING aggregates GROUP BY ..`` and ``t PIVOT (agg FOR c IN (..))``.

    ``on`` pairs an expression with its values, empty where the values are to be found.
    """

    source: Source
    on: tuple[tuple[Expr, tuple[SelectItem, ...]], ...]
    using: tuple[SelectItem, ...]
    group: tuple[Expr, ...]
    alias: Alias | None = None


@dataclass(frozen=True, slots=True)
class Unpivot(Source):
    """``UNPIVOT t ON a, b INTO NAME n VALUE v`` and ``t UNPIVOT [INCLUDE NULLS] (v FOR n IN (a, b))``."""

    source: Source
    columns: tuple[SelectItem, ...]
    name: str
    values: tuple[str, ...]
    include_nulls: bool = False
    alias: Alias | None = None
