"""What is thought of a node's rows and of its columns' values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lake.sql.catalog import Table
from lake.storage.catalog.statistics import TableStatistics


class ColumnEstimate(Struct, frozen=True):
    """What is thought of a column's values; None where nothing is. ``min`` and ``max`` are physical values.

    table_rows  rows of the table the column comes from
    domain      distinct values before any filter
    """

    distinct: float | None = None
    null_fraction: float = 0.0
    min: object | None = None
    max: object | None = None
    table_rows: float | None = None
    domain: float | None = None


class Estimate(Struct, frozen=True):
    """Rows of a node, and its columns by id."""

    rows: float
    columns: Mapping[int, ColumnEstimate]

    def distinct(self, column: int) -> float:
        """Distinct values of a column: at least one, at most one for each row."""
        found = self.columns.get(column)
        known = None if found is None else found.distinct
        return max(1.0, min(self.rows if known is None else known, self.rows))

    def domain(self, column: int) -> float:
        """Distinct values of a column before any filter."""
        found = self.columns.get(column)
        known = None if found is None else found.domain
        return max(self.distinct(column), known or 0.0)

    def knows(self, column: int) -> bool:
        """Whether the number of distinct values is more than a guess."""
        found = self.columns.get(column)
        return found is not None and found.distinct is not None

    def table_rows(self, columns: Sequence[int]) -> float:
        """Rows of the table that ``columns`` come from; of none or several, the rows at hand."""
        known = {self.columns[id].table_rows if id in self.columns else None for id in columns}
        found = known.pop() if len(known) == 1 else None
        return self.rows if found is None else found

    def scaled(self, fraction: float) -> Estimate:
        """The estimate of ``fraction`` of the rows, taken without regard to values."""
        rows = max(self.rows * fraction, 0.0)
        return Estimate(rows, thin(self.columns, self.rows, rows))


class TableColumns(dict[str, ColumnEstimate]):
    """Columns of a table by name, each worked out of its statistics when it is asked for.

    rows   of the table
    names  columns of which anything is known
    """

    __slots__ = ("_known", "_unique", "names", "rows")

    def __init__(self, known: TableStatistics, unique: frozenset[str]) -> None:
        super().__init__()
        self._known, self._unique = known, unique
        self.names = unique.union(known.columns)
        self.rows = max(known.rows, 0.0)

    @staticmethod
    def of(table: Table) -> TableColumns:
        """The columns of ``table``."""
        return TableColumns(table.statistics(), frozenset([names[0] for names in table.unique if len(names) == 1]))

    def __missing__(self, name: str) -> ColumnEstimate:
        found, rows = self._known.columns.get(name), self._known.rows
        if found is None:
            made = ColumnEstimate(table_rows=rows)
        else:
            made = ColumnEstimate(found.distinct, found.null_fraction or 0.0, found.min, found.max, rows, found.distinct)
        if name in self._unique:
            made = replace(made, distinct=rows, domain=rows)
        self[name] = made
        return made


class Columns(Mapping[int, ColumnEstimate]):
    """Columns by id. ``get`` is what is asked: a column that is not there is no exception, which takes ten times as long."""

    __slots__ = ()

    def get(self, id: int, default: Any = None) -> Any:
        """The column; ``default`` where it is not there."""
        raise NotImplementedError

    def __getitem__(self, id: int) -> ColumnEstimate:
        found: ColumnEstimate | None = self.get(id)
        if found is None:
            raise KeyError(id)
        return found


class Scanned(Columns):
    """Columns of a scan: those of its table by the ids they have there."""

    __slots__ = ("_names", "_table")

    def __init__(self, names: dict[int, str], table: TableColumns) -> None:
        self._names, self._table = names, table

    def get(self, id: int, default: Any = None) -> Any:
        """The column; ``default`` where it is not there."""
        name = self._names.get(id)
        return default if name is None else self._table[name]

    def __contains__(self, id: object) -> bool:
        return id in self._names

    def __iter__(self) -> Iterator[int]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Changed(Columns):
    """Columns that differ from those of another node, each worked out when it is asked for: most never are."""

    __slots__ = ("_change", "_columns", "_made")

    def __init__(
        self, columns: Mapping[int, ColumnEstimate], change: Callable[[ColumnEstimate], ColumnEstimate]
    ) -> None:
        self._columns, self._change = columns, change
        self._made: dict[int, ColumnEstimate] = {}

    def get(self, id: int, default: Any = None) -> Any:
        """The column; ``default`` where it is not there."""
        found = self._made.get(id)
        if found is None:
            before = self._columns.get(id)
            if before is None:
                return default
            found = self._made[id] = self._change(before)
        return found

    def __contains__(self, id: object) -> bool:
        return id in self._columns

    def __iter__(self) -> Iterator[int]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Both(Columns):
    """The columns of two inputs; those of ``upper`` stand before those of ``lower``."""

    __slots__ = ("_lower", "_upper")

    def __init__(self, upper: Mapping[int, ColumnEstimate], lower: Mapping[int, ColumnEstimate]) -> None:
        self._upper, self._lower = upper, lower

    def get(self, id: int, default: Any = None) -> Any:
        """The column; ``default`` where it is not there."""
        found = self._upper.get(id)
        return self._lower.get(id, default) if found is None else found

    def __contains__(self, id: object) -> bool:
        return id in self._upper or id in self._lower

    def __iter__(self) -> Iterator[int]:
        yield from self._upper
        yield from (id for id in self._lower if id not in self._upper)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def thin(columns: Mapping[int, ColumnEstimate], before: float, after: float) -> Mapping[int, ColumnEstimate]:
    """Columns of which ``after`` of ``before`` rows are left."""
    return columns if after >= before else Changed(columns, lambda column: thinned(column, before, after))


def thinned(column: ColumnEstimate, before: float, after: float) -> ColumnEstimate:
    """A column of which ``after`` of ``before`` rows are left: a value goes when all of its rows go."""
    if column.distinct is None or after >= before or before <= 0:
        return column
    repeats = max(before / max(column.distinct, 1.0), 1.0)
    left = column.distinct * (1.0 - (1.0 - after / before) ** repeats)
    made = max(min(left, after), 1.0)
    return ColumnEstimate(made, column.null_fraction, column.min, column.max, column.table_rows, column.domain)
