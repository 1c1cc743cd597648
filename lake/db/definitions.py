"""Objects as the statements that make them again: for SHOW CREATE, lake.objects and what tools ask. Spec: SQL, Queries."""

from __future__ import annotations

from lake.sql.quoting import quote_name, quote_text
from lake.storage.catalog.model import PUBLIC, Constraint, Table, View


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


def table_definition(table: Table) -> str:
    """CREATE TABLE for a table as it stands, and its comments."""
    lines = []
    for column in table.columns:
        default = f" DEFAULT {column.default}" if column.default else ""
        merge = f" MERGE {column.merge}" if column.merge else ""
        not_null = " NOT NULL" if column.not_null and column.id not in table.design.key else ""
        lines.append(f"{quote_name(column.name)} {column.type.sql}{not_null}{default}{merge}")
    lines += [f"CONSTRAINT {quote_name(item.name)} {rule_text(item)}" for item in table.constraints]
    place = place_text(table.schema, table.name)
    made = f"CREATE TABLE {place} (\n  " + ",\n  ".join(lines) + "\n)" + _layout_of(table)
    made = with_comment(made, "table", place, table.comment)
    for column in table.columns:
        made = with_comment(made, "column", f"{place}.{quote_name(column.name)}", column.comment)
    return made


def rule_text(rule: Constraint) -> str:
    """A constraint as CREATE TABLE and ALTER TABLE write it, without its name."""
    listed = rule.text if rule.kind == "check" else ", ".join(map(quote_name, rule.columns))
    text = f"{rule.kind.upper()} ({listed})"
    if rule.kind == "foreign key":
        text += f" REFERENCES {place_text(*rule.target)} ({', '.join(map(quote_name, rule.target_columns))})"
    return text if rule.enforced else f"{text} NOT ENFORCED"


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
