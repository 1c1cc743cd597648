"""Tuples of binary COPY: compiled and interpreted kernels agree, whatever the bytes; numerics as decimal rounds them."""

from __future__ import annotations

import itertools
import struct
from decimal import ROUND_HALF_UP, Decimal, localcontext

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.doors.postgres.binary import numeric_bytes
from lake.exec.kernels.tuples import (
    NUMERIC_BYTES_MAX,
    find_fields,
    gather_bytes,
    gather_fixed,
    scaled_numerics,
    write_numerics,
)

FIELDS = st.lists(st.one_of(st.none(), st.binary(max_size=5)), min_size=2, max_size=2)


def _bytes(body: bytes) -> np.ndarray:  # type: ignore[type-arg]
    return np.frombuffer(body, np.uint8).copy()


def _tuples(rows: list[list[bytes | None]]) -> bytes:
    made = b""
    for row in rows:
        made += struct.pack("!h", len(row))
        made += b"".join(struct.pack("!i", -1 if f is None else len(f)) + (f or b"") for f in row)
    return made


def _found(body: bytes, function: object) -> tuple[object, ...]:
    starts, lengths = np.zeros((2, len(body) + 1), np.int64), np.zeros((2, len(body) + 1), np.int32)
    marks = np.zeros(2, np.int64)
    rows = int(function(_bytes(body), starts, lengths, marks))  # type: ignore[operator]
    return rows, starts[:, :rows].tolist(), lengths[:, :rows].tolist(), marks.tolist()


@settings(deadline=None)
@given(rows=st.lists(FIELDS, max_size=6), cut=st.integers(0, 20), noise=st.binary(max_size=8))
def test_fields_are_found(rows: list[list[bytes | None]], cut: int, noise: bytes) -> None:
    """Whole tuples are found, and a cut one waits; bytes that are none are told of and never read past."""
    whole = _tuples(rows)
    body = whole[: len(whole) - cut] if cut else whole + struct.pack("!h", -1)
    compiled = _found(body, find_fields)
    assert compiled == _found(body, find_fields.py_func)
    if not cut:
        count, starts, lengths, marks = compiled
        assert count == len(rows) and marks == [len(body), 1]
        for place in range(2):
            made = [None if n < 0 else body[s : s + n] for s, n in zip(starts[place], lengths[place], strict=True)]  # type: ignore[index]
            assert made == [row[place] for row in rows]
    assert _found(noise, find_fields) == _found(noise, find_fields.py_func)


@settings(deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.binary(min_size=4, max_size=4), st.binary(max_size=6)), max_size=8))
def test_fields_are_gathered(values: list[bytes | None]) -> None:
    """Fixed ones up to the first of another width, and any behind each other."""
    body = b"".join(value or b"" for value in values) or b"\x00"
    lengths = np.array([-1 if value is None else len(value) for value in values], np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))]).astype(np.int32)
    starts = offsets[:-1].astype(np.int64)
    answers = []
    for function in (gather_fixed, gather_fixed.py_func):
        made = np.zeros((len(values), 4), np.uint8)
        answers.append((int(function(_bytes(body), starts, lengths, made)), made.tolist()))
    assert answers[0] == answers[1]
    wrong = next((row for row, value in enumerate(values) if value is not None and len(value) != 4), -1)
    assert answers[0][0] == wrong
    whole = np.zeros(int(offsets[-1]), np.uint8)
    gather_bytes(_bytes(body), starts, lengths, offsets[:-1], whole)
    assert whole.tobytes() == b"".join(value or b"" for value in values)


@settings(deadline=None)
@given(
    value=st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**13), max_value=10**13),
    scale=st.integers(0, 9),
)
def test_numerics_are_scaled(value: Decimal, scale: int) -> None:
    """Rounded half away from zero, refused where they do not fit."""
    sent = numeric_bytes(value)
    limit = 10**15
    expected = int(value.scaleb(scale).quantize(Decimal(1), ROUND_HALF_UP))
    for function in (scaled_numerics, scaled_numerics.py_func):
        made = np.zeros(1, np.int64)
        row = function(_bytes(sent), np.zeros(1, np.int64), np.array([len(sent)], np.int32), scale, limit, made)
        if abs(expected) < limit:
            assert (int(row), int(made[0])) == (-1, expected)
        else:
            assert int(row) == 0


@settings(deadline=None)
@given(
    numbers=st.lists(st.one_of(st.none(), st.integers(-(10**18) + 1, 10**18 - 1), st.integers(-9, 9).map(lambda n: n * 10**16)), min_size=1),
    scale=st.integers(0, 18),
)
def test_numerics_are_written(numbers: list[int | None], scale: int) -> None:
    """As one numeric after the other is made; NULL has no bytes."""
    values = np.array([number or 0 for number in numbers], np.int64)
    valid = np.array([number is not None for number in numbers], np.uint8)
    with localcontext(prec=40):
        expected = [b"" if number is None else numeric_bytes(Decimal(number).scaleb(-scale)) for number in numbers]
    for function in (write_numerics, write_numerics.py_func):
        offsets, made = np.zeros(len(numbers) + 1, np.int32), np.zeros(len(numbers) * NUMERIC_BYTES_MAX, np.uint8)
        size = int(function(values, valid, scale, offsets, made))
        assert [made[start:end].tobytes() for start, end in itertools.pairwise(offsets)] == expected
        assert size == offsets[-1]
