"""Objects as the statements that make them again: for SHOW CREATE, lake.objects and what tools ask. Spec: SQL, Queries."""

from __future__ import annotations

from lake.sql.quoting import quote_name, quote_text
from lake.storage.catalog.model import PUBLIC, Column, Constraint, Schema, Table, View
from lake.storage.catalog.objects import EnumType, Index, IndexKey, Object, Sequence
from lake.storage.catalog.state import State


def place_text(schema: str, name: str) -> str:
    """A name as SQL writes it, without the schema where that is the default one."""
    return quote_name(name) if schema == PUBLIC else f"{quote_name(schema)}.{quote_name(name)}"


def with_comment(definition: str, kind: str, place: str, comment: str | None) -> str:
    """A definition and the statement that sets its comment."""
    return definition if comment is None else f"{definition};\n{comment_text(kind, place, comment)}"


def comment_text(kind: str, place: str, comment: str) -> str:
    """COMMENT ON."""
    return f"COMMENT ON {kind.upper()} {place} IS {quote_text(comment)}"


def view_definition(view: View) -> str:
    """CREATE VIEW."""
    columns = f" ({', '.join(map(quote_name, view.columns))})" if view.columns else ""
    place = place_text(view.schema, view.name)
    return with_comment(f"CREATE VIEW {place}{columns} AS {view.query}", "view", place, view.comment)


def schema_definition(schema: Schema) -> str:
    """CREATE SCHEMA."""
    place = quote_name(schema.name)
    return with_comment(f"CREATE SCHEMA {place}", "schema", place, schema.comment)


def table_definition(table: Table, state: State) -> str:
    """CREATE TABLE for a table as it stands, and its comments."""
    lines = [_column_text(column, table, state) for column in table.columns]
    lines += [f"CONSTRAINT {quote_name(item.name)} {rule_text(item)}" for item in table.constraints]
    place = place_text(table.schema, table.name)
    made = f"CREATE TABLE {place} (\n  " + ",\n  ".join(lines) + "\n)" + _layout_of(table)
    made = with_comment(made, "table", place, table.comment)
    for column in table.columns:
        made = with_comment(made, "column", f"{place}.{quote_name(column.name)}", column.comment)
    return made


def _column_text(column: Column, table: Table, state: State) -> str:
    text = f"{quote_name(column.name)} {type_of(column, state)}"
    owned = next((item for item in state.objects.values() if _is_owned(item, table, column)), None)
    if column.identity and isinstance(owned, Sequence):
        options = " ".join(_options(owned, column.type.sql))
        return f"{text} GENERATED {column.identity.upper()} AS IDENTITY{f' ({options})' if options else ''}"
    if column.not_null and column.id not in table.design.key:
        text += " NOT NULL"
    if column.default:
        text += f" DEFAULT {column.default}"
    return f"{text} MERGE {column.merge}" if column.merge else text


def _is_owned(item: Object, table: Table, column: Column) -> bool:
    return isinstance(item, Sequence) and (item.table, item.column) == (table.id, column.id)


def type_of(column: Column, state: State) -> str:
    """A column's type as CREATE TABLE writes it, an enum's by its name."""
    found = state.objects.get(column.enum)
    if isinstance(found, EnumType):
        return place_text(found.schema, found.name)
    return f"ENUM({', '.join(map(quote_text, column.labels))})" if column.labels else column.type.sql


def sequence_definition(sequence: Sequence) -> str:
    """CREATE SEQUENCE."""
    place = place_text(sequence.schema, sequence.name)
    type = [] if sequence.sql_type == "BIGINT" else [f"AS {sequence.sql_type}"]
    text = " ".join(["CREATE SEQUENCE", place, *type, *_options(sequence, sequence.sql_type)])
    return with_comment(text, "sequence", place, sequence.comment)


def _options(sequence: Sequence, sql_type: str) -> list[str]:
    """The options of a sequence that are not what they would be unsaid."""
    bits = {"SMALLINT": 16, "INT": 32}.get(sql_type, 64)
    most = (1 << (bits - 1)) - 1
    low, high = (1, most) if sequence.increment > 0 else (-most - 1, -1)
    start = sequence.low if sequence.increment > 0 else sequence.high
    said = (
        (sequence.increment != 1, f"INCREMENT BY {sequence.increment}"),
        (sequence.low != low, f"MINVALUE {sequence.low}"),
        (sequence.high != high, f"MAXVALUE {sequence.high}"),
        (sequence.start != start, f"START WITH {sequence.start}"),
        (sequence.cache != 1, f"CACHE {sequence.cache}"),
        (sequence.cycle, "CYCLE"),
    )
    return [words for is_said, words in said if is_said]


def type_definition(type: EnumType) -> str:
    """CREATE TYPE."""
    place = place_text(type.schema, type.name)
    text = f"CREATE TYPE {place} AS ENUM ({', '.join(map(quote_text, type.labels))})"
    return with_comment(text, "type", place, type.comment)


def index_definition(index: Index, table: Table) -> str:
    """CREATE INDEX."""
    place = place_text(index.schema, index.name)
    return with_comment(index_text(index, table), "index", place, index.comment)


def index_text(index: Index, table: Table) -> str:
    """CREATE INDEX without a comment."""
    keys = ", ".join(f"{key_text(key)} {key.order}".strip() for key in index.keys)
    method = "" if index.method == "btree" else f" USING {index.method}"
    text = f"CREATE INDEX {quote_name(index.name)} ON {place_text(table.schema, table.name)}{method} ({keys})"
    if index.include:
        text += f" INCLUDE ({', '.join(map(quote_name, index.include))})"
    return f"{text} WHERE {index.where}" if index.where else text


def key_text(key: IndexKey) -> str:
    """What an index orders by, as SQL."""
    return quote_name(key.text) if key.is_column else f"({key.text})"


def rule_text(rule: Constraint) -> str:
    """A constraint as CREATE TABLE and ALTER TABLE write it, without its name."""
    listed = rule.text if rule.kind == "check" else ", ".join(map(quote_name, rule.columns))
    text = f"{rule.kind.upper()} ({listed})"
    if rule.kind == "foreign key":
        text += f" REFERENCES {place_text(*rule.target)} ({', '.join(map(quote_name, rule.target_columns))})"
    return text if rule.enforced else f"{text} NOT ENFORCED"


def _layout_of(table: Table) -> str:
    """The clauses and options of a table; a clause whose columns are not shown is not shown either."""
    design = table.design
    names = {column.id: quote_name(column.name) for column in table.columns}
    clauses = []
    if design.partition in names:
        name = names[design.partition]
        clauses.append(f"PARTITION BY {design.unit}({name})" if design.unit else f"PARTITION BY {name}")
    if design.cluster and all(id in names for id in design.cluster):
        clauses.append(f"CLUSTER BY ({', '.join(names[id] for id in design.cluster)})")
    if design.sequence in names:
        clauses.append(f"SEQUENCE BY {names[design.sequence]}")
    if design.ttl in names:
        clauses.append(f"TTL {names[design.ttl]} + INTERVAL '{design.ttl_secs} seconds'")
    if table.options:
        options = ", ".join(f"{name} = {quote_text(value)}" for name, value in sorted(table.options.items()))
        clauses.append(f"WITH ({options})")
    return "".join(f"\n{clause}" for clause in clauses)
