"""Dates, times and intervals from text."""

from __future__ import annotations

import pytest

from lake.errors import DatetimeOverflow, InvalidParameter, InvalidText
from lake.sql import literals

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 year 2 days 04:05:06", (12, 2, 4 * HOUR + 306_000_000_000)),
        ("1 year 2 months 3 days 4 hours 5 minutes 6.5 seconds", (14, 3, 4 * HOUR + 306_500_000_000)),
        ("1-2", (14, 0, 0)),
        ("-1-2", (-14, 0, 0)),
        ("3 04:05:06", (0, 3, 4 * HOUR + 306_000_000_000)),
        ("-04:00", (0, 0, -4 * HOUR)),
        ("P1Y2M3DT4H5M6S", (14, 3, 4 * HOUR + 306_000_000_000)),
        ("P0001-02-03T04:00:00", (14, 3, 4 * HOUR)),
        ("PT36H", (0, 0, 36 * HOUR)),
        ("1.5 days", (0, 1, 12 * HOUR)),
        ("1.5 months", (1, 15, 0)),
        ("1.5 years", (18, 0, 0)),
        ("2 weeks", (0, 14, 0)),
        ("1 quarter", (3, 0, 0)),
        ("1 mon -2 days", (1, -2, 0)),
        ("@ 1 minute ago", (0, 0, -60_000_000_000)),
        ("-1 day", (0, -1, 0)),
        ("2h 5m", (0, 0, 2 * HOUR + 300_000_000_000)),
        ("1 ms", (0, 0, 1_000_000)),
        ("5", (0, 0, 5_000_000_000)),
    ],
)
def test_interval(text: str, value: tuple[int, int, int]) -> None:
    assert literals.parse_interval(text) == value


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("3", "MONTH", (3, 0, 0)),
        ("90", "day", (0, 90, 0)),
        ("1-2", "YEAR TO MONTH", (14, 0, 0)),
        ("04:05", "HOUR TO MINUTE", (0, 0, 4 * HOUR + 300_000_000_000)),
        ("04:05", "MINUTE TO SECOND", (0, 0, 245_000_000_000)),
    ],
)
def test_interval_with_unit(text: str, unit: str, value: tuple[int, int, int]) -> None:
    assert literals.parse_interval(text, unit) == value


@pytest.mark.parametrize("text", ["", "one day", "1 fortnight", "P", "PT", "day", "1 day x"])
def test_interval_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        literals.parse_interval(text)


def test_dates_and_times() -> None:
    assert literals.parse_date("1970-01-31") == 30
    assert literals.parse_date("20240229") == 19782
    assert literals.parse_date("2024-3-1 10:00") == 19783
    assert literals.parse_time("10:30") == 37_800_000_000
    assert literals.parse_time("01:02:03.4567891 PM") == 46_923_456_789
    assert literals.parse_timestamp("2024-03-01 12:00", zoned=False) == 1_709_294_400_000_000
    assert literals.parse_timestamp("2024-03-01T12:00:00.5Z", zoned=False) == 1_709_294_400_500_000
    assert literals.parse_timestamp("1600-01-01", zoned=False) == -11_676_096_000_000_000


def test_instants() -> None:
    noon = 1_709_294_400_000_000
    assert literals.parse_timestamp("2024-03-01 14:00:00+02", zoned=True) == noon
    assert literals.parse_timestamp("2024-03-01 07:00 America/New_York", zoned=True) == noon
    assert literals.parse_timestamp("2024-03-01 07:00", zoned=True, time_zone="America/New_York") == noon
    assert literals.parse_timestamp("2024-03-01 12:00 UTC", zoned=True, time_zone="Asia/Tokyo") == noon
    with pytest.raises(InvalidParameter):
        literals.offset_micros("Mars/Olympus", 0)


def test_refused() -> None:
    with pytest.raises(DatetimeOverflow):
        literals.parse_date("2024-13-01")
    with pytest.raises(DatetimeOverflow):
        literals.parse_time("25:00")
    for parse in (literals.parse_date, literals.parse_time, literals.parse_boolean, literals.parse_number):
        with pytest.raises(InvalidText):
            parse("abc")
    with pytest.raises(InvalidText):
        literals.parse_timestamp("2024-01-01 noon o'clock", zoned=False)
