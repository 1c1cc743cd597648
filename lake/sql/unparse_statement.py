"""Statements to text: SHOW CREATE, logs and the history of statements."""

from __future__ import annotations

from lake.sql import ast
from lake.sql.quoting import name_text, quote_literal, quote_name, quote_text, type_text
from lake.sql.unparse import unparse


def unparse_statement(statement: ast.Statement) -> str:
    """The SQL of a statement; ``parse`` of it is the statement again, but for the user's words that it keeps."""
    match statement:
        case ast.QueryStatement(query):
            return unparse(query)
        case ast.Insert():
            return _insert(statement)
        case ast.CreateTable():
            return _create_table(statement)
        case ast.CreateOrAlterTable(made):
            return _create_table(made)
        case ast.CreateClone(name, source, if_taken):
            return f"{_create(if_taken, 'TABLE')}{name_text(name)} CLONE {name_text(source)}"
        case ast.CreateView(name, columns, query, _, if_taken, temporary):
            head = _create(if_taken, "TEMPORARY VIEW" if temporary else "VIEW")
            return f"{head}{name_text(name)}{_columns(columns)} AS {unparse(query)}"
        case ast.CreateExternal(name, columns, format, location, partitions, options, if_taken):
            listed = f" ({', '.join(map(_column, columns))})" if columns else ""
            place = f" LOCATION {quote_text(location)}" if location is not None else ""
            head = _create(if_taken, "EXTERNAL TABLE") + name_text(name) + listed
            return head + _file_clauses(format, partitions, options) + place
        case ast.CreateSchema(name, if_taken):
            return f"{_create(if_taken, 'SCHEMA')}{quote_name(name)}"
        case ast.Drop(kind, names, if_exists, cascade, purge):
            words = f"DROP {kind.upper()} {'IF EXISTS ' if if_exists else ''}"
            return f"{words}{', '.join(map(name_text, names))}{' CASCADE' if cascade else ' PURGE' if purge else ''}"
        case ast.Undrop(table):
            return f"UNDROP TABLE {name_text(table)}"
        case ast.Restore(table, at):
            return f"RESTORE TABLE {name_text(table)} TO {at.kind.upper()} AS OF {unparse(at.value)}"
        case ast.Truncate(tables):
            return f"TRUNCATE TABLE {', '.join(map(name_text, tables))}"
        case ast.Explain(explained, analyze, verbose):
            return (
                f"EXPLAIN {'ANALYZE ' if analyze else ''}{'VERBOSE ' if verbose else ''}{unparse_statement(explained)}"
            )
    return _of_object(statement) or _of_session(statement)


def _of_object(statement: ast.Statement) -> str | None:
    match statement:
        case ast.CreateSequence(name, options, if_taken):
            return f"{_create(if_taken, 'SEQUENCE')}{name_text(name)}{_sequence(options)}"
        case ast.AlterSequence(name, options, if_exists):
            return f"ALTER SEQUENCE {_if_exists(if_exists)}{name_text(name)}{_sequence(options)}"
        case ast.RenameObject(kind, name, to, if_exists):
            return f"ALTER {kind.upper()} {_if_exists(if_exists)}{name_text(name)} RENAME TO {quote_name(to)}"
        case ast.CreateType(name, labels, if_taken):
            return f"{_create(if_taken, 'TYPE')}{name_text(name)} AS ENUM ({', '.join(map(quote_text, labels))})"
        case ast.AddValue(name, label, quiet, place, neighbour):
            where = f" {place.upper()} {quote_text(neighbour)}" if place else ""
            words = "IF NOT EXISTS " if quiet else ""
            return f"ALTER TYPE {name_text(name)} ADD VALUE {words}{quote_text(label)}{where}"
        case ast.CreateIndex():
            return _index(statement)
        case ast.Comment(kind, name, text, if_exists):
            words = "COMMENT IF EXISTS ON" if if_exists else "COMMENT ON"
            return f"{words} {kind.upper()} {name_text(name)} IS {quote_literal(text)}"
    return None


def _index(index: ast.CreateIndex) -> str:
    head = _create(index.if_taken, "UNIQUE INDEX" if index.unique else "INDEX")
    name = f"{name_text(index.name)} " if index.name is not None else ""
    method = f" USING {quote_name(index.method, is_label=True)}" if index.method is not None else ""
    keys = ", ".join(f"({unparse(key.expr)}) {key.order}".strip() for key in index.keys)
    text = f"{head}{name}ON {name_text(index.table)}{method} ({keys})"
    if index.include:
        text += f" INCLUDE{_columns(index.include)}"
    return f"{text} WHERE {unparse(index.where)}" if index.where is not None else text


def _sequence(options: tuple[ast.SequenceOption, ...]) -> str:
    return "".join(f" {sequence_option(option)}" for option in options)


def sequence_option(option: ast.SequenceOption) -> str:
    """An option of a sequence as SQL."""
    match option:
        case ast.SequenceOption("type", ast.TypeName() as type):
            return f"AS {type_text(type)}"
        case ast.SequenceOption("cycle", value):
            return "CYCLE" if value else "NO CYCLE"
        case ast.SequenceOption("low" | "high" as name, None):
            return f"NO {_SEQUENCE_WORDS[name]}"
        case ast.SequenceOption(name, None):
            return _SEQUENCE_WORDS[name].removesuffix(" WITH")
        case ast.SequenceOption(name, value):
            return f"{_SEQUENCE_WORDS[name]} {value}"


_SEQUENCE_WORDS = {
    "increment": "INCREMENT BY", "low": "MINVALUE", "high": "MAXVALUE", "start": "START WITH", "cache": "CACHE",
    "restart": "RESTART WITH",
}  # fmt: skip


def _if_exists(if_exists: bool) -> str:
    return "IF EXISTS " if if_exists else ""


def _of_session(statement: ast.Statement) -> str:
    match statement:
        case ast.Describe(target):
            return f"DESCRIBE {unparse(target)}"
        case ast.Summarize(target):
            return f"SUMMARIZE {unparse(target)}"
        case ast.ShowObjects(kind, like):
            return f"SHOW {kind.upper()}{f' LIKE {quote_text(like)}' if like is not None else ''}"
        case ast.ShowColumns(table):
            return f"SHOW COLUMNS FROM {name_text(table)}"
        case ast.ShowCreate(kind, name):
            return f"SHOW CREATE {kind.upper()} {name_text(name)}"
        case ast.ShowSetting(name):
            return f"SHOW {_setting(name)}"
        case ast.SetSetting(name, None):
            return f"RESET {_setting(name)}"
        case ast.SetSetting(name, ast.Row(items)):
            return f"SET {_setting(name)} = {', '.join(map(unparse, items))}"
        case ast.SetSetting(name, ast.Expr() as value):
            return f"SET {_setting(name)} = {unparse(value)}"
        case ast.Checkpoint():
            return "CHECKPOINT"
        case ast.Prepare(name, types, prepared):
            listed = f" ({', '.join(map(type_text, types))})" if types else ""
            return f"PREPARE {quote_name(name)}{listed} AS {unparse_statement(prepared)}"
        case ast.Execute(name, arguments):
            values = f" ({', '.join(map(unparse, arguments))})" if arguments else ""
            return f"EXECUTE {quote_name(name)}{values}"
        case ast.Deallocate(name):
            return f"DEALLOCATE {'ALL' if name is None else quote_name(name)}"
        case ast.Copy(source, target, format, partitions, options):
            text = name_text(source) if isinstance(source, ast.Name) else f"({unparse(source)})"
            return f"COPY {text} TO {quote_text(target)}{_file_clauses(format, partitions, options)}"
        case ast.Analyze(table):
            return f"ANALYZE {name_text(table)}" if table else "ANALYZE"
        case ast.Transaction(kind, None):
            return kind.upper()
        case ast.Transaction(kind, str() as savepoint):
            return f"{kind.upper()} {quote_name(savepoint)}"
    raise AssertionError(f"{type(statement).__name__} has no text")


def _file_clauses(format: str | None, partitions: tuple[str, ...], options: tuple[ast.Option, ...]) -> str:
    text = f" STORED AS {format.upper()}" if format is not None else ""
    if partitions:
        text += f" PARTITIONED BY{_columns(partitions)}"
    if options:
        pairs = (f"{quote_text(option.name)} {_file_option(option.value)}" for option in options)
        text += f" OPTIONS ({', '.join(pairs)})"
    return text


def _file_option(value: object) -> str:
    if isinstance(value, bool):
        return quote_text(str(value).lower())
    return str(value) if isinstance(value, int | float) else quote_text(str(value))


def _insert(insert: ast.Insert) -> str:
    head = f"INSERT INTO {name_text(insert.table)}{_columns(insert.columns)}"
    tail = _conflict(insert.conflict) if insert.conflict is not None else ""
    if insert.conflict is not None and insert.conflict.action == "replace":
        head, tail = head.replace("INSERT", "INSERT OR REPLACE", 1), ""
    if insert.query is None:
        return f"{head} DEFAULT VALUES{tail}"
    head += " BY NAME" if insert.by_name else ""
    head += f" OVERRIDING {insert.overriding.upper()} VALUE" if insert.overriding else ""
    return f"{head} {unparse(insert.query)}{tail}"


def _conflict(conflict: ast.Conflict) -> str:
    head = f" ON CONFLICT{_columns(conflict.columns)} DO"
    if conflict.action == "nothing":
        return f"{head} NOTHING"
    values = ", ".join(f"{quote_name(item.column)} = {_value(item.value)}" for item in conflict.assignments)
    where = f" WHERE {unparse(conflict.where)}" if conflict.where is not None else ""
    return f"{head} UPDATE SET {values}{where}"


def _value(value: ast.Expr) -> str:
    return "DEFAULT" if isinstance(value, ast.Default) else unparse(value)


def _create(if_taken: ast.IfTaken, kind: str) -> str:
    before = f" {if_taken.value}" if if_taken in (ast.IfTaken.REPLACE, ast.IfTaken.ALTER) else ""
    after = "IF NOT EXISTS " if if_taken is ast.IfTaken.KEEP else ""
    return f"CREATE{before} {kind} {after}"


def _create_table(table: ast.CreateTable) -> str:
    text = _create(table.if_taken, "TEMPORARY TABLE" if table.temporary else "TABLE") + name_text(table.name)
    elements = [*map(_column, table.columns), *map(_constraint, table.constraints)]
    if elements:
        text += f" ({', '.join(elements)})"
    if table.like:
        text += f" LIKE {name_text(table.like)}"
    text += "".join(f" {_layout(clause)}" for clause in table.clauses)
    if table.options:
        text += f" WITH ({', '.join(map(_option, table.options))})"
    if table.query:
        text += f" AS {unparse(table.query)}{'' if table.with_data else ' WITH NO DATA'}"
    return text


def _column(column: ast.ColumnDefinition) -> str:
    parts = [quote_name(column.name), type_text(column.type)]
    if column.not_null:
        parts.append("NOT NULL")
    if column.default is not None:
        text = unparse(column.default)
        # Parentheses keep a loose operator, such as IS or AND, from the constraint after it.
        parts.append(f"DEFAULT {text}" if isinstance(column.default, (ast.Literal, ast.Call)) else f"DEFAULT ({text})")
    if column.identity is not None:
        options = f" ({_sequence(column.identity.options).strip()})" if column.identity.options else ""
        parts.append(f"GENERATED {column.identity.kind.upper()} AS IDENTITY{options}")
    if column.merge is not None:
        parts.append(f"MERGE {quote_name(column.merge)}")
    return " ".join([*parts, *map(_constraint, column.rules)])


def _constraint(constraint: ast.TableConstraint) -> str:
    rest = " NOT ENFORCED" if constraint.not_enforced else ""
    if constraint.condition is not None:
        return f"{_named(constraint.name)}CHECK ({unparse(constraint.condition)}){rest}"
    words = "" if constraint.kind == "foreign key" and not constraint.columns else constraint.kind.upper()
    words += _columns(constraint.columns)
    if constraint.target is not None:
        words += f" REFERENCES {name_text(constraint.target)}{_columns(constraint.target_columns)}"
    return f"{_named(constraint.name)}{words.strip()}{rest}"


def _layout(clause: ast.LayoutClause) -> str:
    head = clause.kind.upper()
    if clause.expr is not None:
        return f"{head} {unparse(clause.expr)}"
    return f"{head}{_columns(clause.columns)}" if clause.kind == "cluster by" else f"{head} {quote_name(clause.columns[0])}"


def _named(name: str | None) -> str:
    return f"CONSTRAINT {quote_name(name)} " if name is not None else ""


def _option(option: ast.Option) -> str:
    name = ".".join(quote_name(part, is_label=True) for part in option.name.split("."))
    match option.value:
        case tuple() as words:
            return f"{name} = ({', '.join(map(quote_text, words))})"
        case float() as number:
            return f"{name} = {number!r}"
        case value:
            return f"{name} = {quote_literal(value)}"


def _columns(columns: tuple[str, ...]) -> str:
    return f" ({', '.join(map(quote_name, columns))})" if columns else ""


def _setting(name: str) -> str:
    return "ALL" if name == "all" else ".".join(map(quote_name, name.split(".")))
