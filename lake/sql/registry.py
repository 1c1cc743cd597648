"""The functions of the dialect: one table, filled by decorators over the code that runs them.

    @scalar("last_day(day DATE) -> DATE", group="dates", origin="spark")
    def last_day(day: pa.Array) -> pa.Array: ...

A row feeds the binder (which overload, which casts), SHOW FUNCTIONS, information_schema and the manual; the examples in
its docstring are run as tests. Each decorator may be repeated over one function for several overloads.

A signature names parameters and their types::

    name(a TYPE, b TYPE DEFAULT literal, rest TYPE...) -> TYPE

TYPE is a SQL type, or
    ANY        any type, passed as it is            NUMERIC   any integer, float or decimal, passed as it is
    INTEGER    any integer (INT is 32 bits)         DECIMAL   any decimal, passed as it is
    T, U       one type throughout the call: arguments are cast to their common type        T[]  a list of it
    TEMPORAL   DATE, TIMESTAMP or TIMESTAMPTZ, passed as it is      STRING    text, to which nothing else is cast
    LAMBDA     a lambda over elements of the lists before it
and a result that depends on the arguments is given by ``returns=``, a function from argument types to its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec import Struct

from lake.late import LateTable, late_pattern
from lake.types import Type

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from lake.sql.catalog import Settings, Table

F = TypeVar("F", bound=Callable[..., Any])
ReturnRule = Callable[[tuple[Type, ...]], Type]
LiteralRule = Callable[[tuple[Any, ...]], Type]


class Parameter(Struct, frozen=True):
    """A parameter of a signature; ``type`` is the word of the signature, upper case."""

    name: str
    type: str
    default: str | None = None
    variadic: bool = False


class Signature(Struct, frozen=True):
    """A parsed signature; ``returns`` is the word after the arrow."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str

    @property
    def required(self) -> int:
        """How many arguments a call must give."""
        return sum(1 for item in self.parameters if item.default is None and not item.variadic)

    @property
    def is_variadic(self) -> bool:
        """Whether the last parameter takes any number of arguments, none included."""
        return bool(self.parameters) and self.parameters[-1].variadic


class Function(Struct, frozen=True, eq=False):
    """An overload: what SHOW FUNCTIONS tells, and how its result's type is found."""

    signature: Signature
    group: str
    origin: str
    doc: str
    return_rule: ReturnRule | None

    @property
    def name(self) -> str:
        return self.signature.name


class CallInfo(Struct, frozen=True):
    """What an implementation may ask about its call.

    types     SQL types of the arguments     rows      rows of the batch
    returns   SQL type of the result         settings  the session's, for now() and the like
    ordered, descending   of an aggregate: it has an ORDER BY (WITHIN GROUP, or in the call), whose first key runs downwards
    """

    types: tuple[Type, ...]
    returns: Type
    rows: int
    settings: Settings | None
    descending: bool = False
    ordered: bool = False


class Scalar(Function, frozen=True, eq=False):
    """A function of one row's values, run over whole columns.

    ``run(*arguments)`` takes Arrow arrays in physical form, never dictionaries, or pa.Scalar for constants (where the whole
    call is constant: arrays of one), and answers an array of ``returns.physical``. With ``takes_call`` it is given
    ``call=CallInfo`` too. A LAMBDA argument arrives as ``exec.evaluate.LambdaFunction``.

    strict       NULL for a NULL argument: the engine may skip such rows, and the planner uses it for outer joins
    volatility   ``immutable`` folds constants, ``stable`` is constant in a statement, ``volatile`` is run for each row
    lazy         answers the first argument that is not NULL; a later one is computed only for rows that come to it
    narrow       takes and answers decimals of any precision as scaled int64 where the values fit (``exec.decimals``)
    literal_rule the result's type from the bound arguments, where it depends on a constant: ``arrow_cast(x, 'Int8')``
    """

    run: Callable[..., Any]
    strict: bool
    volatility: str
    takes_call: bool
    lazy: bool = False
    narrow: bool = False
    literal_rule: LiteralRule | None = None


class Accumulator(Protocol):
    """The state of an aggregate for many groups.

    update  adds a batch: ``groups`` int64[rows] numbers each row's group (0 <= group < group_count)
    merge   adds another state whose group g is this one's ``mapping[g]``
    finish  one value for each of ``group_count`` groups, in ``returns.physical``
    """

    def update(self, groups: np.ndarray, group_count: int, arguments: Sequence[pa.Array]) -> None: ...

    def merge(self, other: Any, mapping: np.ndarray, group_count: int) -> None: ...

    def finish(self, group_count: int) -> pa.Array: ...


class Aggregate(Function, frozen=True, eq=False):
    """A function of a group's rows.

    make          ``make(call, constants)``: a new Accumulator; ``call.rows`` is 0, ``constants`` holds constant arguments as
                  Python values by position (None for others)
    keeps_order   the answer depends on the order of rows: ORDER BY inside the call is obeyed
    takes_order   any order of rows will do, and ORDER BY inside the call is obeyed all the same (any_value, mode)
    duplicates_matter   DISTINCT changes the answer (not for min, max, bool_and)
    of_nothing    the answer of no rows where it is not NULL (count: 0)
    """

    make: Callable[[CallInfo, tuple[object, ...]], Accumulator]
    keeps_order: bool
    duplicates_matter: bool
    of_nothing: object
    takes_order: bool = False

    @property
    def obeys_order(self) -> bool:
        """Whether ORDER BY inside the call changes the answer; of other aggregates it is left out."""
        return self.keeps_order or self.takes_order


class Window(Function, frozen=True, eq=False):
    """A function of a window: row_number, rank, lag and the like.

    ``run(input, *arguments)`` takes ``exec.operators.window.WindowInput`` and answers one value for each row.
    """

    run: Callable[..., Any]
    uses_frame: bool


class TableFunction(Function, frozen=True, eq=False):
    """A function in FROM.

    ``make(settings, *arguments, **named)`` takes Python values and answers a Table. ``lists`` names a scalar function
    of the same arguments that answers the rows as a list: calls over columns (LATERAL) become UNNEST of it.
    """

    make: Callable[..., Table]
    lists: str | None


class Generator(Function, frozen=True, eq=False):
    """A function that makes several rows or columns of one row, in a select list or in FROM.

    ``expand(name, values, bound)`` takes the arguments as written and bound, and answers a name and an expression for
    each column.
    """

    expand: Callable[..., Any]


FUNCTIONS: Final = LateTable[str, list[Function]]()


def scalar(
    signature: str,
    *,
    group: str,
    origin: str = "base",
    returns: ReturnRule | None = None,
    strict: bool = True,
    volatility: str = "immutable",
    takes_call: bool = False,
    lazy: bool = False,
    narrow: bool = False,
    literal_rule: LiteralRule | None = None,
    aliases: Sequence[str] = (),
) -> Callable[[F], F]:
    """Registers an overload of a scalar function, under its aliases too."""

    def register(run: F) -> F:
        _add(
            signature,
            aliases,
            lambda parsed: Scalar(
                parsed, group, origin, _doc(run), returns, run, strict, volatility, takes_call, lazy, narrow,
                literal_rule,
            ),
        )
        return run

    return register


def aggregate(
    signature: str,
    *,
    group: str,
    origin: str = "base",
    returns: ReturnRule | None = None,
    keeps_order: bool = False,
    takes_order: bool = False,
    duplicates_matter: bool = True,
    of_nothing: object = None,
    aliases: Sequence[str] = (),
) -> Callable[[F], F]:
    """Registers an overload of an aggregate over the function that makes its Accumulator."""

    def register(make: F) -> F:
        _add(
            signature,
            aliases,
            lambda parsed: Aggregate(
                parsed, group, origin, _doc(make), returns, make, keeps_order, duplicates_matter, of_nothing,
                takes_order,
            ),
        )
        return make

    return register


def window(
    signature: str,
    *,
    group: str = "windows",
    origin: str = "base",
    returns: ReturnRule | None = None,
    uses_frame: bool = False,
    aliases: Sequence[str] = (),
) -> Callable[[F], F]:
    """Registers an overload of a window function."""

    def register(run: F) -> F:
        _add(signature, aliases, lambda parsed: Window(parsed, group, origin, _doc(run), returns, run, uses_frame))
        return run

    return register


def table_function(
    signature: str,
    *,
    group: str = "tables",
    origin: str = "base",
    lists: str | None = None,
    aliases: Sequence[str] = (),
) -> Callable[[F], F]:
    """Registers an overload of a table function; what follows the arrow is TABLE."""

    def register(make: F) -> F:
        _add(signature, aliases, lambda parsed: TableFunction(parsed, group, origin, _doc(make), None, make, lists))
        return make

    return register


def generator(signature: str, *, group: str, origin: str = "spark", aliases: Sequence[str] = ()) -> Callable[[F], F]:
    """Registers a generator; what follows the arrow is ROWS."""

    def register(expand: F) -> F:
        _add(signature, aliases, lambda parsed: Generator(parsed, group, origin, _doc(expand), None, expand))
        return expand

    return register


def parse_signature(text: str) -> Signature:
    """The parts of ``name(a TYPE, b TYPE DEFAULT x, rest TYPE...) -> TYPE``."""
    match = _SIGNATURE.fullmatch(text.strip())
    assert match is not None, f"not a signature: {text}"
    parts = [part.strip() for part in _split(match["parameters"]) if part.strip()]
    return Signature(match["name"], tuple(_parse_parameter(part) for part in parts), match["returns"].strip().upper())


_SIGNATURE = late_pattern(r"(?P<name>[^\s(]+)\((?P<parameters>.*)\)\s*->\s*(?P<returns>.+)", re.DOTALL)
_PARAMETER = late_pattern(
    r"(?P<name>\w+)\s+(?P<type>.+?)(?P<variadic>\.\.\.)?(?:\s+DEFAULT\s+(?P<default>.+))?", re.DOTALL
)


def _parse_parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    assert match is not None, f"not a parameter: {text}"
    return Parameter(match["name"], match["type"].strip().upper(), match["default"], match["variadic"] is not None)


def _split(text: str) -> list[str]:
    """The parts between commas outside parentheses: DECIMAL(38, 0) holds one."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _doc(run: Callable[..., Any]) -> str:
    return (run.__doc__ or "").strip()


def _add(text: str, aliases: Sequence[str], make: Callable[[Signature], Function]) -> None:
    parsed = parse_signature(text)
    for name in (parsed.name, *aliases):
        overloads = FUNCTIONS.registered(name)
        if overloads is None:
            overloads = FUNCTIONS[name] = []
        overloads.append(make(Signature(name, parsed.parameters, parsed.returns)))
