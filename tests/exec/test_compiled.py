"""The cache folder of compiled kernels, which several processes fill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lake.compiled import kept_code


def test_two_processes_that_save_at_once_keep_their_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process saves between the other's look at the index and its writing: nobody finds another signature's code."""

    def files() -> Any:
        return kept_code()(str(tmp_path), "kernel", "stamp")

    one, two = files(), files()
    save_data = one._save_data

    def beside_data(name: str, data: str) -> None:
        monkeypatch.setattr(two, "_load_index", dict)  # it looked before there was an index
        two.save("int64", "code of int64")
        save_data(name, data)

    monkeypatch.setattr(one, "_save_data", beside_data)
    one.save("float64", "code of float64")
    assert files().load("float64") == "code of float64"
    assert files().load("int64") in ("code of int64", None)

    # The other index wins: what it does not tell of is compiled again, and is not another's.
    two.save("int64", "code of int64")
    assert (files().load("float64"), files().load("int64")) == (None, "code of int64")
    monkeypatch.setattr(one, "_save_data", save_data)
    one.save("float64", "code of float64")
    assert (files().load("float64"), files().load("int64")) == ("code of float64", "code of int64")


def test_code_is_there_before_the_index_tells_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed while it saves leaves no index that names the code of an older source."""
    older = kept_code()(str(tmp_path), "kernel", "older")
    older.save("int64", "older code")
    newer = kept_code()(str(tmp_path), "kernel", "newer")

    def killed(name: str, data: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(newer, "_save_data", killed)
    with pytest.raises(KeyboardInterrupt):
        newer.save("int64", "newer code")
    assert kept_code()(str(tmp_path), "kernel", "newer").load("int64") is None
