"""Members of JSON: the scan over bytes finds what a parser finds."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.functions.json import MISSING, follow
from lake.exec.functions.json_members import AS_TEXT, ITEMS, KEYS, LENGTH, NUMBER, RAW, STRING, TRUTH, WHOLE, _read
from lake.exec.kernels import interpreted
from lake.exec.kernels.json import Members

KEYS_USED = st.sampled_from(["a", "b", "ab", "", "é", 'q"', "\\", "n\n"])
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS_USED, inner, max_size=3), max_leaves=8
)
PATHS = st.lists(KEYS_USED | st.integers(-3, 3), max_size=3)


def written(value: Any, blanks: bool, ascii_only: bool) -> str:
    """A value as JSON in one of the ways it may be written."""
    return json.dumps(value, ensure_ascii=ascii_only, indent=1 if blanks else None, separators=None if blanks else (",", ":"))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(VALUES, st.booleans(), st.booleans()), min_size=1, max_size=4), PATHS)
def test_members(rows: list[tuple[Any, bool, bool]], path: list[Any]) -> None:
    """Every reading answers of a slice what it answers of the value that a parser reads."""
    documents = pa.array([*(written(*row) for row in rows), None])
    members = [follow(json.loads(written(*row)), path) for row in rows]
    raw = _read(RAW, documents, path).to_pylist()
    assert [MISSING if item is None else json.loads(item) for item in raw[:-1]] == members
    assert raw[-1] is None
    for reading in (STRING, NUMBER, TRUTH, LENGTH, KEYS):
        expected = [None if item is MISSING else reading.of_value(item) for item in members]
        assert _read(reading, documents, path).to_pylist() == [*expected, None]
    texts = _read(AS_TEXT, documents, path).to_pylist()
    for text, member in zip(texts, members):
        if isinstance(member, str) or member is None or member is MISSING:
            assert text == (None if member is MISSING else member)
        else:
            assert text is not None and json.loads(text) == member
    lists = _read(ITEMS, documents, path).to_pylist()
    assert [None if item is None else [json.loads(part) for part in item] for item in lists[:-1]] == [
        item if isinstance(item, list) else None for item in members
    ]


def test_whole_numbers() -> None:
    """Whole numbers that 64 bits hold."""
    documents = pa.array(["1", "-9223372036854775807", "9223372036854775808", "1.0", "1e3", '"1"', "true", None])
    assert _read(WHOLE, documents, ()).to_pylist() == [1, -9223372036854775807, None, None, None, None, None, None]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("{}[]\",:\\ tna1-", max_size=12), max_size=6), PATHS)
def test_any_text(texts: list[str], path: list[Any]) -> None:
    """Texts that are no JSON are scanned without harm, and compiled and plain kernels agree on them."""
    documents = pa.array(texts, pa.string())
    compiled = Members(documents, path)
    with interpreted():
        plain = Members(documents, path)
    assert compiled.starts.tolist() == plain.starts.tolist()
    assert compiled.ends.tolist() == plain.ends.tolist()
