"""Every type cast to every type over values at its edges, on the lake and on Postgres; what may differ is a named rule.

Where Postgres has no cast between two types, the lake answers as the base dialect does, or refuses; never by a mistake of ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.engines import Answer, Engine, Failure, LakeEngine, PostgresEngine, row_text
from tests.random_sql import OUR_MISTAKES, STATES, same_answer

TYPES: Final = (
    "BOOLEAN", "SMALLINT", "INT", "BIGINT", "REAL", "DOUBLE PRECISION", "DECIMAL(5,0)", "DECIMAL(10,2)", "DECIMAL(38,10)", "VARCHAR",
    "BYTEA", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "UUID", "JSON", "BIGINT[]", "VARCHAR[]", "DATE[]",
    "DECIMAL(6,1)[]",
)  # fmt: skip
FLOATS: Final = (
    "0", "-0", "1.5", "2.5", "-2.5", "3.7", "0.1", "NaN", "Infinity", "-Infinity", "1e10", "1e15", "1e20", "32767.5", "123456789.125",
)  # fmt: skip
TEXTS: Final = (
    "", " ", "0", "1", " 12 ", "-3", "+7", "1.5", "1e3", "NaN", "inf", "-infinity", "TRUE", " t ", "yes", "off", "n", "maybe", "x", "日本",
    "2024-02-29", "2024-02-30", "2024-2-9", "20240229", "Feb 29 2024", "2024-001", "2024-02-29 12:34", "2024-02-29 12:34:56.789",
    "2024-02-29T12:34:56Z", "2024-02-29 12:34:56+05:30", "2024-02-29 24:00:00", "2024-02-29 12:34:60", "2024-01-01 00:00 America/New_York",
    "12:34", "12:34:56.5", "25:00", "12:34 PM", "1:2:3", "24:00:00", "040506", "epoch", "0001-01-01", "9999-12-31", "1 day", "1 mon", "P1Y2M3DT4H", "1-2",
    "3 4:05:06", "-1 day +02:03", "1.5 days", "1 year 2 months ago", "1:60", "123e4567-e89b-12d3-a456-426614174000",
    "{123e4567e89b12d3a456426614174000}", "{1,2}", "{}", '{a,NULL,"b c"}', '{"a\\"b","c,d","{e}"}', "{it''s}", "{1,}", "[1,2]", '{"a":1}', "null",
    '"x"', "\\x6162", "\\xzz", "a\\\\b", "9223372036854775808", "32768", "99999999999999999999", "99999999.995", "1_000", "0x1F", "1e400", "1e-400",
    "-1e400", "1e39", ".5", "5.", "5e-1",
)  # fmt: skip
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("true", "false"),
    "SMALLINT": ("0", "-1", "32767", "-32768"),
    "INT": ("0", "2", "2147483647", "-2147483648"),
    "BIGINT": ("0", "1", "9223372036854775807", "-9223372036854775808", "4294967296"),
    "REAL": (*FLOATS, "3e38", "1e-40", "16777217"),
    "DOUBLE PRECISION": (*FLOATS, "1e300", "1e-320", "9007199254740993", "1e39", "9.3e18"),
    "DECIMAL(10,2)": ("0", "1.50", "-2.25", "99999999.99", "0.01"),
    "DECIMAL(38,10)": ("0", "2.5", "-2.5", "3.7", "1234567890123456789012345678.0123456789", "-0.0000000001", "32767.4999999999",
                       "9223372036854775807.5", "99999.5"),
    "VARCHAR": TEXTS,
    "BYTEA": ("\\x", "\\x6162", "\\x00ff", "abc"),
    "DATE": ("2024-02-29", "1970-01-01", "0001-01-01", "9999-12-31"),
    "TIME": ("00:00", "12:34:56", "23:59:59.999999"),
    "TIMESTAMP": ("2024-02-29 12:34:56.789", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59", "0001-01-01 00:00:00"),
    "TIMESTAMPTZ": ("2024-02-29 12:34:56.789+00", "2024-03-10 06:30:00-04"),
    "INTERVAL": ("0", "1 month", "-1 mon +1 day", "36 hours", "1 year 2 mons 3 days 04:05:06.789", "-00:00:01", "1 mon -1 day"),
    "UUID": ("123e4567-e89b-12d3-a456-426614174000",),
    "JSON": ("1", "1.5", '"x"', '"12"', "null", "true", '{"a": 1}', " [ 1 , 2 ] "),
    "BIGINT[]": ("{}", "{1,2}", "{NULL}", "{9223372036854775807}"),
    "VARCHAR[]": ("{}", "{1,2}", '{a,NULL,"b c"}', '{NULL,"null",""}'),
    "DATE[]": ("{2024-02-29}",),
    "DECIMAL(6,1)[]": ("{1.5,2}",),
}

INTEGERS: Final = ("SMALLINT", "INT", "BIGINT", "BIGINT[]")
REALS: Final = ("REAL", "DOUBLE PRECISION")
TEXTED: Final = (*REALS, "BYTEA", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "BIGINT[]", "VARCHAR[]", "DATE[]", "DECIMAL(6,1)[]")

Side = Answer | Failure


def _value(side: Side) -> Any:
    return side.rows[0][0] if isinstance(side, Answer) else None


def _refused(side: Side) -> bool:
    return isinstance(side, Failure)


def _cut(source: str, target: str, text: str, ours: Side, theirs: Side) -> bool:
    if target not in INTEGERS or not (source in REALS or source.startswith("DECIMAL")) or _refused(ours):
        return False
    numbers = text.strip("{}").split(",")
    found = _value(ours) if isinstance(_value(ours), list) else [_value(ours)]
    return found == [int(float(each)) if abs(float(each)) < 2**53 else int(each.split(".")[0]) for each in numbers]


def _digits(source: str, target: str, text: str, ours: Side, theirs: Side) -> bool:
    close = {"REAL": 1e-5, "DOUBLE PRECISION": 2e-15}.get(source)
    if close is None or not target.startswith("DECIMAL") or _refused(ours) or _refused(theirs):
        return False
    return abs(float(_value(ours)) - float(_value(theirs))) <= close * abs(float(_value(theirs)))


def _json(source: str, target: str, text: str, ours: Side, theirs: Side) -> bool:
    return target == "JSON" and isinstance(ours, Answer) and isinstance(theirs, Answer) and json.loads(_value(ours)) == _value(theirs)


def _times(source: str, target: str, text: str, ours: Side, theirs: Side) -> bool:
    return source == "VARCHAR" and target == "TIME" and (_refused(ours) or text == "24:00:00")


RULES: Final[dict[str, Callable[[str, str, str, Side, Side], bool]]] = {
    "a number cast to an integer is cut there, as in the base": _cut,
    "a double cast to a decimal has all its digits, not fifteen; a real not six": _digits,
    "JSON is text, and Postgres's driver reads it": _json,
    "a time of day is a time alone, of two digits each; 24:00 is midnight": _times,
    "texts of doubles, timestamps, intervals, bytes and lists are the base's":
        lambda source, target, text, ours, theirs: target == "VARCHAR" and source in TEXTED,
    "decimals have no NaN":
        lambda source, target, text, ours, theirs: text == "NaN" and target.startswith("DECIMAL") and _refused(ours),
    "dates are written as ISO has them":
        lambda source, target, text, ours, theirs: source == "VARCHAR" and target in ("DATE", "TIMESTAMP", "TIMESTAMPTZ")
        and text in ("Feb 29 2024", "2024-001", "040506") and _refused(ours),
    "what is too small for a float is zero":
        lambda source, target, text, ours, theirs: target in REALS and text in ("1e-400", "1e-320") and _value(ours) == 0,
    "floats are written in decimal": lambda source, target, text, ours, theirs: text == "0x1F" and target in REALS,
    "lists are written in brackets too, and items of texts may be lists":
        lambda source, target, text, ours, theirs: source == "VARCHAR" and target.endswith("[]") and text == "[1,2]",
    "bytes that are not hexadecimal are the text's": lambda source, target, text, ours, theirs: target == "BYTEA" and text[:2] != "\\x",
    "an interval's text has nothing but its parts": lambda source, target, text, ours, theirs: target == "INTERVAL" and _refused(ours),
    "numbers of JSON are doubles": lambda source, target, text, ours, theirs: target == "JSON" and "1e400" in text and _refused(ours),
}  # fmt: skip


def ask(engine: Engine, sql: str) -> Side:
    """The answer, or the failure."""
    try:
        return engine.execute(sql)
    except Failure as failure:
        return failure


def alike(ours: Side, theirs: Side) -> bool:
    """Whether both answer the same value, or refuse for the same reason."""
    if isinstance(ours, Failure) and isinstance(theirs, Failure):
        pair = (ours.sqlstate, theirs.sqlstate)
        return theirs.sqlstate == "" or pair[0] == pair[1] or pair in STATES or pair == ("22008", "22007")
    return isinstance(ours, Answer) and isinstance(theirs, Answer) and same_answer(ours, theirs, ordered=True)


@pytest.mark.parametrize("source", VALUES)
def test_casts_are_those_of_postgres(source: str, postgres: str) -> None:
    """Each value of the type cast to each type answers as Postgres does, or by a rule."""
    ours, theirs = LakeEngine(), PostgresEngine(postgres, schema="casts")
    wrong: list[str] = []
    try:
        for target in TYPES:
            known = ask(theirs, f"SELECT CAST(CAST(NULL AS {source}) AS {target})")
            for text in VALUES[source]:
                sql = f"SELECT CAST(v AS {target}) FROM (SELECT CAST('{text}' AS {source}) AS v) t"
                one = ask(ours, sql)
                if isinstance(one, Failure) and one.sqlstate in OUR_MISTAKES:
                    wrong.append(f"{sql}\n  {one.message}")
                if isinstance(known, Failure):
                    continue
                two = ask(theirs, sql)
                if not alike(one, two) and not any(rule(source, target, text, one, two) for rule in RULES.values()):
                    wrong.append(f"{sql}\n  {_shown(one)}\n  {_shown(two)}")
    finally:
        ours.close()
        theirs.close()
    assert not wrong, "\n".join(wrong)


def _shown(side: Side) -> str:
    return f"error {side.sqlstate}: {side.message.splitlines()[0]}" if isinstance(side, Failure) else row_text(side.rows[0])
