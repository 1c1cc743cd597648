"""Builders of ``table.lark``."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lake.errors import FeatureNotSupported
from lake.sql import ast
from lake.sql.build.base import BaseBuild

Value = str | int | float | bool | tuple[str, ...]
Clause = ast.LayoutClause | tuple[ast.Option, ...]
Clauses = tuple[Clause, ...]


class Head(Struct, frozen=True):
    """``CREATE OR REPLACE TEMPORARY TABLE t``."""

    name: ast.Name
    if_taken: ast.IfTaken
    temporary: bool


class TableBuild(BaseBuild):
    """Statements that make and drop tables, views and schemas."""

    # --- CREATE TABLE ---

    def create_table_head(self, *parts: Any) -> Head:
        """``CREATE OR REPLACE TABLE IF NOT EXISTS t``."""
        or_replace, temporary, if_not_exists, name = parts
        return Head(name, self._if_taken(or_replace, if_not_exists, can_alter=True), temporary is not None)

    def create_table(self, head: Head, *parts: Any) -> ast.Statement:
        """``CREATE TABLE t (..) WITH (..)``."""
        *elements, clauses = parts
        return self._table(head, elements, clauses)

    def create_empty_table(self, head: Head) -> ast.Statement:
        """``CREATE TABLE t``: no columns yet."""
        return self._table(head, [], ())

    def create_table_as(self, head: Head, clauses: Clauses, query: ast.Query, with_data: str | None) -> ast.Statement:
        """``CREATE TABLE t AS SELECT ..``."""
        return self._table(head, [], clauses, query=query, with_data=with_data != "with no data")

    def create_table_columns_as(self, head: Head, *parts: Any) -> ast.Statement:
        """``CREATE TABLE t (a INT) AS SELECT ..``."""
        *elements, clauses, query, with_data = parts
        return self._table(head, elements, clauses, query=query, with_data=with_data != "with no data")

    def create_table_like(self, head: Head, like: ast.Name) -> ast.Statement:
        """``CREATE TABLE t LIKE s``."""
        return self._table(head, [], (), like=like)

    def create_table_clone(self, head: Head, clone: ast.Name) -> ast.Statement:
        """``CREATE TABLE t CLONE s``."""
        if head.if_taken is ast.IfTaken.ALTER:
            raise FeatureNotSupported("CREATE OR ALTER TABLE takes columns alone", position=self.start + 1)
        if head.temporary:
            raise FeatureNotSupported("a temporary clone is not supported", position=self.start + 1)
        return ast.CreateClone(head.name, clone, head.if_taken)

    def _table(self, head: Head, elements: list[ast.Node], clauses: Clauses, **rest: Any) -> ast.Statement:
        columns = tuple(element for element in elements if isinstance(element, ast.ColumnDefinition))
        constraints = tuple(element for element in elements if isinstance(element, ast.TableConstraint))
        options = [option for clause in clauses if isinstance(clause, tuple) for option in clause]
        layout = [clause for clause in clauses if isinstance(clause, ast.LayoutClause)]
        for kind, count in Counter([clause.kind for clause in layout]).items():
            if count > 1:
                raise self._failure(f"{kind.upper()} is written twice")
        is_altered = head.if_taken is ast.IfTaken.ALTER
        if is_altered and (rest or head.temporary):
            raise FeatureNotSupported("CREATE OR ALTER TABLE takes columns alone", position=self.start + 1)
        made = ast.CreateTable(
            head.name,
            columns,
            constraints,
            tuple(options),
            tuple(layout),
            if_taken=head.if_taken,
            temporary=head.temporary,
            **rest,
        )
        return ast.CreateOrAlterTable(made) if is_altered else made

    # --- columns and constraints ---

    def column_definition(
        self, name: str, type_name: ast.TypeName, *constraints: dict[str, Any] | ast.TableConstraint
    ) -> ast.ColumnDefinition:
        """``a INT NOT NULL DEFAULT 1``."""
        changes: dict[str, Any] = {}
        for constraint in constraints:
            if isinstance(constraint, dict):
                for key, value in constraint.items():
                    if changes.get(key, value) != value or (key in ("default", "identity") and key in changes):
                        raise self._failure(f'conflicting constraints for column "{name}"')
                changes.update(constraint)
        rules = tuple(constraint for constraint in constraints if isinstance(constraint, ast.TableConstraint))
        return ast.ColumnDefinition(name, type_name, rules=rules, **changes)

    def not_null(self) -> dict[str, Any]:
        """``NOT NULL``."""
        return {"not_null": True}

    def named_not_null(self, name: str) -> dict[str, Any]:
        """``CONSTRAINT c NOT NULL``: the name is not kept."""
        return {"not_null": True}

    def nullable(self) -> dict[str, Any]:
        """``NULL``."""
        return {"not_null": False}

    def column_default(self, spoken: tuple[ast.Expr, str]) -> dict[str, Any]:
        """``DEFAULT a``."""
        expr, text = spoken
        return {"default": expr, "default_text": text}

    def always_identity(self, options: tuple[ast.SequenceOption, ...] | None) -> dict[str, Any]:
        """``GENERATED ALWAYS AS IDENTITY (START WITH 10)``."""
        return {"identity": ast.Identity("always", options or ())}

    def default_identity(self, options: tuple[ast.SequenceOption, ...] | None) -> dict[str, Any]:
        """``GENERATED BY DEFAULT AS IDENTITY``."""
        return {"identity": ast.Identity("by default", options or ())}

    def counting(self, start: int | None = None, step: int | None = None) -> dict[str, Any]:
        """``AUTO_INCREMENT``, ``IDENTITY(1, 1)``."""
        if start is None or step is None:
            return self.default_identity(())
        return self.default_identity((ast.SequenceOption("start", start), ast.SequenceOption("increment", step)))

    def option_list(self, *options: ast.SequenceOption) -> tuple[ast.SequenceOption, ...]:
        """``(START WITH 1 INCREMENT BY 2)``."""
        return options

    def column_merge(self, function: str) -> dict[str, Any]:
        """``MERGE sum``."""
        return {"merge": function}

    def primary_key(self, enforced: str | None) -> ast.TableConstraint:
        """``PRIMARY KEY NOT ENFORCED`` of a column."""
        return self.primary_key_of((), enforced)

    def primary_key_of(self, columns: tuple[str, ...], enforced: str | None) -> ast.TableConstraint:
        """``PRIMARY KEY (a, b) NOT ENFORCED``."""
        return ast.TableConstraint("primary key", columns=columns, not_enforced=enforced == "not enforced")

    def unique(self, nulls: None, enforced: str | None) -> ast.TableConstraint:
        """``UNIQUE`` of a column."""
        return self.unique_of(nulls, (), enforced)

    def unique_of(self, nulls: None, columns: tuple[str, ...], enforced: str | None) -> ast.TableConstraint:
        """``UNIQUE (a, b)``."""
        return ast.TableConstraint("unique", columns=columns, not_enforced=enforced == "not enforced")

    def check(self, spoken: tuple[ast.Expr, str], enforced: str | None) -> ast.TableConstraint:
        """``CHECK (a > b)``."""
        expr, text = spoken
        return ast.TableConstraint("check", condition=expr, condition_text=text, not_enforced=enforced == "not enforced")

    def references(
        self, table: ast.Name, columns: tuple[str, ...] | None, rule: None, enforced: str | None
    ) -> ast.TableConstraint:
        """``REFERENCES u (a) NOT ENFORCED`` of a column."""
        return self.foreign_key((), table, columns, rule, enforced)

    def foreign_key(
        self,
        columns: tuple[str, ...],
        table: ast.Name,
        target_columns: tuple[str, ...] | None,
        rule: None,
        enforced: str | None,
    ) -> ast.TableConstraint:
        """``FOREIGN KEY (a) REFERENCES u (b) NOT ENFORCED``.

        0A000  without NOT ENFORCED. Spec: SQL, Constraints and defaults 4
        """
        if enforced != "not enforced":
            raise FeatureNotSupported(
                "FOREIGN KEY must say NOT ENFORCED: it is kept as a fact for tools and checks nothing",
                position=self.start + 1,
            )
        return ast.TableConstraint(
            "foreign key", columns=columns, not_enforced=True, target=table, target_columns=target_columns or ()
        )

    def no_reference_rule(self, word: str) -> None:
        """0A000: ``ON DELETE CASCADE``."""
        raise FeatureNotSupported(
            f"{self._words().upper()} is not supported: a FOREIGN KEY is not enforced", position=self.start + 1
        )

    def nulls_not_distinct(self) -> None:
        """0A000: ``UNIQUE NULLS NOT DISTINCT``."""
        raise FeatureNotSupported("UNIQUE NULLS NOT DISTINCT is not supported: NULLs differ", position=self.start + 1)

    def deferrable(self, words: str) -> None:
        """0A000: ``DEFERRABLE``."""
        raise FeatureNotSupported(
            f"{words.upper()} is not supported: constraints are checked by each statement", position=self.start + 1
        )

    def named_constraint(self, name: str, rule: ast.TableConstraint) -> ast.TableConstraint:
        """``CONSTRAINT c UNIQUE (a)``."""
        return replace(rule, name=name, span=None)

    # --- layout and options ---

    def table_clauses(self, *clauses: Clause) -> Clauses:
        """``CLUSTER BY (a) WITH (b = 1)``."""
        return clauses

    def table_clause(self, clause: ast.LayoutClause) -> ast.LayoutClause:
        """``CLUSTER BY (a)``."""
        return clause

    def partition_by_clause(self, expr: ast.Expr) -> ast.LayoutClause:
        """``PARTITION BY day(ts)``."""
        return ast.LayoutClause("partition by", expr=expr)

    def cluster_by(self, columns: tuple[str, ...]) -> ast.LayoutClause:
        """``CLUSTER BY (a, b)``."""
        return ast.LayoutClause("cluster by", columns)

    def sequence_by(self, column: str) -> ast.LayoutClause:
        """``SEQUENCE BY a``."""
        return ast.LayoutClause("sequence by", (column,))

    def time_to_live(self, expr: ast.Expr) -> ast.LayoutClause:
        """``TTL a + INTERVAL '1 day'``."""
        return ast.LayoutClause("ttl", expr=expr)

    def table_options(self, *options: ast.Option) -> tuple[ast.Option, ...]:
        """``WITH (a = 1, b = 'x')``."""
        return options

    def option(self, name: str, value: Value | Decimal) -> ast.Option:
        """``a = 1``."""
        match value:
            case Decimal():
                return ast.Option(name, float(value))
            case "true" | "false":
                return ast.Option(name, value == "true")
            case _:
                return ast.Option(name, value)

    def list_option(self, name: str, *words: str) -> ast.Option:
        """``a = (x, y)``."""
        return ast.Option(name, words)

    def option_name(self, *labels: str) -> str:
        """``a.b``."""
        return ".".join(labels)

    def negative_number(self, value: int | Decimal) -> int | Decimal:
        """``-1``."""
        return -value

    # --- external tables ---

    def create_external(self, or_replace: Any, words: str, if_not_exists: Any, name: ast.Name, *parts: Any) -> ast.Statement:
        """``CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION 'a.csv'``."""
        elements, *clauses = parts
        columns = tuple(element for element in elements or () if isinstance(element, ast.ColumnDefinition))
        given = self._clauses(tuple(clauses))
        typed = given.pop("typed", ())
        return ast.CreateExternal(name, columns + typed, if_taken=self._if_taken(or_replace, if_not_exists), **given)

    def element_list(self, *elements: ast.Node) -> tuple[ast.Node, ...]:
        """``(a INT, CHECK (a > 0))``."""
        return elements

    def location(self, place: str) -> dict[str, Any]:
        """``LOCATION 'a.csv'``."""
        return {"location": place}

    def partitioned_by(self, *partitions: Any) -> dict[str, Any]:
        """``PARTITIONED BY (a, b INT)``."""
        typed = tuple(item for item in partitions if isinstance(item, ast.ColumnDefinition))
        names = tuple(item.name if isinstance(item, ast.ColumnDefinition) else item for item in partitions)
        return {"partitions": names, "typed": typed}

    def typed_partition(self, name: str, type_name: ast.TypeName) -> ast.ColumnDefinition:
        """``b INT``."""
        return ast.ColumnDefinition(name, type_name)

    def with_order(self, *keys: ast.SortItem) -> dict[str, Any]:
        """``WITH ORDER (a)``: a promise that nothing here relies on."""
        return {"options": ()}

    def header_row(self) -> dict[str, Any]:
        """``WITH HEADER ROW``."""
        return {"options": (ast.Option("format.has_header", True),)}

    def delimiter(self, sign: str) -> dict[str, Any]:
        """``DELIMITER ';'``."""
        return {"options": (ast.Option("format.delimiter", sign),)}

    def compression(self, word: str) -> dict[str, Any]:
        """``COMPRESSION TYPE GZIP``."""
        return {"options": (ast.Option("format.compression", word),)}

    # --- views, schemas, DROP ---

    def create_view(self, *parts: Any) -> ast.Statement:
        """``CREATE VIEW v (a, b) AS SELECT ..``."""
        or_replace, temporary, if_not_exists, name, columns, (query, text) = parts
        if_taken = self._if_taken("or replace" if or_replace else None, if_not_exists)
        return ast.CreateView(name, columns or (), query, text, if_taken, temporary is not None)

    def create_schema(self, if_not_exists: str | None, name: str) -> ast.Statement:
        """``CREATE SCHEMA s``."""
        return ast.CreateSchema(name, self._if_taken(None, if_not_exists))

    def drop(self, kind: str, if_exists: str | None, *parts: Any) -> ast.Statement:
        """``DROP TABLE IF EXISTS a, b CASCADE``."""
        *names, behaviour = parts
        if behaviour == "purge" and kind != "table":
            raise self._failure("PURGE goes with DROP TABLE")
        return ast.Drop(kind, tuple(names), if_exists is not None, behaviour == "cascade", behaviour == "purge")

    def undrop(self, table: ast.Name) -> ast.Statement:
        """``UNDROP TABLE t``."""
        return ast.Undrop(table)

    def restore(self, table: ast.Name, words: str, value: ast.Expr) -> ast.Statement:
        """``RESTORE TABLE t TO VERSION AS OF 3``."""
        return ast.Restore(table, ast.TimeTravel("version" if "version" in words else "timestamp", value))
