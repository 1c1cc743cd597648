"""The grammar as tables that the parser runs: Lark makes them, a file in the user's cache keeps them.

Making them takes Lark about a second; reading them back takes milliseconds and needs no Lark at all, which is why they
are kept in this plain form and not as pickled Lark objects.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

GRAMMAR_FILES = ("lake", "session", "access", "table", "object", "dml", "change", "query", "expr", "terms", "keywords")
STARTS = ("script", "lone_expression", "lone_type")

# Part of the name of the kept file: raised when the form of the tables changes.
FORM = 2

# What a rule does with the values of its symbols: pass its only one on, gather them for the rule above, or call the
# builder of that name.
PASS, GATHER = "", "*"

Rule = tuple[str, int, str, tuple[tuple[int, bool], ...]]


class States(dict[int, dict[str, int]]):
    """The rows of an automaton by state. A statement meets a few hundred of the thousands, so each is unpacked when met.

    packed   for each state its row, marshalled, with a symbol's place in ``symbols`` for its name
    """

    def __init__(self, symbols: tuple[str, ...], packed: list[bytes]) -> None:
        super().__init__()
        self.symbols = tuple(map(sys.intern, symbols))
        self.packed = packed

    @classmethod
    def pack(cls, rows: list[dict[str, int]]) -> States:
        """The states with these rows."""
        symbols = tuple(sorted({symbol for row in rows for symbol in row}))
        places = {symbol: place for place, symbol in enumerate(symbols)}
        packed = [marshal.dumps([(places[symbol], action) for symbol, action in row.items()]) for row in rows]
        return cls(symbols, packed)

    def __missing__(self, state: int) -> dict[str, int]:
        symbols = self.symbols
        self[state] = row = {symbols[place]: action for place, action in marshal.loads(self.packed[state])}
        return row


class Tables(Struct, frozen=True):
    """An LALR(1) automaton.

    states   for each state, symbol to action: n >= 0 goes to state n, n < 0 reduces by rule ~n; read when first met
    rules    origin, symbols on its right side, builder (or PASS or GATHER), and which symbols' values it takes: pairs
             of index and whether the value is a gathered list; index -1 is None for an absent optional part
    starts   start rule to its first and last state
    words    keyword in capitals to terminal
    phrases  first word to the keywords of several words that begin so, longest first, each with its parts and terminal
    signs    operator or bracket to terminal
    reserved words that are never names
    """

    states: States
    rules: list[Rule]
    starts: dict[str, tuple[int, int]]
    words: dict[str, str]
    phrases: dict[str, list[tuple[tuple[str, ...], str]]]
    signs: dict[str, str]
    reserved: frozenset[str]

    def known_words(self) -> frozenset[str]:
        """Every word that is a keyword or part of one."""
        parts = (part for phrases in self.phrases.values() for parts, _ in phrases for part in parts)
        return frozenset(self.words).union(part for part in parts if part[0].isalpha())

    def spelling(self, terminal: str) -> str | None:
        """The text of a terminal, or None where it stands for many."""
        return _spellings(self).get(terminal)

    def __hash__(self) -> int:
        return id(self)


@cache
def _spellings(tables: Tables) -> dict[str, str]:
    spellings = {terminal: text for text, terminal in (*tables.words.items(), *tables.signs.items())}
    for phrases in tables.phrases.values():
        spellings.update((terminal, " ".join(parts)) for parts, terminal in phrases)
    return spellings


def load_tables() -> Tables:
    """The tables of the grammar, from the cache where they are there."""
    text = grammar_text()
    digest = hashlib.sha256(f"{FORM} {marshal.version} {_lark_stamp()}\n{text}".encode()).hexdigest()[:16]
    path = cache_folder() / f"grammar-{digest}.bin"
    tables = _kept(path)
    if tables is None:
        tables = compile_grammar(text)
        _keep(path, tables)
    return tables


def _lark_stamp() -> int:
    """Changes when another Lark is installed; asking for its version takes longer than reading the tables."""
    found = find_spec("lark")
    return Path(found.origin).stat().st_mtime_ns if found is not None and found.origin else 0


def grammar_text() -> str:
    """All grammar files as one text."""
    folder = _grammar_folder()
    return "\n".join((folder / f"{name}.lark").read_text(encoding="utf-8") for name in GRAMMAR_FILES)


def cache_folder() -> Path:
    """Where this user's tables are kept."""
    try:
        return Path.home() / ".cache" / "lake"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / "lake"


def compile_grammar(text: str) -> Tables:
    """The tables of a grammar in Lark's language."""
    from lark import Lark  # Only here: a process that finds its tables never pays for the import.

    lark = Lark(text, parser="lalr", lexer=_no_lexer(), start=list(STARTS), maybe_placeholders=True)
    frontend: Any = lark.parser
    table = frontend.parser._parse_table
    rules = list(lark.rules)
    numbers = {rule: number for number, rule in enumerate(rules)}
    states: list[dict[str, int]] = [{} for _ in table.states]
    for number, row in table.states.items():
        for symbol, (action, target) in row.items():
            if action.name == "Shift":
                states[number][str(symbol)] = target
            elif target in numbers:
                states[number][str(symbol)] = ~numbers[target]
    starts = {start: (table.start_states[start], table.end_states[start]) for start in STARTS}
    words, phrases, signs = _terminals(lark.terminals)
    reserved = (str(rule.expansion[0].name) for rule in rules if rule.origin.name == "reserved")
    return Tables(States.pack(states), [_rule(rule) for rule in rules], starts, words, phrases, signs, frozenset(reserved))


def _grammar_folder() -> Path:
    """The folder of the grammar: inside the package where it is installed, else beside it in the source tree."""
    here = Path(__file__).resolve().parent
    inside = here / "grammars"
    return inside if inside.is_dir() else here.parent.parent / "grammars"


def _kept(path: Path) -> Tables | None:
    """The tables of an earlier process; None where there are none, or a file that is not one of ours."""
    try:
        states, *rest = marshal.loads(path.read_bytes())
        return Tables(States(*states), *rest)
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _keep(path: Path, tables: Tables) -> None:
    """Writes the tables so that no reader ever sees half of them; a folder that takes no file is no failure."""
    states = (tables.states.symbols, tables.states.packed)
    parts = (states, tables.rules, tables.starts, tables.words, tables.phrases, tables.signs, tables.reserved)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(marshal.dumps(parts))
        Path(file.name).replace(path)
    except OSError as error:
        logging.getLogger(__name__).warning("the tables of the grammar cannot be kept in %s: %s", path.parent, error)


def _no_lexer() -> type:
    """A class that stands where Lark wants a lexer; tokens come from ``lexer.tokenize``."""
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        def __init__(self, lexer_conf: object) -> None:
            pass

        def lex(self, lexer_state: object, parser_state: object) -> Any:
            raise AssertionError("the parser reads its own tokens")

    return NoLexer


def _rule(rule: Any) -> Rule:
    """A rule of Lark in the form of ``Tables``, with Lark's meaning of ``?``, ``_``, quotes, brackets and aliases."""
    name, options = str(rule.origin.name), rule.options
    size = len(rule.expansion)
    absent = list(options.empty_indices or [False] * size)
    picks: list[tuple[int, bool]] = []
    index = 0
    for is_absent in absent:
        if is_absent:
            picks.append((-1, False))
            continue
        symbol = rule.expansion[index]
        if not symbol.is_term or options.keep_all_tokens or not symbol.filter_out:
            picks.append((index, not symbol.is_term and symbol.name.startswith("_")))
        index += 1
    if name.startswith("_"):
        return name, size, GATHER, tuple(picks)
    if options.expand1 and not rule.alias and len(picks) == 1 and not picks[0][1]:
        return name, size, PASS, tuple(picks)
    return name, size, str(rule.alias or name), tuple(picks)


def _terminals(
    terminals: Iterable[Any],
) -> tuple[dict[str, str], dict[str, list[tuple[tuple[str, ...], str]]], dict[str, str]]:
    """Words, phrases and signs, told apart by the spelling of each terminal."""
    words: dict[str, str] = {}
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    signs: dict[str, str] = {}
    for terminal in terminals:
        if not hasattr(terminal.pattern, "value"):
            continue
        text, name = str(terminal.pattern.value), str(terminal.name)
        parts = tuple(text.split(" "))
        if len(parts) > 1:
            phrases.setdefault(parts[0], []).append((parts, name))
        elif text[0].isalpha():
            words[text] = name
        else:
            signs[text] = name
    for options in phrases.values():
        options.sort(key=lambda option: -len(option[0]))
    return words, phrases, signs
