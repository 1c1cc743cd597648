"""The first packets: encryption, cancel requests passed on, sign-in, settings taken and told.

Source: PostgreSQL documentation, 55.2.1 (Start-up).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lake.db.accounted import Origin
from lake.db.session import Session
from lake.db.settings import Setting, change_setting
from lake.doors.postgres.frames import CANCEL_REQUEST, GSSENC_REQUEST, PROTOCOL, SSL_REQUEST, Startup
from lake.doors.postgres.messages import encode
from lake.doors.postgres.session import REPORTED, Client
from lake.doors.postgres.sign_in import sign_in
from lake.doors.postgres.wire import Wire
from lake.errors import FeatureNotSupported, InvalidAuthorization, InvalidPassword
from lake.net.tls import PLAIN_REFUSED, takes_plain

if TYPE_CHECKING:
    from lake.doors.postgres.connection import Connection

NO_SETTINGS: Final = ("user", "database", "options", "replication")
OFF: Final = ("false", "off", "no", "0")


async def start(connection: Connection) -> bool:
    """Startup and sign-in; whether the client may go on.

    0A000  another protocol, or replication      28P01  a wrong password      57P01, 57P03  the node does not serve
    """
    wire, node = connection.wire, connection.node
    while True:
        packet = await wire.startup()
        if packet.code == SSL_REQUEST and connection.door.context is not None and not wire.is_encrypted:
            await wire.start_tls(connection.door.context)
        elif packet.code in (SSL_REQUEST, GSSENC_REQUEST):
            wire.send(b"N")
            await wire.flush()
        elif packet.code == CANCEL_REQUEST:
            connection.door.cancel(packet.pid, packet.secret)
            return False
        else:
            break
    if packet.major != PROTOCOL:
        raise FeatureNotSupported(f"unsupported frontend protocol {packet.major}.{packet.minor}: server supports 3.0")
    if not wire.is_encrypted and not takes_plain(node.config, connection.door.context, wire.address, wire.own_address):
        raise InvalidAuthorization(PLAIN_REFUSED)
    _negotiate(wire, packet)
    node.check_serving()
    user = packet.parameters.get("user", "")
    if packet.parameters.get("replication", "off").lower() not in OFF:
        raise FeatureNotSupported("replication connections are not supported")
    origin = Origin("postgres", wire.address, str(connection.pid))
    try:
        principal = await sign_in(wire, node, user)
    except InvalidPassword as error:
        node.note_refusal(error, origin, user, "sign in")
        raise
    client = connection.client = Client(Session(node.database, principal))
    client.session.origin = origin
    _take_settings(client, packet.parameters, connection.pid)
    wire.send(encode("Authentication", 0, b""))
    tell_settings(wire, client)
    for name, value in (("is_superuser", "on" if principal.superuser else "off"), ("session_authorization", user),
                        ("default_transaction_read_only", "off"), ("in_hot_standby", "off")):  # fmt: skip
        wire.send(encode("ParameterStatus", name, value))
    wire.send(encode("BackendKeyData", connection.pid, connection.secret))
    wire.send(encode("ReadyForQuery", client.status))
    await wire.flush()
    return True


def _negotiate(wire: Wire, packet: Startup) -> None:
    options = [name for name in packet.parameters if name.startswith("_pq_.")]
    if packet.minor or options:
        wire.send(encode("NegotiateProtocolVersion", PROTOCOL << 16, options))


def _take_settings(client: Client, parameters: dict[str, str], pid: int) -> None:
    """Sets what the startup packet asks for, in its own parameters and in ``options`` (``-c name=value``)."""
    settings = client.session.settings
    given = [(name, value) for name, value in parameters.items() if name.lower() not in NO_SETTINGS and name[:1] != "_"]
    for word in parameters.get("options", "").replace("\\ ", "\0").split():
        name, equals, value = word.removeprefix("-c").removeprefix("--").partition("=")
        if equals:
            given.append((name, value.replace("\0", " ")))
    for name, value in given:
        change_setting(settings, name, value.strip("'\""))
    settings.put("lake.backend_pid", Setting(str(pid), str(pid)))


def tell_settings(wire: Wire, client: Client) -> None:
    """Reports settings that drivers follow, where they differ from what was told before."""
    settings, told = client.session.settings, client.told
    if client.told_of is settings.texts:
        return
    client.told_of = settings.texts
    for key, shown in REPORTED.items():
        found = settings.get(key)
        value = "" if found is None else found.value
        if told.get(key) != value:
            told[key] = value
            wire.send(encode("ParameterStatus", shown, value))
