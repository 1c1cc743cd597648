"""Nodes with a Postgres door: one open to everyone, one with tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster import Node, free_port, running_node

TOKENS = {"LAKE_READ_TOKEN": "reads", "LAKE_WRITE_TOKEN": "writes", "LAKE_ADMIN_TOKEN": "rules"}


@dataclass(frozen=True, slots=True)
class PgNode:
    """A node and the port of its Postgres door."""

    node: Node
    port: int

    def dsn(self, user: str = "admin", password: str = "") -> str:
        """What libpq connects by."""
        return f"host=127.0.0.1 port={self.port} user={user} password={password or 'none'} dbname=lake sslmode=disable"


@pytest.fixture(scope="package")
def pg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgNode]:
    """A node that asks nobody to sign in."""
    port = free_port()
    folder = tmp_path_factory.mktemp("pg") / "open"
    with running_node(folder, "--tier-secs", "0", "--pg", f"127.0.0.1:{port}") as node:
        yield PgNode(node, port)


@pytest.fixture(scope="package")
def locked_pg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgNode]:
    """A node with three tokens."""
    port = free_port()
    folder = tmp_path_factory.mktemp("pg") / "locked"
    with running_node(folder, "--pg", f"127.0.0.1:{port}", environ=TOKENS) as node:
        yield PgNode(node, port)
