"""The model of ``tests.model`` in Hypothesis's hands, which makes a failure small. ``python -m tests model`` plays longer."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lake.db.write import path
from tests.model import LOG_ROWS, World

CHANCES = st.randoms(use_true_random=False)


class Tables(RuleBasedStateMachine):
    """Statements in any order; each draws what it needs."""

    def __init__(self) -> None:
        super().__init__()
        self.kept, path.LOG_ROWS = path.LOG_ROWS, LOG_ROWS  # type: ignore[misc]
        self.world = World(random.Random(1))

    def teardown(self) -> None:
        """Ends the lake."""
        self.world.close()
        path.LOG_ROWS = self.kept  # type: ignore[misc]

    @rule(chance=CHANCES, kind=st.sampled_from(["insert", "insert", "update", "delete", "merge", "transaction"]))
    def change_rows(self, chance: random.Random, kind: str) -> None:
        """Rows in and out; the first makes a table."""
        self.world.chance = chance
        if not self.world.tables:
            self.world.create()
        getattr(self.world, kind)()

    @rule(chance=CHANCES, kind=st.sampled_from(["create", "alter", "truncate", "drop", "undrop", "clone"]))
    def define(self, chance: random.Random, kind: str) -> None:
        """What tables there are, and their columns."""
        self.world.chance = chance
        getattr(self.world, kind)()

    @rule(chance=CHANCES, kind=st.sampled_from(["restore", "copy_of_the_past", "feed"]))
    def look_back(self, chance: random.Random, kind: str) -> None:
        """What was."""
        self.world.chance = chance
        getattr(self.world, kind)()

    @rule(chance=CHANCES, kind=st.sampled_from(["tier", "upkeep", "restart"]))
    def keep(self, chance: random.Random, kind: str) -> None:
        """What happens by itself."""
        self.world.chance = chance
        getattr(self.world, kind)()

    @invariant()
    def holds(self) -> None:
        """All is as the model says."""
        self.world.check()


TestTables = Tables.TestCase
TestTables.settings = settings(
    max_examples=8,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
