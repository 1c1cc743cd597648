"""What every AST node shares: the place in the text it came from, and ways to walk a tree.

Nodes are frozen values with tuples for children. ``span`` does not take part in equality, so two trees are equal when
they say the same thing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace


class Span(Struct, frozen=True):
    """A half-open range of 0-based characters of the statement's text."""

    start: int
    end: int


class Node(Struct, frozen=True, kw_only=True):
    """A node of the tree."""

    span: Span | None = None

    uncompared: ClassVar[tuple[str, ...]] = ("span",)  # fields that take no part in equality

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in compared(type(self)))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in compared(type(self))))

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in field_names(type(self)))
        return f"{type(self).__name__}({', '.join(shown)})"


class Name(Node, frozen=True):
    """A possibly qualified name, its parts folded to lower case unless they were quoted.

    >>> Name(("sales", "orders"))          # sales.orders
    """

    parts: tuple[str, ...]

    @property
    def last(self) -> str:
        """The part without its qualifiers."""
        return self.parts[-1]

    def __str__(self) -> str:
        return ".".join(self.parts)


_COMPARED: dict[type[Node], tuple[str, ...]] = {}


def compared(made: type[Node]) -> tuple[str, ...]:
    """The names of the fields that take part in equality."""
    found = _COMPARED.get(made)
    if found is None:
        found = _COMPARED[made] = tuple(name for name in made.__struct_fields__ if name not in made.uncompared)
    return found


N = TypeVar("N", bound=Node)


_NAMES: dict[type[Node], tuple[str, ...]] = {}


def field_names(made: type[Node]) -> tuple[str, ...]:
    """The names of a node's fields but ``span``."""
    found = _NAMES.get(made)
    if found is None:
        found = _NAMES[made] = tuple(name for name in made.__struct_fields__ if name != "span")
    return found


def children(node: Node) -> list[Node]:
    """The nodes directly below ``node``, in the order of the text; names are taken for words."""
    found: list[Node] = []
    made = type(node)
    names = _BELOW.get(made)
    for name in _fields_of_nodes(made) if names is None else names:
        value = getattr(node, name)
        if value:
            _note_nodes(value, found)
    return found


NODELESS: Final = frozenset(
    ("str", "bool", "int", "str | None", "bool | None", "int | None", "tuple[str, ...]", "tuple[int, ...]", "IfTaken",
     "Name", "Name | None")
)  # fmt: skip
"""Annotations of fields that hold no node but a name."""

_BELOW: dict[type[Node], tuple[str, ...]] = {}


def _fields_of_nodes(made: type[Node]) -> tuple[str, ...]:
    """The names of those fields that may hold nodes, by their annotations as they are written."""
    written = {name: text for base in reversed(made.__mro__) for name, text in inspect.get_annotations(base).items()}
    found = _BELOW[made] = tuple(name for name in field_names(made) if written[name] not in NODELESS)
    return found


def holds(node: Node, made: type[Node]) -> bool:
    """Whether a node of class ``made`` stands anywhere in a tree."""
    stack = [node]
    while stack:
        found = stack.pop()
        kind = type(found)
        if kind is made:
            return True
        if _BELOW.get(kind) != ():
            stack += children(found)
    return False


def walk(node: Node) -> Iterator[Node]:
    """``node`` and all below it, parents first; names are taken for words."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        if _BELOW.get(type(found)) != ():
            stack += children(found)[::-1]


def rewrite(node: N, rule: Callable[[Node], Node]) -> N:
    """The tree with ``rule`` applied to every node, children first."""
    changed: dict[str, Any] = {}
    for name in field_names(type(node)):
        before = getattr(node, name)
        after = _rewrite_value(before, rule)
        if after is not before:
            changed[name] = after
    return rule(replace(node, **changed) if changed else node)  # type: ignore[return-value]


def _note_nodes(value: object, found: list[Node]) -> None:
    made = type(value)
    if made is tuple:
        for part in value:  # type: ignore[attr-defined]
            _note_nodes(part, found)
    elif made in _BELOW or isinstance(value, Node):  # the look-up is five times as quick
        found.append(value)  # type: ignore[arg-type]


def _rewrite_value(value: object, rule: Callable[[Node], Node]) -> object:
    if isinstance(value, Node):
        return rewrite(value, rule)
    if isinstance(value, tuple):
        parts = tuple(_rewrite_value(part, rule) for part in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    return value
