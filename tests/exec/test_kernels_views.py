"""Views of Arrow arrays, and the kernels' own machinery."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake import compiled
from lake.exec import kernels
from lake.exec.kernels import views
from tests.exec.test_kernels_groups import VALUES

FIXED = sorted(set(VALUES) - {"text", "codes", "list", "null"})


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FIXED), st.data(), st.integers(0, 9))
def test_fixed_widths_round_trip(kind: str, data: st.DataObject, skipped: int) -> None:
    """Values and validity of slices make the same array again."""
    type, values = VALUES[kind]
    rows = data.draw(st.lists(st.one_of(st.none(), values), max_size=20))
    array = pa.array(rows, type).slice(skipped)
    numbers, valid = views.values_of(array), views.valid_of(array)
    assert (valid is None) == (array.null_count == 0)
    again = views.to_array(numbers, type, valid)
    again.validate(full=True)
    if kind == "double":
        assert np.array_equal(views.values_of(again).view(np.int64), numbers.view(np.int64))
        assert views.valid_of(again) is None or (views.valid_of(again) == valid).all()
    else:
        assert again.equals(array)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=9)), max_size=9), st.integers(0, 9))
def test_texts_round_trip(texts: list[str | None], skipped: int) -> None:
    """Offsets and bytes of slices, plain, large and by view."""
    for type in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array(texts, type).slice(skipped)
        offsets, characters = views.text_of(array)
        rebased = (offsets - offsets[0]).astype(np.int32)
        again = views.text_array(rebased, characters[offsets[0] : offsets[-1]], pa.string(), views.valid_of(array))
        assert again.to_pylist() == texts[skipped:]


def test_dictionaries() -> None:
    """NULL is a missing code or a missing entry; chunks with dictionaries of their own become one."""
    codes = pa.array([0, None, 1, 2], pa.int32())
    array = pa.DictionaryArray.from_arrays(codes, pa.array(["a", None, "c"]))
    assert views.valid_of(array).tolist() == [1, 0, 0, 1]
    assert views.codes_of(array).tolist() == [0, 0, 1, 2]
    chunks = pa.chunked_array([array, pa.array(["z"]).dictionary_encode().cast(array.type)])
    assert views.single(chunks).to_pylist() == ["a", None, None, "c", "z"]
    mixed = views.concat([array, pa.array(["q"])])
    assert mixed.type == pa.string() and mixed.to_pylist() == ["a", None, None, "c", "q"]


def test_truth() -> None:
    """NULL is not true; masks become arrays and back."""
    array = pa.array([True, None, False])
    assert views.true_of(array).tolist() == [True, False, False]
    assert views.to_boolean(views.true_of(pa.chunked_array([array, array.slice(1)]))).to_pylist() == [True] + [False] * 4
    assert views.valid_of(pa.nulls(2)).tolist() == [0, 0] and views.values_of(pa.nulls(2)).tolist() == [0, 0]


def test_decimal64_is_its_integers() -> None:
    """A short decimal as Parquet hands it out."""
    array = pa.array([105, None, -5], pa.int64()).view(pa.decimal64(18, 2))
    assert views.values_of(array.slice(2)).tolist() == [-5]


def test_views_do_not_copy() -> None:
    """A view shares Arrow's memory and keeps it alive."""
    array = pa.array(np.arange(1000))
    view = views.values_of(array.slice(10))
    assert view.ctypes.data == array.buffers()[1].address + 80
    del array
    assert view[-1] == 999


def test_importing_kernels_leaves_numba_alone() -> None:
    """A process that runs no kernel does not pay for the compiler."""
    text = "import sys, lake.exec.kernels.join, lake.exec.kernels.frames; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False, timeout=60).returncode == 0


def test_kernels_that_make_arrays_say_so() -> None:
    """Others are compiled without what counts the holders of arrays, and could not make any."""
    for name in (*kernels.BELOW, *(f"lake.exec.kernels.{name}" for name in kernels.MODULES)):
        importlib.import_module(name)
    makers = {"empty", "zeros", "ones", "full", "arange", "array", "copy", "empty_like", "zeros_like", "full_like", "concatenate"}
    making = {name for name, made in kernels.KERNELS.items() if makers & set(made.py_func.__code__.co_names)}
    assert {name for name, made in kernels.KERNELS.items() if made.allocates} == making
    assert making


def test_cache_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Without a home to write to, compiled kernels go to a temporary folder."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(compiled.Path, "home", lambda: tmp_path / "file")
    assert "lake-kernels-" in compiled._cache_folder()
    monkeypatch.setattr(compiled.Path, "home", lambda: tmp_path)
    assert compiled._cache_folder() == str(tmp_path / ".cache" / "lake" / "kernels")
