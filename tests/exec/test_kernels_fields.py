"""Fields of COPY's lines: compiled and interpreted kernels agree, whatever the bytes; rows that were written are found."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.exec.kernels import fields, interpreted

BODIES = st.lists(st.sampled_from((b"a", b"\t", b"\n", b"\r", b"\\", b".", b"N", b'"', b"7", b"x", b"f", b"\xc3")), max_size=14).map(b"".join)


def _bytes(body: bytes) -> Any:
    return np.frombuffer(body, np.uint8).copy()


def _kinds(is_csv: bool) -> Any:
    kinds = np.full(256, fields.PLAIN, np.uint8)
    for kind, sign in ((fields.DELIMITER, "\t"), (fields.NEWLINE, "\n"), (fields.RETURN, "\r"), (fields.BACKSLASH, "\\")):
        kinds[ord(sign)] = kind
    if is_csv:
        kinds[ord('"')] = fields.QUOTE
    return kinds


def _split(body: bytes, is_csv: bool, is_last: bool) -> tuple[Any, ...]:
    starts, lengths = np.zeros((2, len(body) + 1), np.int32), np.zeros((2, len(body) + 1), np.int32)
    special, marks = np.zeros(2, np.uint8), np.zeros(fields.MARKS, np.int64)
    found = (_bytes(b"\\N"), is_last, starts, lengths, special, marks)
    if is_csv:
        rows = int(fields.split_csv(_bytes(body), _kinds(True), _bytes(b'""'), *found))
    else:
        rows = int(fields.split_text(_bytes(body), _kinds(False), *found))
    return rows, starts[:, :rows].tolist(), lengths[:, :rows].tolist(), special.tolist(), marks.tolist()


@settings(deadline=None)
@given(body=BODIES, is_csv=st.booleans(), is_last=st.booleans())
def test_any_bytes_are_split_alike(body: bytes, is_csv: bool, is_last: bool) -> None:
    """And never past their end."""
    compiled = _split(body, is_csv, is_last)
    with interpreted():
        assert compiled == _split(body, is_csv, is_last)
    rows, starts, lengths = compiled[:3]
    assert rows == 0 or (np.min(starts) >= 0 and (np.array(starts) + lengths).max() <= len(body))


@settings(deadline=None)
@given(body=BODIES)
def test_any_field_is_gathered_alike(body: bytes) -> None:
    """As it is, with its backslashes undone, and without its quotes."""
    answers: list[list[Any]] = [[], []]
    for mode, found in enumerate(answers):
        starts, lengths = np.zeros(2, np.int32), np.array([len(body), -1], np.int32)
        for gather, with_ in (
            (fields.gather_texts, ()), (fields.unescape_texts, (np.arange(256, dtype=np.uint8),)), (fields.unquote_texts, (_bytes(b'""'),)),
        ):  # fmt: skip
            offsets, made = np.zeros(3, np.int32), np.zeros(len(body), np.uint8)
            (gather if mode else gather.py_func)(_bytes(body), starts, lengths, *with_, offsets, made)
            found += [offsets.tolist(), made[: offsets[-1]].tobytes()]
    assert answers[0] == answers[1]
    assert answers[0][:2] == [[0, len(body), len(body)], body]


ROWS = st.lists(st.tuples(*[st.one_of(st.none(), st.text('a\t\n\r\\"é', max_size=4))] * 2), max_size=4)


@settings(deadline=None)
@given(rows=ROWS, is_csv=st.booleans(), cut=st.integers(0, 3))
def test_rows_that_were_written_are_found(rows: list[tuple[str | None, str | None]], is_csv: bool, cut: int) -> None:
    """Each value with all that must be escaped, and a last row that is cut off waits."""
    def shown(value: str | None) -> str:
        if value is None:
            return "\\N"
        if is_csv:
            return '"' + value.replace('"', '""') + '"'
        return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\015")

    body = "".join("\t".join(map(shown, row)) + "\n" for row in rows).encode()
    count, starts, lengths, _, marks = _split(body, is_csv, True)
    assert count == len(rows) and marks[fields.REST] >= len(body) and marks[fields.STATE] == fields.MORE
    controls = np.arange(256, dtype=np.uint8)
    controls[ord("n")], controls[ord("t")] = 10, 9
    for place in range(2):
        where = np.array(starts[place], np.int32), np.array(lengths[place], np.int32)
        offsets, made = np.zeros(count + 1, np.int32), np.zeros(len(body), np.uint8)
        if is_csv:
            fields.unquote_texts(_bytes(body), *where, _bytes(b'""'), offsets, made)
        else:
            fields.unescape_texts(_bytes(body), *where, controls, offsets, made)
        texts = [
            None if length < 0 else made[start:end].tobytes().decode()
            for start, end, length in zip(offsets, offsets[1:], lengths[place], strict=False)
        ]
        assert texts == [row[place] for row in rows]
    if rows and 0 < cut < len(body) and is_csv:
        assert _split(body[: len(body) - cut], True, False)[0] == len(rows) - 1 or cut == 0
