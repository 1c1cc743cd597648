"""Numbers and moments read and written by kernels: as their plain Python does, as the casts do, and there and back."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.errors import LakeError
from lake.exec.kernels import interpreted
from lake.exec.kernels.numerals import MICROS_MAX, MICROS_MIN
from lake.exec.plain_text import read_plain_texts, respelled_floats, written_decimals, written_doubles, written_moments
from lake.sql import literals
from lake.types import TIME, Decimal, Integer, Timestamp, Type

DIGITS = st.text("0123456789+-. e_", max_size=21)
NUMBERS = st.one_of(DIGITS, st.integers(-(1 << 64), 1 << 64).map(str), st.decimals(places=3, allow_nan=False, allow_infinity=False).map(str))
MOMENTS = st.one_of(
    st.datetimes().map(lambda at: at.isoformat(" ")),
    st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()),
    st.tuples(
        st.sampled_from(("2024-02-29", "2023-02-29", "0000-01-01", "1900-02-29", "2000-02-29", "2024-13-01", "2024-04-31")),
        st.sampled_from((" ", "T", "x")),
        st.sampled_from(("00:00:00", "24:00:00", "23:59:60", "23:60:00", "12:34:56.", "12:34:56.1234567", "1:00:00", "12:34", "12:34:56.5")),
        st.sampled_from(("", "Z", "+00", "-15:59", "+16", "+1", "+05:3", "+0530", "x")),
    ).map("".join),
)


def _both(texts: list[str | None], type: Type, zone: str) -> pa.Array | None:
    """What the compiled kernel and its plain Python answer, which is the same."""
    array = pa.array(texts, pa.string())
    compiled = read_plain_texts(array, type, zone)
    with interpreted():
        plain = read_plain_texts(array, type, zone)
    assert (compiled is None) == (plain is None)
    assert compiled is None or compiled.equals(plain)
    return compiled


def _one(text: str, type: Type, zone: str) -> object:
    from lake.exec.cast_text import _parser

    try:
        return _parser(type, zone)(text)
    except LakeError:
        return None


@settings(deadline=None)
@given(texts=st.lists(st.one_of(st.none(), NUMBERS), max_size=3), bits=st.sampled_from((8, 16, 32, 64)))
def test_integers(texts: list[str | None], bits: int) -> None:
    """What is read is what the exact way reads; what that refuses is never read."""
    for text in texts:
        made = _both([text, None], Integer(bits), "UTC")
        assert text is None or made is None or made.to_pylist() == [_one(text, Integer(bits), "UTC"), None]
    number = [str(1 << (bits - 1)), str(-(1 << (bits - 1))), str((1 << (bits - 1)) - 1)]
    assert [_both([each], Integer(bits), "UTC") is None for each in number] == [True, False, False]


@settings(deadline=None)
@given(text=NUMBERS, type=st.sampled_from((Decimal(18, 0), Decimal(18, 18), Decimal(12, 2), Decimal(3, 1), Decimal(38, 4))))
def test_decimals(text: str, type: Decimal) -> None:
    """Rounded half away from zero, refused where they do not fit, and read whenever they are plain and fit 18 digits."""
    made = _both([text, None], type, "UTC")
    exact = _one(text, type, "UTC")
    if made is not None:
        expected = exact if type.is_short else None if exact is None else int(exact)  # type: ignore[call-overload]
        found = made.to_pylist()[0]
        assert (found if type.is_short else int(found.scaleb(type.scale))) == expected
        assert made.to_pylist()[1] is None
    elif exact is not None:
        assert "e" in text or "E" in text or " " in text or abs(int(exact)) >= 10 ** min(17, type.precision - 1)  # type: ignore[call-overload]


@settings(deadline=None)
@given(text=MOMENTS, zoned=st.booleans(), zone=st.sampled_from(("UTC", "Europe/Berlin")))
def test_moments(text: str, zoned: bool, zone: str) -> None:
    """What is read is what the exact way reads."""
    made = _both([text, None], Timestamp(zoned), zone)
    if made is not None:
        assert made.cast(pa.int64()).to_pylist() == [literals.parse_timestamp(text, zoned=zoned, time_zone=zone), None]


@settings(deadline=None)
@given(text=st.one_of(st.times().map(str), st.sampled_from(("24:00:00", "1:02:03", "12:34", "12:34:56.1234567", "12:34:56Z", "", "12:34:60"))))
def test_clocks(text: str) -> None:
    """What is read is what the exact way reads."""
    made = _both([text, None], TIME, "UTC")
    if made is not None:
        assert made.cast(pa.int64()).to_pylist() == [literals.parse_time(text), None]


VALID = st.lists(st.booleans(), min_size=4, max_size=4)


@settings(deadline=None)
@given(numbers=st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=4, max_size=4), scale=st.integers(0, 18), valid=VALID)
def test_decimals_are_written(numbers: list[int], scale: int, valid: list[bool]) -> None:
    """With all digits of their scale."""
    mask = None if all(valid) else np.array(valid, np.uint8)
    made = written_decimals(np.array(numbers), mask, scale)
    with interpreted():
        assert made.equals(written_decimals(np.array(numbers), mask, scale))
    expected = []
    for number in numbers:
        digits = str(abs(number)).rjust(scale + 1, "0")
        expected.append(("-" if number < 0 else "") + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits))
    assert made.to_pylist() == [text if kept else None for text, kept in zip(expected, valid, strict=True)]


@settings(deadline=None)
@given(
    values=st.lists(st.one_of(
        st.floats(-2e9, 2e9), st.tuples(st.integers(-(10**15), 10**15), st.integers(0, 7)).map(lambda each: each[0] / 10 ** each[1]),
    ), min_size=4, max_size=4),
    valid=VALID,
)  # fmt: skip
def test_doubles_are_written(values: list[float], valid: list[bool]) -> None:
    """In the shortest digits that read back alike, as Python has them too."""
    array = pa.array([value if kept else None for value, kept in zip(values, valid, strict=True)], pa.float64())
    made = written_doubles(array)
    with interpreted():
        plain = written_doubles(array)
    assert (made is None) == (plain is None)
    if made is not None:
        assert made.equals(plain)
        assert made.to_pylist() == [None if value is None else repr(value).removesuffix(".0") for value in array.to_pylist()]


def _as_postgres(value: float | None) -> str | None:
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None if value is None else {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)]
    sign, figures, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, figures))
    assert isinstance(exponent, int)
    power = len(digits) - 1 + exponent
    if value and not -4 <= power < 15:
        shown = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{'-' if power < 0 else '+'}{abs(power):02}"
    else:
        shown = f"{decimal.Decimal(digits).scaleb(exponent):f}"
    return ("-" if sign else "") + shown


@settings(deadline=None)
@given(values=st.lists(st.one_of(st.none(), st.floats(), st.floats(1e-6, 1e-2), st.floats(1e13, 1e17)), min_size=1, max_size=4))
def test_floats_are_respelled(values: list[float | None]) -> None:
    """Python's digits in Postgres's forms."""
    array = pa.array(values, pa.float64())
    made = respelled_floats(array, 15)
    with interpreted():
        assert made.equals(respelled_floats(array, 15))
    assert made.to_pylist() == [_as_postgres(value) for value in values]


@settings(deadline=None)
@given(values=st.lists(st.integers(MICROS_MIN - 1, MICROS_MAX + 1), min_size=4, max_size=4), step=st.integers(0, 90_000_000_000), valid=VALID)
def test_moments_are_written(values: list[int], step: int, valid: list[bool]) -> None:
    """As Arrow has them, without zeros at the end of the fraction; days that follow one another too."""
    for chosen in (values, [values[0] + number * step for number in range(4)]):
        array = pa.array([value if kept else None for value, kept in zip(chosen, valid, strict=True)], pa.timestamp("us"))
        made = written_moments(array)
        with interpreted():
            plain = written_moments(array)
        assert (made is None) == (plain is None)
        if made is not None:
            assert made.equals(plain)
            texts = array.cast(pa.string()).to_pylist()
            assert made.to_pylist() == [None if text is None else text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
