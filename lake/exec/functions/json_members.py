"""Members of JSON: json_get and its kin, the operators -> and ->>, paths.

Members are found by scanning the bytes (``kernels.json``), and what is answered as JSON is written as the document writes it.
orjson reads a document only where the scan cannot tell: a key with escapes, or a text that is not JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from lake.exec.constants import as_array, list_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import with_constants
from lake.exec.functions.json import GROUP, MISSING, Step, dump, follow, load, load_or_missing, parse_path
from lake.exec.kernels import views
from lake.exec.kernels.json import Members
from lake.late import late_pattern
from lake.sql.registry import CallInfo, scalar

STRINGS: Final = pa.list_(pa.string())
TRUE, FALSE, NOTHING, QUOTE, LIST, OBJECT, MINUS = b"tfn\"[{-"
"""First bytes of values; numbers begin with MINUS or a digit."""


class Reading(Struct, frozen=True):
    """What is made of members: of their slices all at once, and of a value where only a parser reads the document."""

    type: pa.DataType
    of_slices: Callable[[Members], pa.Array]
    of_value: Callable[[Any], Any]


def _read(reading: Reading, documents: pa.Array, path: Sequence[Step], *, strict: bool = False) -> pa.Array:
    """The members at a path; documents that are not JSON have none, and are refused with ``strict``."""
    found = Members(documents, path)
    made = reading.of_slices(found)
    rows = found.unread
    if not rows.size:
        return made
    values = []
    for text in documents.take(pa.array(rows)).to_pylist():
        value = load(text) if strict else load_or_missing(text)
        member = MISSING if value is MISSING else follow(value, path)
        values.append(None if member is MISSING else reading.of_value(member))
    places = np.arange(len(made))
    places[rows] = len(made) + np.arange(rows.size)
    return views.concat([made, pa.array(values, reading.type)]).take(pa.array(places))


def _by_steps(reading: Reading, document: Value, path: Sequence[Value]) -> pa.Array:
    def run(column: pa.Array, *steps: Any) -> pa.Array:
        return _read(reading, column, steps)

    return with_constants(run, reading.type, document, *path)


def _by_path(reading: Reading, document: Value, path: Value) -> pa.Array:
    def run(column: pa.Array, path: str) -> pa.Array:
        return _read(reading, column, parse_path(path), strict=True)

    return with_constants(run, reading.type, document, path)


def _unescaped(texts: pa.Array) -> pa.Array:
    """What is between the quotes of strings, escapes read."""
    escaped = pc.match_substring(texts, "\\")
    rows = np.flatnonzero(views.true_of(escaped))
    if not rows.size:
        return texts
    read = [orjson.loads(f'"{text}"') for text in texts.take(pa.array(rows)).to_pylist()]
    places = np.arange(len(texts))
    places[rows] = len(texts) + np.arange(rows.size)
    return views.concat([texts, pa.array(read, pa.string())]).take(pa.array(places))


def _strings(found: Members) -> pa.Array:
    return _unescaped(found.slices(found.firsts == QUOTE, 1))


def _texts(found: Members) -> pa.Array:
    """Strings as they are meant, other values as they are written, null as NULL."""
    others = (found.starts >= 0) & (found.firsts != QUOTE) & (found.firsts != NOTHING)
    return pc.coalesce(_strings(found), found.slices(others))


def _number_slices(found: Members) -> pa.Array:
    return found.slices((found.firsts == MINUS) | ((found.firsts >= ord("0")) & (found.firsts <= ord("9"))))


def _whole_numbers(found: Members) -> pa.Array:
    texts = _number_slices(found)
    short = pc.match_substring_regex(texts, "^-?[0-9]{1,18}$")
    numbers = pc.if_else(short, texts, pa.scalar(None, pa.string())).cast(pa.int64())
    long = np.flatnonzero(views.true_of(pc.match_substring_regex(texts, "^-?[0-9]{19}$")))
    if not long.size:
        return numbers
    values = numbers.to_pylist()
    for row in long:
        values[row] = _whole_number(int(texts[row].as_py()))
    return pa.array(values, pa.int64())


def _numbers(found: Members) -> pa.Array:
    texts = _number_slices(found)
    good = pc.match_substring_regex(texts, r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$")
    return pc.if_else(good, texts, pa.scalar(None, pa.string())).cast(pa.float64())


def _truths(found: Members) -> pa.Array:
    known = (found.firsts == TRUE) | (found.firsts == FALSE)
    return views.to_array(found.firsts == TRUE, pa.bool_(), known.astype(np.uint8))


def _lengths(found: Members) -> pa.Array:
    counts = found.counts()
    return views.to_array(counts, pa.int64(), (counts >= 0).astype(np.uint8))


def _listed(found: Members, opening: int) -> pa.Array:
    """The elements of arrays or the keys of objects; NULL of other values."""
    counts = np.where(found.firsts == opening, found.counts(), -1)
    items = found.items(counts)
    offsets = np.concatenate(([0], np.cumsum(np.maximum(counts, 0))))
    return list_array(offsets, _unescaped(items) if opening == OBJECT else items, (counts >= 0).astype(np.uint8))


def as_text(member: Any) -> str | None:
    """A member as text: a string itself, other values as JSON, null as NULL."""
    return None if member is None else member if isinstance(member, str) else dump(member)


def _whole_number(member: Any) -> int | None:
    return member if isinstance(member, int) and not isinstance(member, bool) and abs(member) < 2**63 else None


def _number(member: Any) -> float | None:
    return float(member) if isinstance(member, int | float) and not isinstance(member, bool) else None


def _items(member: Any) -> list[str] | None:
    return [dump(item) for item in member] if isinstance(member, list) else None


RAW: Final = Reading(pa.string(), lambda found: found.slices(found.starts >= 0), dump)
AS_TEXT: Final = Reading(pa.string(), _texts, as_text)
STRING: Final = Reading(pa.string(), _strings, lambda member: member if isinstance(member, str) else None)
WHOLE: Final = Reading(pa.int64(), _whole_numbers, _whole_number)
NUMBER: Final = Reading(pa.float64(), _numbers, _number)
TRUTH: Final = Reading(pa.bool_(), _truths, lambda member: member if isinstance(member, bool) else None)
ITEMS: Final = Reading(STRINGS, lambda found: _listed(found, LIST), _items)
KEYS: Final = Reading(
    STRINGS, lambda found: _listed(found, OBJECT), lambda member: list(member) if isinstance(member, dict) else None
)
LENGTH: Final = Reading(
    pa.int64(), _lengths, lambda member: len(member) if isinstance(member, list | dict) else None
)
THERE: Final = Reading(
    pa.bool_(), lambda found: views.to_array(found.starts >= 0, pa.bool_(), None), lambda member: True
)


# --- json_get_.. -----------------------------------------------------------------------------------------------------


def _register_get(names: Sequence[str], result: str, reading: Reading, text: str, example: str) -> None:
    """A function of a document and a path of keys and places."""

    def function(document: Value, *path: Value) -> pa.Array:
        return _by_steps(reading, document, path)

    function.__doc__ = f"{text}\n\n    >>> {example}\n    "
    for kind in ("JSON", "VARCHAR"):
        scalar(f"{names[0]}(document {kind}, path ANY...) -> {result}", group=GROUP, origin="lake",
               aliases=tuple(names[1:]))(function)  # fmt: skip


_register_get(("json_get", "json_get_json"), "JSON", RAW, "The member at a path, as it is written.",
              """json_get('{"a": {"b": 1}}', 'a', 'b')\n    1""")  # fmt: skip
_register_get(("json_as_text",), "VARCHAR", AS_TEXT, "The member at a path, as text.",
              """json_as_text('{"a": 1.5}', 'a')\n    1.5""")  # fmt: skip
_register_get(("json_get_str",), "VARCHAR", STRING, "The text at a path.",
              """json_get_str('{"a": "x"}', 'a')\n    x""")  # fmt: skip
_register_get(("json_get_int",), "BIGINT", WHOLE, "The whole number at a path.",
              """json_get_int('{"a": [7, 8]}', 'a', 1)\n    8""")  # fmt: skip
_register_get(("json_get_float",), "DOUBLE", NUMBER, "The number at a path.",
              """json_get_float('{"a": 1.5}', 'a')\n    1.5""")  # fmt: skip
_register_get(("json_get_bool",), "BOOLEAN", TRUTH, "The truth at a path.",
              """json_get_bool('{"a": true}', 'a')\n    true""")  # fmt: skip
_register_get(("json_get_array",), "VARCHAR[]", ITEMS, "The array at a path, its elements as they are written.",
              """json_get_array('{"a": [1, "x"]}', 'a')\n    [1, "x"]""")  # fmt: skip
_register_get(("json_length",), "BIGINT", LENGTH, "How many elements or members are at a path.",
              """json_length('{"a": [1, 2, 3]}', 'a')\n    3""")  # fmt: skip
_register_get(("json_object_keys", "json_keys"), "VARCHAR[]", KEYS, "The keys of the object at a path.",
              """json_object_keys('{"a": 1, "b": 2}')\n    [a, b]""")  # fmt: skip


@scalar("json_contains(document JSON, path ANY...) -> BOOLEAN", group=GROUP, origin="lake")
@scalar("json_contains(document VARCHAR, path ANY...) -> BOOLEAN", group=GROUP, origin="lake")
def json_contains(document: Value, *path: Value) -> pa.Array:
    """Whether there is a member at a path.

    >>> json_contains('{"a": 1}', 'b')
    false
    """
    found = pc.fill_null(_by_steps(THERE, document, path), False)
    known = document.is_valid() if isinstance(document, pa.Array) else as_array(document, len(found)).is_valid()
    return pc.if_else(known, found, pa.scalar(None, pa.bool_()))


@scalar("->(document JSON, step VARCHAR) -> JSON", group=GROUP)
@scalar("->(document VARCHAR, step VARCHAR) -> JSON", group=GROUP)
@scalar("->(document JSON, step BIGINT) -> JSON", group=GROUP)
@scalar("->(document VARCHAR, step BIGINT) -> JSON", group=GROUP)
def member(document: Value, step: Value) -> pa.Array:
    """The member of a key or at a place, as it is written.

    >>> '{"a": {"b": 1}}'::JSON -> 'a'
    {"b": 1}
    """
    return _by_steps(RAW, document, (step,))


@scalar("->>(document JSON, step VARCHAR) -> VARCHAR", group=GROUP)
@scalar("->>(document VARCHAR, step VARCHAR) -> VARCHAR", group=GROUP)
@scalar("->>(document JSON, step BIGINT) -> VARCHAR", group=GROUP)
@scalar("->>(document VARCHAR, step BIGINT) -> VARCHAR", group=GROUP)
def member_text(document: Value, step: Value) -> pa.Array:
    """The member of a key or at a place, as text.

    >>> '{"a": "x"}'::JSON ->> 'a'
    x
    """
    return _by_steps(AS_TEXT, document, (step,))


def _by_list(reading: Reading, document: Value, path: Value, rows: int) -> pa.Array:
    """The member at a list of keys and places, as Postgres's operators take it; NULL of a list with a NULL."""
    joined = pc.binary_join(as_array(path, rows), "\0")

    def run(column: pa.Array, path: str) -> pa.Array:
        steps = path.split("\0") if path else []
        return _read(reading, column, [int(step) if _INDEX.fullmatch(step) else step for step in steps])

    return with_constants(run, reading.type, as_array(document, rows), joined)


_INDEX: Final = late_pattern(r"-?\d{1,9}")


@scalar("#>(document JSON, path VARCHAR[]) -> JSON", group=GROUP, origin="postgres", takes_call=True)
def member_at(document: Value, path: Value, *, call: CallInfo) -> pa.Array:
    """The member at a list of keys and places, as it is written.

    >>> '{"a": [1, {"b": 2}]}'::JSON #> ['a', '1']
    {"b": 2}
    """
    return _by_list(RAW, document, path, call.rows)


@scalar("#>>(document JSON, path VARCHAR[]) -> VARCHAR", group=GROUP, origin="postgres", takes_call=True)
def member_text_at(document: Value, path: Value, *, call: CallInfo) -> pa.Array:
    """The member at a list of keys and places, as text.

    >>> '{"a": [1, {"b": "x"}]}'::JSON #>> ['a', '1', 'b']
    x
    """
    return _by_list(AS_TEXT, document, path, call.rows)


# --- by path text ----------------------------------------------------------------------------------------------------


@scalar(
    "json_extract(document JSON, path VARCHAR) -> JSON", group=GROUP, origin="duckdb", aliases=("json_extract_path",)
)
@scalar("json_extract(document VARCHAR, path VARCHAR) -> JSON", group=GROUP, origin="duckdb")
def json_extract(document: Value, path: Value) -> pa.Array:
    """The member at a path, as it is written.

    >>> json_extract('{"species": ["duck", "goose"]}', '$.species[0]')
    "duck"
    """
    return _by_path(RAW, document, path)


@scalar("json_extract_string(document JSON, path VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb",
        aliases=("json_extract_path_text", "get_json_object"))  # fmt: skip
@scalar("json_extract_string(document VARCHAR, path VARCHAR) -> VARCHAR", group=GROUP, origin="duckdb",
        aliases=("get_json_object",))  # fmt: skip
def json_extract_string(document: Value, path: Value) -> pa.Array:
    """The member at a path, as text.

    >>> json_extract_string('{"species": ["duck", "goose"]}', '$.species[0]')
    duck
    """
    return _by_path(AS_TEXT, document, path)


ARRAY_LENGTH: Final = Reading(
    pa.int64(),
    lambda found: pc.if_else(views.to_boolean(found.firsts == LIST), _lengths(found), pa.scalar(None, pa.int64())),
    lambda member: len(member) if isinstance(member, list) else None,
)


@scalar("json_array_length(document JSON) -> BIGINT", group=GROUP, origin="duckdb")
@scalar("json_array_length(document VARCHAR) -> BIGINT", group=GROUP, origin="duckdb")
def json_array_length(document: pa.Array) -> pa.Array:
    """How many elements an array has; NULL of other values.

    >>> json_array_length('[1,2,3]')
    3
    """
    return _read(ARRAY_LENGTH, document, (), strict=True)
