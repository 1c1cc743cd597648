"""JSON over bytes: where the member at a path begins and ends, without reading the rest into values.

    find(['{"a": [1, {"b": "x"}]}'], ("a", 1, "b"))  ->  starts [18], ends [21]: the bytes "x" with its quotes

What is found is a slice of the text as it stands. A document that the scan cannot make sense of, and a key that is written
with escapes, which only reading tells, are UNREAD: their rows are for a parser. Of members of one name the last counts.

Source: RFC 8259.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lake.exec.kernels import kernel, rehearsal
from lake.exec.kernels.hashing import load_word
from lake.exec.kernels.strings import copy_texts
from lake.exec.kernels.views import Ints, mask_of, text_array, text_of

ONES: Final = np.uint64(0x0101010101010101)
HIGHS: Final = np.uint64(0x8080808080808080)
QUOTES, BACKSLASHES = np.uint64(0x2222222222222222), np.uint64(0x5C5C5C5C5C5C5C5C)

MISSING, UNREAD = -1, -2
"""What stands in ``starts`` where there is no member, and where a parser must look."""


@kernel
def skip_blanks(characters: Any, at: Any, stop: Any) -> Any:
    """The first byte from ``at`` on that is no blank, or ``stop``."""
    while at < stop and (characters[at] == 32 or (characters[at] >= 9 and characters[at] <= 13)):
        at += 1
    return at


@kernel
def skip_string(characters: Any, at: Any, stop: Any) -> Any:
    """The byte after the string whose opening quote is at ``at``; UNREAD where it does not end."""
    at += 1
    readable = min(stop, np.int64(characters.size)) - 8
    while at <= readable:
        # A byte of a word is 0 where it is the one looked for: eight are looked at in one step.
        word = load_word(characters, np.uint64(at))
        quotes, slashes = word ^ QUOTES, word ^ BACKSLASHES
        if ((quotes - ONES) & ~quotes | (slashes - ONES) & ~slashes) & HIGHS:
            break
        at += 8
    while at < stop:
        if characters[at] == 92:
            at += 2
        elif characters[at] == 34:
            return at + 1
        else:
            at += 1
    return -2


@kernel
def skip_value(characters: Any, at: Any, stop: Any) -> Any:
    """The byte after the value that begins at ``at``; UNREAD where none does."""
    if at >= stop:
        return -2
    first = characters[at]
    if first == 34:
        return skip_string(characters, at, stop)
    if first != 123 and first != 91:
        begin = at
        while at < stop:
            byte = characters[at]
            if byte == 44 or byte == 93 or byte == 125 or byte == 32 or (byte >= 9 and byte <= 13):
                break
            if byte == 34 or byte == 58 or byte == 91 or byte == 123:
                return -2
            at += 1
        return at if at > begin else -2
    depth = 0
    while at < stop:
        byte = characters[at]
        if byte == 34:
            at = skip_string(characters, at, stop)
            if at < 0:
                return -2
            continue
        if byte == 123 or byte == 91:
            depth += 1
        elif byte == 125 or byte == 93:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return -2


@kernel
def next_item(characters: Any, at: Any, stop: Any, close: Any) -> Any:
    """After a value in a container: where the next one begins, MISSING at its end, UNREAD for anything else."""
    at = skip_blanks(characters, at, stop)
    if at < stop and characters[at] == close:
        return -1
    if at >= stop or characters[at] != 44:
        return -2
    at = skip_blanks(characters, at + 1, stop)
    return at if at < stop else -2


@kernel
def first_item(characters: Any, at: Any, stop: Any, close: Any) -> Any:
    """Where the first value of the container that begins at ``at`` begins, MISSING where it is empty."""
    at = skip_blanks(characters, at + 1, stop)
    if at >= stop:
        return -2
    return -1 if characters[at] == close else at


@kernel
def value_of_key(characters: Any, key_end: Any, stop: Any) -> Any:
    """Where the value after a key begins; UNREAD where no colon stands between."""
    at = skip_blanks(characters, key_end, stop)
    if at >= stop or characters[at] != 58:
        return -2
    at = skip_blanks(characters, at + 1, stop)
    return at if at < stop else -2


@kernel
def find_key(characters: Any, at: Any, stop: Any, keys: Any, first: Any, size: Any) -> Any:
    """Where the value of the last member named ``keys[first:first + size]`` begins in the object at ``at``."""
    found = np.int64(-1)
    at = first_item(characters, at, stop, 125)
    while at >= 0:
        if characters[at] != 34:
            return -2
        end = skip_string(characters, at, stop)
        if end < 0:
            return -2
        same = end - at - 2 == size
        for index in range(at + 1, end - 1):
            if characters[index] == 92:
                return -2
            if same and characters[index] != keys[first + index - at - 1]:
                same = False
        at = value_of_key(characters, end, stop)
        if at < 0:
            return -2
        if same:
            found = at
        at = skip_value(characters, at, stop)
        if at < 0:
            return -2
        at = next_item(characters, at, stop, 125)
    return found if at == -1 else np.int64(-2)


@kernel
def find_place(characters: Any, at: Any, stop: Any, place: Any) -> Any:
    """Where element ``place`` of the array at ``at`` begins; below 0 it counts from the end."""
    if place < 0:
        place += count_items(characters, at, stop)
        if place < 0:
            return -1
    at = first_item(characters, at, stop, 93)
    while at >= 0 and place > 0:
        at = skip_value(characters, at, stop)
        if at < 0:
            return -2
        at = next_item(characters, at, stop, 93)
        place -= 1
    return at


@kernel
def count_items(characters: Any, at: Any, stop: Any) -> Any:
    """How many elements or members the array or object at ``at`` has; MISSING of other values."""
    is_object = characters[at] == 123
    if not is_object and characters[at] != 91:
        return -1
    close = 125 if is_object else 93
    count = 0
    at = first_item(characters, at, stop, close)
    while at >= 0:
        if is_object:
            at = value_of_key(characters, skip_value(characters, at, stop), stop)
            if at < 0:
                return -2
        at = skip_value(characters, at, stop)
        if at < 0:
            return -2
        count += 1
        at = next_item(characters, at, stop, close)
    return count if at == -1 else -2


@kernel
def find_members(
    offsets: Any, characters: Any, valid: Any, kinds: Any, keys: Any, key_offsets: Any, places: Any, starts: Any, ends: Any
) -> None:
    """The member of each document at a path.

    kinds   uint8[steps]       in   1 for a key, 0 for a place
    keys, key_offsets          in   the bytes of keys; places int64[steps]
    starts  int64[rows]        out  its first byte, MISSING or UNREAD; ends int64[rows] the byte after it
    """
    for row in range(offsets.size - 1):
        starts[row], ends[row] = -1, -1
        if valid.size and not valid[row]:
            continue
        stop = np.int64(offsets[row + 1])
        at = skip_blanks(characters, np.int64(offsets[row]), stop)
        if at >= stop:
            starts[row] = -2
            continue
        for step in range(kinds.size):
            opening = characters[at]
            if kinds[step] and opening == 123:
                at = find_key(characters, at, stop, keys, key_offsets[step], key_offsets[step + 1] - key_offsets[step])
            elif not kinds[step] and opening == 91:
                at = find_place(characters, at, stop, places[step])
            else:
                at = np.int64(-1)
            if at < 0:
                break
        starts[row] = at
        if at >= 0:
            end = skip_value(characters, at, stop)
            ends[row] = end
            if end < 0:
                starts[row] = -2


@kernel
def count_all(characters: Any, starts: Any, ends: Any, counts: Any) -> None:
    """``count_items`` of every slice; MISSING where there is no slice."""
    for row in range(starts.size):
        counts[row] = count_items(characters, starts[row], ends[row]) if starts[row] >= 0 else starts[row]


@kernel
def list_all(characters: Any, starts: Any, ends: Any, counts: Any, item_starts: Any, item_sizes: Any) -> None:
    """The slices of all elements of arrays, and of all keys of objects without their quotes; ``counts`` as by count_all."""
    out = 0
    for row in range(starts.size):
        if counts[row] <= 0:
            continue
        is_object = characters[starts[row]] == 123
        close = 125 if is_object else 93
        stop = ends[row]
        at = first_item(characters, starts[row], stop, close)
        while at >= 0:
            end = skip_value(characters, at, stop)
            item_starts[out] = at + 1 if is_object else at
            item_sizes[out] = end - at - 2 if is_object else end - at
            out += 1
            if is_object:
                end = skip_value(characters, value_of_key(characters, end, stop), stop)
            at = next_item(characters, end, stop, close)


class Members:
    """The slices of documents that a path leads to.

    starts  int64[rows]: first byte of each in ``characters``, MISSING or UNREAD; ``ends`` the byte after the last
    firsts  uint8[rows]: the first byte itself, 0 where there is none
    """

    def __init__(self, documents: pa.Array, path: Sequence[str | int]) -> None:
        rows = len(documents)
        offsets, self.characters = text_of(documents)
        keys = [step.encode() if isinstance(step, str) else b"" for step in path]
        self.starts, self.ends = np.empty(rows, np.int64), np.empty(rows, np.int64)
        find_members(
            offsets, self.characters, mask_of(documents),
            np.array([isinstance(step, str) for step in path], np.uint8),
            np.frombuffer(b"".join(keys) or b"\0", np.uint8),
            np.concatenate(([0], np.cumsum([len(key) for key in keys]))).astype(np.int64),
            np.array([step if isinstance(step, int) else 0 for step in path], np.int64),
            self.starts, self.ends,
        )  # fmt: skip
        known = self.starts >= 0
        self.firsts = np.zeros(rows, np.uint8)
        self.firsts[known] = self.characters[self.starts[known]]

    @property
    def unread(self) -> Ints:
        """Rows that only a parser reads."""
        return np.flatnonzero(self.starts == UNREAD)

    def slices(self, keep: Ints, trim: Ints | int = 0) -> pa.Array:
        """The slices of the rows in a mask, ``trim`` bytes cut off at both ends; NULL in other rows."""
        sizes = np.where(keep, self.ends - self.starts - 2 * trim, 0)
        into, out = np.empty(len(sizes) + 1, np.int32), np.empty(int(sizes.sum()), np.uint8)
        copy_texts(self.characters, np.where(keep, self.starts + trim, 0), sizes, into, out)
        return text_array(into, out, pa.string(), keep.astype(np.uint8))

    def counts(self) -> Ints:
        """int64[rows]: elements or members of each slice, below 0 where it is neither."""
        found = np.empty(len(self.starts), np.int64)
        count_all(self.characters, self.starts, self.ends, found)
        return found

    def items(self, counts: Ints) -> pa.Array:
        """The elements of arrays, or the keys of objects, of all rows with a count above 0, one after the other."""
        total = int(np.maximum(counts, 0).sum())
        starts, sizes = np.empty(total, np.int64), np.empty(total, np.int64)
        list_all(self.characters, self.starts, self.ends, counts, starts, sizes)
        into, out = np.empty(total + 1, np.int32), np.empty(int(sizes.sum()), np.uint8)
        copy_texts(self.characters, starts, sizes, into, out)
        return text_array(into, out, pa.string(), None)


@rehearsal
def _rehearse() -> None:
    found = Members(pa.array(['{"a": [1, {"b": "x"}]}', None]), ("a", 1, "b"))
    found.slices(found.starts >= 0)
    Members(pa.array(["[1]"]), ()).items(Members(pa.array(["[1]"]), ()).counts())
