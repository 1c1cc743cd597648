"""SET, SHOW, CHECKPOINT and what else concerns the session. Spec: SQL, Other statements."""

from __future__ import annotations

from decimal import Decimal

from lake.db.names import find_table, qualified
from lake.db.result import Result
from lake.db.session import Run
from lake.db.settings import canonical, change_setting
from lake.db.statements import statement
from lake.errors import FeatureNotSupported, InvalidParameter, UndefinedObject
from lake.roles import Role
from lake.sql import ast, bound, parser
from lake.sql.quoting import quote_name, quote_text
from lake.sql.unparse import unparse
from lake.storage.catalog.model import Table
from lake.types import TEXT

LISTED = {
    "tables": "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables",
    "views": "SELECT table_schema, table_name, view_definition FROM information_schema.views",
    "schemas": "SELECT schema_name FROM information_schema.schemata",
    "functions": 'SELECT name, kind, "group", signature, returns, description FROM lake.functions',
    "databases": "SELECT current_database() AS name",
}
LIKE_COLUMN = {"tables": "table_name", "views": "table_name", "schemas": "schema_name", "functions": "name"}


@statement(ast.ShowObjects, tag="SHOW", role=Role.READ, audit="read")
def show_objects(stmt: ast.ShowObjects, run: Run) -> Result:
    """SHOW TABLES and its like: a query over the system table that lists them."""
    if stmt.kind not in LISTED:
        raise FeatureNotSupported(f"SHOW {stmt.kind.upper()} is not supported yet")
    text = LISTED[stmt.kind]
    parameters = {}
    if stmt.like is not None:
        text += f" WHERE {LIKE_COLUMN.get(stmt.kind, 'name')} LIKE $pattern"
        parameters["pattern"] = bound.Literal(TEXT, stmt.like)
    query = parser.parse(text + " ORDER BY ALL")[0]
    assert isinstance(query, ast.QueryStatement)
    run.parameters = {**run.parameters, **parameters}
    return run.answer(*run.plan(query.query), tag="SHOW")


@statement(ast.ShowCreate, tag="SHOW", role=Role.READ, audit="read")
def show_create(stmt: ast.ShowCreate, run: Run) -> Result:
    """The statement that makes a table or view again."""
    if stmt.kind == "view":
        schema, name = qualified(stmt.name.parts, run.database.name)
        view = run.catalog.state.view(name, schema)
        columns = f" ({', '.join(map(quote_name, view.columns))})" if view.columns else ""
        text = f"CREATE VIEW {_shown(view.schema, view.name)}{columns} AS {view.query}"
    elif stmt.kind == "table":
        text = definition_of(find_table(run.catalog.state, stmt.name, run.database.name))
    else:
        raise FeatureNotSupported(f"SHOW CREATE {stmt.kind.upper()} is not supported yet")
    return Result.table("SHOW", [("definition", TEXT)], [(text,)])


def definition_of(table: Table) -> str:
    """CREATE TABLE for a table as it stands."""
    lines = []
    for column in table.columns:
        default = f" DEFAULT {column.default}" if column.default else ""
        merge = f" MERGE {column.merge}" if column.merge else ""
        not_null = " NOT NULL" if column.not_null and column.id not in table.design.key else ""
        lines.append(f"{quote_name(column.name)} {column.type.sql}{not_null}{default}{merge}")
    for item in table.constraints:
        listed = item.text if item.kind == "check" else ", ".join(map(quote_name, item.columns))
        rule = f"{item.kind.upper()} ({listed})"
        lines.append(f"CONSTRAINT {quote_name(item.name)} {rule}{'' if item.enforced else ' NOT ENFORCED'}")
    return f"CREATE TABLE {_shown(table.schema, table.name)} (\n  " + ",\n  ".join(lines) + "\n)" + _layout_of(table)


def _layout_of(table: Table) -> str:
    """The clauses and options of a table."""
    design = table.design
    names = {column.id: quote_name(column.name) for column in table.columns}
    clauses = []
    if design.partition:
        name = names[design.partition]
        clauses.append(f"PARTITION BY {design.unit}({name})" if design.unit else f"PARTITION BY {name}")
    if design.cluster:
        clauses.append(f"CLUSTER BY ({', '.join(names[id] for id in design.cluster)})")
    if design.sequence:
        clauses.append(f"SEQUENCE BY {names[design.sequence]}")
    if design.ttl:
        clauses.append(f"TTL {names[design.ttl]} + INTERVAL '{design.ttl_secs} seconds'")
    if table.options:
        options = ", ".join(f"{name} = {quote_text(value)}" for name, value in sorted(table.options.items()))
        clauses.append(f"WITH ({options})")
    return "".join(f"\n{clause}" for clause in clauses)


def _shown(schema: str, name: str) -> str:
    return quote_name(name) if schema == "public" else f"{quote_name(schema)}.{quote_name(name)}"


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
    if name not in settings:
        raise UndefinedObject(f'unrecognized configuration parameter "{stmt.name}"')
    return Result.table("SHOW", [(name, TEXT)], [(settings[name].value,)])


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
        find_table(run.catalog.state, stmt.table, run.database.name)
    return Result.done("ANALYZE", {"analyzed": True})
