"""Work on threads: what a failure leaves behind."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from lake.errors import LakeError, OutOfMemory
from lake.net.threads import Threads


class _Rows:
    """What a statement holds."""


@pytest.mark.parametrize("failure", [OutOfMemory, ValueError])
def test_a_failed_statement_holds_nothing(failure: type[Exception]) -> None:
    """Its frames go with its answer, and do not wait for the collector: the next statement may need the memory."""
    held: list[weakref.ref[_Rows]] = []

    def work() -> None:
        rows = _Rows()
        held.append(weakref.ref(rows))
        raise failure("rows")

    async def ask() -> str:
        threads = Threads()
        try:
            await threads.call(work)
        except LakeError as error:
            return error.sqlstate
        finally:
            threads.close()
        return ""

    gc.disable()
    try:
        assert asyncio.run(ask()) in ("53200", "XX000")
        assert held[0]() is None
    finally:
        gc.enable()
