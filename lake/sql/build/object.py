"""Builders of ``object.lark``."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lake.errors import FeatureNotSupported
from lake.sql import ast
from lake.sql.build.base import BaseBuild

Rest = tuple[str | None, tuple[ast.IndexKey, ...], tuple[str, ...], tuple[ast.Expr, str] | None]


class ObjectBuild(BaseBuild):
    """Sequences, enum types, indexes."""

    # --- sequences ---

    def create_sequence(self, *parts: Any) -> ast.Statement:
        """``CREATE SEQUENCE s START WITH 10``."""
        or_replace, temporary, if_not_exists, name, *options = parts
        if temporary:
            raise FeatureNotSupported("temporary sequences are not supported", position=self.start + 1)
        return ast.CreateSequence(name, tuple(options), self._if_taken(or_replace, if_not_exists))

    def alter_sequence(self, if_exists: str | None, name: ast.Name, *options: ast.SequenceOption) -> ast.Statement:
        """``ALTER SEQUENCE s RESTART``."""
        return ast.AlterSequence(name, options, if_exists is not None)

    def rename_object(self, if_exists: str | None, name: ast.Name, to: str) -> ast.Statement:
        """``ALTER SEQUENCE s RENAME TO t``."""
        return ast.RenameObject("sequence", name, to, if_exists is not None)

    def sequence_type(self, type: ast.TypeName) -> ast.SequenceOption:
        """``AS INT``."""
        return ast.SequenceOption("type", type)

    def sequence_increment(self, value: int) -> ast.SequenceOption:
        """``INCREMENT BY 2``."""
        return ast.SequenceOption("increment", value)

    def sequence_low(self, value: int) -> ast.SequenceOption:
        """``MINVALUE 1``."""
        return ast.SequenceOption("low", value)

    def sequence_no_low(self) -> ast.SequenceOption:
        """``NO MINVALUE``."""
        return ast.SequenceOption("low", None)

    def sequence_high(self, value: int) -> ast.SequenceOption:
        """``MAXVALUE 9``."""
        return ast.SequenceOption("high", value)

    def sequence_no_high(self) -> ast.SequenceOption:
        """``NO MAXVALUE``."""
        return ast.SequenceOption("high", None)

    def sequence_start(self, value: int) -> ast.SequenceOption:
        """``START WITH 1``."""
        return ast.SequenceOption("start", value)

    def sequence_cache(self, value: int) -> ast.SequenceOption:
        """``CACHE 100``."""
        return ast.SequenceOption("cache", value)

    def sequence_cycle(self) -> ast.SequenceOption:
        """``CYCLE``."""
        return ast.SequenceOption("cycle", True)

    def sequence_no_cycle(self) -> ast.SequenceOption:
        """``NO CYCLE``."""
        return ast.SequenceOption("cycle", False)

    def sequence_restart(self, value: int | None = None) -> ast.SequenceOption:
        """``RESTART WITH 1``."""
        return ast.SequenceOption("restart", value)

    def positive_number(self, value: int) -> int:
        """``+1``."""
        return value

    # --- types ---

    def create_type(self, if_not_exists: str | None, name: ast.Name, *labels: str | None) -> ast.Statement:
        """``CREATE TYPE t AS ENUM ('a', 'b')``."""
        found = tuple(label for label in labels if label is not None)
        return ast.CreateType(name, found, self._if_taken(None, if_not_exists))

    def add_value(
        self, name: ast.Name, if_not_exists: str | None, label: str, place: tuple[str, str] | None
    ) -> ast.Statement:
        """``ALTER TYPE t ADD VALUE 'b' AFTER 'a'``."""
        return ast.AddValue(name, label, if_not_exists is not None, *(place or ("", "")))

    def before_value(self, label: str) -> tuple[str, str]:
        """``BEFORE 'a'``."""
        return "before", label

    def after_value(self, label: str) -> tuple[str, str]:
        """``AFTER 'a'``."""
        return "after", label

    def rename_type(self, name: ast.Name, to: str) -> ast.Statement:
        """``ALTER TYPE t RENAME TO u``."""
        return ast.RenameObject("type", name, to)

    # --- indexes ---

    def create_unnamed_index(
        self, word: str, if_not_exists: str | None, table: ast.Name, rest: Rest
    ) -> ast.Statement:
        """``CREATE INDEX ON t (a)``."""
        method, keys, include, where = rest
        return ast.CreateIndex(
            None,
            table,
            keys,
            word.startswith("unique"),
            method,
            include,
            where[0] if where else None,
            where[1] if where else None,
            self._if_taken(None, if_not_exists),
        )

    def create_index(
        self, word: str, if_not_exists: str | None, name: ast.Name, table: ast.Name, rest: Rest
    ) -> ast.Statement:
        """``CREATE INDEX i ON t (a)``."""
        made = self.create_unnamed_index(word, if_not_exists, table, rest)
        assert isinstance(made, ast.CreateIndex)
        return replace(made, name=name)

    def index_rest(self, method: str | None, *parts: Any) -> Rest:
        """``USING btree (a, b DESC) INCLUDE (c) WHERE d``."""
        *keys, include, where = parts
        return method, tuple(keys), include or (), where

    def index_key(
        self, spoken: tuple[ast.Expr, str], direction: str | None, nulls: str | None
    ) -> ast.IndexKey:
        """``a DESC NULLS LAST``."""
        expr, text = spoken
        return ast.IndexKey(expr, text, " ".join(word.upper() for word in (direction, nulls) if word))

    def rename_index(self, if_exists: str | None, name: ast.Name, to: str) -> ast.Statement:
        """``ALTER INDEX i RENAME TO j``."""
        return ast.RenameObject("index", name, to, if_exists is not None)
