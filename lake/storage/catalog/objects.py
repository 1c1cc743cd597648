"""Objects of the catalog that hold no rows: sequences, enum types, indexes.

    Lake ── Object ── Sequence    numbers, each handed out once; a column may own one
                   ├─ EnumType    the texts that columns of it take
                   └─ Index       a note on a table: nothing is built for it

An object of a table that was dropped stays without its name until the table is back, or gone for good.
"""

from __future__ import annotations

import msgspec


class Sequence(msgspec.Struct, frozen=True, tag="sequence", omit_defaults=True):
    """A sequence of numbers. Spec: SQL, Sequences and identity.

    low, high  MINVALUE and MAXVALUE
    next       the number handed out next; blocks that were taken are behind it
    called     whether a number was handed out since START, RESTART or setval
    ended      whether the last number was handed out, without CYCLE
    table      id of the table, and ``column`` id of the column, that owns it; 0 for none
    """

    id: int
    schema: str
    name: str
    low: int
    high: int
    start: int
    next: int
    sql_type: str = "BIGINT"
    increment: int = 1
    cache: int = 1
    cycle: bool = False
    called: bool = False
    ended: bool = False
    table: int = 0
    column: int = 0
    comment: str | None = None


class EnumType(msgspec.Struct, frozen=True, tag="type", omit_defaults=True):
    """A type whose values are texts, one of ``labels``, which are in their order. Spec: SQL, Enum types."""

    id: int
    schema: str
    name: str
    labels: tuple[str, ...]
    comment: str | None = None
    table: int = 0


class IndexKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an index orders by: SQL text of a column or expression; ``order`` is ``DESC``, ``ASC NULLS LAST`` or the like."""

    text: str
    order: str = ""
    is_column: bool = True


class Index(msgspec.Struct, frozen=True, tag="index", omit_defaults=True):
    """An index of a table, by id. Spec: SQL, Indexes.

    columns  all columns it names, those of expressions, INCLUDE and WHERE too
    """

    id: int
    schema: str
    name: str
    table: int
    keys: tuple[IndexKey, ...]
    columns: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    where: str = ""
    method: str = "btree"
    comment: str | None = None


Object = Sequence | EnumType | Index
