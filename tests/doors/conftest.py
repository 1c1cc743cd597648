"""Nodes that the tests of the doors share: one that is open to everyone, one with tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Node, running_node

TOKENS = {"LAKE_READ_TOKEN": "reads", "LAKE_WRITE_TOKEN": "writes", "LAKE_ADMIN_TOKEN": "rules"}


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that asks nobody to sign in, and tiers only when it is told to."""
    with running_node(tmp_path_factory.mktemp("doors") / "open", "--tier-secs", "0") as node:
        yield node


@pytest.fixture(scope="package")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with three tokens."""
    with running_node(tmp_path_factory.mktemp("doors") / "locked", environ=TOKENS) as node:
        yield node
