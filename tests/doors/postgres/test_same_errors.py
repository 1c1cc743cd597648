"""A wrong statement is told in the same words, with the same SQLSTATE, hint and place, at every door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import lake
from lake.connection import Connection
from lake.errors import LakeError
from tests.doors.postgres.conftest import PgNode

TABLE = "CREATE TABLE IF NOT EXISTS wrong_sales (id BIGINT, amount BIGINT)"
WRONG = {
    "SELECT amout FROM wrong_sales": ("42703", 'Did you mean "amount"?', 8),
    "SELECT s.amout FROM wrong_sales AS s": ("42703", 'Did you mean "amount"?', 8),
    "SELECT * FROM wrong_sale": ("42P01", 'Did you mean "wrong_sales"?', 15),
    "SELECT * FROM wrong_sales AS left_one JOIN wrong_sales AS other ON left_on.id = 1": ("42P01", 'Did you mean "left_one"?', 68),
    "SELECT lenght('a')": ("42883", 'Did you mean "length"?', 8),
    "SELECT * FROM generate_sries(1, 2)": ("42883", 'Did you mean "generate_series"?', 15),
    "SELECT 1::VARCHR": ("42704", 'Did you mean "varchar"?', 8),
    "SET lake.result_cahce = 'on'": ("42704", 'Did you mean "lake.result_cache"?', None),
    "ALTER TABLE wrong_sales DROP COLUMN amout": ("42703", 'Did you mean "amount"?', None),
    "UPDATE wrong_sales SET amout = 1": ("42703", 'Did you mean "amount"?', 24),
    "SELECT sum(id) OVER tota FROM wrong_sales WINDOW total AS (ORDER BY id)": ("42P20", 'Did you mean "total"?', 8),
    "SELECT date_trunc('mnth', TIMESTAMP '2024-01-01')": ("22023", 'Did you mean "month"?', None),
    "SELECT * FORM wrong_sales": ("42601", "did you mean FROM?", 10),
    "SELECT id, sum(amount) FROM wrong_sales": ("42803", None, 8),
    "SELECT 1 / 0": ("22012", None, None),
}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A lake in this process."""
    folder: Path = tmp_path_factory.mktemp("errors") / "lake"
    with lake.open(folder) as connection:
        yield connection


def refusal(connection: Connection, text: str) -> LakeError:
    """What a connection says of a wrong statement."""
    connection.sql(TABLE)
    with pytest.raises(LakeError) as raised:
        connection.sql(text).arrow()
    return raised.value


@pytest.mark.parametrize("text", WRONG)
def test_same_words_everywhere(text: str, embedded: Connection, pg: PgNode) -> None:
    """Embedded, over HTTP and over Postgres's protocol: message, SQLSTATE, detail, hint and position."""
    told = refusal(embedded, text)
    assert (told.sqlstate, told.hint, told.position) == WRONG[text]
    with lake.connect(pg.node.url) as http:
        asked = refusal(http, text)
    with psycopg.connect(pg.dsn(), autocommit=True) as client, pytest.raises(psycopg.Error) as raised:
        client.execute(text)
    said = raised.value.diag
    shown = str(told.position) if told.position is not None else None
    assert (asked.message, asked.sqlstate, asked.detail, asked.hint, asked.position) == (
        told.message, told.sqlstate, told.detail, told.hint, told.position,
    )  # fmt: skip
    assert (said.message_primary, said.sqlstate, said.message_detail, said.message_hint, said.statement_position) == (
        told.message, told.sqlstate, told.detail, told.hint, shown,
    )  # fmt: skip
