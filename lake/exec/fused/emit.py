"""A plan and the kinds of its columns as LLVM's intermediate code: one function over a batch.

    bool loop(i64 rows, ptr pointers, ptr numbers, ptr adds, ptr leasts)

    pointers  for each column its values and its validity in bytes, then the marks of each condition of texts
    numbers   the constants, then for each key its low, its span and its stride, then the groups of a lane, then the window
    adds      int64[lanes, groups, words]  in/out  word 0 counts rows, the others are counts and sums
    leasts    int64[lanes, groups, words]  in/out  the least values; of the greatest the complements

It answers whether anything overflowed: what it wrote is then to be forgotten. Rows go in blocks: quick tests make a mask of
a byte a row, which LLVM turns into vectors; the numbers of the rows that pass are written without a branch; and what
remains is done for those. Rows take turns at LANES tables of groups, since the next row often waits for its group's sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir

from lake.exec.fused.expressions import BOOL, BYTE, DIGITS, FALSE, INDEX, LOW_BITS, PTR, Row, constant
from lake.exec.fused.shape import WORD, Form, Plan, has_marks

NAME: Final = "loop"
LANES: Final = 4
BLOCK_ROWS: Final = 1_024
STEP: Final = 8  # mask bytes that are looked at together

_QUICK: Final = frozenset({"within", "between", "marks", "truth", "and", "or", "not"})


def words_of(plan: Plan, kinds: Sequence[str]) -> tuple[list[tuple[int, int]], int, int]:
    """Where the state of each call lies, as (its word, that of its count), and how many words of both sorts there are.

    Calls over the same rows share a count: those without FILTER over what is never NULL have that of rows. A sum that may
    pass 64 bits within a batch has two words, the sum of the values' low 32 bits and after it that of the others; a sum of
    doubles has three digits of 32 bits (``Row.digits``).
    """
    counts: dict[object, int] = {(None, ()): 0}
    places, added, least = [], 1, 0
    for kind, argument, where in plan.calls:
        of = argument if kind == "count" else (("is null", argument),)
        rows = (where, tuple(each for each in of if _may_be_null(each[1], kinds)))
        if rows not in counts:
            counts[rows] = added
            added += 1
        if kind in ("least", "most"):
            places.append((least, counts[rows]))
            least += 1
        elif kind == "sum":
            places.append((added, counts[rows]))
            added += 2 if is_wide(argument, kinds) else 1
        elif kind == "real sum":
            places.append((added, counts[rows]))
            added += DIGITS
        else:
            places.append((counts[rows], counts[rows]))
    return places, added, least


def is_wide(form: Form, kinds: Sequence[str]) -> bool:
    """Whether a batch's sum of a value has two words."""
    return form[0] != "column" or kinds[form[1]].startswith("int64")


def _may_be_null(form: Form, kinds: Sequence[str]) -> bool:
    """Whether a value can be NULL."""
    match form:
        case ("column" | "real", column):
            return kinds[column].endswith("?")
        case ("number" | "real number", *_):
            return False
        case ("null",):
            return True
        case ("case", pairs, otherwise):
            return any(_may_be_null(value, kinds) for value in (*(value for _, value in pairs), otherwise))
        case ("fit", value, *_):
            return _may_be_null(value, kinds)
        case (_, left, right, _):
            return _may_be_null(left, kinds) or _may_be_null(right, kinds)
    raise AssertionError(form)


def emit(plan: Plan, kinds: Sequence[str]) -> str:
    """The text of a module with the function ``loop``."""
    module = ir.Module("fused")
    function = ir.Function(module, ir.FunctionType(BOOL, [INDEX, PTR, PTR, PTR, PTR]), NAME)
    for argument in function.args[1:]:
        argument.add_attribute("noalias")
    _Loop(plan, kinds, function).build()
    return str(module)


class _Loop:
    """The making of one function."""

    def __init__(self, plan: Plan, kinds: Sequence[str], function: ir.Function) -> None:
        self.plan = plan
        self.kinds = kinds
        self.rows, self.pointers, self.numbers, self.adds, self.leasts = function.args
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.bad = self.builder.alloca(BOOL)
        self.builder.store(FALSE, self.bad)
        self.row = Row(self.builder, kinds, self.bad)
        self.row.load(self.pointers, self.numbers, plan.numbers + 3 * len(plan.keys) + 2, plan.texts)
        self.places, self.add_words, self.least_words = words_of(plan, kinds)
        self.sums: list[Any] = []
        self.least: list[Any] = []

    def build(self) -> None:
        """All of it."""
        quick = [test for test in self.plan.tests if _is_quick(test)]
        slow = [test for test in self.plan.tests if not _is_quick(test)]
        if not self.plan.keys:
            self.sums = [self._variable(0) for _ in range(self.add_words)]
            self.least = [self._variable(WORD[1]) for _ in range(self.least_words)]
        if quick:
            texts = [test for test in quick if has_marks(test)]
            plain = [test for test in quick if not has_marks(test)]
            self._blocks([*([("and", *plain)] if plain else []), *texts], slow)
        else:
            with self._count(self.rows) as row:
                self._take(row, slow)
        for pointer, variables in ((self.adds, self.sums), (self.leasts, self.least)):
            for word, variable in enumerate(variables):
                self._store(self.builder.load(variable, typ=INDEX), pointer, constant(word))
        self.builder.ret(self.builder.load(self.bad, typ=BOOL))

    def _blocks(self, quick: list[Form], slow: list[Form]) -> None:
        """Rows by blocks: masks of all, then the numbers of those that pass, then these rows.

        Each of ``quick`` is a loop: a table's marks are looked up one by one, which would keep the others from being vectors.
        """
        builder = self.builder
        mask, found = self._buffer(BYTE), self._buffer(ir.IntType(32))
        count = builder.alloca(INDEX)
        blocks = builder.udiv(builder.add(self.rows, constant(BLOCK_ROWS - 1)), constant(BLOCK_ROWS))
        with self._count(blocks) as block:
            start = builder.mul(block, constant(BLOCK_ROWS))
            left = builder.sub(self.rows, start)
            size = builder.select(builder.icmp_unsigned("<", left, constant(BLOCK_ROWS)), left, constant(BLOCK_ROWS))
            for place, test in enumerate(quick):
                with self._count(size) as offset:
                    self.row.start(builder.add(start, offset))
                    passes = builder.zext(self.row.truth(test).true, BYTE)
                    at = builder.gep(mask, [offset], source_etype=BYTE)
                    builder.store(passes if place == 0 else builder.and_(passes, builder.load(at, typ=BYTE)), at)
            builder.store(ir.Constant(ir.IntType(64), 0), builder.gep(mask, [size], source_etype=BYTE), align=1)
            builder.store(constant(0), count)
            steps = builder.udiv(builder.add(size, constant(STEP - 1)), constant(STEP))
            with self._count(steps) as step:
                first = builder.mul(step, constant(STEP))
                marks = builder.load(builder.gep(mask, [first], source_etype=BYTE), typ=ir.IntType(64), align=1)
                with builder.if_then(builder.icmp_unsigned("!=", marks, constant(0))):
                    self._number_rows(first, mask, found, count)
            with self._count(builder.load(count, typ=INDEX)) as place:
                offset = builder.load(builder.gep(found, [place], source_etype=ir.IntType(32)), typ=ir.IntType(32))
                self._take(builder.add(start, builder.zext(offset, INDEX)), slow)

    def _number_rows(self, first: Any, mask: Any, found: Any, count: Any) -> None:
        """Writes the numbers of those of STEP rows that are marked."""
        builder = self.builder
        known = builder.load(count, typ=INDEX)
        for distance in range(STEP):
            offset = builder.add(first, constant(distance))
            at = builder.gep(found, [known], source_etype=ir.IntType(32))
            builder.store(builder.trunc(offset, ir.IntType(32)), at)
            passes = builder.load(builder.gep(mask, [offset], source_etype=BYTE), typ=BYTE)
            known = builder.add(known, builder.zext(passes, INDEX))
        builder.store(known, count)

    def _take(self, row: Any, slow: list[Form]) -> None:
        """Tests what is left to test of a row, and adds it to its group."""
        self.row.start(row)
        if not slow:
            self._add()
            return
        passes = self.row.truth(slow[0] if len(slow) == 1 else ("and", *slow)).true
        with self.builder.if_then(passes):
            self._add()

    def _add(self) -> None:
        """Adds a row to its group. Everything is worked out before the first word is written."""
        group = self._group() if self.plan.keys else None
        added: dict[int, Any] = {0: (constant(1), None)}
        least: dict[int, Any] = {}
        for (kind, argument, where), (word, count) in zip(self.plan.calls, self.places, strict=True):
            valid = None if where is None else self.row.truth(where).true
            if kind == "count":
                for is_null in argument:
                    valid = self.row.both(valid, self.row.truth(is_null).false)
            else:
                value = self.row.value(argument)
                valid = self.row.both(valid, value.valid)
                if kind == "sum" and is_wide(argument, self.kinds):
                    added[word] = self.builder.and_(value.number, constant(LOW_BITS)), valid
                    added[word + 1] = self.builder.ashr(value.number, constant(32)), valid
                elif kind == "sum":
                    added[word] = value.number, valid
                elif kind == "real sum":
                    digits = self.row.digits(value._replace(valid=valid), self._number(3 * len(self.plan.keys) + 1))
                    added.update({word + place: (digit, valid) for place, digit in enumerate(digits)})
                else:
                    number = value.number if kind == "least" else self.builder.not_(value.number)
                    least[word] = number if valid is None else self.builder.select(valid, number, constant(WORD[1]))
            added.setdefault(count, (constant(1), valid))
        for word, (number, valid) in added.items():
            state = self._state(self.sums, self.adds, self.add_words, word, group)
            counted = number if valid is None else self.builder.select(valid, number, constant(0))
            self.builder.store(self.builder.add(self.builder.load(state, typ=INDEX), counted), state)
        for word, number in least.items():
            state = self._state(self.least, self.leasts, self.least_words, word, group)
            known = self.builder.load(state, typ=INDEX)
            self.builder.store(self.builder.select(self.builder.icmp_signed("<", number, known), number, known), state)

    def _group(self) -> Any:
        """The place of the row's group in all lanes' tables; a value out of its key's range fails."""
        builder = self.builder
        place = builder.mul(builder.and_(self.row.number, constant(LANES - 1)), self._number(3 * len(self.plan.keys)))
        for index, column in enumerate(self.plan.keys):
            value = self.row.value(("column", column))
            low, span, stride = (self._number(3 * index + part) for part in range(3))
            distance = builder.sub(value.number, low)
            is_known = builder.icmp_unsigned("<", distance, span)
            self.row.fail(builder.not_(is_known), value.valid)
            slot = builder.select(self.row.both(is_known, value.valid), distance, span)
            place = builder.add(place, builder.mul(slot, stride))
        return place

    def _state(self, variables: list[Any], pointer: Any, words: int, word: int, group: Any) -> Any:
        if group is None:
            return variables[word]
        place = self.builder.add(self.builder.mul(group, constant(words)), constant(word))
        return self.builder.gep(pointer, [place], source_etype=INDEX)

    def _number(self, place: int) -> Any:
        return self.row.numbers[self.plan.numbers + place]

    def _buffer(self, type: Any) -> Any:
        """Room for a value of each row of a block."""
        made = self.builder.alloca(ir.ArrayType(type, BLOCK_ROWS + STEP))
        made.type = PTR  # llvmlite knows what it points to, which hinders it from being used as anything else
        return made

    def _variable(self, start: int) -> Any:
        variable = self.builder.alloca(INDEX)
        self.builder.store(constant(start), variable)
        return variable

    def _store(self, value: Any, pointer: Any, place: Any) -> None:
        self.builder.store(value, self.builder.gep(pointer, [place], source_etype=INDEX))

    @contextmanager
    def _count(self, end: Any) -> Iterator[Any]:
        """A loop from 0 up to ``end``, exclusive."""
        builder = self.builder
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(INDEX)
        index.add_incoming(constant(0), before)
        builder.cbranch(builder.icmp_unsigned("<", index, end), body, after)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, constant(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)


def _is_quick(test: Form) -> bool:
    """Whether a test neither fails nor computes: it may be made of all rows."""
    if test[0] == "compare":
        return all(side[0] in ("column", "number") for side in test[2:])
    if test[0] == "is null":
        return bool(test[1][0] == "column")
    return test[0] in _QUICK and all(_is_quick(part) for part in test[1:] if isinstance(part, tuple))
