"""Text kernels against Python's strings and regular expressions."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import InvalidEscape
from lake.exec.kernels import interpreted
from lake.exec.kernels.strings import compare_constant, equal_mask, lengths, like_mask, substring

TEXTS = st.lists(st.one_of(st.text("abé€", max_size=14), st.text("ab", max_size=30)), max_size=8)


def regex_of(pattern: str) -> re.Pattern[str]:
    """The regular expression of a LIKE pattern without escapes."""
    return re.compile("".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern), re.DOTALL)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.text("ab%_é", max_size=8), st.integers(0, 3))
def test_like(texts: list[str], pattern: str, skipped: int) -> None:
    """LIKE is its regular expression, over slices too."""
    array = pa.array(texts, pa.string()).slice(skipped)
    expected = [regex_of(pattern).fullmatch(text) is not None for text in texts[skipped:]]
    assert like_mask(array, pattern).astype(bool).tolist() == expected
    assert like_mask(array.cast(pa.large_string()), pattern).astype(bool).tolist() == expected


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 150), min_size=1, max_size=30), st.sampled_from(["a", "ab", "abcb", "abbaabbaab"]),
    st.integers(0, 1 << 32), st.integers(0, 3),
)  # fmt: skip
def test_like_over_blocks(sizes: list[int], needle: str, seed: int, skipped: int) -> None:
    """Texts that lie across blocks of 64 bytes, and needles across their edges."""
    letters = np.random.default_rng(seed).choice(list("abcdefgh"), sum(sizes))
    ends = np.cumsum([0, *sizes])
    texts = ["".join(letters[start:end]) for start, end in pairwise(ends)]
    texts = [text + needle * (place % 3 == 0) for place, text in enumerate(texts)]
    array = pa.array(texts).slice(skipped)
    for pattern in (f"%{needle}%", f"a%{needle}%", f"%{needle}%b", f"%{needle}%{needle}%", f"%{needle}"):
        expected = [regex_of(pattern).fullmatch(text) is not None for text in texts[skipped:]]
        assert like_mask(array, pattern).astype(bool).tolist() == expected, pattern


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.lists(st.text("ab", min_size=1, max_size=11), min_size=1, max_size=3))
def test_like_of_long_parts(texts: list[str], parts: list[str]) -> None:
    """Parts longer than a word, between %."""
    texts = [*texts, "".join(parts), "b" + "a".join(parts) + "é"]
    for pattern in (f"%{'%'.join(parts)}%", f"{'%'.join(parts)}%", f"%{'%'.join(parts)}"):
        expected = [regex_of(pattern).fullmatch(text) is not None for text in texts]
        assert like_mask(pa.array(texts), pattern).astype(bool).tolist() == expected


def test_escapes() -> None:
    """An escaped wildcard is itself; an escape at the end is an error."""
    texts = pa.array(["a%b", "axb", "a_b", "a\\b"])
    assert like_mask(texts, "a\\%b").tolist() == [1, 0, 0, 0]
    assert like_mask(texts, "a#_b", "#").tolist() == [0, 0, 1, 0]
    assert like_mask(texts, "a\\_b", None).tolist() == [0, 0, 0, 0]
    assert like_mask(texts, "a\\b", None).tolist() == [0, 0, 0, 1]
    with pytest.raises(InvalidEscape):
        like_mask(texts, "a\\")


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.text("abé", max_size=20))
def test_constants(texts: list[str], constant: str) -> None:
    """Equality and order against a constant, in byte order."""
    texts = [*texts, constant, constant + "a"]
    array, key = pa.array(texts), constant.encode()
    assert equal_mask(array, constant).astype(bool).tolist() == [text == constant for text in texts]
    signs = [(text.encode() > key) - (text.encode() < key) for text in texts]
    assert compare_constant(array, constant).tolist() == signs


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text("aé€𝄞", max_size=6)), max_size=8), st.integers(-3, 8), st.integers(0, 9))
def test_characters(texts: list[str | None], first: int, count: int) -> None:
    """Lengths and substrings count characters."""
    array = pa.array(texts, pa.string())
    found = lengths(array).tolist()
    assert [size for size, text in zip(found, texts, strict=True) if text is not None] == [
        len(text) for text in texts if text is not None
    ]
    expected = [None if text is None else text[max(first, 0) : max(first + count, 0)] for text in texts]
    assert substring(array, first, count).to_pylist() == expected
    rows = len(texts)
    assert substring(array, np.full(rows, first), np.full(rows, count)).to_pylist() == expected
    plain = [text and text.replace("é", "e").replace("€", "x").replace("𝄞", "g") for text in texts]
    expected = [None if text is None else text[max(first, 0) : max(first + count, 0)] for text in plain]
    assert substring(pa.array(plain, pa.string()), first, count).to_pylist() == expected


def test_far_characters() -> None:
    """Positions near the ends of 64 bits."""
    most = (1 << 63) - 1
    assert substring(pa.array(["abc", "é"]), 1, most).to_pylist() == ["bc", ""]
    assert substring(pa.array(["abc", "abc"]), most, most).to_pylist() == ["", ""]
    assert substring(pa.array(["abc", "é"]), -most, most).to_pylist() == ["", ""]


@settings(max_examples=20, deadline=None)
@given(TEXTS, st.text("ab%_", max_size=6))
def test_compiled_and_plain_kernels_agree(texts: list[str], pattern: str) -> None:
    """The kernels answer what their Python text says."""
    array = pa.array(texts, pa.string())
    with interpreted():
        plain = like_mask(array, pattern).tolist(), compare_constant(array, pattern).tolist()
    assert (like_mask(array, pattern).tolist(), compare_constant(array, pattern).tolist()) == plain
