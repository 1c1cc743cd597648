"""Transcripts of the Postgres wire: what a client sends, and every message it gets back.

    > Query {"text": "SELECT 1 AS a"}
    < RowDescription [["a", 20, 8, 0]]
    < DataRow [["1"]]

Lines of ``>`` are sent; after the last of a run the answers are read up to what the run ends with (ReadyForQuery, or the
answers to a Flush). Values are texts; ``\\x`` begins bytes that are none.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, Final

from lake.doors.postgres.messages import BACK, FRONT, MESSAGES, Field, decode, encode

WAIT_SECS: Final = 20.0
ENDING: Final = ("Query", "Sync", "CopyDone", "CopyFail")
ENDS: Final = ("ReadyForQuery", "CopyInResponse")
_FRONT: Final = {message.name: message for message in MESSAGES if message.sender == FRONT}


class Client:
    """A bare client: startup done, messages sent and read one by one."""

    def __init__(self, port: int, **parameters: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), WAIT_SECS)
        given = {"user": "admin", "database": "lake", **parameters}
        body = b"".join(f"{name}\0{value}\0".encode() for name, value in given.items()) + b"\0"
        self.socket.sendall(struct.pack("!ii", len(body) + 8, 3 << 16) + body)

    def send(self, name: str, *values: Any) -> None:
        """Sends a message of the table."""
        self.socket.sendall(encode(name, *values))

    def read(self) -> tuple[str, dict[str, Any]] | None:
        """The next message; None at the end of the connection."""
        head = self._take(5)
        if head is None:
            return None
        body = self._take(struct.unpack("!i", head[1:])[0] - 4)
        assert body is not None, "a message is whole"
        return decode(BACK, chr(head[0]), body)

    def read_to(self, *names: str) -> list[tuple[str, dict[str, Any]]]:
        """Messages up to one of these names, it included, or to the end of the connection."""
        found = []
        while (message := self.read()) is not None:
            found.append(message)
            if message[0] in names:
                break
        return found

    def close(self) -> None:
        """Closes the socket."""
        self.socket.close()

    def _take(self, size: int) -> bytes | None:
        parts = b""
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                return None
            parts += part
        return parts


def play(port: int, text: str) -> str:
    """A transcript with the answers of the door at ``port`` in place of those written there."""
    client = Client(port)
    client.read_to("ReadyForQuery")
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("> "):
            name, _, rest = line[2:].partition(" ")
            fields = json.loads(rest) if rest else {}
            client.send(name, *(_unshown(fields[field]) for field, _ in _FRONT[name].fields))
            lines.append(line)
            if name in ENDING:
                lines += [show(*message) for message in client.read_to(*ENDS)]
        elif not line.startswith("< "):
            lines.append(line)
    client.close()
    return "\n".join(lines) + "\n"


def show(name: str, fields: dict[str, Any]) -> str:
    """One message as a line."""
    match name:
        case "RowDescription":
            shown: Any = [[item.name, item.oid, item.size, item.format] for item in fields["columns"]]
            assert all(isinstance(item, Field) for item in fields["columns"])
        case "ErrorResponse" | "NoticeResponse":
            shown = {key: value for key, value in fields["fields"].items() if key in "SCMDHP"}
        case _:
            shown = _shown(list(fields.values()))
    return f"< {name.removesuffix(' out')} {json.dumps(shown, ensure_ascii=False)}".removesuffix(" []")


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        return text if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable() else "\\x" + value.hex()
    return value


def _unshown(value: Any) -> Any:
    """A field as it is sent: items of ``values`` and bodies are bytes."""
    if isinstance(value, list):
        return [_unshown(item) for item in value]
    if isinstance(value, str) and value.startswith("\\x"):
        return bytes.fromhex(value[2:])
    return value
