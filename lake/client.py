"""A connection to a lake over HTTP.

    connect("http://127.0.0.1:8080").sql("SELECT 1 AS one").rows()      [(1,)]

Answers travel as Arrow streams; errors come back as the same LakeError classes that the node raised.
"""

from __future__ import annotations

import datetime
import http.client
import json
import math
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from lake.config import Config
from lake.connection import Acknowledged, Answer, Connection, encode_rows
from lake.errors import ERRORS, InvalidParameter, IoFailure, LakeError
from lake.net.owner import find_owner_key
from lake.types import from_arrow

if TYPE_CHECKING:
    import pyarrow as pa

ANSWER_SECS: Final = 2.0  # a node that serves says its name sooner


class HttpConnection(Connection):
    """A node over HTTP: one kept-alive connection, one request at a time.

    ca   a PEM file of the authorities that an https:// node's certificate is checked by; the system's where it is not given
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 300.0,
        owner_key: str | None = None,
        ca: str | None = None,
    ) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidParameter(f"{url!r} is not an http:// address")
        self._connect: Callable[..., http.client.HTTPConnection] = partial(
            http.client.HTTPConnection, parts.hostname, parts.port
        )
        if parts.scheme == "https":
            trust = ssl.create_default_context(cafile=ca)
            self._connect = partial(http.client.HTTPSConnection, parts.hostname, parts.port, context=trust)
        self._http = self._connect(timeout=timeout)
        self._base = parts.path.rstrip("/")
        self._headers = {"x-lake-session": _session_id()}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if owner_key:
            self._headers["x-lake-owner"] = owner_key
        self._lock = threading.Lock()
        self.url = url

    def sql(self, text: str, /, *, job: str | None = None, **params: Any) -> Answer:
        """Runs the statements of ``text`` on the node.

        58030  the node cannot be reached, or went away
        """
        body = json.dumps({"sql": text, "params": {name: _json_value(value) for name, value in params.items()}})
        query = {"format": "arrow", **({"job": job} if job else {})}
        answer, headers = self.request("POST", f"/sql?{urlencode(query)}", body.encode(), "application/json")
        return _answer(answer, headers)

    def append(
        self,
        table: str,
        rows: pa.Table | Iterable[Mapping[str, Any]],
        *,
        producer: str | None = None,
        seq: int | None = None,
        prev: int | None = None,
    ) -> Acknowledged:
        """Appends rows over HTTP; a table goes as an Arrow stream, mappings as JSON lines."""
        body, kind = encode_rows(rows)
        given = {"producer": producer, "seq": seq, "prev": prev}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        answer, _ = self.request("POST", f"/append/{quote(table)}?{query}", body, kind)
        return Acknowledged(**json.loads(answer))

    def watch(self, table: str, after: int | None = None, changes: bool = False) -> Iterator[dict[str, Any]]:
        """The lines of ``GET /watch``, over a connection of its own."""
        query = {"marks": "true", "changes": str(changes).lower(), **({} if after is None else {"after": after})}
        for line in self._lines("GET", f"/watch/{quote(table)}?{urlencode(query)}"):
            if line.keys() == {"_after"}:
                self._position = line["_after"]
            else:
                yield line

    def live(self, query: str, /, *, every_ms: int = 100, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """The answers of ``POST /live``, over a connection of its own."""
        named = {name: _json_value(value) for name, value in params.items()}
        asked = {"id": 1, "sql": query, "params": named, "session": self._headers["x-lake-session"]}
        body = json.dumps({"queries": [asked], "every_ms": every_ms}).encode()
        for line in self._lines("POST", "/live", body):
            yield line["rows"]

    def _lines(self, method: str, path: str, body: bytes | None = None) -> Iterator[dict[str, Any]]:
        """The lines of a stream; one that is an error is raised."""
        stream = self._connect(timeout=None)
        try:
            stream.request(method, self._base + path, body, {**self._headers, "Content-Type": "application/json"})
            response = stream.getresponse()
            if response.status >= 400:
                raise _error(response, response.read())
            while text := response.readline():
                line = json.loads(text)
                if "error" in line and "sqlstate" in line:
                    message, detail, hint = _parts(line["error"])
                    raise ERRORS.get(line["sqlstate"], LakeError)(message, detail=detail, hint=hint)
                yield line
            raise IoFailure(f"{self.url} ended the stream")
        except (OSError, http.client.HTTPException) as error:
            raise IoFailure(f"no answer from {self.url}: {error or type(error).__name__}") from None
        finally:
            stream.close()

    def request(
        self, method: str, path: str, body: bytes | None = None, kind: str | None = None
    ) -> tuple[bytes, http.client.HTTPMessage]:
        """One request; the body and headers of its answer, or the node's error raised."""
        headers = {**self._headers, **({"Content-Type": kind} if kind else {})}
        with self._lock:
            try:
                self._http.request(method, self._base + path, body, headers)
                response = self._http.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                self._http.close()
                raise IoFailure(f"no answer from {self.url}: {error or type(error).__name__}") from None
            except BaseException:
                # An answer that was not read to its end would be taken for the next one's; closing also stops the statement.
                self._http.close()
                raise
        if response.status >= 400:
            raise _error(response, content)
        return content, response.headers

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()


def connect_owner(config: Config, address: str) -> HttpConnection | None:
    """A connection, as its owner, to the node at ``address`` that serves the configuration's lake; None where none does.

    A node that was killed left its address behind.
    """
    assert config.lake is not None
    host, _, port = address.rpartition(":")
    asked = http.client.HTTPConnection(host, int(port), timeout=ANSWER_SECS)
    try:
        asked.request("GET", "/stats")
        found = json.loads(asked.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        asked.close()
    if not isinstance(found, dict) or found.get("lake") != Path(config.lake).resolve().name:
        return None
    owner_key = find_owner_key(config, address)
    return HttpConnection(f"http://{address}", token=config.token or config.admin_token, owner_key=owner_key)


def _answer(body: bytes, headers: http.client.HTTPMessage) -> Answer:
    import pyarrow as pa

    tag = headers.get("x-lake-tag", "")
    notices = tuple(json.loads(headers.get("x-lake-notices", "[]")))
    if headers.get_content_type() == "application/json":
        return Answer((), (), tag, pa.table({}), json.loads(body), notices)
    with pa.ipc.open_stream(body) as reader:
        table = reader.read_all()
    types = tuple(from_arrow(kind) for kind in table.schema.types)
    return Answer(tuple(table.schema.names), types, tag, table, None, notices)


def _error(response: http.client.HTTPResponse, content: bytes) -> LakeError:
    sqlstate = response.headers.get("x-lake-sqlstate", "")
    text = content.decode("utf-8", "replace").strip() or f"{response.status} {response.reason}"
    message, detail, hint = _parts(text)
    position = response.headers.get("x-lake-position")
    kind = ERRORS.get(sqlstate, LakeError)
    about = json.loads(response.headers.get("x-lake-about", "{}"))
    return kind(message, detail=detail, hint=hint, position=int(position) if position else None, about=about)


def _parts(text: str) -> tuple[str, str | None, str | None]:
    """The message, detail and hint of an error's text, as ``str(error)`` puts them together."""
    body, _, hint = text.partition("\nhint: ")
    message, _, detail = body.partition("\ndetail: ")
    return message, detail or None, hint or None


def _json_value(value: Any) -> Any:
    """A parameter as JSON; what JSON has no type for goes as a SQL expression. Spec: HTTP, Query."""
    match value:
        case datetime.datetime():
            kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return {"sql": f"{kind} '{value.isoformat(sep=' ')}'"}
        case datetime.date():
            return {"sql": f"DATE '{value.isoformat()}'"}
        case datetime.time():
            return {"sql": f"TIME '{value.isoformat()}'"}
        case datetime.timedelta():
            return {"sql": f"INTERVAL '{value.days} days {value.seconds} seconds {value.microseconds} microseconds'"}
        case float() if not math.isfinite(value):
            return {"sql": f"'{value}'::DOUBLE"}
        case Decimal() if not value.is_finite():
            return {"sql": f"'{value}'::DOUBLE"}
        case Decimal():
            text = f"{value:f}"
            return {"sql": text if "." in text else f"{text}::DECIMAL({max(len(text.lstrip('-')), 1)}, 0)"}
        case bytes() | bytearray():
            return {"sql": f"X'{value.hex()}'"}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case _:
            return value


def _session_id() -> str:
    import secrets

    return secrets.token_hex(16)
