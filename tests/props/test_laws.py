"""Laws of random queries, a few of each; `python -m tests props` tries more."""

from __future__ import annotations

import pytest

from tests.props.laws import LAWS

COUNT = 60


@pytest.mark.parametrize("law", sorted(LAWS))
def test_random_queries_keep_the_law(law: str) -> None:
    """What the law says holds for each query."""
    LAWS[law](COUNT, 1)
