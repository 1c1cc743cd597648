"""format=xlsx, and the reader of what it writes. Spec: HTTP, Query (format); Limits (xlsx download)."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import pytest
import python_calamine

from lake.errors import InvalidParameter, IoFailure, LakeError
from tests.cluster import Node
from tests.db.rights import open_lake
from tests.doors.test_http_sql import VALUES, ask, header


def sheet(body: bytes) -> list[list[object]]:
    """The rows of a workbook's one sheet."""
    book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(body))
    assert book.sheet_names == ["answer"]
    return book.get_sheet_by_index(0).to_python()


def test_a_workbook(node: Node) -> None:
    """One sheet, names first; Excel's own values where it has them, texts where it has not. HTTP Query 11."""
    reply = ask(node, VALUES + ", 'NaN'::DOUBLE AS nan, DATE '1800-01-01' AS old, '=1+1' AS formula", "format=xlsx")
    assert header(reply, "content-type") == "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert header(reply, "content-disposition") == 'attachment; filename="answer.xlsx"'
    names, row = sheet(reply.body)
    assert names[:4] == ["i", "big", "d", "f"]
    assert dict(zip(names, row, strict=True)) == {
        "i": 1.0, "big": "9007199254740993", "d": 1.5, "f": 0.5, "s": 'a,"b', "e": "", "n": "", "b": True,
        "day": datetime.date(2024, 2, 29), "at": datetime.datetime(2024, 2, 29, 12, 30), "x": "00ff", "l": "[1, NULL, 3]",
        "nan": "NaN", "old": "1800-01-01", "formula": "=1+1",
    }  # fmt: skip


def test_names_are_bold(node: Node) -> None:
    """Spec: HTTP, Query (one sheet with bold names). HTTP Query 11."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(ask(node, "SELECT 1 AS a", "format=xlsx").body)) as parts:
        assert b"<b/>" in parts.read("xl/styles.xml") and b's="1"' in parts.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize("text", ["SELECT i FROM range(1048576) AS r(i)", "SELECT repeat('x', 32768) AS long"])
def test_what_a_sheet_does_not_hold(node: Node, text: str) -> None:
    """At most 1,048,575 rows, and 32,767 characters in a cell: more is refused, not cut. HTTP Query 11."""
    reply = ask(node, text, "format=xlsx")
    assert (reply.status, header(reply, "x-lake-sqlstate")) == (500, "54000")


def test_reading_a_workbook(node: Node, tmp_path: Path) -> None:
    """read_xlsx, and the extension; the types are what the cells are."""
    text = "SELECT i, i / 2.0 AS half, 'n' || i AS name, DATE '2024-01-01' + i AS day, i > 1 AS late FROM range(3) AS r(i)"
    path = tmp_path / "made.xlsx"
    path.write_bytes(ask(node, text, "format=xlsx").body)
    with open_lake() as lake:
        for source in (f"'{path}'", f"read_xlsx('{path}')", f"read_xlsx('{path}', sheet => 'answer', header => true)"):
            rows = lake.rows("owner", f"SELECT * FROM {source} ORDER BY i DESC LIMIT 1")
            assert rows == [(2, 1.0, "n2", datetime.date(2024, 1, 3), True)]
        described = lake.rows("owner", f"DESCRIBE SELECT * FROM '{path}'")
        assert [row[1] for row in described] == ["Int64", "Float64", "Utf8", "Date32", "Boolean"]
        plain = lake.rows("owner", f"SELECT column1, count(*) OVER () AS n FROM read_xlsx('{path}', header => false) LIMIT 1")
        assert plain == [("i", 4)]
        for wrong, kind in ((f"read_xlsx('{path}', sheet => 'no')", InvalidParameter), (f"read_xlsx('{__file__}')", IoFailure)):
            with pytest.raises(kind):
                lake.rows("owner", f"SELECT * FROM {wrong}")
        with pytest.raises(LakeError):
            lake.rows("owner", f"SELECT * FROM read_xlsx('{path}', nonsense => 1)")
