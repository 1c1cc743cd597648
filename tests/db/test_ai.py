"""ai_complete and ai_embed against an endpoint that counts, refuses and loses requests."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import lake
from lake.db.functions import ai


class Model(ThreadingHTTPServer):
    """Answers a prompt in capitals, and an embedding of its letters; ``asked`` counts what came."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: Counter[tuple[str, str]] = Counter()
        self.keys: set[str | None] = set()
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """One request: a prompt that names a status is answered by it, once or always."""

    def do_POST(self) -> None:
        """Answers by the prompt's first word."""
        assert isinstance(self.server, Model)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][0]["content"] if "messages" in body else body["input"]
        with self.server.lock:
            self.server.asked[body["model"], text] += 1
            self.server.keys.add(self.headers.get("Authorization"))
            times = self.server.asked[body["model"], text]
        word, _, status = text.partition(" ")
        if (word == "once" and times == 1) or word == "always":
            self.answer(int(status), {})
        elif self.path.endswith("/chat/completions"):
            self.answer(200, {"choices": [{"message": {"role": "assistant", "content": text.upper()}}]})
        else:
            self.answer(200, {"data": [{"embedding": [len(text), 0.5]}]})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        """Sends a status and JSON."""
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """A running endpoint."""
    monkeypatch.setattr(ai, "PAUSE_SECONDS", 0.001)
    server = Model()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def opened(model: Model, folder: Path) -> Any:
    """A lake whose AI functions ask ``model``."""
    url = f"http://127.0.0.1:{model.server_address[1]}/v1"
    return lake.open(folder / "lake", ai_url=url, ai_key="k", ai_model="small", embed_model="tiny")


def test_each_text_is_asked_once(model: Model, tmp_path: Path) -> None:
    """A prompt that many rows have is one request, with the key and the model of the configuration."""
    with opened(model, tmp_path) as database:
        rows = database.sql("SELECT ai_complete(p) FROM (VALUES ('a'), ('b'), ('a'), (NULL)) t(p)").rows()
    assert rows == [("A",), ("B",), ("A",), (None,)]
    assert model.asked == {("small", "a"): 1, ("small", "b"): 1}
    assert model.keys == {"Bearer k"}


def test_embeddings(model: Model, tmp_path: Path) -> None:
    """A vector of floats, by a model that the call names."""
    with opened(model, tmp_path) as database:
        answer = database.sql("SELECT ai_embed('four', 'large'), ai_embed('one')")
        assert [type.sql for type in answer.types] == ["REAL[]", "REAL[]"]
        assert answer.rows() == [([4.0, 0.5], [3.0, 0.5])]
    assert model.asked == {("large", "four"): 1, ("tiny", "one"): 1}


def test_trouble(model: Model, tmp_path: Path) -> None:
    """429 and 5xx are tried again; what fails always, or is refused, is NULL."""
    with opened(model, tmp_path) as database:
        prompts = "('once 429'), ('once 503'), ('always 500'), ('always 400')"
        rows = database.sql(f"SELECT ai_complete(p) FROM (VALUES {prompts}) t(p)").rows()
    assert rows == [("ONCE 429",), ("ONCE 503",), (None,), (None,)]
    assert [model.asked["small", text] for text in ("once 429", "always 500", "always 400")] == [2, ai.TRIES, 1]


def test_no_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody answers, rows are NULL."""
    monkeypatch.setattr(ai, "PAUSE_SECONDS", 0.001)
    with lake.open(tmp_path / "lake", ai_url="http://127.0.0.1:9/v1") as database:
        assert database.sql("SELECT ai_complete('a')").rows() == [(None,)]
