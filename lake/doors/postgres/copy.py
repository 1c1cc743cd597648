"""COPY FROM STDIN and COPY TO STDOUT: what they say, and rows to lines.

    COPY t (a, b) FROM STDIN (FORMAT csv, HEADER)       COPY (SELECT ..) TO STDOUT WITH CSV DELIMITER ';'

Source: PostgreSQL documentation, COPY. Spec: Doors, Postgres door.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake.doors.postgres.rows import HEAD_BYTES, begun, lengths_of
from lake.doors.postgres.text import text_column
from lake.errors import FeatureNotSupported, InvalidParameter, SyntaxFailure
from lake.exec.kernels import views
from lake.exec.kernels.layout import find_marked, place_lines
from lake.exec.kernels.strings import equal_mask
from lake.late import late_pattern
from lake.types import Type

_NAME: Final = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_COLUMNS: Final = rf"\(\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\)"
_COPY_IN: Final = late_pattern(
    rf"COPY\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*)\s*(?P<columns>{_COLUMNS})?\s*FROM\s+STDIN\b(?P<rest>.*)$", re.I | re.S
)
_COPY_OUT: Final = late_pattern(
    rf"COPY\s+(?:(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*)\s*(?P<columns>{_COLUMNS})?|\((?P<query>.*)\))"
    r"\s*TO\s+STDOUT\b(?P<rest>.*)$",
    re.I | re.S,
)
_OPTION_TOKEN: Final = late_pattern(rf"\s*(?P<text>[eE]?'(?:[^']|'')*')|\s*(?P<word>{_NAME}|\d+)|\s*(?P<sign>[(),*])")
_ESCAPES: Final = {"\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v"}


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
    columns = zip(batch.columns, types, strict=True)
    return _messages(copy, batch.num_rows, [text_column(column, type, zone) for column, type in columns])


def header_line(copy: Copy, names: Sequence[str]) -> bytes:
    """The line of column names as a CopyData message."""
    return _messages(copy, 1, [pa.array([name.encode()], pa.binary()) for name in names])


def _messages(copy: Copy, rows: int, columns: Sequence[pa.Array]) -> bytes:
    """Each row's values with a delimiter between them and a line's end behind, as a message."""
    if not rows:
        return b""
    shown = [_csv_value(copy, column) if copy.csv else _text_value(copy, column) for column in columns]
    texts = [(*views.text_of(column), views.mask_of(column)) for column in shown]
    null = np.frombuffer(copy.null.encode(), np.uint8).copy()
    sizes = np.full(rows, HEAD_BYTES + max(len(texts), 1), np.int64)
    for offsets, _, valid in texts:
        sizes += lengths_of(offsets, valid)
        if valid.size:
            sizes += (1 - valid.astype(np.int64)) * len(null)
    places, out = begun(sizes, "d")
    for place, (offsets, characters, valid) in enumerate(texts, 1):
        behind = 10 if place == len(texts) else ord(copy.delimiter)
        place_lines.over(rows)(offsets, characters, valid, null, behind, places, out)
    if not texts:
        out[places] = 10
    return bytes(out)


def _text_value(copy: Copy, texts: pa.Array) -> pa.Array:
    if not _marked(texts, "".join(("\\", *_ESCAPES.values(), copy.delimiter))).any():
        return texts
    made = pc.replace_substring(texts.cast(pa.string()), "\\", "\\\\")
    for escape, char in _ESCAPES.items():
        made = pc.replace_substring(made, char, escape)
    return made if copy.delimiter == "\t" else pc.replace_substring(made, copy.delimiter, "\\" + copy.delimiter)


def _csv_value(copy: Copy, texts: pa.Array) -> pa.Array:
    must = _marked(texts, f"\n\r{copy.quote}{copy.delimiter}{copy.escape}").view(np.bool_)
    for whole in (copy.null, "\\."):
        must |= equal_mask(texts, whole).view(np.bool_)
    if not copy.force_quote and not must.any():
        return texts
    made = pc.replace_substring(texts.cast(pa.string()), copy.escape, copy.escape * 2)
    if copy.quote != copy.escape:
        made = pc.replace_substring(made, copy.quote, copy.escape + copy.quote)
    quoted = pc.binary_join_element_wise(copy.quote, made, copy.quote, "")
    return quoted if copy.force_quote else pc.if_else(pa.array(must), quoted, texts.cast(pa.string()))


def _marked(texts: pa.Array, characters: str) -> Any:
    """uint8[rows]: which texts have one of the characters, all of one byte."""
    marks, mask = np.zeros(256, np.uint8), np.zeros(len(texts), np.uint8)
    marks[list(characters.encode())] = 1
    find_marked.over(len(texts))(*views.text_of(texts), marks, mask)
    return mask
