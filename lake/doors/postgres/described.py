"""What a statement of the wire takes and answers: told to its client, and held against later definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake.db.describe import Description, describe, recall_description
from lake.doors.postgres.commands import fetched_portal
from lake.doors.postgres.parameters import type_of_oid
from lake.doors.postgres.session import Client, Command, Statement
from lake.errors import FeatureNotSupported
from lake.types import TEXT, pg_oid

if TYPE_CHECKING:
    from lake.doors.postgres.connection import Connection


async def check_same(connection: Connection, statement: Statement) -> None:
    """0A000 where a definition has changed the columns that the client was told of; drivers then prepare anew."""
    told, definitions = statement.told, definitions_of(connection.client)
    if told is None or definitions == statement.definitions:
        return
    found = await infer(connection, statement)
    if (found.names, found.types) != (told.names, told.types):
        raise FeatureNotSupported(
            "cached plan must not change result type", about={"routine": "RevalidateCachedQuery"}
        )
    statement.definitions = definitions


def told_of(statement: Statement | None, client: Client) -> Description | None:
    """What a client was told of a statement, as long as no definition has changed."""
    if statement is None or statement.definitions != definitions_of(client):
        return None
    return statement.told


def definitions_of(client: Client) -> int:
    """The number of the lake's definitions, which each CREATE, ALTER and DROP raises."""
    return client.session.database.lake.state.definitions


async def infer(connection: Connection, statement: Statement) -> Description:
    """Finds the types of a statement's open parameters, and what it answers."""
    source = statement.source
    if isinstance(source, Command):
        statement.inferred = statement.oids
        return described_command(source, connection.client)
    known = {}
    for number in range(1, source.parameters + 1):
        declared = statement.oids[number - 1] if number <= len(statement.oids) else 0
        type = type_of_oid(declared) if declared else None
        if type is not None:
            known[number] = type
    session = connection.client.session
    found = recall_description(source, session, known)
    if found is None:
        found = await connection.work(lambda: describe(source, session, known))
    inferred = [pg_oid(type) for type in found.parameters]
    for place, declared in enumerate(statement.oids[: len(inferred)]):
        inferred[place] = declared or inferred[place]
    statement.inferred = tuple(inferred)
    return found


def described_command(source: Command, client: Client) -> Description:
    """What a command of the door answers: FETCH what its cursor does."""
    if source.word == "SHOW":
        return Description((), ("transaction_isolation",), (TEXT,))
    portal = fetched_portal(source, client)
    if portal is None or portal.running is None:
        return Description((), None, ())
    return portal.running.description
