"""Builders of ``dml.lark``."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lake.sql import ast
from lake.sql.build.base import BaseBuild

Items = tuple[ast.SelectItem, ...] | None
Conflict = ast.Conflict | None


class DmlBuild(BaseBuild):
    """Statements that write rows."""

    def insert(
        self,
        how: str,
        table: ast.Name,
        by: str | None,
        overriding: str | None,
        query: ast.Query,
        conflict: Conflict,
        returning: Items,
    ) -> ast.Statement:
        """``INSERT INTO t BY NAME SELECT ..``."""
        made = self._conflict(how, conflict)
        return ast.Insert(table, (), query, by == "by name", returning or (), made, _overridden(overriding))

    def insert_columns(
        self,
        how: str,
        table: ast.Name,
        columns: tuple[str, ...],
        overriding: str | None,
        query: ast.Query,
        conflict: Conflict,
        returning: Items,
    ) -> ast.Statement:
        """``INSERT INTO t (a, b) VALUES ..``."""
        made = self._conflict(how, conflict)
        return ast.Insert(table, columns, query, False, returning or (), made, _overridden(overriding))

    def insert_defaults(self, how: str, table: ast.Name, conflict: Conflict, returning: Items) -> ast.Statement:
        """``INSERT INTO t DEFAULT VALUES``."""
        return ast.Insert(table, (), None, False, returning or (), self._conflict(how, conflict))

    def _conflict(self, how: str, conflict: Conflict) -> Conflict:
        """What ``INSERT OR IGNORE`` or ON CONFLICT says of rows whose key is there."""
        if how == "insert into":
            return conflict
        if conflict is not None:
            raise self._failure(f"{how.upper()} and ON CONFLICT do not go together")
        return ast.Conflict("replace" if "replace" in how else "nothing")

    def default(self) -> ast.Expr:
        """``DEFAULT`` in VALUES."""
        return ast.Default()

    # --- COPY ---

    def copy(self, source: ast.Name | ast.Query, target: str, *clauses: dict[str, Any]) -> ast.Statement:
        """``COPY t TO 'a.csv' STORED AS CSV``."""
        return ast.Copy(source, target, **self._clauses(clauses))

    def stored_as(self, word: str) -> dict[str, Any]:
        """``STORED AS CSV``."""
        return {"format": word.lower()}

    def copy_partitions(self, columns: tuple[str, ...]) -> dict[str, Any]:
        """``PARTITIONED BY (a, b)``."""
        return {"partitions": columns}

    def external_options(self, *options: ast.Option) -> dict[str, Any]:
        """``OPTIONS ('a' 'b')``."""
        return {"options": options}

    def copy_options(self, *options: ast.Option | None) -> dict[str, Any]:
        """``(FORMAT csv, HEADER)``."""
        made: dict[str, Any] = {}
        rest: list[ast.Option] = []
        for option in options:
            if option is None:
                continue
            if option.name == "format":
                made["format"] = str(option.value).lower()
            elif option.name == "partition_by":
                made["partitions"] = option.value if isinstance(option.value, tuple) else (str(option.value),)
            else:
                rest.append(option)
        return {**made, "options": tuple(rest)}

    def external_option(self, name: str, value: Any) -> ast.Option:
        """``'format.delimiter' ';'``; names are one whatever their case."""
        if isinstance(value, Decimal):
            value = float(value)
        return ast.Option(name.lower(), {"true": True, "false": False}.get(str(value).lower(), value))

    def names_option(self, name: str, names: tuple[str, ...]) -> ast.Option:
        """``PARTITION_BY (a, b)``."""
        return ast.Option(name.lower(), names)

    def flag_option(self, name: str) -> ast.Option:
        """``HEADER``."""
        return ast.Option(name.lower(), True)

    def truncate(self, *parts: ast.Name) -> ast.Statement:
        """``TRUNCATE TABLE a, b``."""
        return ast.Truncate(tuple(part for part in parts if isinstance(part, ast.Name)))


def _overridden(words: str | None) -> str:
    return words.split(" ")[1] if words else ""
