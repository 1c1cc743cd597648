"""Bad input at the Postgres door: whatever bytes come, the node answers by the protocol or ends that connection, and goes on.

    python -m tests fuzz --door pg --count 20000 --seed 1

An input is a conversation: startup, sign-in where the node asks for it, messages, each perhaps mutated. After each hundred
the node answers SELECT 1 on both doors; its memory at the end is what it was after the first tenth, but for some slack.
"""

from __future__ import annotations

import random
import socket
import struct
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from lake.doors.postgres.messages import encode
from tests.cluster import Node, free_port, running_node

CHECK_EVERY: Final = 100
CLIENTS: Final = 16  # at once; a node that waits for more costs time, and no processor
QUIET_SECS: Final = 0.1  # a node that says nothing for so long waits for more
HANG_SECS: Final = 30.0
GROWTH_MB_MAX: Final = 150.0
TOKENS: Final = {"LAKE_READ_TOKEN": "reads", "LAKE_ADMIN_TOKEN": "rules"}
STARTUP: Final = struct.pack("!i", 196_608) + b"user\0admin\0database\0lake\0\0"
TEXTS: Final = (
    "SELECT 1", "SELECT $1::INT + $2", "INSERT INTO events VALUES ($1, 'a')", "COPY events FROM STDIN", "BEGIN", "COMMIT",
    "SELECT * FROM range(100)", "COPY (SELECT 1) TO STDOUT", "DECLARE c CURSOR FOR SELECT 1", "FETCH 1 FROM c", "SET x = 1",
    "SELECT 1; SELECT 2", "", ";", "SELEC", "SHOW ALL", "ROLLBACK TO a", "DEALLOCATE ALL", "CREATE USER x PASSWORD 'y'",
)  # fmt: skip
NAMES: Final = ("", "a", "b", "c", "\u00e9")


def make_messages(chance: random.Random) -> bytes:
    """Some messages as clients send them, with values of chance."""
    made = []
    for _ in range(chance.randint(1, 6)):
        name, text = chance.choice(NAMES), chance.choice(TEXTS)
        values = [chance.choice((None, b"1", b"x", chance.randbytes(4))) for _ in range(chance.randint(0, 3))]
        formats = [chance.choice((0, 1, 2)) for _ in range(chance.choice((0, 1, len(values))))]
        made.append(
            chance.choice((
                lambda text=text: encode("Query", text),
                lambda name=name, text=text: encode("Parse", name, text, [chance.choice((0, 23, 25, 99_999))]),
                lambda name=name, values=values, formats=formats: encode(
                    "Bind", name, chance.choice(NAMES), formats, values, [chance.choice((0, 1))]
                ),
                lambda name=name: encode("Describe", chance.choice("SPX"), name),
                lambda name=name: encode("Execute", name, chance.choice((0, 1, -1, 2**31 - 1))),
                lambda name=name: encode("Close", chance.choice("SPX"), name),
                lambda: encode("Sync"),
                lambda: encode("Flush"),
                lambda: encode("CopyData", chance.choice((b"1\ta\n", b"\\.\n", chance.randbytes(20)))),
                lambda: encode("CopyDone"),
                lambda: encode("CopyFail", "no"),
                lambda: encode("Password", chance.randbytes(chance.randint(0, 30))),
                lambda: encode("FunctionCall", chance.randbytes(8)),
            ))()
        )  # fmt: skip
    return b"".join(made)


def make_sign_in(chance: random.Random) -> bytes:
    """What a client might answer to a request for SASL."""
    first = chance.choice((b"n,,n=,r=abc", b"y,,n=,r=abc", b"p=tls-unique,,n=,r=abc", b"n,,", b"", chance.randbytes(12)))
    body = chance.choice((b"SCRAM-SHA-256\0", b"SCRAM-SHA-256-PLUS\0", b"\0")) + struct.pack("!i", len(first)) + first
    final = chance.choice((b"c=biws,r=abc,p=", b"c=biws,r=abc,p=AAAA", b"c=!,r=,p=!", chance.randbytes(20), b""))
    return encode("Password", body) + encode("Password", final)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some changed, taken out, put in, or doubled."""
    made = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        place = chance.randrange(len(made) + 1)
        match chance.randrange(5):
            case 0 if place < len(made):
                made[place] = chance.randrange(256)
            case 1:
                del made[place : place + chance.randint(1, 8)]
            case 2:
                made[place:place] = chance.randbytes(chance.randint(1, 8))
            case 3:
                made[place : place + 4] = struct.pack("!I", chance.choice((0, 3, 2**31, 2**32 - 1, 1 << 20)))
            case _:
                made[place:place] = made[place : place + chance.randint(1, 40)]
    return bytes(made)


def make_input(seed: int, number: int, *, locked: bool) -> bytes:
    """The bytes of the conversation of that number."""
    chance = random.Random(f"pg {seed}/{number}")
    start = STARTUP if chance.random() < 0.8 else mutated(STARTUP, chance)
    size = len(start) + 4 if chance.random() < 0.95 else chance.choice((0, 3, 8, 9_999, 10_001, 2**31 - 1))
    begin = struct.pack("!i", size) + start
    if chance.random() < 0.1:
        begin = struct.pack("!ii", 8, chance.choice((80_877_103, 80_877_104, 80_877_102))) + begin
    rest = make_sign_in(chance) if locked else make_messages(chance)
    return begin + mutated(rest, chance) + encode("Sync") + encode("Terminate")


def converse(port: int, sent: bytes) -> tuple[str, bytes]:
    """What the node answers, and ``closed``, ``waited`` for more, or ``hung``."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECS) as client:
        try:
            client.sendall(sent)
            client.settimeout(QUIET_SECS)
            while data := client.recv(1 << 16):
                answer += data
            return "closed", answer
        except TimeoutError:
            pass
        except OSError:
            return "closed", answer
        try:
            client.shutdown(socket.SHUT_WR)
            client.settimeout(HANG_SECS)
            while data := client.recv(1 << 16):
                answer += data
        except TimeoutError:
            return "hung", answer
        except OSError:
            pass
    return "waited", answer


def codes_of(answer: bytes) -> list[str]:
    """The SQLSTATEs of the errors in an answer; ``garbled`` where it is not cut into messages."""
    codes: list[str] = []
    place = 0
    while place < len(answer):
        if answer[place : place + 1] in b"NS" and place == 0 and answer[1:5] != b"\0\0\0":
            place += 1  # the answer to a request for encryption
            if answer[place - 1 : place] == b"N" and place >= len(answer):
                break
            if answer[place : place + 1] not in b"RESNKZTDCGHItn123dcvs":
                return [*codes, "garbled"]
        if len(answer) - place < 5:
            break
        (size,) = struct.unpack_from("!i", answer, place + 1)
        if size < 4 or size > 1 << 24:
            return [*codes, "garbled"]
        if answer[place : place + 1] == b"E":
            body = answer[place + 5 : place + 1 + size]
            codes += [part[1:].decode() for part in body.split(b"\0") if part[:1] == b"C"]
        place += size + 1
    return codes


def resident_mb(node: Node) -> float:
    """Memory of the node's process."""
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1_024


def fuzz(count: int, seed: int, *, locked: bool) -> tuple[Counter[str], list[str], str]:
    """Sends the inputs to a node of its own: what came of them, what went wrong, and its memory in words."""
    seen: Counter[str] = Counter()
    failures: list[str] = []
    port, before = free_port(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        environ = TOKENS if locked else {}
        with running_node(Path(folder) / "lake", "--pg", f"127.0.0.1:{port}", environ=environ) as node:
            _ask(node, "CREATE TABLE events (id BIGINT, name VARCHAR)")

            def send(number: int) -> tuple[bytes, str, bytes]:
                sent = make_input(seed, number, locked=locked)
                return sent, *converse(port, sent)

            with ThreadPoolExecutor(CLIENTS) as pool:
                for start in range(0, count, CHECK_EVERY):
                    numbers = range(start, min(count, start + CHECK_EVERY))
                    for number, (sent, how, answer) in zip(numbers, pool.map(send, numbers), strict=True):
                        codes = codes_of(answer)
                        seen.update([how, *codes])
                        if how == "hung" or {"XX000", "garbled"} & set(codes):
                            failures.append(f"input {number} of seed {seed}: {how}, {codes}: {sent!r}\n    {answer[:500]!r}")
                    assert _ask(node, "SELECT 1 AS one") == b'[{"one":1}]', "the node does not answer SELECT 1"
                    good = struct.pack("!i", len(STARTUP) + 4) + STARTUP + encode("Query", "SELECT 1") + encode("Terminate")
                    assert locked or b"SELECT 1" in converse(port, good)[1], "the door does not answer SELECT 1"
                    if before == 0.0 and start + CHECK_EVERY >= count // 10:
                        before = resident_mb(node)
            after = resident_mb(node)
    if after > before + GROWTH_MB_MAX:
        failures.append(f"memory grew from {before:.0f} to {after:.0f} MB")
    return seen, failures, f"memory {before:.0f} to {after:.0f} MB"


def _ask(node: Node, text: str) -> bytes:
    wire = node.wire()
    try:
        return wire.send("POST", "/sql", text, Authorization="Bearer rules").body
    finally:
        wire.close()


def run(count: int, seed: int) -> int:
    """The exit status of a search: three quarters on an open node, the rest on one that asks for a password."""
    status = 0
    for locked, part in ((False, count - count // 4), (True, count // 4)):
        seen, failures, memory = fuzz(part, seed, locked=locked)
        for failure in failures[:10]:
            print(failure)
        place = "a node with tokens" if locked else "an open node"
        print(f"{part} inputs to {place}, {len(failures)} answered wrongly, {memory}; {dict(seen.most_common(20))}")
        status |= bool(failures)
    return status


