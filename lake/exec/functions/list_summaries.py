"""What a list comes to: its elements joined as text, or an aggregate of them."""

from __future__ import annotations

from decimal import Decimal as PlainDecimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lake.errors import InvalidParameter
from lake.exec.cast import cast
from lake.exec.cast_text import NANOSECONDS_OF_DAY, to_text
from lake.exec.constants import as_array, list_array
from lake.exec.decimals import Value
from lake.exec.functions.columns import NOT_CONSTANT, constant, map_distinct, map_rows, with_constants
from lake.exec.functions.lists import Lists, array_compact, array_length, element_type
from lake.exec.kernels import views
from lake.exec.per_row import per_row
from lake.exec.spellings import iso_duration
from lake.sql.registry import FUNCTIONS, Aggregate, CallInfo, scalar
from lake.types import DOUBLE, Float, Interval, List, Null, Type, parse_type_name

GROUP: Final = "lists"


# --- text ------------------------------------------------------------------------------------------------------------


@scalar("array_to_string(list ANY[], delimiter VARCHAR) -> VARCHAR", group=GROUP, takes_call=True,
        aliases=("array_join", "list_join", "list_to_string"))  # fmt: skip
@scalar("array_to_string(list ANY[], delimiter VARCHAR, missing VARCHAR) -> VARCHAR", group=GROUP, takes_call=True,
        aliases=("array_join", "list_join", "list_to_string"))  # fmt: skip
def array_to_string(list: Value, delimiter: Value, missing: Value | None = None, *, call: CallInfo) -> pa.Array:
    """The elements' texts with a delimiter between them; NULLs are left out or shown as ``missing``.

    >>> array_to_string([1, NULL, 3], ',', '*')
    1,*,3
    """
    of = element_type(call.types)
    innermost: Type = of
    while isinstance(innermost, List):
        innermost = innermost.of

    def run(column: pa.Array, delimiter: str, *missing: str) -> pa.Array:
        lists, of_item = Lists(column), of
        while isinstance(of_item, List):
            lists, of_item = _one_deeper(lists), of_item.of
        texts = _item_texts(lists.items, innermost)
        made = list_array(lists.offsets, texts, lists.valid)
        if missing:
            made = list_array(lists.offsets, pc.fill_null(texts, missing[0]), lists.valid)
        elif texts.null_count:
            made = array_compact(made)
        return pc.binary_join(made, delimiter)

    if missing is None or isinstance(call.types[2], Null):
        return with_constants(run, pa.string(), list, delimiter)
    shown = with_constants(run, pa.string(), list, delimiter, missing)
    there = pc.is_valid(as_array(missing, call.rows))
    return shown if pc.all(there).as_py() else pc.if_else(there, shown, with_constants(run, pa.string(), list, delimiter))


def _one_deeper(lists: Lists) -> Lists:
    """Lists of lists as lists of the inner lists' elements; an inner NULL is one element that is NULL."""
    inner = lists.items
    alone = pa.array([[None]], inner.type)[0]
    filled = pc.if_else(pc.is_valid(inner), inner, alone) if inner.null_count else inner
    parts = Lists(filled)
    return Lists(list_array(parts.offsets[lists.offsets], parts.items, lists.valid))


@per_row
def _item_texts(items: pa.Array, of: Type) -> pa.Array:
    """Elements as a joined text has them: floats with all their digits and no more, lengths of time by ISO 8601.

    Exponents and seconds of ISO go row by row: Arrow writes neither so.
    """
    if isinstance(of, Null):
        return items.cast(pa.string())
    texts = to_text(items, of)
    if isinstance(of, Float):
        texts = pc.replace_substring_regex(texts, r"\.0$", "")
        far = pc.match_substring(texts, "e")
        if pc.any(far).as_py():
            texts = map_distinct(lambda text: f"{PlainDecimal(text):f}" if "e" in text else text, pa.string(), texts)
    elif isinstance(of, Interval) and of.spelled:
        texts = map_rows(lambda parts: iso_duration(parts[2] + parts[1] * NANOSECONDS_OF_DAY), pa.string(), items)
    return texts


# --- aggregates of elements ------------------------------------------------------------------------------------------


def _aggregate(column: pa.Array, of: Type, name: str, constants: tuple[object, ...] = ()) -> tuple[pa.Array, Type]:
    """An aggregate function over the elements of each list, and its type."""
    overload = next(item for item in FUNCTIONS[name] if isinstance(item, Aggregate) and item.signature.parameters)
    parameter = overload.signature.parameters[0].type
    lists = Lists(column)
    items = lists.items
    if parameter == "DOUBLE" and of != DOUBLE:
        items, of = cast(items, of, DOUBLE), DOUBLE
    types = (of, *(DOUBLE for _ in constants))
    rule = overload.return_rule
    returns = (
        rule(types) if rule is not None else DOUBLE if overload.signature.returns == "DOUBLE" else _word_type(overload)
    )
    state = overload.make(CallInfo(types, returns, 0, None), (None, *constants))
    state.update(lists.parents, lists.rows, [items])
    made = state.finish(lists.rows)
    if lists.valid is not None:
        made = pc.if_else(views.to_boolean(lists.valid), made, pa.scalar(None, made.type))
    return made, returns


def _word_type(overload: Aggregate) -> Type:
    return parse_type_name(overload.signature.returns)


@scalar("array_sum(list ANY[]) -> DOUBLE", group=GROUP, takes_call=True, aliases=("list_sum",))
def array_sum(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """The sum of the elements that are not NULL.

    >>> array_sum([1, 2, NULL, 4])
    7.0
    """
    return _as_double(*_aggregate(list, element_type(call.types), "sum"))


def _as_double(values: pa.Array, type: Type) -> pa.Array:
    return values if type == DOUBLE else cast(values, type, DOUBLE)


@scalar("array_avg(list ANY[]) -> DOUBLE", group=GROUP, takes_call=True, aliases=("list_avg",))
def array_avg(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """The mean of the elements that are not NULL.

    >>> array_avg([1, 2, 4])
    2.3333333333333335
    """
    return _as_double(*_aggregate(list, element_type(call.types), "avg"))


@scalar("array_product(list ANY[]) -> DOUBLE", group=GROUP, takes_call=True, aliases=("list_product",))
def array_product(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """The product of the elements that are not NULL.

    >>> array_product([2, 3, 4])
    24.0
    """
    return _aggregate(list, element_type(call.types), "product")[0]


@scalar("array_max(list T[]) -> T", group=GROUP, takes_call=True, aliases=("list_max",))
def array_max(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """The greatest element.

    >>> array_max([3, NULL, 7])
    7
    """
    return _aggregate(list, element_type(call.types), "max")[0]


@scalar("array_min(list T[]) -> T", group=GROUP, takes_call=True, aliases=("list_min",))
def array_min(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """The least element.

    >>> array_min([3, NULL, 7])
    3
    """
    return _aggregate(list, element_type(call.types), "min")[0]


@scalar("list_count(list ANY[]) -> BIGINT", group=GROUP, origin="duckdb", takes_call=True, aliases=("array_count",))
def list_count(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """How many elements are not NULL.

    >>> list_count([1, NULL, 2])
    2
    """
    return array_length(array_compact(list))


@scalar("list_median(list ANY[]) -> DOUBLE", group=GROUP, origin="duckdb", takes_call=True, aliases=("array_median",))
def list_median(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """The middle element, or the mean of the two in the middle.

    >>> list_median([1, 2, 4])
    2.0
    """
    return _as_double(*_aggregate(list, element_type(call.types), "median"))


@scalar("list_mode(list T[]) -> T", group=GROUP, origin="duckdb", takes_call=True, aliases=("array_mode",))
def list_mode(list: pa.Array, *, call: CallInfo) -> pa.Array:
    """The most frequent element.

    >>> list_mode([1, 2, 2])
    2
    """
    return _aggregate(list, element_type(call.types), "mode")[0]


def _aggregated_type(arguments: tuple[Any, ...]) -> Type:
    """The type of the aggregate that the second argument names."""
    name = str(getattr(arguments[1], "value", "")).lower()
    of = arguments[0].type.of if isinstance(arguments[0].type, List) else arguments[0].type
    found = next(
        (item for item in FUNCTIONS.get(name, ()) if isinstance(item, Aggregate) and item.signature.parameters), None
    )
    if found is None:
        raise InvalidParameter(f'"{name}" is no aggregate function')
    if found.return_rule is not None:
        return found.return_rule((of,))
    return _word_type(found)


@scalar("list_aggregate(list ANY[], name VARCHAR) -> ANY", group=GROUP, origin="duckdb", takes_call=True,
        literal_rule=_aggregated_type, aliases=("list_aggr", "array_aggr", "array_aggregate"))  # fmt: skip
def list_aggregate(list: Value, name: Value, *, call: CallInfo) -> pa.Array:
    """An aggregate function, named as text, over the elements.

    >>> list_aggregate([2, 4, 9], 'avg')
    5.0
    """
    chosen = constant(name)
    if chosen is NOT_CONSTANT:
        raise InvalidParameter("list_aggregate takes the name of a function as a constant")
    return _aggregate(as_array(list, call.rows), element_type(call.types), str(chosen).lower())[0]
