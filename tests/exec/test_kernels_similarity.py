"""Kernels of likeness against their plain versions, and alphabets against Python's own codecs."""

from __future__ import annotations

import base64
from urllib.parse import quote_plus, unquote_to_bytes

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels import alphabets, interpreted, similarity

TEXTS = st.lists(st.text("abAcé€😀", max_size=9), min_size=1, max_size=8)
BYTES = st.lists(st.one_of(st.binary(max_size=9), st.none()), max_size=8)
MEASURES = {
    "edits": similarity.distances,
    "swaps": similarity.distances_with_swaps,
    "places": similarity.differences,
    "characters": similarity.shares,
    "jaro": lambda a, b: similarity.jaro(a, b, is_winkler=False),
    "winkler": lambda a, b: similarity.jaro(a, b, is_winkler=True),
    "sounds": lambda a, b: similarity.sounds_of(a)[0],
}


@pytest.mark.parametrize("name", MEASURES)
@settings(max_examples=50, deadline=None)
@given(TEXTS)
def test_measures(name: str, texts: list[str]) -> None:
    """Compiled kernels answer as the plain ones, for lengths 0 and 1 and slices too."""
    run = MEASURES[name]
    many = pa.array(texts * 200).slice(1)
    other = pa.array((texts[1:] + texts[:1]) * 200).slice(1)
    found = run(many, other)
    with interpreted():
        assert np.array_equal(run(many.slice(0, 20), other.slice(0, 20)), found[:20])


def test_known_distances() -> None:
    """Pairs whose distances are in the papers and textbooks."""
    one, two = pa.array(["kitten", "ca", "", "MARTHA"]), pa.array(["sitting", "abc", "ab", "MARHTA"])
    assert similarity.distances(one, two).tolist() == [3, 3, 2, 2]
    assert similarity.distances_with_swaps(one, two).tolist() == [3, 2, 2, 1]
    assert similarity.jaro(one, two, is_winkler=True)[3] == pytest.approx(0.9611111)


@settings(max_examples=200, deadline=None)
@given(BYTES)
def test_hex_and_base64(values: list[bytes | None]) -> None:
    """What is written is what Python writes, and comes back."""
    array = pa.array([b"x", *values], pa.binary()).slice(1)
    assert alphabets.to_hex(array).to_pylist() == [None if item is None else item.hex() for item in values]
    padded = alphabets.to_base64(array, is_padded=True)
    assert padded.to_pylist() == [None if item is None else base64.b64encode(item).decode() for item in values]
    for text in (padded, alphabets.to_base64(array, is_padded=False)):
        assert alphabets.from_base64(text) == array
    assert alphabets.from_hex(alphabets.to_hex(array)) == array


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=9), max_size=8))
def test_urls(texts: list[str]) -> None:
    """A form's text is Python's, and comes back as bytes."""
    made = alphabets.to_percent(pa.array(texts, pa.string()))
    assert made.to_pylist() == [quote_plus(text, safe="*").replace("~", "%7E") for text in texts]
    back = alphabets.from_percent(made)
    assert back is not None and back.to_pylist() == [unquote_to_bytes(text.replace("+", " ")) for text in made.to_pylist()]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8), st.integers(2, 36))
def test_digits(numbers: list[int], base: int) -> None:
    """Digits of any base are read back by Python, those below 0 as 64 bits."""
    array = pa.array(numbers, pa.int64())
    made = alphabets.written(np.array(numbers, np.int64), base, array).to_pylist()
    assert [int(text, base) for text in made] == [number % 2**64 for number in numbers]


@pytest.mark.parametrize("text", ["Q", "Q===Q", "QQ=x", "é", "QU!D"])
def test_no_base64(text: str) -> None:
    """Texts that are none, each alone and behind a good one."""
    assert alphabets.from_base64(pa.array([text])) is None
    assert alphabets.from_base64(pa.array(["QUJD", text])) is None
