"""Functions that go row by row in Python: why, and what a row costs.

    python -m tests bench rows [--rows 20000] [--runs 3]

Every function marked ``@per_row`` is called over a table of distinct values; a figure is nanoseconds a row of the best run,
less what reading the argument costs. ``CALLS`` has one for each; without a call is what answers from the catalog, from
files or from a service, and rows are few.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import lake.db
from lake.connection import Connection
from lake.exec.per_row import PER_ROW
from lake.sql.registry import FUNCTIONS
from tests.bench import table

FUNCTIONS.fill()  # which fills PER_ROW too

ROWS: Final = """CREATE TABLE rows AS SELECT i, i % 1000 AS n, (i + 0.25)::DECIMAL(12, 2) AS d, i + 0.25::DOUBLE AS f,
    12345678901234567890.5 * i AS w, 'text ' || i || ' of ' || (i * 7919) % {rows} AS a, 'é ' || i || ' (x)' AS b,
    ('bytes ' || i)::BYTEA AS x, TIMESTAMP '2024-01-01' + to_seconds(i * 1000) AS m, (DATE '2024-01-01' + i::INT)::VARCHAR AS y,
    '{{"a": ' || i || ', "b": [1, "x' || i || '"]}}' AS j, '/path/' || i || '/f.csv' AS p, [i, i % 7] AS l,
    i || ',' || i + 1 AS c, hex(i) AS h, '<a>' || i || '</a>' AS e, INTERVAL '1 day' * i AS v FROM range({rows}) AS r(i)"""
CALLS: Final[dict[str, str]] = {
    "binary._hashed": "sha256(a)", "binary.crc32": "crc32(a)", "binary.digest": "digest(a, 'md5')",
    "binary.encode": "encode(x, 'escape')", "binary.md5": "md5(a)", "binary.sha1": "sha1(a)", "binary.sha2": "sha2(a, 256)",
    "binary.sha224": "sha224(a)", "binary.sha256": "sha256(a)", "binary.sha384": "sha384(a)", "binary.sha512": "sha512(a)",
    "cast._list_from_text": "('[' || c || ']')::BIGINT[]", "cast_text._each": "v::VARCHAR", "cast_text.decimal_text": "w::VARCHAR",
    "cast_text.from_text": "(i || ' hours')::INTERVAL", "ciphers.aes_decrypt": "aes_decrypt(aes_encrypt(a, '0000111122223333'), "
    "'0000111122223333')", "ciphers.aes_encrypt": "aes_encrypt(a, '0000111122223333')",
    "ciphers.try_aes_decrypt": "try_aes_decrypt(x, '0000111122223333')",
    "filling.equi_width_bins": "equi_width_bins(0, i, 3, true)", "json.json_merge_patch": "json_merge_patch(j, '{\"c\": 1}')",
    "json.json_type": "json_type(j)", "json.json_valid": "json_valid(j)", "list_summaries._item_texts": "array_to_string([f * 1e9], ',')",
    "lists.array_dims": "array_dims(l)", "maps.str_to_map": "str_to_map(c)", "matches._over_groups": "regexp_substr(b, '\\w+')",
    "matches.regexp_count": "regexp_count(b, '\\d')", "matches.regexp_extract": "regexp_extract(b, '(\\d+)', 1)",
    "matches.regexp_extract_all": "regexp_extract_all(a, '\\d+')", "matches.regexp_instr": "regexp_instr(a, 'o')",
    "matches.regexp_match": "regexp_match(a, 'x(.)')", "matches.regexp_split_to_array": "regexp_split_to_array(a, ' ')",
    "matches.regexp_substr": "regexp_substr(b, '\\d+')", "matches.substring": "substring(b, '(\\d+)')",
    "math._whole_units": "gcd(w, 1.5)", "math.decimal_gcd": "gcd(w, 1.5)", "math.decimal_lcm": "lcm(w, 1.5)",
    "readable.bar": "bar(n, 0, 1000)", "readable.parse_dirname": "parse_dirname(p)", "readable.parse_dirpath": "parse_dirpath(p)",
    "readable.parse_filename": "parse_filename(p)", "readable.parse_path": "parse_path(p)",
    "readable.uuid_extract_version": "uuid_extract_version(uuid())", "schemas.from_csv": "from_csv(c, 'a INT, b INT')",
    "schemas.from_json": "from_json(j, 'a INT')", "schemas.json_structure": "json_structure(j)",
    "schemas.json_transform": "json_transform(j, '{\"a\": \"BIGINT\"}')", "schemas.json_type_at": "json_type(j, '$.b')",
    "schemas.schema_of_json": "schema_of_json(j)", "spark_hashes._xx_bytes": "xxhash64(a)",
    "spark_numbers._to_number": "to_number(i::VARCHAR, '99999')", "spark_numbers.bitmap_count": "bitmap_count(x)",
    "spark_numbers.conv": "conv(i::VARCHAR, 10, 16)", "spark_numbers.format_number": "format_number(f, 2)",
    "spark_numbers.luhn_check": "luhn_check(i::VARCHAR)", "spark_numbers.randstr": "randstr(5)",
    "spark_texts.from_base32": "from_base32(to_base32(x))", "spark_texts.hmac": "hmac(a, 'k')",
    "spark_texts.is_valid_utf8": "is_valid_utf8(x || '\\xff'::BYTEA)", "spark_texts.make_valid_utf8": "make_valid_utf8(x || '\\xff'::BYTEA)",
    "spark_texts.mask": "mask(b)", "spark_texts.sentences": "sentences(a)", "spark_texts.spark_split": "spark_split(a, ' ')",
    "spark_texts.to_base32": "to_base32(x)", "spark_texts.to_binary": "to_binary(a, 'utf-8')",
    "spark_texts.try_to_binary": "try_to_binary(a, 'utf-8')", "spark_types.parse_json": "parse_json(j)",
    "spark_types.spark_decode": "spark_decode(x, 'utf-8')", "spark_types.spark_encode": "spark_encode(a, 'utf-16')",
    "spark_types.try_parse_json": "try_parse_json(j)", "string_forms.format_": "format('%s-%s', i, a)",
    "string_forms.quote_ident": "quote_ident(a)", "string_forms.replace": "replace(a, 't', b)",
    "string_forms.strip_accents": "strip_accents(b)", "string_forms.translate": "translate(b, 'te', 'xy')",
    "strings.find_in_set": "find_in_set('1', c)", "strings.initcap": "initcap(b)", "time_columns._texts_of": "to_char(m, 'YYYY-MM-DD HH24:MI')",
    "time_columns.read_column": "to_date(y, '%Y-%m-%d')", "time_text._read_all": "to_timestamp(y || '+01:00', '%Y-%m-%d%z')",
    "time_text.interval_to_char": "to_char(v, 'iso8601')", "time_text.number_to_char": "to_char(d, 'FM999999.00')",
    "xml.xpath": "xpath(e, 'a/text()')", "xml.xpath_boolean": "xpath_boolean(e, 'a')",
}  # fmt: skip
FEW: Final = ("ai.", "files.", "pg.", "pg_arrays.", "pg_rights.", "enums.", "sequences.", "session.", "binary._wide_numerics", "copy_binary.", "few.")
"""Catalogs, files, services and doors: nothing that a column of many rows goes through by itself."""


def short(name: str) -> str:
    """The module's last name and the function's."""
    return ".".join(name.split(".")[-2:])


def cost(db: Connection, expression: str, runs: int) -> float:
    """The best seconds of some runs of an expression over the table."""
    best = float("inf")
    for run in range(runs):
        began = time.perf_counter()
        db.sql(f"SELECT {expression} AS answer_{run} FROM rows").arrow()
        best = min(best, time.perf_counter() - began)
    return best


def main(arguments: Sequence[str]) -> int:
    """Prints every marked function, its call, nanoseconds a row, and why it goes row by row."""
    parser = argparse.ArgumentParser(prog="bench rows")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args(arguments)
    lines = []
    with tempfile.TemporaryDirectory() as folder, lake.open(Path(folder) / "lake") as db:
        db.sql(ROWS.format(rows=given.rows))
        nothing = cost(db, "a", given.runs)
        for name, why in sorted(PER_ROW.items()):
            call = CALLS.get(short(name), "")
            nanos = (cost(db, call, given.runs) - nothing) / given.rows * 1e9 if call else 0.0
            lines.append((short(name), call, f"{nanos:.0f}" if call else "few", why))
    print(table(("function", "call", "ns a row", "why"), lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
