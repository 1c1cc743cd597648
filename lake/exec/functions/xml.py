"""XML: what a path finds in a document.

A path is names parted by ``/``, with ``*``, ``//``, ``[n]`` and ``[@a='b']``, and ``text()`` or ``@name`` at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from xml.etree import ElementTree

import pyarrow as pa

from lake.errors import FeatureNotSupported, InvalidText
from lake.exec.decimals import Value
from lake.exec.functions.columns import over_texts, with_constants
from lake.exec.per_row import per_row
from lake.sql.registry import scalar

GROUP: Final = "xml"


def _document(text: str) -> ElementTree.Element:
    """22P02  a text that is not XML, or declares entities"""
    if "<!" in re.sub(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", "", text, flags=re.DOTALL):
        raise InvalidText("a document type declaration is not read")
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InvalidText(f"invalid XML: {error}") from None


def find(text: str, path: str) -> list[str]:
    """The texts of what a path finds.

    0A000  a path with what is not known here
    """
    root = ElementTree.Element("root")
    root.append(_document(text))
    body, _, last = path.strip().rpartition("/")
    attribute = last[1:] if last.startswith("@") else None
    only_text = last == "text()"
    steps = body if attribute is not None or only_text else path.strip()
    steps = f".{steps}" if steps.startswith("//") else steps.lstrip("/")
    try:
        found = root.findall(steps or "*")
    except (SyntaxError, KeyError):
        raise FeatureNotSupported(f'the path "{path}" is not supported') from None
    if attribute is not None:
        return [item.attrib[attribute] for item in found if attribute in item.attrib]
    if only_text:
        return [part for item in found for part in [item.text, *(child.tail for child in item)] if part]
    return ["".join(item.itertext()) for item in found]


@scalar("xpath(document VARCHAR, path VARCHAR) -> VARCHAR[]", group=GROUP, origin="spark")
@per_row
def xpath(document: Value, path: Value) -> pa.Array:
    """The texts of all that a path finds. Goes row by row: a document is read whole, by the XML parser, one at a time.

    >>> xpath('<a><b>b1</b><b>b2</b></a>', 'a/b/text()')
    [b1, b2]

    22P02  a text that is not XML
    """
    strings = pa.list_(pa.string())
    return with_constants(over_texts(find, strings), strings, document, path)


def _register(name: str, type: str, arrow: pa.DataType, read: Callable[[str], Any], missing: Any, answer: str) -> None:
    def first(text: str, path: str) -> Any:
        found = find(text, path)
        if not found:
            return missing
        try:
            return read(found[0].strip())
        except ValueError:
            return missing

    def function(document: Value, path: Value) -> pa.Array:
        return with_constants(over_texts(first, arrow), arrow, document, path)

    function.__doc__ = f"""What a path finds first, as {type}.

    >>> {name}('<a><b>7</b><c>cc</c></a>', 'a/b')
    {answer}

    22P02  a text that is not XML
    """
    scalar(f"{name}(document VARCHAR, path VARCHAR) -> {type}", group=GROUP, origin="spark")(function)


_register("xpath_string", "VARCHAR", pa.string(), str, None, "7")
_register("xpath_int", "INT", pa.int32(), lambda text: int(float(text)), 0, "7")
_register("xpath_long", "BIGINT", pa.int64(), lambda text: int(float(text)), 0, "7")
_register("xpath_double", "DOUBLE", pa.float64(), float, float("nan"), "7.0")


@scalar("xpath_boolean(document VARCHAR, path VARCHAR) -> BOOLEAN", group=GROUP, origin="spark")
@per_row
def xpath_boolean(document: Value, path: Value) -> pa.Array:
    """Whether a path finds anything. Goes row by row: a document is read whole, by the XML parser, one at a time.

    >>> SELECT xpath_boolean('<a><b>1</b></a>', 'a/b'), xpath_boolean('<a><b>1</b></a>', 'a/c')
    true | false
    """
    return with_constants(over_texts(lambda text, path: bool(find(text, path)), pa.bool_()), pa.bool_(), document, path)
