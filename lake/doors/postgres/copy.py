"""COPY FROM STDIN and COPY TO STDOUT: what they say, rows to lines, lines to columns.

    COPY t (a, b) FROM STDIN (FORMAT csv, HEADER)       COPY (SELECT ..) TO STDOUT WITH CSV DELIMITER ';'

Source: PostgreSQL documentation, COPY. Spec: Doors, Postgres door.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from lake.doors.postgres.text import text_column
from lake.errors import BadCopyData, FeatureNotSupported, InvalidParameter, SyntaxFailure
from lake.exec.kernels import views
from lake.types import Type

_NAME: Final = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_COLUMNS: Final = rf"\(\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\)"
_COPY_IN: Final = re.compile(
    rf"COPY\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*)\s*(?P<columns>{_COLUMNS})?\s*FROM\s+STDIN\b(?P<rest>.*)$", re.I | re.S
)
_COPY_OUT: Final = re.compile(
    rf"COPY\s+(?:(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*)\s*(?P<columns>{_COLUMNS})?|\((?P<query>.*)\))"
    r"\s*TO\s+STDOUT\b(?P<rest>.*)$",
    re.I | re.S,
)
_OPTION_TOKEN: Final = re.compile(rf"\s*(?P<text>[eE]?'(?:[^']|'')*')|\s*(?P<word>{_NAME}|\d+)|\s*(?P<sign>[(),*])")
_ESCAPES: Final = {"\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v"}
_NOTHING: Final = pa.scalar(b"", pa.binary())
_HEAD: Final = np.dtype([("tag", "u1"), ("size", ">i4")])
BLOCK_BYTES: Final = 4 << 20  # of lines that become one batch of columns


@dataclass(frozen=True, slots=True)
class Copy:
    """A COPY over the wire.

    source   the table as SQL writes it, or a query in parentheses
    columns  names, as SQL writes them; none means all
    """

    is_in: bool
    source: str
    columns: tuple[str, ...]
    csv: bool = False
    binary: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: bool = False

    @property
    def query(self) -> str:
        """The query whose rows COPY TO sends."""
        if self.source.startswith("("):
            return self.source[1:-1]
        return f"SELECT {', '.join(self.columns) or '*'} FROM {self.source}"


def parse_copy(text: str) -> Copy | None:
    """What a COPY says; None where it is not one from STDIN or to STDOUT.

    42601  options that are none      0A000  options that are not built
    """
    incoming = _COPY_IN.match(text)
    found = incoming or _COPY_OUT.match(text)
    if found is None:
        return None
    names = tuple(item.strip() for item in re.findall(_NAME, found["columns"] or ""))
    query = found.groupdict().get("query")
    source = f"({query})" if query is not None else found["table"]
    return _with_options(Copy(incoming is not None, source, names), found["rest"])


def _with_options(copy: Copy, rest: str) -> Copy:
    options = dict(_options(rest))
    format = str(options.pop("format", "text")).lower()
    if format not in ("text", "csv", "binary"):
        raise InvalidParameter(f'COPY format "{format}" not recognized')
    if format == "binary":
        given = next((name for name in options if name not in ("encoding", "freeze")), None)
        if given is not None:
            raise SyntaxFailure(f"cannot specify {given.upper()} in BINARY mode")
    csv = format == "csv"
    quote = str(options.pop("quote", '"'))
    made = Copy(
        copy.is_in, copy.source, copy.columns, csv, format == "binary",
        delimiter=str(options.pop("delimiter", "," if csv else "\t")),
        null=str(options.pop("null", "" if csv else "\\N")),
        header=str(options.pop("header", "false")).lower() in ("true", "on", "1", "match"),
        quote=quote, escape=str(options.pop("escape", quote)),
        force_quote="force_quote" in options,
    )  # fmt: skip
    options.pop("force_quote", None)
    encoding = str(options.pop("encoding", "utf8")).lower().replace("-", "")
    options.pop("freeze", None)
    if encoding not in ("utf8", "unicode", "sqlascii", "sql_ascii"):
        raise FeatureNotSupported(f"COPY in the encoding {encoding} is not supported: text is UTF8")
    if options:
        raise FeatureNotSupported(f"COPY option {next(iter(options)).upper()} is not supported")
    for name, value in (("delimiter", made.delimiter), ("quote", made.quote), ("escape", made.escape)):
        if len(value.encode()) != 1:
            raise InvalidParameter(f"COPY {name} must be a single one-byte character")
    return made


def _options(rest: str) -> Iterator[tuple[str, str]]:
    """The options of ``WITH (FORMAT csv, HEADER)`` and of the older ``WITH CSV HEADER DELIMITER ','``."""
    words = _option_words(rest)
    if words and words[0].upper() == "WITH":
        words = words[1:]
    inside = bool(words) and words[0] == "("
    words = [word for word in words if word not in ("(", ")", ",")]
    place = 0
    while place < len(words):
        name = words[place].lower()
        following = words[place + 1] if place + 1 < len(words) else None
        place += 1
        if name in ("csv", "binary", "text") and not inside:
            yield "format", name
        elif name == "header":
            known = following is not None and following.lower() in ("true", "false", "on", "off", "match", "1", "0")
            yield name, str(following) if known else "true"
            place += known
        elif name in ("as", "using"):
            continue
        elif following is None:
            raise SyntaxFailure(f"syntax error in the options of COPY at {name!r}")
        else:
            if following.lower() == "as" and place + 1 < len(words):
                place += 1
                following = words[place]
            yield name, _plain(following)
            place += 1


def _option_words(rest: str) -> list[str]:
    words, place = [], 0
    rest = rest.rstrip()
    while place < len(rest):
        found = _OPTION_TOKEN.match(rest, place)
        if found is None:
            raise SyntaxFailure(f'syntax error at or near "{rest[place:].split()[0]}"')
        words.append(found[0].strip())
        place = found.end()
    return words


def _plain(word: str) -> str:
    """A word of an option: what quotes enclose, with ``E'\\t'`` undone."""
    if word[:1] in "eE" and word[1:2] == "'":
        text = word[2:-1].replace("''", "'")
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[0], found[1]), text)
    if word[:1] in "'\"":
        return word[1:-1].replace(word[0] * 2, word[0])
    return word


# --- rows to lines ---------------------------------------------------------------------------------------------------


def copy_lines(copy: Copy, batch: pa.RecordBatch, types: Sequence[Type], zone: str) -> bytes:
    """The rows of a batch as CopyData messages, one for each."""
    parts: list[Any] = []
    for column, type in zip(batch.columns, types, strict=True):
        texts = text_column(column, type, zone).cast(pa.string())
        escaped = _csv_value(copy, texts) if copy.csv else _text_value(copy, texts)
        parts.append(escaped.fill_null(copy.null).cast(pa.binary()))
    if not parts:
        lines = pa.array([b"\n"] * batch.num_rows, pa.binary())
    else:
        joined = pc.binary_join_element_wise(*parts, pa.scalar(copy.delimiter.encode(), pa.binary()))
        lines = pc.binary_join_element_wise(joined, pa.scalar(b"\n", pa.binary()), _NOTHING)
    return _messages(lines)


def header_line(copy: Copy, names: Sequence[str]) -> bytes:
    """The line of column names as a CopyData message."""
    texts = pa.array(list(names), pa.string())
    shown = _csv_value(copy, texts) if copy.csv else _text_value(copy, texts)
    return _messages(pa.array([(copy.delimiter.join(shown.to_pylist()) + "\n").encode()], pa.binary()))


def _text_value(copy: Copy, texts: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(texts, "[\\\\\b\f\n\r\t\v" + re.escape(copy.delimiter) + "]")
    if not pc.any(special).as_py():
        return texts
    made = pc.replace_substring(texts, "\\", "\\\\")
    for escape, char in _ESCAPES.items():
        made = pc.replace_substring(made, char, escape)
    return made if copy.delimiter == "\t" else pc.replace_substring(made, copy.delimiter, "\\" + copy.delimiter)


def _csv_value(copy: Copy, texts: pa.Array) -> pa.Array:
    pattern = f"[\\n\\r{re.escape(copy.quote + copy.delimiter + copy.escape)}]|^{re.escape(copy.null)}$|^\\\\\\.$"
    must = pc.match_substring_regex(texts, pattern)
    if not copy.force_quote and not pc.any(must).as_py():
        return texts
    made = pc.replace_substring(texts, copy.escape, copy.escape * 2)
    if copy.quote != copy.escape:
        made = pc.replace_substring(made, copy.quote, copy.escape + copy.quote)
    quoted = pc.binary_join_element_wise(copy.quote, made, copy.quote, "")
    return quoted if copy.force_quote else pc.if_else(must, quoted, texts)


def _messages(lines: Any) -> bytes:
    lines = lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines
    offsets = views.buffer_view(lines.buffers()[1], np.int32, len(lines) + 1, lines.offset)
    head = np.empty(len(lines), _HEAD)
    head["tag"] = ord("d")
    head["size"] = np.diff(offsets) + 4
    places = np.arange(len(lines) + 1, dtype=np.int32) * _HEAD.itemsize
    heads = pa.Array.from_buffers(
        pa.binary(), len(lines), [None, pa.py_buffer(places), pa.py_buffer(head.view(np.uint8))]
    )
    joined = pc.binary_join_element_wise(heads, lines, _NOTHING)
    end = views.buffer_view(joined.buffers()[1], np.int32, len(joined) + 1, joined.offset)
    return bytes(joined.buffers()[2].slice(int(end[0]), int(end[-1]) - int(end[0])))


# --- lines to columns ------------------------------------------------------------------------------------------------


class Blocks:
    """Bytes as they come, cut after whole rows."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, received: bytes) -> bytes | None:
        """Takes what came; answers whole rows once they are worth a batch."""
        self._parts.append(received)
        self._size += len(received)
        if self._size < BLOCK_BYTES:
            return None
        body = b"".join(self._parts)
        end = self._end_of_rows(body)
        self._parts, self._size = [body[end:]], len(body) - end
        return body[:end] or None

    def rest(self) -> bytes:
        """What is left at the end."""
        body = b"".join(self._parts)
        self._parts, self._size = [], 0
        return body

    def _end_of_rows(self, body: bytes) -> int:
        if self._copy.binary:
            return len(body)
        end = body.rfind(b"\n") + 1
        if not self._copy.csv:
            return end
        quote = self._copy.quote.encode()
        while end and body.count(quote, 0, end) % 2:  # a line end inside quotes ends no row
            end = body.rfind(b"\n", 0, end - 1) + 1
        return end


def read_lines(copy: Copy, body: bytes, names: Sequence[str], *, is_first: bool) -> pa.Table:
    """Whole rows as columns of text under ``names``.

    22P04  a row of another number of columns      22021  bytes that are not UTF8
    """
    if copy.header and is_first:
        body = _after_header(copy, body)
    end = body.rstrip(b"\r\n")
    if end == b"\\." or end.endswith(b"\n\\."):
        body = end[:-2]
    if not body.strip(b"\r\n"):
        if len(names) != 1 or not body:
            return pa.table({name: pa.array([], pa.string()) for name in names})
    parse = pcsv.ParseOptions(
        delimiter=copy.delimiter, quote_char=copy.quote if copy.csv else False, double_quote=copy.csv,
        escape_char=copy.escape if copy.csv and copy.escape != copy.quote else False,
        newlines_in_values=copy.csv, ignore_empty_lines=False,
    )  # fmt: skip
    convert = pcsv.ConvertOptions(
        column_types={name: pa.string() for name in names}, null_values=[copy.null], strings_can_be_null=True,
        quoted_strings_can_be_null=False, check_utf8=True,
    )  # fmt: skip
    read = pcsv.ReadOptions(column_names=list(names), block_size=max(len(body) + 1, 1 << 16), use_threads=False)
    try:
        table = pcsv.read_csv(io.BytesIO(body), read, parse, convert)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise BadCopyData(f"COPY: {str(error).splitlines()[0]}") from None
    if copy.csv:
        return table
    return pa.table([_unescaped(column) for column in table.columns], names=list(names))


def _after_header(copy: Copy, body: bytes) -> bytes:
    place = 0
    while True:
        end = body.find(b"\n", place) + 1
        if not end:
            return b""
        if not copy.csv or body.count(copy.quote.encode(), 0, end) % 2 == 0:
            return body[end:]
        place = end


def _unescaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text-format values with their backslashes undone; few have any."""
    if not pc.any(pc.match_substring(column, "\\")).as_py():
        return column
    return pa.chunked_array([pa.array([_unescape(v) for v in chunk.to_pylist()], pa.string()) for chunk in column.chunks])


_ESCAPED: Final = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.S)


def _unescape(value: str | None) -> str | None:
    return None if value is None else _ESCAPED.sub(_char, value)


def _char(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPES.get(found[0], code)
