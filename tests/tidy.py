"""The rules of the house that a program can check; `python -m tests check` runs them, and so does pytest.

    layers      an import goes to the module's own layer or to one below it
    sizes       files of at most 500 lines, functions of at most 70; exceptions are listed here with their reason
    docstrings  every module, class and public function has one, and its first line is a sentence
    places      os.environ in config.py, print in program files, async in net and doors, and nowhere else; no pattern is
                compiled at import
    words       marks of unfinished work, and paths of one machine
    grammar     every rule of the grammar has a builder method, and every builder method a rule
    settings    a setting marked as used is read somewhere, and one marked as unused is not
    rows        a function that goes row by row in Python is marked, and says why; none runs text as code

Each rule answers lines of ``path:line: what is wrong``; none of them changes anything.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

# Lower stands first. The package `lake` itself is the embedded API and may import everything, as the program may.
LAYERS: Final = ("foundation", "storage", "sql", "exec", "db", "net", "doors", "program")
FOUNDATION: Final = (
    "errors", "types", "arrow_names", "narrow", "rows", "config", "roles", "clock", "metrics", "log", "compiled", "primitives",
    "compiler", "lowering", "prepared", "shortcuts", "late", "scram",
)  # fmt: skip
PROGRAM: Final = ("__init__", "__main__", "cli", "shell", "workspace", "connection", "client", "docs", "embedded")
PRINTS: Final = ("cli.py", "shell.py", "client.py", "workspace.py", "docs.py", "__main__.py")
ENVIRONMENT: Final = ("config.py", "storage/objects/cloud.py")
ASYNC: Final = ("net/", "doors/", "client.py", "cli.py", "shell.py")

# What sql may see of storage, by name.
SQL_SEES_OF_STORAGE: Final = ("lake.storage.catalog",)

FILE_LINES_MAX: Final = 500
FUNCTION_LINES_MAX: Final = 70
LONG_FILES: Final[dict[str, str]] = {}
LONG_FUNCTIONS: Final[dict[str, str]] = {}

MARKS: Final = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATHS: Final = re.compile(r"(?<![\w.~])/(?:work|root|home)/\w")


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file of the repository: its path from the root, text and tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def inside(self) -> str:
        """The path inside the package `lake`, or "" for a file that is not of it."""
        return self.path.removeprefix("lake/") if self.path.startswith("lake/") else ""

    @property
    def layer(self) -> str | None:
        """The layer of a file of `lake`; None for any other file."""
        first = self.inside.split("/")[0].removesuffix(".py")
        return layer_of(first) if self.inside else None


def layer_of(name: str) -> str:
    """The layer of ``lake.<name>``; ``__version__`` and the like are everyone's.

    A module at the root that is none of the listed ones is an error of the one who put it there.
    """
    if name in FOUNDATION or (name.startswith("__") and name not in PROGRAM):
        return "foundation"
    if name in PROGRAM:
        return "program"
    assert name in LAYERS, f"lake/{name} is in no layer: list it in tests/tidy.py"
    return name


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of `lake` and of the tests."""
    found = [path for folder in ("lake", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]
    texts = ((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in found)
    return tuple(Source(path, text, ast.parse(text, path)) for path, text in texts)


def of_lake() -> Iterator[Source]:
    """The files of `lake` itself."""
    return (source for source in sources() if source.inside)


def check_layers() -> Iterator[str]:
    """Imports that go upward, doors that import one another, and sql reading storage."""
    for source in of_lake():
        assert source.layer is not None
        for line, module in _imports(source.tree):
            if module.split(".")[0] != "lake":
                continue
            parts = module.split(".")
            layer = layer_of(parts[1]) if len(parts) > 1 else "program"
            if LAYERS.index(layer) > LAYERS.index(source.layer):
                yield f"{source.path}:{line}: {source.layer} imports {module}, which is {layer}"
            if source.layer == "sql" and layer == "storage" and not module.startswith(SQL_SEES_OF_STORAGE):
                yield f"{source.path}:{line}: sql sees of storage only {', '.join(SQL_SEES_OF_STORAGE)}, not {module}"
            here = source.inside.split("/")
            if source.layer == layer == "doors" and len(here) > 2 and len(parts) > 2 and parts[2] != here[1]:
                # Modules at the root of doors (base, routes) are shared; another door's are not.
                if (ROOT / "lake" / "doors" / parts[2]).is_dir():
                    yield f"{source.path}:{line}: the door {here[1]} imports the door {parts[2]}"


def check_sizes() -> Iterator[str]:
    """Files and functions that are longer than what one screen and one subject hold."""
    for source in sources():
        lines = source.text.count("\n")
        if lines > FILE_LINES_MAX and source.path not in LONG_FILES:
            yield f"{source.path}:1: {lines} lines; a file has at most {FILE_LINES_MAX}"
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size > FUNCTION_LINES_MAX and f"{source.path}:{node.name}" not in LONG_FUNCTIONS:
                    yield f"{source.path}:{node.lineno}: {node.name} has {size} lines, over {FUNCTION_LINES_MAX}"
    known = {source.path for source in sources()}
    for path in (*LONG_FILES, *(name.partition(":")[0] for name in LONG_FUNCTIONS)):
        if path not in known:
            yield f"tests/tidy.py:1: {path} is listed as long, and there is no such file"


def check_docstrings() -> Iterator[str]:
    """Modules, classes and public functions of `lake` that say nothing of themselves."""
    for source in of_lake():
        for node, owner in _documented(source.tree):
            text = ast.get_docstring(node)
            name = getattr(node, "name", "module")
            line = getattr(node, "lineno", 1)
            if not text:
                yield f"{source.path}:{line}: {owner}{name} has no docstring"
            elif not _first_sentence(text).endswith((".", ":", "?", "::")):
                yield f"{source.path}:{line}: the docstring of {owner}{name} does not start with a sentence"
    for source in sources():
        if source.path.startswith("tests/") and not ast.get_docstring(source.tree):
            yield f"{source.path}:1: module has no docstring"


def check_places() -> Iterator[str]:
    """Things that stand in one place only: the environment, printing, coroutines; compiled patterns in none."""
    for source in of_lake():
        for node in source.tree.body:
            if (
                isinstance(node, ast.Assign | ast.AnnAssign)
                and node.value
                and ast.unparse(node.value).startswith("re.compile(")
            ):
                yield f"{source.path}:{node.lineno}: a pattern compiled at import; lake.late.late_pattern waits for its first use"
        for node in ast.walk(source.tree):
            match node:
                case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "getenv" | "environb"):
                    if source.inside not in ENVIRONMENT:
                        yield f"{source.path}:{node.lineno}: only config.py reads the environment"
                case ast.Call(func=ast.Name(id="print")):
                    if source.inside not in PRINTS:
                        yield f"{source.path}:{node.lineno}: print stands in program files only; log with lake.log"
                case ast.AsyncFunctionDef():
                    if not source.inside.startswith(ASYNC):
                        yield f"{source.path}:{node.lineno}: async def {node.name}: coroutines live in net and doors"
                case ast.ExceptHandler(type=None):
                    yield f"{source.path}:{node.lineno}: a bare except"


def check_words() -> Iterator[str]:
    """Marks of unfinished work, and absolute paths that only one machine has."""
    for path, text in _tracked_texts():
        for number, line in enumerate(text.splitlines(), 1):
            if path != "tests/tidy.py" and MARKS.search(line):
                yield f"{path}:{number}: {MARKS.search(line)[0]} is left"  # type: ignore[index]
            if path != "tests/tidy.py" and MACHINE_PATHS.search(line):
                yield f"{path}:{number}: an absolute path of one machine"


def check_grammar() -> Iterator[str]:
    """Grammar rules without a builder method, and builder methods without a rule."""
    rules, inlined = grammar_names()
    methods = builder_methods()
    for name in sorted(set(rules) - set(methods)):
        yield f"{rules[name]}: rule {name} has no method in lake/sql/build"
    for name in sorted(set(methods) - set(rules) - inlined):
        yield f"{methods[name]}: method {name} has no rule in grammars"


def check_settings() -> Iterator[str]:
    """Settings whose mark says something else than the code does."""
    from lake.config import SETTINGS

    names = {row.name for row in SETTINGS}
    read: set[str] = set()
    for source in of_lake():
        if source.inside != "config.py":
            read |= {node.attr for node in ast.walk(source.tree) if _reads_setting(node)} & names
    for row in SETTINGS:
        if row.used and row.name not in read:
            yield f"lake/config.py:1: setting {row.name} is marked as used, and nothing reads it"
        if not row.used and row.name in read:
            yield f"lake/config.py:1: setting {row.name} is marked as unused, and something reads it"


# What goes through rows in Python, and the folders and files whose functions get rows.
ROW_LOOPS: Final = frozenset(("map_rows", "map_distinct", "over_texts", "by_ascii", "to_pylist"))
ROW_PLACES: Final = ("lake/exec/functions/", "lake/exec/cast", "lake/db/functions/")
# The loops themselves; and functions that look at one row, at a message or at rows that Arrow could not read.
LOOPS_ALLOWED: Final = (
    "lake/exec/functions/columns.py", "lake/exec/functions/binary.py:_decode", "lake/exec/functions/collecting.py",
    "lake/exec/functions/dates.py:next_day", "lake/exec/functions/json_members.py", "lake/exec/functions/session.py:error",
    "lake/exec/functions/pg.py:pg_sleep", "lake/exec/functions/regexes.py",
    "lake/exec/functions/xml.py:_register", "lake/exec/functions/readable.py:_register_size", "lake/db/functions/ai.py:_asked",
)  # fmt: skip


def check_rows() -> Iterator[str]:
    """Row loops that are not marked or do not say why, and calls that run text as code."""
    for source in of_lake():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                yield f"{source.path}:{node.lineno}: {node.func.id} runs text as code"
        if not source.path.startswith(ROW_PLACES):
            continue
        for function in source.tree.body:
            if not isinstance(function, ast.FunctionDef) or f"{source.path}:{function.name}".startswith(LOOPS_ALLOWED):
                continue
            names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(function)}
            is_marked = any(ast.unparse(mark) == "per_row" for mark in function.decorator_list)
            says_why = " row by row" in " ".join((ast.get_docstring(function) or "").split())
            if names & ROW_LOOPS and not is_marked:
                yield f"{source.path}:{function.lineno}: {function.name} goes row by row and is not marked @per_row"
            if is_marked and not says_why:
                yield f"{source.path}:{function.lineno}: {function.name} does not say why it goes row by row"


CHECKS: Final[tuple[Callable[[], Iterator[str]], ...]] = (
    check_layers,
    check_sizes,
    check_docstrings,
    check_places,
    check_words,
    check_grammar,
    check_settings,
    check_rows,
)


def main() -> int:
    """Prints what is wrong; 0 when nothing is."""
    found = [line for rule in CHECKS for line in rule()]
    print("\n".join(found) or "tidy: nothing to say")
    if found:
        print(f"tidy: {len(found)} places")
    return 1 if found else 0


# A rule at the start of a line: modifiers, name, template parameters, priority, colon. Aliases stand after an arrow.
_RULE: Final = re.compile(r"^(?P<mark>[?!]*)(?P<name>_?[a-z]\w*)(?:\{[^}]*\})?(?:\.-?\d+)?\s*:", re.MULTILINE)
_ALIAS: Final = re.compile(r"->\s*(?P<name>[a-z]\w*)")


def grammar_names() -> tuple[dict[str, str], set[str]]:
    """Rule names and aliases that reach the builder, each with its place; and the rules that may.

    A rule whose alternatives all carry an alias, and one that starts with an underscore, makes no call of its own. A
    ``?rule`` makes one where it holds several things, and none where it holds one.
    """
    found: dict[str, str] = {}
    inlined: set[str] = set()
    for path in sorted((ROOT / "grammars").glob("*.lark")):
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        starts = list(_RULE.finditer(text))
        for start, following in zip(starts, [*starts[1:], None], strict=True):
            body = text[start.end() : following.start() if following else len(text)]
            place = f"grammars/{path.name}:{text.count(chr(10), 0, start.start()) + 1}"
            found |= {alias["name"]: place for alias in _ALIAS.finditer(body)}
            if "?" in start["mark"]:
                inlined.add(start["name"])
            elif not start["name"].startswith("_") and not _all_aliased(body):
                found[start["name"]] = place
    return found, inlined


def builder_methods() -> dict[str, str]:
    """Public methods of the classes in lake/sql/build that no other method calls, each with its place."""
    found: dict[str, str] = {}
    called: set[str] = set()
    for source in of_lake():
        if not source.inside.startswith("sql/build/"):
            continue
        for node in ast.walk(source.tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                    called.add(name)
                case ast.ClassDef(body=body):
                    methods = [item for item in body if isinstance(item, ast.FunctionDef)]
                    found |= {each.name: f"{source.path}:{each.lineno}" for each in methods if each.name[0] != "_"}
    # One that others call helps them; where it is a rule's too, the rule finds it all the same.
    rules, inlined = grammar_names()
    return {name: place for name, place in found.items() if name not in called or name in rules or name in inlined}


def _all_aliased(body: str) -> bool:
    """Whether every top-level alternative of a rule's body has an alias."""
    flat = re.sub(r'"(?:\\.|[^"\\])*"i?|/(?:\\.|[^/\\\n])+/[a-z]*', " ", body)
    depth, alternatives = 0, [""]
    for letter in flat:
        depth += (letter in "([") - (letter in ")]")
        if letter == "|" and depth == 0:
            alternatives.append("")
        else:
            alternatives[-1] += letter
    return all("->" in alternative for alternative in alternatives)


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Modules imported where the program runs; those under TYPE_CHECKING are names for the type checker alone."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module in ("lake", "lake.storage"):
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module


def _documented(tree: ast.Module) -> Iterator[tuple[ast.Module | ast.ClassDef | ast.FunctionDef, str]]:
    """What must have a docstring: the module, its classes, and their public functions; with the owner's name."""
    yield tree, ""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith("_"):
                yield node, ""  # type: ignore[misc]
            case ast.ClassDef(name=name) if not name.startswith("_"):
                yield node, ""
                if _is_implementation(node):
                    continue
                for item in node.body:
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_"):
                        if not _is_plain_accessor(item):
                            yield item, f"{name}."  # type: ignore[misc]


def _is_implementation(node: ast.ClassDef) -> bool:
    """Whether the class implements another, whose methods say what they do."""
    return bool(node.bases)


def _is_plain_accessor(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a property answers one expression, so that its name is its sentence."""
    return bool(node.decorator_list) and len(node.body) == 1


def _first_sentence(text: str) -> str:
    """The docstring's first paragraph, as one line."""
    return " ".join(text.split("\n\n")[0].split())


def _reads_setting(node: ast.AST) -> bool:
    """Whether a node is ``config.name``, ``<anything>.config.name`` or ``load().name``."""
    match node:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="load"))):
            return True
        case ast.Attribute(value=ast.Name(id="config") | ast.Attribute(attr="config" | "_config")):
            return True
    return False


def _tracked_texts() -> Iterator[tuple[str, str]]:
    """Text files of the repository, known to git where there is one."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    paths = [ROOT / name for name in listed.stdout.splitlines()] if listed.returncode == 0 else ROOT.rglob("*")
    for path in paths:
        if (
            path.is_file()
            and path.suffix in (".py", ".md", ".lark", ".toml", ".slt", ".txt", ".yml", "")
            and (path.name != "LICENSE" and "__pycache__" not in path.parts)
        ):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
