"""The function reference as Markdown, from the registry: what ``lake docs DIR`` writes.

    functions/README.md      every group with its functions
    http.json                the HTTP door as OpenAPI
    functions/<group>.md     each function: signatures, text, errors, examples, other names

Overloads that are one piece of code are one entry, and so are the names that a function has besides its own.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from lake.late import late_pattern
from lake.sql.registry import FUNCTIONS, Aggregate, Function, Generator, Parameter, Scalar, TableFunction, Window

KINDS: Final = {
    Scalar: "scalar", Aggregate: "aggregate", Window: "window", TableFunction: "table", Generator: "generator",
}  # fmt: skip
ORIGINS: Final = {
    "base": "the base dialect", "postgres": "PostgreSQL", "duckdb": "DuckDB", "spark": "Spark", "lake": "lake",
    "spec": "lake",
}  # fmt: skip
TITLE: Final = """# Functions

Written by `lake docs` from the program's own table of functions; the examples are run as its tests.
"""
_ERROR: Final = late_pattern(r"([0-9A-Z]{5})  (.+)")


class Entry(Struct):
    """A function with all its overloads and names."""

    name: str
    group: str
    kind: str
    origin: str
    doc: str
    signatures: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def entries() -> list[Entry]:
    """The functions of the registry in order of group and name."""
    found: dict[tuple[str, str, str], Entry] = {}
    for name, overloads in FUNCTIONS.items():
        for item in overloads:
            key = (item.group, KINDS[type(item)], item.doc)
            entry = found.get(key)
            if entry is None:
                entry = found[key] = Entry(name, item.group, KINDS[type(item)], item.origin, item.doc)
            if name != entry.name:
                if name not in entry.others:
                    entry.others.append(name)
            elif (text := signature_text(item)) not in entry.signatures:
                entry.signatures.append(text)
    return sorted(found.values(), key=lambda entry: (entry.group, not entry.name[0].isalpha(), entry.name))


def signature_text(function: Function) -> str:
    """``f(a TYPE, b TYPE DEFAULT x, rest TYPE...) -> TYPE``."""
    parameters = ", ".join(map(_parameter, function.signature.parameters))
    return f"{function.name}({parameters}) -> {function.signature.returns}"


def _parameter(item: Parameter) -> str:
    default = f" DEFAULT {item.default}" if item.default is not None else ""
    return f"{item.name} {item.type}{'...' if item.variadic else ''}{default}"


def pages() -> dict[str, str]:
    """The text of each page, by its path below the folder."""
    by_group: dict[str, list[Entry]] = {}
    for entry in entries():
        by_group.setdefault(entry.group, []).append(entry)
    made = {f"functions/{group}.md": _page(group, found) for group, found in by_group.items()}
    lines = [TITLE]
    for group, found in by_group.items():
        names = ", ".join(f"[`{entry.name}`]({group}.md#{_anchor(entry.name)})" for entry in found)
        lines.append(f"## [{_title(group)}]({group}.md)\n\n{names}\n")
    return {"functions/README.md": "\n".join(lines), **made}


def write_reference(folder: Path) -> list[Path]:
    """Writes all pages below a folder, made if it is not there; the files."""
    written = []
    for path, text in (pages() | {"http.json": http_description()}).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def http_description() -> str:
    """The HTTP door as OpenAPI."""
    import lake.doors.http.app  # noqa: F401  (every endpoint is registered)
    from lake.doors.http.openapi import describe

    return json.dumps(describe(), indent=1)


def _page(group: str, found: list[Entry]) -> str:
    return "\n".join([f"# {_title(group)}\n", *map(_section, found)])


def _section(entry: Entry) -> str:
    texts, errors, examples = _parts(entry.doc)
    blocks = [f"## `{entry.name}`", "```\n" + "\n".join(entry.signatures) + "\n```", *texts]
    if examples:
        blocks.append("```sql\n" + "\n".join(examples) + "\n```")
    if errors:
        blocks.append("\n".join(f"* `{state}` {words}" for state, words in errors))
    notes = [f"{entry.kind.capitalize()} function", f"as of {ORIGINS.get(entry.origin, entry.origin)}"]
    if entry.others:
        notes.append("also " + ", ".join(f"`{name}`" for name in entry.others))
    blocks.append("; ".join(notes) + ".")
    return "\n\n".join(blocks) + "\n"


def _parts(doc: str) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """A docstring's paragraphs, its errors by SQLSTATE, and its examples with their answers as comments."""
    texts: list[str] = []
    errors: list[tuple[str, str]] = []
    examples: list[str] = []
    for block in _blocks(inspect.cleandoc(doc)):
        if block[0].startswith(">>> "):
            for line in block:
                code = line.removeprefix(">>> ")
                if line is code:
                    examples.append(f"-- {line}")
                else:
                    examples.append(code if code.upper().startswith(("SELECT ", "FROM ")) else f"SELECT {code}")
        elif _ERROR.match(block[0]):
            for line in block:
                errors += [(found[1], found[2].strip()) for part in re.split(r" {3,}", line) if (found := _ERROR.match(part))]
        elif all("  " in line.strip() for line in block):
            texts.append("```\n" + "\n".join(block) + "\n```")
        else:
            texts.append(" ".join(line.strip() for line in block))
    return texts, errors, examples


def _blocks(text: str) -> Iterator[list[str]]:
    """Runs of lines that are not blank."""
    for part in re.split(r"\n\s*\n", text):
        lines = [line for line in part.splitlines() if line.strip()]
        if lines:
            yield lines


def _title(group: str) -> str:
    return group.upper() if group in ("ai", "json", "xml") else group.capitalize()


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "", name.lower())
