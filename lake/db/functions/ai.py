"""ai_complete and ai_embed: a model asked over HTTP, at an endpoint that speaks OpenAI's protocol.

    POST {LAKE_AI_URL}/chat/completions  {"model": .., "messages": [{"role": "user", "content": prompt}]}
    POST {LAKE_AI_URL}/embeddings        {"model": .., "input": text}

Each distinct text of a batch is asked once, so many at a time as LAKE_AI_CALLS says. A request is sent again after 429, a
5xx or a lost connection; a row whose request fails in the end is NULL. Spec: SQL, Function catalog (AI); HTTP, Limits.
"""

from __future__ import annotations

import http.client
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
from msgspec import Struct

from lake.config import Config
from lake.errors import FeatureNotSupported
from lake.exec.constants import as_array
from lake.exec.decimals import Value
from lake.exec.per_row import per_row
from lake.metrics import AI_REQUESTS
from lake.sql.registry import CallInfo, scalar

GROUP: Final = "ai"
TRIES: Final = 4
PAUSE_SECONDS: Final = 0.25  # before the second try; twice as long before each one after
PAUSE_SECONDS_MAX: Final = 30.0
ANSWER_BYTES_MAX: Final = 16 << 20
logger = logging.getLogger(__name__)


class Lost(Exception):
    """A request that is worth sending again, and after how many seconds if the endpoint says so."""

    def __init__(self, words: str, pause: float | None = None) -> None:
        super().__init__(words)
        self.pause = pause


class Endpoint(Struct, frozen=True):
    """Where models are asked."""

    url: str
    key: str | None
    timeout: float

    def ask(self, path: str, body: dict[str, Any]) -> Any | None:
        """The answer to a request, or None where there is none in the end."""
        deadline = time.monotonic() + self.timeout
        pause = PAUSE_SECONDS
        for attempt in range(TRIES):
            try:
                return self._send(path, body, deadline - time.monotonic())
            except Lost as lost:
                wait = min(lost.pause or pause, PAUSE_SECONDS_MAX)
                if attempt + 1 == TRIES or time.monotonic() + wait >= deadline:
                    logger.warning("AI request failed: %s", lost)
                    return None
                time.sleep(wait)
                pause *= 2
        return None

    def _send(self, path: str, body: dict[str, Any], seconds: float) -> Any | None:
        parts = urlsplit(self.url)
        make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = make(parts.hostname or "", parts.port, timeout=max(seconds, 0.001))
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        try:
            AI_REQUESTS.add(1)
            connection.request("POST", f"{parts.path.rstrip('/')}{path}", json.dumps(body).encode(), headers)
            response = connection.getresponse()
            content = response.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            raise Lost(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if response.status == 429 or response.status >= 500:
            after = response.getheader("Retry-After") or ""
            raise Lost(f"status {response.status}", float(after) if after.isdigit() else None)
        if response.status != 200:
            logger.warning("AI request refused: status %d", response.status)
            return None
        try:
            return json.loads(content)
        except ValueError:
            logger.warning("AI request answered what is not JSON")
            return None


def _completion(answer: Any) -> str | None:
    """The text of a chat completion."""
    match answer:
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            return text
    return None


def _embedding(answer: Any) -> list[float] | None:
    """The vector of an embedding."""
    match answer:
        case {"data": [{"embedding": list(numbers)}, *_]} if all(isinstance(item, int | float) for item in numbers):
            return [float(item) for item in numbers]
    return None


def _config(call: CallInfo) -> Config:
    """The program's configuration.

    0A000  a call outside a database
    """
    config = None if call.settings is None else call.settings.config
    if not isinstance(config, Config):
        raise FeatureNotSupported("AI functions need a database around them")
    return config


def _asked(texts: pa.Array, models: pa.Array, ask: Callable[[str, str], Any], calls: int, type: pa.DataType) -> pa.Array:
    """``ask(text, model)`` for each row, each distinct pair once, ``calls`` at a time; NULL of a text that is NULL."""
    pairs = list(zip(texts.to_pylist(), models.to_pylist(), strict=True))
    wanted = list(dict.fromkeys(pair for pair in pairs if pair[0] is not None and pair[1] is not None))
    with ThreadPoolExecutor(max(1, min(calls, len(wanted)))) as workers:
        answers = dict(zip(wanted, workers.map(lambda pair: ask(*pair), wanted), strict=True))
    return pa.array([answers.get(pair) for pair in pairs], type)


@scalar("ai_complete(prompt VARCHAR, model VARCHAR DEFAULT '') -> VARCHAR", group=GROUP, origin="spec",
        volatility="volatile", takes_call=True)  # fmt: skip
@per_row
def ai_complete(prompt: Value, model: Value, *, call: CallInfo) -> pa.Array:
    """What a model answers to a prompt, NULL where it cannot be asked. Each distinct prompt is a request of its own.

    Goes row by row: the service answers one question at a time.

    >>> ai_complete(NULL) IS NULL
    true
    """
    config = _config(call)
    endpoint = Endpoint(config.ai_url, config.ai_key, config.ai_timeout_secs)

    def ask(text: str, name: str) -> str | None:
        body = {"model": name or config.ai_model, "messages": [{"role": "user", "content": text}]}
        return _completion(endpoint.ask("/chat/completions", body))

    return _asked(as_array(prompt, call.rows), as_array(model, call.rows), ask, config.ai_calls, pa.string())


@scalar("ai_embed(text VARCHAR, model VARCHAR DEFAULT '') -> REAL[]", group=GROUP, origin="spec",
        volatility="volatile", takes_call=True)  # fmt: skip
@per_row
def ai_embed(text: Value, model: Value, *, call: CallInfo) -> pa.Array:
    """The vector of a text, NULL where the model cannot be asked. Each distinct text is a request of its own.

    Goes row by row: the service answers one text at a time.

    >>> ai_embed(NULL) IS NULL
    true
    """
    config = _config(call)
    endpoint = Endpoint(config.ai_url, config.ai_key, config.ai_timeout_secs)

    def ask(item: str, name: str) -> list[float] | None:
        return _embedding(endpoint.ask("/embeddings", {"model": name or config.embed_model, "input": item}))

    return _asked(as_array(text, call.rows), as_array(model, call.rows), ask, config.ai_calls, pa.list_(pa.float32()))
