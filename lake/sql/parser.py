"""Text to syntax tree: runs the grammar's tables over the tokens, and turns a failure into 42601 with a caret.

The builder of a rule (``lake.sql.build``) is called as soon as the rule is complete, so there is no tree but the AST. The
parser also says what a word is. A keyword that is not reserved, or one of several words, is taken as such only when the
automaton can really go on with it; else the word is a name. That is exact where a contextual lexer, which sees one state
and its merged lookaheads, can only guess.
"""

from __future__ import annotations

import difflib
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import force_setattr

from lake.errors import FeatureNotSupported, LakeError, ProgramLimitExceeded, StatementTooComplex, SyntaxFailure
from lake.sql import ast
from lake.sql.build import Build
from lake.sql.lexer import END, WORD, Tokens, point_at, tokenize
from lake.sql.plain_rows import plain_insert
from lake.sql.shapes import parse_shape
from lake.sql.tables import GATHER, PASS, Tables, load_tables

# Characters of one script; a bulk load of this size belongs in a file.
TEXT_MAX = 64 * 1024 * 1024

# Levels of the tree. Every pass over a tree recurses, up to about ten Python frames for a level.
DEPTH_MAX = 1_000
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20 * DEPTH_MAX))

# Quantifiers that are functions where no comparison stands before them: ``any(x > 1)``.
CALLED_QUANTIFIERS = frozenset(("ANY", "SOME"))

# Operators that are names unless an operand follows, and the tokens it may begin with.
INFIX_WORDS = frozenset(("DIV", "GLOB", "RLIKE", "REGEXP"))
OPERAND_KINDS = frozenset(
    "STRING BYTES INTEGER DECIMAL FLOAT PARAMETER IDENT LPAR LSQB LBRACE MINUS PLUS TILDE AT QMARK".split()
)
OPERAND_WORDS = frozenset(
    "NULL TRUE FALSE CASE CAST NOT EXISTS ARRAY INTERVAL CURRENT_CATALOG CURRENT_DATE CURRENT_ROLE CURRENT_SCHEMA"
    " CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP SESSION_USER".split()
)

# Keywords listed in an error.
EXPECTED_MAX = 8

# What the dialect has and the grammar has not: statements by their first word, and words inside statements.
UNBUILT_STATEMENTS = frozenset(
    "ATTACH CALL DECLARE DETACH DO".split()
)
UNBUILT_WORDS = frozenset(
    "DATABASE FUNCTION GENERATED MACRO MATERIALIZED MERGE PROCEDURE RETURNING SECRET TASK".split()
)

_KIND_NAMES = {
    "IDENT": "a name",
    "STRING": "a text",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "FLOAT": "a number",
    "PARAMETER": "a parameter",
    "OPERATOR": "an operator",
    END: "the end",
}

# The order in which an error lists what was expected; anything else comes after, in the order of the alphabet.
_COMMON_WORDS = (
    "SELECT FROM WHERE JOIN ON USING AS GROUP_BY HAVING ORDER_BY LIMIT UNION AND OR NOT NULL TRUE FALSE CASE CAST EXISTS"
    " INTERVAL IN LIKE BETWEEN IS WITH VALUES INSERT_INTO CREATE DROP SHOW TABLE VIEW WHEN THEN ELSE END"
).split()
_COMMON_PLACE = {word.replace("_", " "): place for place, word in enumerate(_COMMON_WORDS)}

# Signs worth listing; operators go under one name.
_LISTED_SIGNS = frozenset("( ) , ; [ ] { } : =".split())

_loading = threading.Lock()
_loaded: list[_Machine] = []


def parse(text: str, dialect: str = "postgres") -> list[ast.Statement]:
    """The statements of a script, each with its ``span`` in ``text``.

    dialect  ``spark`` for Spark's strings and quoted names
    42601  the text is not a script of statements; the detail shows where and what could stand there
    54000  the text is longer than TEXT_MAX
    54001  an expression or query nested deeper than DEPTH_MAX
    """
    known = parse_known(text, dialect)
    if known is not None:
        return list(known)
    is_spark = dialect == "spark"
    plain: ast.Statement | None = None
    if not is_spark and len(text) <= TEXT_MAX:
        plain = plain_insert(text, _run_script) or parse_shape(text, _run_script)
    statements = _run(text, "script", spark=is_spark) if plain is None else [plain]
    assert isinstance(statements, list)
    if len(text) <= KEPT_CHARS:
        with _keeping:
            _kept[text, dialect] = tuple(statements)
            while len(_kept) > KEPT_TEXTS:
                _kept.popitem(last=False)
    return statements


def parse_known(text: str, dialect: str = "postgres") -> tuple[ast.Statement, ...] | None:
    """The statements of a script that was parsed a short while ago; None where it was not. They never change."""
    with _keeping:
        found = _kept.get((text, dialect))
        if found is not None:
            _kept.move_to_end((text, dialect))
        return found


JUMPS_MAX: Final = 100_000
_NODES: Final = frozenset(made for made in vars(ast).values() if isinstance(made, type) and issubclass(made, ast.Node))
KEPT_TEXTS: Final = 512
KEPT_CHARS: Final = 16 << 10  # a longer text is a load, not a statement that comes again
_kept: Final[OrderedDict[tuple[str, str], tuple[ast.Statement, ...]]] = OrderedDict()
_keeping: Final = threading.Lock()


def _run_script(text: str) -> object:
    return _run(text, "script")


def parse_expression(text: str) -> ast.Expr:
    """A text that is one expression, such as a column's stored DEFAULT."""
    expr = _run(text, "lone_expression")
    assert isinstance(expr, ast.Expr)
    return expr


def parse_type(text: str) -> ast.TypeName:
    """A text that is one type, such as ``decimal(15, 2)[]``."""
    name = _run(text, "lone_type")
    assert isinstance(name, ast.TypeName)
    return name


def keywords() -> frozenset[str]:
    """Every word of the grammar in capitals, for completion."""
    return _machine().known


def reserved_words() -> frozenset[str]:
    """The words, in capitals, that are names only in quotes."""
    return _machine().tables.reserved


class _Machine(Struct, frozen=True):
    """The tables with the builders looked up.

    jumps  states by those below and on top and the terminal that comes, as ``jump`` finds them
    rules  for each rule: origin, size, picks as in Tables, builder (None to pass or gather), whether all values are
           taken as they stand, whether it gathers
    passing  for each rule whether it passes its one value on
    """

    tables: Tables
    rules: list[tuple[str, int, tuple[tuple[int, bool], ...], Callable[..., object] | None, bool, bool]]
    passing: list[bool]
    known: frozenset[str]
    jumps: dict[tuple[int, int, str], int] = field(default_factory=dict)

    def jump(self, below: int, top: int, kind: str) -> int:
        """The state on top after all reductions that pass a value on, which a literal takes a dozen of, before ``kind``."""
        found = self.jumps.get((below, top, kind))
        if found is None:
            states, found = self.tables.states, top
            while (action := states[found].get(kind)) is not None and action < 0 and self.passing[~action]:
                found = states[below][self.rules[~action][0]]
            if len(self.jumps) < JUMPS_MAX:
                self.jumps[below, top, kind] = found
        return found


def _machine() -> _Machine:
    if not _loaded:
        with _loading:
            if not _loaded:
                tables = load_tables()
                rules = [_ready(*rule) for rule in tables.rules]
                passing = [size == 1 and builder is None and not gathers for _, size, _, builder, _, gathers in rules]
                _loaded.append(_Machine(tables, rules, passing, tables.known_words()))
    return _loaded[0]


def _ready(
    origin: str, size: int, action: str, picks: tuple[tuple[int, bool], ...]
) -> tuple[str, int, tuple[tuple[int, bool], ...], Callable[..., object] | None, bool, bool]:
    builder = None if action in (PASS, GATHER) else getattr(Build, action)
    return origin, size, picks, builder, picks == tuple((index, False) for index in range(size)), action == GATHER


def _run(text: str, start: str, *, spark: bool = False) -> object:
    if len(text) > TEXT_MAX:
        raise ProgramLimitExceeded(f"statement of {len(text)} characters is longer than {TEXT_MAX}")
    machine = _machine()
    tokens = tokenize(text, machine.known, machine.tables.signs, spark=spark)
    return _Run(machine, text, tokens).parse(start)


class _Run:
    """One run of the automaton over one text."""

    def __init__(self, machine: _Machine, text: str, tokens: Tokens) -> None:
        self.machine = machine
        self.tables = machine.tables
        self.text = text
        self.tokens = tokens
        self.build = Build(text)
        self.stack: list[int] = []
        self.values: list[object] = []
        self.starts: list[int] = []
        self.depths: list[int] = []

    def parse(self, start: str) -> object:
        """What the start rule's builder answers."""
        first, last = self.tables.starts[start]
        states, tokens, stack = self.tables.states, self.tokens, self.stack
        passing, jump = self.machine.passing, self.machine.jump
        stack.append(first)
        index = 0
        while True:
            kind, value, taken = tokens.kinds[index], tokens.values[index], 1
            if kind == WORD:
                kind, value, taken = self._decide(index)
            action = states[stack[-1]].get(kind)
            while action is not None and action < 0:
                if passing[~action]:
                    stack[-1] = jump(stack[-2], stack[-1], kind)
                else:
                    self._reduce(~action, index)
                if kind == END and stack[-1] == last:
                    return self.values[-1]
                action = states[stack[-1]].get(kind)
            if action is None:
                raise self._failure(index, start)
            stack.append(action)
            self.values.append(value)
            self.starts.append(tokens.starts[index])
            self.depths.append(0)
            index += taken

    def _reduce(self, number: int, index: int) -> None:
        """Replaces the symbols of a rule's right side by the value its builder makes of them, in the place of the first."""
        origin, size, picks, builder, takes_all, gathers = self.machine.rules[number]
        stack, values, starts, depths = self.stack, self.values, self.starts, self.depths
        if size == 1:
            children: list[object] = [values[-1]]
            depth, begin = depths[-1], starts[-1]
        elif size:
            rest = 1 - size
            children, depth, begin = values[-size:], max(depths[-size:]), starts[-size]
            del stack[rest:], values[rest:], starts[rest:], depths[rest:]
        else:
            children, depth, begin = [], 0, self.tokens.starts[index]
            stack.append(0)
            values.append(None)
            starts.append(begin)
            depths.append(0)
        if not takes_all:
            children = _pick(children, picks)
        result: object
        if builder is not None:
            build = self.build
            build.start = begin
            build.end = end = self.tokens.ends[index - 1] if size else begin
            result = builder(build, *children)
            if type(result) in _NODES and result.span is None:  # type: ignore[attr-defined]
                force_setattr(result, "span", ast.Span(begin, end))  # type: ignore[arg-type]
                depth += 1
                if depth > DEPTH_MAX:
                    raise StatementTooComplex(f"statement nested deeper than {DEPTH_MAX} levels", position=begin + 1)
        else:
            result = children if gathers else children[0]
        stack[-1] = self.tables.states[stack[-2]][origin]
        values[-1] = result
        depths[-1] = depth

    def _decide(self, index: int) -> tuple[str, object, int]:
        """What the word at ``index`` is: terminal, value, and how many words it takes."""
        tables, row = self.tables, self.tables.states[self.stack[-1]]
        word = self.tokens.values[index]
        assert isinstance(word, str)
        for parts, terminal in tables.phrases.get(word, ()):
            if terminal in row and self._follows(parts, index) and self._can_take(terminal):
                return terminal, " ".join(parts).lower(), len(parts)
        keyword = tables.words.get(word)
        if word in CALLED_QUANTIFIERS and keyword not in row and self.tokens.kinds[index + 1] == "LPAR":
            return "IDENT", word.lower(), 1
        if word in INFIX_WORDS and not self._begins_operand(index + 1):
            return "IDENT", word.lower(), 1
        if word in tables.reserved:
            return keyword or "", word.lower(), 1
        if keyword is not None and keyword in row and self._can_take(keyword):
            return keyword, word.lower(), 1
        return "IDENT", word.lower(), 1

    def _begins_operand(self, index: int) -> bool:
        """Whether an operand can begin at ``index``: what parts an operator that is a word from a name."""
        kind, value = self.tokens.kinds[index], self.tokens.values[index]
        return kind in OPERAND_KINDS or (kind == WORD and (value in OPERAND_WORDS or value not in self.tables.reserved))

    def _follows(self, parts: tuple[str, ...], index: int) -> bool:
        """Whether the tokens from ``index`` are these words."""
        kinds, values = self.tokens.kinds, self.tokens.values
        for place, part in enumerate(parts, index):
            if place >= len(values) or values[place] != part or kinds[place] not in (WORD, self.tables.signs.get(part)):
                return False
        return True

    def _can_take(self, terminal: str) -> bool:
        """Whether the automaton shifts ``terminal`` in the end, after the reductions it asks for."""
        return _can_shift(self.tables, self.stack, terminal)

    def _failure(self, index: int, start: str) -> LakeError:
        """The error of the token at ``index``."""
        tokens, text = self.tokens, self.text
        begin, end = tokens.starts[index], tokens.ends[index]
        self._refuse_unbuilt(index)
        expected = self._expected(start, index)
        near = text[begin : min(end, begin + 40)]
        message = f'syntax error at or near "{near}"' if near else "syntax error at end of input"
        detail = point_at(text, begin)
        if expected:
            detail += f"\nexpected {_enumerate(expected)}"
        return SyntaxFailure(message, detail=detail, hint=self._near_keyword(start, index), position=begin + 1)

    def _refuse_unbuilt(self, index: int) -> None:
        """Raises 0A000 where the token is a word of the dialect that has no grammar."""
        tokens = self.tokens
        first = index
        while first and tokens.kinds[first - 1] != "SEMICOLON":
            first -= 1
        word, opening = (self.text[tokens.starts[at] : tokens.ends[at]].upper() for at in (index, first))
        if index == first and word in UNBUILT_STATEMENTS:
            raise FeatureNotSupported(f"{word} is not supported", position=tokens.starts[index] + 1)
        if opening in ("CREATE", "DROP", "INSERT", "SHOW") and word in UNBUILT_WORDS:
            raise FeatureNotSupported(f"{word} in {opening} is not supported", position=tokens.starts[index] + 1)

    def _expected(self, start: str, index: int) -> list[str]:
        """What could stand in the place of the token at ``index``."""
        tables, stack = self.tables, self._stack_before(start, index)
        kinds, words, signs = set[str](), list[str](), list[str]()
        for terminal in tables.states[stack[-1]]:
            spelling = tables.spelling(terminal)
            if (spelling is None and terminal not in _KIND_NAMES) or not _can_shift(tables, stack, terminal):
                continue
            if spelling is None:
                kinds.add(_KIND_NAMES[terminal])
            elif spelling[0].isalpha():
                words.append(spelling)
            elif spelling in _LISTED_SIGNS:
                signs.append(f'"{spelling}"')
        if tables.reserved <= set(words):
            words.clear()  # The place of a label, where any word will do.
        words.sort(key=lambda word: (_COMMON_PLACE.get(word, len(_COMMON_PLACE)), word))
        return [*(kind for kind in dict.fromkeys(_KIND_NAMES.values()) if kind in kinds), *sorted(signs), *words]

    def _stack_before(self, start: str, index: int) -> list[int]:
        """The stack as it was when the token at ``index`` came, found by running the automaton again without builders."""
        states, rules = self.tables.states, self.tables.rules
        self.stack = stack = [self.tables.starts[start][0]]
        at = 0
        while at < index:
            kind, _, taken = self._decide(at) if self.tokens.kinds[at] == WORD else (self.tokens.kinds[at], None, 1)
            while (action := states[stack[-1]][kind]) < 0:
                origin, size = rules[~action][:2]
                del stack[len(stack) - size :]
                stack.append(states[stack[-1]][origin])
            stack.append(action)
            at += taken
        return stack

    def _near_keyword(self, start: str, index: int) -> str | None:
        """A hint where the word at fault, or the one before it, which then was taken for a name, is nearly a keyword."""
        tokens = self.tokens
        for at in (index, index - 1):
            if at < 0 or tokens.kinds[at] not in ("IDENT", WORD) or self.text[tokens.starts[at]] == '"':
                continue
            possible = {word for word in self._expected(start, at) if word[0].isupper()}
            written = self.text[tokens.starts[at] : tokens.ends[at]].upper()
            longer = sorted(word for word in possible if word.startswith(f"{written} "))
            if longer and written not in possible:
                return f"did you mean {' or '.join(longer[:3])}?"
            near = difflib.get_close_matches(written, {word.split(" ")[0] for word in possible}, n=1, cutoff=0.7)
            if near and near[0] != written:
                return f"did you mean {near[0]}?"
        return None


def _enumerate(words: list[str]) -> str:
    shown = words[:EXPECTED_MAX]
    return ", ".join(shown) + (", ..." if len(words) > len(shown) else "")


def _pick(children: list[object], picks: tuple[tuple[int, bool], ...]) -> list[object]:
    """The values a rule takes; the first gathered list is taken over, which keeps long lists linear."""
    taken: list[object] = []
    for index, is_gathered in picks:
        if not is_gathered:
            taken.append(None if index < 0 else children[index])
            continue
        gathered = children[index]
        assert isinstance(gathered, list)
        if taken:
            taken += gathered
        else:
            taken = gathered
    return taken


def _can_shift(tables: Tables, stack: list[int], terminal: str) -> bool:
    """Whether ``terminal`` is shifted from ``stack`` after all reductions; the stack is left as it is."""
    states, rules = tables.states, tables.rules
    depth, pushed = len(stack), list[int]()
    while True:
        state = pushed[-1] if pushed else stack[depth - 1]
        action = states[state].get(terminal)
        if action is None:
            return False
        if action >= 0:
            return True
        origin, size = rules[~action][:2]
        kept = len(pushed) - size
        if kept >= 0:
            del pushed[kept:]
        else:
            pushed.clear()
            depth += kept
        pushed.append(states[pushed[-1] if pushed else stack[depth - 1]][origin])
        if terminal == END and any(pushed[-1] == last for _, last in tables.starts.values()):
            return True
