"""How alike texts are: edits, Jaro and Jaro-Winkler, common characters, and the sound of words."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.decimals import Value
from lake.exec.functions.columns import all_valid, columns
from lake.exec.kernels import similarity, views
from lake.sql.registry import scalar

GROUP: Final = "text"


@scalar("levenshtein(a VARCHAR, b VARCHAR) -> INT", group=GROUP, aliases=("editdist3",))
def levenshtein(a: Value, b: Value) -> pa.Array:
    """How many characters to insert, delete or change to make one text the other.

    >>> levenshtein('kitten', 'sitting')
    3
    """
    one, two = columns(a, b)
    return views.to_array(similarity.distances(one, two), pa.int32(), all_valid(one, two))


@scalar("damerau_levenshtein(a VARCHAR, b VARCHAR) -> BIGINT", group=GROUP, origin="duckdb")
def damerau_levenshtein(a: Value, b: Value) -> pa.Array:
    """How many characters to insert, delete, change or swap with the next to make one text the other.

    >>> damerau_levenshtein('duckdb', 'udckbd')
    2
    """
    one, two = columns(a, b)
    return views.to_array(similarity.distances_with_swaps(one, two), pa.int64(), all_valid(one, two))


@scalar("jaro_similarity(a VARCHAR, b VARCHAR) -> DOUBLE", group=GROUP, origin="duckdb")
def jaro_similarity(a: Value, b: Value) -> pa.Array:
    """The Jaro similarity, from 0 to 1.

    >>> jaro_similarity('duck', 'duckdb')
    0.8888888888888888
    """
    one, two = columns(a, b)
    return views.to_array(similarity.jaro(one, two, is_winkler=False), pa.float64(), all_valid(one, two))


@scalar("jaro_winkler_similarity(a VARCHAR, b VARCHAR) -> DOUBLE", group=GROUP, origin="duckdb")
def jaro_winkler_similarity(a: Value, b: Value) -> pa.Array:
    """The Jaro-Winkler similarity, from 0 to 1: a common beginning counts more.

    >>> jaro_winkler_similarity('duck', 'duckdb')
    0.9333333333333333
    """
    one, two = columns(a, b)
    return views.to_array(similarity.jaro(one, two, is_winkler=True), pa.float64(), all_valid(one, two))


@scalar("hamming(a VARCHAR, b VARCHAR) -> BIGINT", group=GROUP, origin="duckdb", aliases=("mismatches",))
def hamming(a: Value, b: Value) -> pa.Array:
    """In how many places texts of one length differ.

    >>> hamming('duck', 'luck')
    1

    22023  texts of different lengths
    """
    one, two = columns(a, b)
    found, valid = similarity.differences(one, two), all_valid(one, two)
    if _holds(found < 0, valid):
        raise InvalidParameter("hamming takes texts of the same length")
    return views.to_array(found, pa.int64(), valid)


@scalar("jaccard(a VARCHAR, b VARCHAR) -> DOUBLE", group=GROUP, origin="duckdb")
def jaccard(a: Value, b: Value) -> pa.Array:
    """The share of characters that texts have in common.

    >>> jaccard('duck', 'luck')
    0.6

    22023  an empty text
    """
    one, two = columns(a, b)
    valid = all_valid(one, two)
    if any(_holds(pc.fill_null(pc.binary_length(text), 0).to_numpy() == 0, valid) for text in (one, two)):
        raise InvalidParameter("jaccard takes texts that are not empty")
    return views.to_array(similarity.shares(one, two), pa.float64(), valid)


def _holds(condition: Any, valid: Any) -> bool:
    """Whether a condition is true of a row that has a value."""
    return bool((condition if valid is None else condition & (valid == 1)).any())


@scalar("soundex(text VARCHAR) -> VARCHAR", group=GROUP, origin="spark")
def soundex(text: pa.Array) -> pa.Array:
    """The sound of a word: its first letter and three digits; a text that begins with none of A to Z is itself.

    >>> soundex('Miller')
    M460
    """
    sounds, is_word = similarity.sounds_of(pc.utf8_upper(text))
    offsets = np.arange(0, 4 * len(text) + 1, 4, dtype=np.int32)
    written = views.text_array(offsets, sounds.reshape(-1), pa.string(), views.valid_of(text))
    return pc.if_else(views.to_boolean(is_word), written, text)
