"""Memory that was freed goes back to the system when it is asked for."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from lake.exec.allocator import GROWN_BYTES, FreedMemory, keep_freed_memory, resident_bytes


@pytest.mark.skipif(not sys.platform.startswith("linux") or not keep_freed_memory(), reason="another C library")
def test_freed_memory_is_given_back() -> None:
    """Arrays freed between others that stay leave holes, which only giving back closes; a small growth is left alone."""
    freed = FreedMemory()
    assert not freed.give_back()
    before = resident_bytes()
    arrays = [np.ones(1 << 17) for _ in range(400)]
    kept = arrays[::8]
    assert resident_bytes() > before + GROWN_BYTES
    del arrays
    assert freed.give_back()
    assert resident_bytes() < before + GROWN_BYTES
    assert len(kept) == 50
