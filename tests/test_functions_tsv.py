"""The catalogue's comparison: what engines only write differently agrees, and other answers do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines import LakeEngine
from tests.functions_tsv import Row, agrees, judge, read


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("3.5 | 7", "3.5 | 7"),
        ("1.5707963267948966", "1.570796326795"),
        ("[NULL, 1, 2]", "[null, 1, 2]"),
        ("{1: a, 2: b}", "{1 -> a, 2 -> b}"),
        ("{a: 2, b: 1}", "{a=2, b=1}"),
        ("{a: 1, b: x}", "{'a': 1, 'b': x}"),
        ("2024-03-01T12:00:00", "2024-03-01 12:00:00"),
        ("a |  / NULL | b", "a | (empty) / NULL | b"),
    ],
)
def test_agrees(answer: str, result: str) -> None:
    """Only the writing differs."""
    assert agrees(answer, result)


@pytest.mark.parametrize(
    ("answer", "result"),
    [("3", "4"), ("[1, 2]", "[2, 1]"), ("a", "A"), ("1 | 2", "1"), ("NULL", "(empty)"), ("1.00001", "1")],
)
def test_differs(answer: str, result: str) -> None:
    """Another value differs."""
    assert not agrees(answer, result)


def test_judges_a_catalogue(tmp_path: Path) -> None:
    """Each row of a file is run and judged, Spark's under its dialect where the base disagrees."""
    head = "name\tkind\torigin\taliases\targ_types\treturn_type\texample\tresult\tmeaning\tnote"
    path = tmp_path / "functions.tsv"
    path.write_text(
        "\n".join(
            [
                head,
                "abs\tscalar\tdatafusion\t\t\t\tSELECT abs(-3.5)\t3.5\t\t",
                "concat\tscalar\tspark\t\t\t\tSELECT concat('a', NULL)\tNULL\t\t",
                "sqrt\tscalar\tdatafusion\t\t\t\tSELECT sqrt(4)\t3\t\t",
                "nowhere\tscalar\tduckdb\t\t\t\tSELECT nowhere(1)\t1\t\t",
                "upper\tscalar\tduckdb\t\t\t\t\t\t\t",
                "nothing\tscalar\tduckdb\t\t\t\t\t\t\t",
            ]
        )
    )
    engine = LakeEngine()
    try:
        verdicts = [judge(engine, row) for row in read(path)]
    finally:
        engine.close()
    assert isinstance(verdicts[0].row, Row)
    assert [verdict.word for verdict in verdicts] == ["agree", "agree", "differ", "refused", "known", "unknown"]
    assert "nowhere does not exist" in verdicts[3].answer
