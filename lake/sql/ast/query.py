"""SELECT, FROM and what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from lake.sql.ast.base import Name, Node
from lake.sql.ast.expr import Argument, Expr, SortItem, Window


class Body(Node, frozen=True):
    """What a query is made of before ORDER BY and LIMIT: Select, SetOperation, Values, or a Query in parentheses."""


class Cte(Node, frozen=True):
    """``name (columns) [USING KEY (keys)] AS [[NOT] MATERIALIZED] (query)``.

    materialized  None where the text does not say
    keys          of a recursive query that keeps one row a key: the key's columns, and aggregates of others
    """

    name: str
    columns: tuple[str, ...]
    query: Query
    materialized: bool | None = None
    keys: tuple[SelectItem, ...] = ()


class Query(Body, frozen=True):
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


class SelectItem(Node, frozen=True):
    """An item of the select list; ``text`` is what the user wrote, for the names of unnamed columns.

    names  of the columns of a generator: ``AS (key, value)``
    """

    expr: Expr
    alias: str | None = None
    names: tuple[str, ...] = ()
    text: str = ""

    uncompared: ClassVar[tuple[str, ...]] = ("span", "text")


class GroupingSets(Node, frozen=True):
    """``GROUPING SETS``, ``ROLLUP`` or ``CUBE`` inside GROUP BY; a set is a tuple of expressions, or nested sets.

    kind   ``grouping sets``, ``rollup`` or ``cube``; ``GROUP BY ()`` is grouping sets of one empty set
    """

    kind: str
    sets: tuple[tuple[Expr, ...] | GroupingSets, ...]


class Sample(Node, frozen=True):
    """``TABLESAMPLE method (10 PERCENT | 100 ROWS) REPEATABLE (seed)`` or ``USING SAMPLE``."""

    amount: Expr
    is_percent: bool
    method: str | None = None
    seed: Expr | None = None


class Select(Body, frozen=True):
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


class SetOperation(Body, frozen=True):
    """``left UNION [ALL] [BY NAME] right``."""

    kind: SetKind
    all: bool
    left: Body
    right: Body
    by_name: bool = False


class Values(Body, frozen=True):
    """``VALUES (1, 'a'), (2, 'b')``; the rows of a long INSERT are ``lake.sql.plain_rows``."""

    rows: Sequence[tuple[Expr, ...]]


# --- FROM ------------------------------------------------------------------------------------------------------------


class Source(Node, frozen=True):
    """An item of FROM."""


class Alias(Node, frozen=True):
    """``AS name (columns)``."""

    name: str
    columns: tuple[str, ...] = ()


class TimeTravel(Node, frozen=True):
    """``AT (VERSION => n)``, ``TIMESTAMP AS OF ..`` and the like; ``kind`` is version, timestamp or offset."""

    kind: str
    value: Expr


class TableSource(Source, frozen=True):
    """A table, view or CTE by name."""

    name: Name
    alias: Alias | None = None
    at: TimeTravel | None = None
    sample: Sample | None = None


class FileSource(Source, frozen=True):
    """``FROM 'file.parquet'``: the reader is chosen by the extension."""

    path: str
    alias: Alias | None = None
    sample: Sample | None = None


class FunctionSource(Source, frozen=True):
    """``[LATERAL] f(args) [WITH ORDINALITY] AS t(a, b)``; ``unnest(..)`` too."""

    name: Name
    arguments: tuple[Argument, ...]
    alias: Alias | None = None
    ordinality: bool = False
    sample: Sample | None = None


class SubquerySource(Source, frozen=True):
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


class JoinSource(Source, frozen=True):
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


class Pivot(Source, frozen=True):
    """``PIVOT t ON columns IN (..) USING aggregates GROUP BY ..`` and ``t PIVOT (agg FOR c IN (..))``.

    ``on`` pairs an expression with its values, empty where the values are to be found.
    """

    source: Source
    on: tuple[tuple[Expr, tuple[SelectItem, ...]], ...]
    using: tuple[SelectItem, ...]
    group: tuple[Expr, ...]
    alias: Alias | None = None


class Unpivot(Source, frozen=True):
    """``UNPIVOT t ON a, b INTO NAME n VALUE v`` and ``t UNPIVOT [INCLUDE NULLS] (v FOR n IN (a, b))``."""

    source: Source
    columns: tuple[SelectItem, ...]
    name: str
    values: tuple[str, ...]
    include_nulls: bool = False
    alias: Alias | None = None
