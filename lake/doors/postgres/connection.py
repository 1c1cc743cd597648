"""One client: startup, then its messages in order, each answered or refused.

    startup -> sign-in -> ReadyForQuery -> Query | Parse Bind Describe Execute .. Sync -> ReadyForQuery -> ..

An error in the extended protocol skips to Sync. A LakeError keeps the connection; bytes that cannot be cut into messages
end it. Source: PostgreSQL documentation, 55.2 (Message Flow).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lake import log
from lake.db.describe import Description, describe
from lake.db.prepared import Prepared
from lake.doors.postgres import copy_run
from lake.doors.postgres.burst import BIND_COMPLETE, answer_at_once
from lake.doors.postgres.commands import ALL, AT_ONCE, Reply, run_command
from lake.doors.postgres.copy import parse_copy
from lake.doors.postgres.described import check_same, definitions_of, described_command, infer, told_of
from lake.doors.postgres.messages import encode, error_fields
from lake.doors.postgres.parameters import decode_parameter
from lake.doors.postgres.portals import Portal, Running
from lake.doors.postgres.rows import row_description
from lake.doors.postgres.session import BLOCK, IDLE, READY, Client, Command, Statement, parse_one, parse_script
from lake.doors.postgres.startup import start, tell_settings
from lake.doors.postgres.wire import Gone, Wire
from lake.errors import (
    DuplicateCursor,
    FeatureNotSupported,
    InternalError,
    LakeError,
    NodeStopping,
    ProtocolViolation,
    TooManyRequests,
)
from lake.exec.context import Cancellation
from lake.net.threads import GONE, TIMED_OUT

if TYPE_CHECKING:
    from lake.doors.postgres.server import PostgresDoor

T = TypeVar("T")
SIGN_IN_SECS: Final = 60.0  # as Postgres's authentication_timeout
PARSE_COMPLETE: Final = encode("ParseComplete")


class Connection:
    """A client's connection, from its first byte to its last."""

    def __init__(self, door: PostgresDoor, pid: int) -> None:
        self.door = door
        self.node = door.node
        self.pid = pid
        self.secret = secrets.randbits(31)
        self.cancellation = Cancellation()
        self.wire: Wire
        self.client: Client
        self._is_skipping = False
        self._is_idle = True

    async def serve(self, wire: Wire) -> None:
        """Answers the client until it leaves."""
        self.wire = wire
        wire.on_gone = lambda: self.cancellation.stop(GONE)
        try:
            async with asyncio.timeout(SIGN_IN_SECS):
                is_in = await start(self)
            if is_in:
                await self._answer_messages()
        except (Gone, TimeoutError, ConnectionError):
            pass
        except LakeError as error:
            self._send_error(error, fatal=True)
        except Exception as error:
            log.error("internal error", error)
            self._send_error(InternalError(f"internal error: {type(error).__name__}: {error}"), fatal=True)
        finally:
            await self._leave()

    async def serve_too_many(self, wire: Wire) -> None:
        """Turns a client away: the door holds as many connections as it may."""
        self.wire = wire
        self._send_error(TooManyRequests("sorry, too many clients already"), fatal=True)
        wire.close()

    def abort(self) -> None:
        """Ends the connection at once."""
        if hasattr(self, "wire"):
            self.wire.abort()

    async def ended(self) -> None:
        """Returns when the connection has ended."""
        if hasattr(self, "wire"):
            await self.wire.ended()

    async def _leave(self) -> None:
        with contextlib.suppress(Exception):
            self.wire.close()
        self.door.forget(self)
        portals = self.client.drop_portals(keep_held=False) if hasattr(self, "client") else []
        running = [portal.running for portal in portals if portal.running is not None]
        for item in running:
            self.node.background(item.close)
        if hasattr(self, "client"):
            self.node.background(self.client.session.close)

    def stop_statement(self) -> None:
        """Stops what runs: a cancel request came with the right key."""
        self.cancellation.stop()

    def drain(self) -> None:
        """Ends the connection where it waits for its client; a running statement goes on."""
        if self._is_idle and hasattr(self, "wire"):
            self._send_error(NodeStopping("terminating connection due to administrator command"), fatal=True)
            self.wire.close()

    # --- messages ----------------------------------------------------------------------------------------------------

    async def _answer_messages(self) -> None:
        wire = self.wire
        wire.at_once = self._answer_at_once
        while True:
            if wire.frames.waiting:
                self._is_idle = False
                with self.node.request():
                    if not await self._answer_arrived():
                        return
            await wire.flush()
            self._is_idle = not self._is_skipping
            await wire.more()

    def _answer_at_once(self, data: bytes) -> bytes | None:
        """The whole answer to what came while nothing runs, where it is at hand."""
        return answer_at_once(self.client, data) if self._is_idle and self.node.state == "serving" else None

    async def _answer_arrived(self) -> bool:
        """Answers every message that has come whole; False once the client takes its leave."""
        frames = self.wire.frames
        while True:
            try:
                message = frames.next()
                if message is None:
                    return True
                name, fields = message
                if name == "Terminate":
                    return False
                if not self._is_skipping or name == "Sync":
                    await getattr(self, HANDLERS[name])(fields)
            except LakeError as error:
                self._refuse(error)

    def _refuse(self, error: LakeError) -> None:
        """Tells of an error; what follows is skipped up to the end of the query or the next Sync."""
        if self.wire.frames.lost:
            raise error
        self._fail(error)
        if self._in_query:
            self._in_query = False
            self._ready()
        else:
            self._is_skipping = True

    _in_query = False

    def _fail(self, error: LakeError) -> None:
        self.client.fail()
        self._send_error(error)

    def _send_error(self, error: LakeError, *, fatal: bool = False) -> None:
        with contextlib.suppress(Exception):
            self.wire.send(encode("ErrorResponse", error_fields(error, fatal=fatal)))

    def _send_notice(self, code: str, text: str, severity: str = "NOTICE") -> None:
        self.wire.send(encode("NoticeResponse", {"S": severity, "V": severity, "C": code, "M": text}))

    def _ready(self) -> None:
        tell_settings(self.wire, self.client)
        self.wire.send(READY[self.client.status])

    async def work(self, run: Callable[[], T]) -> T:
        """Runs blocking work of this client on a worker thread, under its statement timeout."""
        limit = self.client.session.settings.milliseconds("statement_timeout")
        if not limit:
            return await self.node.call(run)
        stop = asyncio.get_running_loop().call_later(limit / 1000, self.cancellation.stop, TIMED_OUT)
        try:
            return await self.node.call(run)
        finally:
            stop.cancel()

    # --- simple query ------------------------------------------------------------------------------------------------

    async def query(self, fields: dict[str, Any]) -> None:
        """Query: every statement of a script, in order, up to the first that fails."""
        self._in_query = True
        self.node.check_serving()
        self.cancellation = Cancellation()
        self._close_portal("")
        script = parse_script(fields["text"], self.client.session.dialect)
        if not script:
            self.wire.send(encode("EmptyQueryResponse"))
        for piece, source in script:
            self.client.check_may_run(source)
            try:
                await self._run_whole(Portal(source, (), ()))
            except LakeError as error:
                if error.position is not None and piece.start:
                    error.position += piece.start
                raise
        self._in_query = False
        self._ready()

    async def _run_whole(self, portal: Portal) -> None:
        """Runs a statement of a simple query to its end, with its row description."""
        if await self._copy(portal):
            return
        reply = await self._start_portal(portal)
        running = reply.running
        if running is None:
            self.wire.send(encode("CommandComplete", reply.tag))
            return
        formats = portal.formats_for(len(running.types))
        if running.result.is_query and not reply.is_move:
            self.wire.send(row_description(running.description, tuple(formats)))
        try:
            await self._send_rows(running, formats, reply.limit, reply.is_move)
        except BaseException:
            self.node.background(running.close)
            raise
        self.wire.send(encode("CommandComplete", self._tag(reply, running)))

    async def _start_portal(self, portal: Portal) -> Reply:
        """Starts a statement or runs a command, and tells its notices."""
        client, source = self.client, portal.source
        if isinstance(source, Command):
            command = partial(run_command, source, client, portal.arguments, portal.formats, self.cancellation)
            reply = command() if source.word in AT_ONCE else await self.work(command)
            for code, text in reply.notices:
                self._send_notice(code, text, "WARNING")
            return reply
        assert isinstance(source, Prepared)
        if client.status == BLOCK and source.defines and not client.writes:
            return await self._define(portal, source)
        if client.status == BLOCK and source.writes:
            client.writes += 1
        recalled = Running.recalled(source, client.session, portal.arguments, self.cancellation)
        if recalled is not None:
            if portal.statement is not None:
                portal.statement.is_at_hand = True
            return Reply(recalled.tag, running=recalled)
        running = await self.work(lambda: Running.start(source, client.session, portal.arguments, self.cancellation))
        for text in running.result.notices:
            self._send_notice("00000", text)
        return Reply(running.tag, running=running)

    async def _define(self, portal: Portal, source: Prepared) -> Reply:
        """A definition in a block that has written nothing: it commits by itself, and the client is told.

        Drivers open a block around every statement, so refusing would leave them without CREATE TABLE.
        """
        client = self.client

        def run() -> Running:
            client.session.rollback()
            try:
                return Running.start(source, client.session, portal.arguments, self.cancellation)
            finally:
                client.session.begin()

        running = await self.work(run)
        client.defined = True
        self._send_notice("01000", f"{running.tag} is committed at once: a later ROLLBACK does not undo it", "WARNING")
        return Reply(running.tag, running=running)

    async def _send_rows(self, running: Running, formats: list[int], limit: int, is_move: bool) -> None:
        """Sends up to ``limit`` rows, a piece at a time."""
        until = running.sent + limit
        while running.sent < until and not running.is_finished:
            left = until - running.sent
            if is_move:
                await self.work(lambda left=left: running.skip(left))  # type: ignore[misc]
                continue
            if running.is_ready:
                rows = running.rows(formats, left)
            else:
                rows = await self.work(lambda left=left: running.rows(formats, left))  # type: ignore[misc]
            await self.wire.send_rows(rows)

    def _tag(self, reply: Reply, running: Running) -> str:
        return f"{reply.tag} {running.sent}" if reply.tag in ("FETCH", "MOVE") else running.tag

    async def _copy(self, portal: Portal) -> bool:
        """Runs a COPY over the wire; whether it was one."""
        source = portal.source
        if not isinstance(source, Command) or source.word != "COPY":
            return False
        copy = parse_copy(source.piece.bare.rstrip(";"))
        if copy is None:
            raise FeatureNotSupported("this form of COPY is not supported: COPY t FROM STDIN, COPY t TO STDOUT")
        if copy.is_in:
            if self.client.status == BLOCK:
                self.client.writes += 1
            await copy_run.copy_in(self, copy)
        else:
            await copy_run.copy_out(self, copy)
        return True

    # --- extended query ----------------------------------------------------------------------------------------------

    async def parse(self, fields: dict[str, Any]) -> None:
        """Parse: a statement under a name."""
        self.node.check_serving()
        client, name, text = self.client, fields["statement"], fields["text"]
        source = parse_one(text, client.session.dialect)
        client.check_may_run(source)
        if not name:
            client.statements.pop("", None)
        client.keep_statement(name, Statement(source, tuple(fields["oids"])))
        self.wire.send(PARSE_COMPLETE)

    async def bind(self, fields: dict[str, Any]) -> None:
        """Bind: a portal of a statement and its values."""
        client, name = self.client, fields["portal"]
        statement = client.statement(fields["statement"])
        client.check_may_run(statement.source)
        values, formats = fields["values"], fields["formats"]
        expected = statement.source.parameters if isinstance(statement.source, Prepared) else len(values)
        if len(values) != expected:
            raise ProtocolViolation(
                f"bind message supplies {len(values)} parameters, but prepared statement requires {expected}"
            )
        if len(formats) not in (0, 1, len(values)):
            raise ProtocolViolation(f"bind message has {len(formats)} parameter formats but {len(values)} parameters")
        if len(formats) < 2:
            formats = (formats or [0]) * len(values)
        if statement.told is not None:
            await check_same(self, statement)
        if 1 in formats and statement.inferred is None and not all(map(statement.oid, range(1, len(values) + 1))):
            await infer(self, statement)
        arguments = tuple(
            decode_parameter(value, statement.oid(number), format)
            for number, (value, format) in enumerate(zip(values, formats, strict=True), 1)
        )
        if name and name in client.portals:
            raise DuplicateCursor(f'cursor "{name}" already exists')
        self._close_portal(name)
        client.portals[name] = Portal(statement.source, arguments, tuple(fields["results"]), statement=statement)
        self.wire.send(BIND_COMPLETE)

    async def describe(self, fields: dict[str, Any]) -> None:
        """Describe: a statement's parameters and columns, or a portal's columns."""
        kind, name = fields["kind"], fields["name"]
        if kind == "S":
            statement = self.client.statement(name)
            self.client.check_may_run(statement.source)
            found = await infer(self, statement)
            self._keep_told(statement, found)
            self.wire.send(encode("ParameterDescription", statement.inferred or ()))
            self._send_columns(found, [0] * len(found.types))
        elif kind == "P":
            await self._describe_portal(self.client.portal(name))
        else:
            raise ProtocolViolation(f"invalid DESCRIBE message subtype {ord(kind)}")

    async def _describe_portal(self, portal: Portal) -> None:
        source = portal.source
        if isinstance(source, Command):
            found = described_command(source, self.client)
        elif portal.running is None and isinstance(source, Prepared) and source.is_query:
            # A query's rows are made as they are read, so starting it is how it is described.
            self.client.check_may_run(source)
            self.cancellation = Cancellation()
            portal.running = (await self._start_portal(portal)).running
            assert portal.running is not None
            found = portal.running.description
        elif portal.running is not None:
            found = portal.running.description
        elif (told := told_of(portal.statement, self.client)) is not None:
            found = told
        else:
            assert isinstance(source, Prepared)
            found = await self.work(lambda: describe(source, self.client.session, {}))
        if portal.statement is not None:
            self._keep_told(portal.statement, found)
        self._send_columns(found, portal.formats_for(len(found.types)) if found.names is not None else [])

    def _keep_told(self, statement: Statement, found: Description) -> None:
        if not isinstance(statement.source, Command):
            statement.told, statement.definitions = found, definitions_of(self.client)

    def _send_columns(self, found: Description, formats: list[int]) -> None:
        if found.names is None:
            self.wire.send(encode("NoData"))
        else:
            self.wire.send(row_description(found, tuple(formats)))

    async def execute(self, fields: dict[str, Any]) -> None:
        """Execute: a portal's rows, up to a limit; at its end the command tag."""
        self.node.check_serving()
        portal = self.client.portal(fields["portal"])
        limit = fields["rows"] if fields["rows"] > 0 else ALL
        source = portal.source
        assert isinstance(source, Prepared | Command)
        self.client.check_may_run(source)
        if portal.ended is not None:
            self.wire.send(encode("CommandComplete", portal.ended))
            return
        if isinstance(source, Prepared) and source.statement is None:
            self.wire.send(encode("EmptyQueryResponse"))
            return
        self.cancellation = portal.running.cancellation if portal.running is not None else Cancellation()
        if portal.running is None:
            if await self._copy(portal):
                return
            reply = await self._start_portal(portal)
            if reply.running is None:
                portal.ended = reply.tag
                self.wire.send(encode("CommandComplete", reply.tag))
                return
            if isinstance(source, Command):
                await self._send_reply(portal, reply)
                return
            portal.running = reply.running
        await self._send_portal(portal, limit)

    async def _send_reply(self, portal: Portal, reply: Reply) -> None:
        """Rows of a command such as FETCH."""
        assert reply.running is not None
        formats = portal.formats_for(len(reply.running.types))
        await self._send_rows(reply.running, formats, reply.limit, reply.is_move)
        portal.ended = self._tag(reply, reply.running)
        self.wire.send(encode("CommandComplete", portal.ended))

    async def _send_portal(self, portal: Portal, limit: int) -> None:
        running = portal.running
        assert running is not None
        formats = portal.formats_for(len(running.types))
        before = running.sent
        await self._send_rows(running, formats, limit, False)
        if running.sent - before == limit and limit != ALL:
            self.wire.send(encode("PortalSuspended"))
            return
        portal.ended = running.tag
        self.wire.send(encode("CommandComplete", running.tag))

    async def close(self, fields: dict[str, Any]) -> None:
        """Close: forgets a statement or a portal; one that is not there is as good as closed."""
        if fields["kind"] == "S":
            self.client.statements.pop(fields["name"], None)
        elif fields["kind"] == "P":
            self._close_portal(fields["name"])
        else:
            raise ProtocolViolation(f"invalid CLOSE message subtype {ord(fields['kind'])}")
        self.wire.send(encode("CloseComplete"))

    def _close_portal(self, name: str) -> None:
        portal = self.client.portals.pop(name, None)
        if portal is not None and portal.running is not None and not portal.running.is_finished:
            self.node.background(portal.running.close)

    async def flush(self, fields: dict[str, Any]) -> None:
        """Flush: what was answered goes out."""
        await self.wire.flush()

    async def sync(self, fields: dict[str, Any]) -> None:
        """Sync: the end of a run of messages."""
        self._is_skipping = False
        if self.client.status == IDLE:
            for portal in self.client.drop_portals(keep_held=True):
                if portal.running is not None and not portal.running.is_finished:
                    self.node.background(portal.running.close)
        self._ready()

    async def ignore(self, fields: dict[str, Any]) -> None:
        """CopyData and its like after a COPY that failed."""

    async def refuse(self, fields: dict[str, Any]) -> None:
        """08P01 for messages that have no place here."""
        raise ProtocolViolation("unexpected message")

    async def call_function(self, fields: dict[str, Any]) -> None:
        """0A000: functions are called by SELECT."""
        self._in_query = True
        raise FeatureNotSupported("the function call protocol is not supported: use SELECT")


HANDLERS: Final = {
    "Query": "query", "Parse": "parse", "Bind": "bind", "Describe": "describe", "Execute": "execute", "Close": "close",
    "Flush": "flush", "Sync": "sync", "CopyData": "ignore", "CopyDone": "ignore", "CopyFail": "ignore",
    "Password": "refuse", "FunctionCall": "call_function",
}  # fmt: skip
