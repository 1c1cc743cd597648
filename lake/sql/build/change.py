"""Builders of ``change.lark``."""

from __future__ import annotations

from msgspec.structs import replace

from lake.sql import ast
from lake.sql.build.base import BaseBuild

Items = tuple[ast.SelectItem, ...]


class ChangeBuild(BaseBuild):
    """Statements that change rows that are there, and tables that hold rows."""

    # --- UPDATE, DELETE, MERGE ---

    def update(
        self,
        table: ast.Name,
        alias: ast.Alias | None,
        assignments: tuple[ast.Assignment, ...],
        sources: tuple[ast.Source, ...] | None,
        where: ast.Expr | None,
        returning: Items | None,
    ) -> ast.Statement:
        """``UPDATE t SET a = 1 FROM o WHERE b``."""
        return ast.Update(table, assignments, alias, sources or (), where, returning or ())

    def delete(
        self,
        table: ast.Name,
        alias: ast.Alias | None,
        sources: tuple[ast.Source, ...] | None,
        where: ast.Expr | None,
        returning: Items | None,
    ) -> ast.Statement:
        """``DELETE FROM t USING o WHERE a``."""
        return ast.Delete(table, alias, sources or (), where, returning or ())

    def source_list(self, *sources: ast.Source) -> tuple[ast.Source, ...]:
        """``USING a, b``."""
        return sources

    def assignments(self, *parts: ast.Assignment) -> tuple[ast.Assignment, ...]:
        """``a = 1, b = DEFAULT``."""
        return parts

    def assignment(self, column: str, value: ast.Expr) -> ast.Assignment:
        """``a = 1``."""
        return ast.Assignment(column, value)

    def returning(self, items: Items) -> Items:
        """``RETURNING a, b``."""
        return items

    def merge(
        self, table: ast.Name, alias: ast.Alias | None, source: ast.Source, on: ast.Expr, *parts: ast.MergeClause | Items
    ) -> ast.Statement:
        """``MERGE INTO t USING s ON a WHEN ..``."""
        clauses = tuple(part for part in parts if isinstance(part, ast.MergeClause))
        returning = next((part for part in parts if isinstance(part, tuple)), ())
        return ast.Merge(table, source, on, clauses, alias, returning)

    def merge_update(
        self, when: str, condition: ast.Expr | None, assignments: tuple[ast.Assignment, ...]
    ) -> ast.MergeClause:
        """``WHEN MATCHED THEN UPDATE SET a = 1``."""
        return self._clause(when, condition, "update", assignments=assignments)

    def merge_delete(self, when: str, condition: ast.Expr | None) -> ast.MergeClause:
        """``WHEN MATCHED THEN DELETE``."""
        return self._clause(when, condition, "delete")

    def merge_nothing(self, when: str, condition: ast.Expr | None) -> ast.MergeClause:
        """``WHEN MATCHED THEN DO NOTHING``."""
        return self._clause(when, condition, "do nothing")

    def merge_insert(self, when: str, condition: ast.Expr | None, values: tuple[ast.Expr, ...]) -> ast.MergeClause:
        """``WHEN NOT MATCHED THEN INSERT VALUES (1)``."""
        return self._clause(when, condition, "insert", values=values)

    def merge_insert_columns(
        self, when: str, condition: ast.Expr | None, columns: tuple[str, ...], values: tuple[ast.Expr, ...]
    ) -> ast.MergeClause:
        """``WHEN NOT MATCHED THEN INSERT (a) VALUES (1)``."""
        return self._clause(when, condition, "insert", columns=columns, values=values)

    def merge_insert_defaults(self, when: str, condition: ast.Expr | None) -> ast.MergeClause:
        """``WHEN NOT MATCHED THEN INSERT DEFAULT VALUES``."""
        return self._clause(when, condition, "insert", values=None)

    def values_of(self, values: tuple[ast.Expr, ...]) -> tuple[ast.Expr, ...]:
        """``VALUES (1, 2)``."""
        return values

    def _clause(
        self,
        when: str,
        condition: ast.Expr | None,
        action: str,
        *,
        assignments: tuple[ast.Assignment, ...] = (),
        columns: tuple[str, ...] = (),
        values: tuple[ast.Expr, ...] | None = (),
    ) -> ast.MergeClause:
        kind = when.removeprefix("when ").removesuffix(" by target")
        if (action == "insert") != (kind == "not matched") and action != "do nothing":
            raise self._failure(f"WHEN {kind.upper()} cannot {action.upper()}")
        return ast.MergeClause(kind, condition, action, assignments, columns, values)

    def on_conflict(self, columns: tuple[str, ...] | None, conflict: ast.Conflict) -> ast.Conflict:
        """``ON CONFLICT (a) DO NOTHING``."""
        return replace(conflict, columns=columns or (), span=None)

    def conflict_nothing(self) -> ast.Conflict:
        """``DO NOTHING``."""
        return ast.Conflict("nothing")

    def conflict_update(self, assignments: tuple[ast.Assignment, ...], where: ast.Expr | None) -> ast.Conflict:
        """``DO UPDATE SET a = 1 WHERE b``."""
        return ast.Conflict("update", (), assignments, where)

    # --- ALTER TABLE and COMMENT ---

    def alter_table(self, if_exists: str | None, table: ast.Name, action: ast.AlterAction) -> ast.Statement:
        """``ALTER TABLE t ADD COLUMN a INT``."""
        return ast.AlterTable(table, action, if_exists is not None)

    def add_column(self, if_not_exists: str | None, column: ast.ColumnDefinition) -> ast.AlterAction:
        """``ADD COLUMN a INT``."""
        return ast.AlterAction("add column", column.name, quiet=if_not_exists is not None, column=column)

    def add_constraint(self, constraint: ast.TableConstraint) -> ast.AlterAction:
        """``ADD CHECK (a > 0)``."""
        return ast.AlterAction("add constraint", constraint=constraint)

    def add_named_constraint(self, name: str, constraint: ast.TableConstraint) -> ast.AlterAction:
        """``ADD CONSTRAINT c CHECK (a > 0)``."""
        return ast.AlterAction("add constraint", name, constraint=replace(constraint, name=name, span=None))

    def drop_column(self, if_exists: str | None, name: str, behaviour: str | None) -> ast.AlterAction:
        """``DROP COLUMN a``."""
        return ast.AlterAction("drop column", name, quiet=if_exists is not None)

    def drop_constraint(self, if_exists: str | None, name: str, behaviour: str | None) -> ast.AlterAction:
        """``DROP CONSTRAINT c``."""
        return ast.AlterAction("drop constraint", name, quiet=if_exists is not None)

    def rename_column(self, name: str, to: str) -> ast.AlterAction:
        """``RENAME COLUMN a TO b``."""
        return ast.AlterAction("rename column", name, to)

    def rename_table(self, to: str) -> ast.AlterAction:
        """``RENAME TO b``."""
        return ast.AlterAction("rename", to=to)

    def alter_type(self, name: str, type: ast.TypeName) -> ast.AlterAction:
        """``ALTER COLUMN a TYPE BIGINT``."""
        return ast.AlterAction("type", name, type=type)

    def set_default(self, name: str, spoken: tuple[ast.Expr, str]) -> ast.AlterAction:
        """``ALTER COLUMN a SET DEFAULT 1``."""
        return ast.AlterAction("set default", name, text=spoken[1])

    def drop_default(self, name: str) -> ast.AlterAction:
        """``ALTER COLUMN a DROP DEFAULT``."""
        return ast.AlterAction("drop default", name)

    def set_not_null(self, name: str) -> ast.AlterAction:
        """``ALTER COLUMN a SET NOT NULL``."""
        return ast.AlterAction("set not null", name)

    def drop_not_null(self, name: str) -> ast.AlterAction:
        """``ALTER COLUMN a DROP NOT NULL``."""
        return ast.AlterAction("drop not null", name)

    def set_options(self, *options: ast.Option) -> ast.AlterAction:
        """``SET (retention = '30 days')``."""
        return ast.AlterAction("set options", options=options)

    def set_layout(self, clause: ast.LayoutClause) -> ast.AlterAction:
        """``CLUSTER BY (a, b)``."""
        return ast.AlterAction("layout", clause=clause)

    def comment_on(self, kind: str, name: ast.Name, text: str | None) -> ast.Statement:
        """``COMMENT ON TABLE t IS 'text'``."""
        return ast.Comment(kind, name, text)

    def comment_on_if(self, kind: str, name: ast.Name, text: str | None) -> ast.Statement:
        """``COMMENT IF EXISTS ON TABLE t IS 'text'``."""
        return ast.Comment(kind, name, text, if_exists=True)
