"""SET, SHOW, CHECKPOINT and what else concerns the session. Spec: SQL, Other statements."""

from __future__ import annotations

from decimal import Decimal

from lake.db import definitions
from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.rights.shown import cut_table
from lake.db.sequences import find_sequence
from lake.db.session import Run
from lake.db.settings import canonical, change_setting
from lake.db.statements import statement
from lake.db.statements.enum_type import find_type
from lake.db.statements.index import find_index
from lake.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameter,
    UndefinedObject,
    UndefinedSchema,
)
from lake.roles import Role
from lake.sql import ast, bound, parser
from lake.sql.quoting import quote_name
from lake.sql.unparse import unparse
from lake.storage.catalog.objects import Index
from lake.types import TEXT

LISTED = {
    "tables": "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables",
    "views": "SELECT table_schema, table_name, view_definition FROM information_schema.views",
    "schemas": "SELECT schema_name FROM information_schema.schemata",
    "functions": 'SELECT name, kind, "group", signature, returns, description FROM lake.functions',
    "databases": "SELECT current_database() AS name",
    "users": "SELECT name, superuser, max_queries, statement_timeout, roles, tokens FROM lake.users WHERE kind = 'user'",
    "roles": "SELECT name, roles FROM lake.users WHERE kind = 'role'",
    "grants": "SELECT grantee, privilege, kind, object, columns FROM lake.grants",
}
LIKE_COLUMN = {"tables": "table_name", "views": "table_name", "schemas": "schema_name", "grants": "grantee"}


@statement(ast.ShowObjects, tag="SHOW", role=Role.READ, audit="read")
def show_objects(stmt: ast.ShowObjects, run: Run) -> Result:
    """SHOW TABLES and its like: a query over the system table that lists them."""
    if stmt.kind not in LISTED:
        raise FeatureNotSupported(f"SHOW {stmt.kind.upper()} is not supported yet")
    text = LISTED[stmt.kind]
    parameters = {}
    if stmt.like is not None:
        text += f" {'AND' if ' WHERE ' in text else 'WHERE'} {LIKE_COLUMN.get(stmt.kind, 'name')} LIKE $pattern"
        parameters["pattern"] = bound.Literal(TEXT, stmt.like)
    query = parser.parse(text + " ORDER BY ALL")[0]
    assert isinstance(query, ast.QueryStatement)
    run.parameters = {**run.parameters, **parameters}
    return run.answer(*run.plan(query.query), tag="SHOW")


@statement(ast.ShowCreate, tag="SHOW", role=Role.READ, audit="read")
def show_create(stmt: ast.ShowCreate, run: Run) -> Result:
    """The statements that make an object again, its comments too. Spec: SQL, Queries; reference: every kind of object."""
    text = _definition(stmt, run)
    return Result.table("SHOW", [("definition", TEXT)], [(text,)])


def _definition(stmt: ast.ShowCreate, run: Run) -> str:
    state, database, rights = run.catalog.state, run.database.name, run.catalog.rights
    parts = stmt.name.parts
    schema, name = qualified(parts, database)
    match stmt.kind:
        case "view" | "external table":
            if rights is not None:
                raise InsufficientPrivilege(
                    f"permission denied: SHOW CREATE on {stmt.name}, whose text names what it reads"
                )
            return definitions.view_definition(state.view(name, schema))
        case "table":
            table = find_table(state, stmt.name, database)
            if rights is not None:
                rights.require_some(table)
                table = cut_table(table, rights)
            return definitions.table_definition(table, state)
        case "sequence":
            return definitions.sequence_definition(find_sequence(state, parts, database))
        case "type":
            return definitions.type_definition(find_type(state, parts, database))
        case "schema":
            if name not in state.schemas:
                raise UndefinedSchema(f'schema "{name}" does not exist')
            return definitions.schema_definition(state.schemas[name])
        case "index":
            found = find_index(stmt.name, state, database)
            table = state.table_by_id(found.table) if isinstance(found, Index) else found[0]
            if rights is not None:
                raise InsufficientPrivilege(f"permission denied: SHOW CREATE on {stmt.name}, an index of {table.name}")
            if isinstance(found, Index):
                return definitions.index_definition(found, table)
            rule = found[1]
            columns = ", ".join(map(quote_name, rule.columns))
            place = definitions.place_text(table.schema, table.name)
            return f"CREATE UNIQUE INDEX {quote_name(rule.name)} ON {place} ({columns})"
    raise FeatureNotSupported(f"SHOW CREATE {stmt.kind.upper()} is not supported yet")


@statement(ast.ShowSetting, tag="SHOW", role=Role.READ, audit="misc")
def show_setting(stmt: ast.ShowSetting, run: Run) -> Result:
    """A setting's value, or all of them.

    42704  no such setting
    """
    settings = run.session.settings
    name = canonical(stmt.name)
    if name == "all":
        listed = [(key, setting.value) for key, setting in sorted(settings.items())]
        return Result.table("SHOW", [("name", TEXT), ("value", TEXT)], listed)
    setting = settings.get(name)
    if setting is None:
        raise UndefinedObject(f'unrecognized configuration parameter "{stmt.name}"')
    return Result.table("SHOW", [(name, TEXT)], [(setting.value,)])


@statement(ast.SetSetting, tag="SET", role=Role.READ, audit="misc")
def set_setting(stmt: ast.SetSetting, run: Run) -> Result:
    """Changes or resets a setting of this session."""
    change_setting(run.session.settings, stmt.name, None if stmt.value is None else _setting_text(stmt.value))
    return Result.done("SET" if stmt.value is not None else "RESET", {"set": canonical(stmt.name)})


def _setting_text(value: ast.Expr) -> str:
    """A setting's value: a word, a literal, or a list of them."""
    match value:
        case ast.Literal(value=bool() as flag):
            return "on" if flag else "off"
        case ast.Literal(value=int() | float() | str() | Decimal() as literal):
            return str(literal)
        case ast.Column(name=name):
            return str(name)
        case ast.Unary(op="-", operand=operand):
            return f"-{_setting_text(operand)}"
        case ast.Row(items=items):
            return ", ".join(_setting_text(item) for item in items)
        case ast.Call(name=ast.Name(("map",))) | ast.StructLiteral() | ast.ListLiteral():
            return unparse(value)
        case _:
            raise InvalidParameter("a setting's value is a word, a text or a number")


@statement(ast.Checkpoint, tag="CHECKPOINT", role=Role.ADMIN, audit="ddl")
def checkpoint(stmt: ast.Checkpoint, run: Run) -> Result:
    """Writes the log into Parquet files."""
    return Result.done("CHECKPOINT", {"rows_tiered": run.database.tier()})


@statement(ast.Analyze, tag="ANALYZE", role=Role.WRITE, audit="misc")
def analyze(stmt: ast.Analyze, run: Run) -> Result:
    """Nothing to do: statistics are folded with every commit."""
    if stmt.table is not None:
        run.require("select", find_table(run.catalog.state, stmt.table, run.database.name))
    return Result.done("ANALYZE", {"analyzed": True})
