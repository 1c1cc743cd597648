"""The function reference: every function is in it, with what its docstring says."""

from __future__ import annotations

import re
from pathlib import Path

import lake.db  # noqa: F401
from lake.cli import main
from lake.docs import entries, pages
from lake.sql.registry import FUNCTIONS


def test_every_name_is_in_the_reference() -> None:
    """Each name of the registry is an entry or another name of one, with all its overloads."""
    found = entries()
    named = {entry.name for entry in found} | {name for entry in found for name in entry.others}
    assert named == set(FUNCTIONS)
    assert all(entry.signatures for entry in found)


def test_pages_lead_to_each_other() -> None:
    """Every link of the first page is a section of the page it names."""
    made = pages()
    links = re.findall(r"\]\((\w+\.md)#([^)]+)\)", made["functions/README.md"])
    assert len(links) > 600
    for page, anchor in links[::25]:
        assert f"## `{anchor}" in made[f"functions/{page}"].lower(), (page, anchor)


def test_a_section(tmp_path: Path) -> None:
    """Signature, text, example with its answer, errors and other names."""
    assert main(["docs", str(tmp_path)]) == 0
    text = (tmp_path / "functions" / "json.md").read_text()
    section = text[text.index("## `json_extract`") :]
    section = section[: section.index("\n## ", 5)]
    assert "json_extract(document JSON, path VARCHAR) -> JSON" in section
    assert """SELECT json_extract('{"species": ["duck", "goose"]}', '$.species[0]')\n-- "duck\"""" in section
    assert "also `json_extract_path`" in section
    assert "* `22P02` a text that is not JSON" in text
