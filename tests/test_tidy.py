"""The rules of the house hold, and each of them finds what it looks for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import pytest

from tests import tidy


@pytest.mark.parametrize("rule", tidy.CHECKS, ids=lambda rule: rule.__name__)
def test_the_house_is_tidy(rule: Callable[[], Iterator[str]]) -> None:
    """No file breaks the rule."""
    found = list(rule())
    assert not found, "\n".join(found)


def source(path: str, text: str) -> tidy.Source:
    """A file of a test's own."""
    return tidy.Source(path, text, ast.parse(text))


@pytest.mark.parametrize(
    ("rule", "path", "text", "words"),
    [
        (tidy.check_layers, "lake/storage/a.py", '"""A."""\nfrom lake.db import session\n', "storage imports lake.db"),
        (tidy.check_rows, "lake/exec/functions/a.py", '"""A."""\ndef f(x):\n    return map_rows(x)\n', "f goes row by row and is"),
        (tidy.check_rows, "lake/exec/functions/a.py", '"""A."""\n@per_row\ndef f(x):\n    """F."""\n', "f does not say why"),
        (tidy.check_rows, "lake/db/a.py", '"""A."""\neval("1")\n', "eval runs text as code"),
        (tidy.check_layers, "lake/exec/a.py", '"""A."""\nfrom lake import db\n', "exec imports lake.db"),
        (tidy.check_layers, "lake/sql/a.py", '"""A."""\nimport lake.storage.log\n', "sql sees of storage only"),
        (tidy.check_sizes, "lake/db/a.py", "\n" * 600, "600 lines"),
        (tidy.check_sizes, "lake/db/a.py", "def f():\n" + "    pass\n" * 80, "f has 81 lines"),
        (tidy.check_docstrings, "lake/db/a.py", "def f():\n    return 1\n", "f has no docstring"),
        (tidy.check_docstrings, "lake/db/a.py", '"""no sentence"""\n', "does not start with a sentence"),
        (tidy.check_places, "lake/db/a.py", "import os\nx = os.environ\n", "only config.py"),
        (tidy.check_places, "lake/db/a.py", "print(1)\n", "print stands"),
        (tidy.check_places, "lake/db/a.py", 'import re\nX: Final = re.compile("x")\n', "compiled at import"),
        (tidy.check_places, "lake/db/a.py", "async def f(): ...\n", "coroutines live"),
        (tidy.check_places, "lake/db/a.py", "try:\n    x\nexcept:\n    y\n", "bare except"),
    ],
)
def test_a_rule_finds_what_breaks_it(
    monkeypatch: pytest.MonkeyPatch, rule: Callable[[], Iterator[str]], path: str, text: str, words: str
) -> None:
    """The rule says where and what."""
    monkeypatch.setattr(tidy, "sources", lambda: (source(path, text),))
    monkeypatch.setattr(tidy, "LONG_FILES", {})
    monkeypatch.setattr(tidy, "LONG_FUNCTIONS", {})
    assert any(words in line and line.startswith(path) for line in rule())


def test_downward_imports_and_names_for_the_type_checker_are_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs goes down; TYPE_CHECKING is not run."""
    text = (
        '"""A."""\nfrom typing import TYPE_CHECKING\nfrom lake.sql import plan\nfrom lake import types\n'
        "if TYPE_CHECKING:\n    from lake.db import session\n"
    )
    monkeypatch.setattr(tidy, "sources", lambda: (source("lake/exec/a.py", text),))
    assert list(tidy.check_layers()) == []


def test_rules_whose_alternatives_are_all_named_are_told_apart() -> None:
    """Such a rule makes no call of its own: the names after its arrows do."""
    assert tidy._all_aliased('"a" b -> x\n | "|" c -> y')
    assert not tidy._all_aliased('"a" (b | c)\n | c -> y')
