"""``apply(state, commit) -> state``: the fold that makes a lake of its log.

``apply`` is pure: the same state and commit give the same state, on every node and after every restart. It refuses what
cannot follow the state (a name that is taken, a table that is gone) with an error a user can read; the sequencer meets
such an error before the commit is written, so replaying a log never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from lake.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateObject,
    InvalidTableDefinition,
    SerializationFailure,
    UndefinedSchema,
    UndefinedTable,
)
from lake.storage.catalog import fold_objects, fold_past, sketches
from lake.storage.catalog.access import without_schema, without_user
from lake.storage.catalog.changes import (
    DEFINITIONS,
    AddFiles,
    Advance,
    AdvanceSequence,
    AlterObject,
    AlterSchema,
    AlterTable,
    AlterView,
    AppendRows,
    Change,
    CloneTable,
    Commit,
    CreateObject,
    CreateSchema,
    CreateTable,
    CreateView,
    DeleteRows,
    DropObject,
    DropSchema,
    DropTable,
    DropUser,
    DropView,
    Elected,
    Forget,
    ForgetPast,
    ForgetProducers,
    Placed,
    PutSigningKey,
    PutUser,
    ReplaceFiles,
    Rows,
    SealFiles,
    Tiered,
    Truncate,
    UndropTable,
)
from lake.storage.catalog.deletes import NONE, NOTHING, Positions, TableDeletes, decode_numbers, joined
from lake.storage.catalog.maps import PersistentMap
from lake.storage.catalog.model import (
    RESERVED_COLUMNS,
    Column,
    DataFile,
    Garbage,
    Manifest,
    Progress,
    Schema,
    Table,
)
from lake.storage.catalog.state import ELECTIONS_MAX, State, display_name, index_times
from lake.storage.tail.tail import Tail, TailPart, tail_after


def apply(state: State, commit: Commit) -> State:
    """The lake after ``commit``, which follows ``state``."""
    assert commit.number == state.number + 1, f"commit {commit.number} does not follow {state.number}"
    draft = Draft(state, commit.number, commit.time)
    for change in commit.changes:
        draft.apply(change, commit.rows)
    return draft.state()


class Draft:
    """A state being made for one commit: changes go in one by one, and each sees those before it."""

    def __init__(self, state: State, number: int, time: int) -> None:
        self.fields: dict[str, Any] = {name: getattr(state, name) for name in State.__struct_fields__}
        self.number = number
        self.time = time
        self.fields |= {"number": number, "time": time, "times": index_times(state.times, time, number)}

    def state(self) -> State:
        """The state as it would be if the commit ended here."""
        return State(**self.fields)

    def apply(self, change: Change, rows: Sequence[Rows] = ()) -> None:
        """Takes one change in; an error leaves the draft as it was."""
        if isinstance(change, AppendRows):
            self.append(change, rows[change.inline] if change.inline >= 0 else None)
            return
        _APPLY[type(change)](self, change)
        if isinstance(change, DEFINITIONS):
            self.fields["definitions"] = self.number

    def mark(self) -> dict[str, Any]:
        """What ``reset`` needs to take back all that is applied from here on."""
        return self.fields.copy()

    def reset(self, mark: dict[str, Any]) -> None:
        """Takes back what was applied since ``mark``."""
        self.fields = mark

    @property
    def next_row_id(self) -> int:
        """The id of the next row written."""
        return self.fields["next_row_id"]  # type: ignore[no-any-return]

    @property
    def producers(self) -> PersistentMap[str, Progress]:
        """Producers' progress so far."""
        return self.fields["producers"]  # type: ignore[no-any-return]

    def table(self, id: int) -> Table:
        """The table with that id; 42P01 if it is gone."""
        found: Table | None = self.fields["tables"].get(id)
        if found is None:
            raise UndefinedTable("the table was dropped")
        return found

    def stored(self, id: int) -> Table:
        """The table with that id, a table of the past too; 42P01 if it is gone for good."""
        found: Table | None = self.fields["tables"].get(id) or self.fields["past"].get(id)
        if found is None:
            raise UndefinedTable("the table was dropped")
        return found

    # --- schemas, tables, views ---------------------------------------------------------------------------------------

    def _create_schema(self, change: CreateSchema) -> None:
        schemas: PersistentMap[str, Schema] = self.fields["schemas"]
        if change.schema.name in schemas:
            raise DuplicateObject(f'schema "{change.schema.name}" already exists')
        self.fields["schemas"] = schemas.set(change.schema.name, change.schema)

    def _drop_schema(self, change: DropSchema) -> None:
        schemas: PersistentMap[str, Schema] = self.fields["schemas"]
        if change.name not in schemas:
            raise UndefinedSchema(f'schema "{change.name}" does not exist')
        named = (*self.fields["names"], *self.fields["type_names"])
        held = sorted(name for schema, name in named if schema == change.name)
        if held:
            raise DependentObjects(f'cannot drop schema "{change.name}": it holds "{held[0]}"')
        self.fields["schemas"] = schemas.remove(change.name)
        self.fields["users"] = without_schema(self.fields["users"], change.name)

    def _create_table(self, change: CreateTable) -> None:
        table = change.table
        _check_columns(table.name, table.columns)
        self.take_name(table.schema, table.name, table.id)
        made = msgspec.structs.replace(
            table, created=self.time, tiered=self.number, born=self.number, horizon=self.number
        )
        self.fields["tables"] = self.fields["tables"].set(table.id, made)
        self.fields["next_id"] = max(self.fields["next_id"], table.id + 1)

    def _alter_table(self, change: AlterTable) -> None:
        table = self.table(change.table)
        _check_columns(change.name, change.columns)
        if (table.schema, table.name) != (change.schema, change.name):
            self.take_name(change.schema, change.name, table.id)
            self.fields["names"] = self.fields["names"].remove((table.schema, table.name))
        definition = {name: getattr(change, name) for name in change.__struct_fields__ if name != "table"}
        kept = {column.stored for column in change.columns}
        gone = tuple(column.stored for column in table.columns if column.stored not in kept)
        for column in change.columns:
            if column.stored in table.gone:
                raise DuplicateColumn(f'column "{column.name}" takes the place of a dropped one')
        history = fold_past.with_definition(self, table, change.columns)
        self.put(msgspec.structs.replace(table, **definition, gone=(*table.gone, *gone), history=history))

    def take_name(self, schema: str, name: str, id: int) -> None:
        """Gives a free name to a table or view.

        3F000  no such schema      42P07  the name is taken
        """
        if schema not in self.fields["schemas"]:
            raise UndefinedSchema(f'schema "{schema}" does not exist')
        if (schema, name) in self.fields["names"]:
            raise DuplicateObject(f'relation "{display_name(schema, name)}" already exists')
        self.fields["names"] = self.fields["names"].set((schema, name), id)

    def _put_user(self, change: PutUser) -> None:
        user = msgspec.structs.replace(change.user, created=change.user.created or self.time)
        self.fields["users"] = self.fields["users"].set(user.name, user)

    def _drop_user(self, change: DropUser) -> None:
        self.fields["users"] = without_user(self.fields["users"], change.name)

    def _put_signing_key(self, change: PutSigningKey) -> None:
        self.fields["signing_key"] = change.key

    # --- rows and files -----------------------------------------------------------------------------------------------

    def append(self, change: AppendRows, piece: Rows | None) -> None:
        """Adds rows to a tail; a segment's rows may be given where they are at hand, so that nobody reads them back."""
        table = self.table(change.table)
        part = TailPart(
            rows=change.rows,
            version=self.number,
            version_high=self.number,
            row_id=change.row_id,
            created=self.time,
            batch=piece if isinstance(piece, pa.RecordBatch) else None,
            encoded=None if isinstance(piece, pa.RecordBatch) else piece,
            segment=change.segment,
            checksum=change.checksum,
        )
        before: Tail | None = self.fields["tails"].get(table.id)
        self.fields["tails"] = self.fields["tails"].set(table.id, Tail(part, before))
        self.fields["tail_rows"] += change.rows
        self.fields["next_row_id"] = max(self.fields["next_row_id"], change.row_id + change.rows)
        self.put(msgspec.structs.replace(table, written=table.written + change.rows))

    def _add_files(self, change: AddFiles) -> None:
        table = self.table(change.table)
        placed = []
        newest = table.files[-1].generation if table.files else 0
        for file in change.files:
            if table.design.key:
                file = msgspec.structs.replace(file, generation=newest + 1 + file.generation)
            if not file.has_system:
                first = self.fields["next_row_id"]
                self.fields["next_row_id"] = first + file.rows
                file = msgspec.structs.replace(
                    file,
                    row_id=first,
                    row_id_high=first + file.rows - 1,
                    version=self.number,
                    version_high=self.number,
                    created=self.time,
                )
            placed.append(file)
        rows = sum(file.rows for file in placed)
        self.put(
            msgspec.structs.replace(
                table,
                files=(*table.files, *placed),
                written=table.written + rows,
                sketches=_folded(table.sketches, change.sketches),
            )
        )

    def _delete_rows(self, change: DeleteRows) -> None:
        table = self.table(change.table)
        if table.layout != change.layout:
            raise SerializationFailure(f'rows of table "{table.name}" moved to other files meanwhile')
        deletes = self.deletes(table.id)
        for path, positions in change.files.items():
            deletes = deletes.with_file(path, deletes.of(path).with_deleted(decode_numbers(positions), self.number))
        if change.tail:
            deletes = deletes.with_tail(deletes.tail.with_deleted(decode_numbers(change.tail), self.number))
        self.set_deletes(table.id, deletes)
        self.put(msgspec.structs.replace(table, changed=self.number))

    def deletes(self, id: int) -> TableDeletes:
        """What is gone of a table."""
        found: TableDeletes | None = self.fields["deletes"].get(id)
        return found or NOTHING

    def set_deletes(self, id: int, deletes: TableDeletes) -> None:
        """Takes another record of what is gone of a table."""
        known: PersistentMap[int, TableDeletes] = self.fields["deletes"]
        self.fields["deletes"] = known.set(id, deletes) if deletes.rows else known.remove(id)

    def _place_deletes(self, deletes: TableDeletes, files: Sequence[DataFile], found: Positions) -> TableDeletes:
        """Gone rows of pieces whose rows are now, in their order, those of ``files``."""
        start = 0
        for file in files:
            deletes = deletes.with_file(file.path, found.part(start, start + file.rows))
            start += file.rows
        return deletes

    def _tiered(self, change: Tiered) -> None:
        table = self.stored(change.table)
        tail: Tail | None = self.fields["tails"].get(table.id)
        rest = tail_after(tail, change.upto)
        deletes = self.deletes(table.id)
        if deletes.tail.rows:
            folded = sum(file.rows for file in change.files)
            found = deletes.tail
            deletes = deletes.with_tail(found.part(folded, 1 << 62))
            if change.placed is None:
                deletes = self._place_deletes(deletes, change.files, found.part(0, folded))
            else:
                deletes = _with_placed(deletes, change.placed)
            self.set_deletes(table.id, deletes)
        if tail is not None:
            gone = {part.segment for part in tail.newest_first() if part.segment}
            gone -= {part.segment for part in rest.newest_first() if part.segment} if rest else set()
            self._discard(sorted(path for path in gone if path))
            self._set_tail(table.id, tail, rest)
        files = change.files
        if table.design.key:
            newest = table.files[-1].generation if table.files else 0
            files = tuple(msgspec.structs.replace(file, generation=newest + 1) for file in files)
        self.put(
            msgspec.structs.replace(
                table,
                files=(*table.files, *files),
                tiered=change.upto,
                layout=table.layout + 1,
                sketches=_folded(table.sketches, change.sketches),
            )
        )

    def _replace_files(self, change: ReplaceFiles) -> None:
        table = self.stored(change.table)
        removed = set(change.removed)
        if change.manifest:
            files, manifests = table.files, _resealed(table, change)
            self._discard([change.manifest])
        else:
            place = next((at for at, file in enumerate(table.files) if file.path in removed), len(table.files))
            before, rest = table.files[:place], table.files[place:]
            kept = tuple(file for file in rest if file.path not in removed)
            if len(table.files) - len(before) - len(kept) != len(removed):
                raise UndefinedTable(f'files of table "{table.name}" to replace are gone')
            made = change.files
            if table.design.key:
                newest = max(file.generation for file in table.files if file.path in removed)
                made = tuple(msgspec.structs.replace(file, generation=newest) for file in made)
            files, manifests = (*before, *made, *kept), table.manifests
        self._discard(change.removed)
        self._move_deletes(table, change)
        horizon = max(table.horizon, change.horizon)
        self.put(
            msgspec.structs.replace(
                table,
                files=files,
                manifests=manifests,
                layout=table.layout + 1,
                horizon=horizon,
                history=tuple(item for item in table.history if item.upto >= horizon),
            )
        )

    def _move_deletes(self, table: Table, change: ReplaceFiles) -> None:
        deletes = self.deletes(table.id)
        if not deletes.files:
            return
        rows = change.counts or {file.path: file.rows for file in table.files}
        parts: list[Positions] = [NONE]
        start = 0
        for path in change.removed:
            found, dropped = deletes.of(path), decode_numbers(change.dropped[path]) if path in change.dropped else NONE.at
            parts.append(found.without(dropped).shifted(start))
            start += rows[path] - len(dropped)
            deletes = deletes.with_file(path, NONE)
        if change.placed is None:
            deletes = self._place_deletes(deletes, change.files, joined(parts))
        else:
            deletes = _with_placed(deletes, change.placed)
        self.set_deletes(table.id, deletes)

    def _seal_files(self, change: SealFiles) -> None:
        table = self.stored(change.table)
        sealed, replaced = set(change.sealed), set(change.replaced)
        files = tuple(file for file in table.files if file.path not in sealed)
        manifests = tuple(manifest for manifest in table.manifests if manifest.path not in replaced)
        found = len(table.files) - len(files) + len(table.manifests) - len(manifests)
        if found != len(sealed) + len(replaced):
            raise UndefinedTable(f'files of table "{table.name}" to seal are gone')
        self._discard(change.replaced)
        self.put(msgspec.structs.replace(table, files=files, manifests=(*manifests, change.manifest)))

    def throw_away(self, table: Table) -> None:
        """A table's files, manifests and tail become garbage."""
        tail: Tail | None = self.fields["tails"].get(table.id)
        if tail is not None:
            self._discard([part.segment for part in tail.newest_first() if part.segment])
            self._set_tail(table.id, tail, None)
        self._discard([file.path for file in table.files])
        self._discard([manifest.path for manifest in table.manifests], sealed=True)
        self.set_deletes(table.id, NOTHING)

    def _set_tail(self, id: int, before: Tail, after: Tail | None) -> None:
        tails: PersistentMap[int, Tail] = self.fields["tails"]
        self.fields["tails"] = tails.set(id, after) if after else tails.remove(id)
        self.fields["tail_rows"] += (after.rows if after else 0) - before.rows

    def _discard(self, paths: Sequence[str], *, sealed: bool = False) -> None:
        garbage: PersistentMap[str, Garbage] = self.fields["garbage"]
        for path in paths:
            garbage = garbage.set(path, Garbage(path, self.number, self.time, sealed))
        self.fields["garbage"] = garbage

    def put(self, table: Table) -> None:
        """Takes another record of a table."""
        where = "past" if table.lost else "tables"
        self.fields[where] = self.fields[where].set(table.id, table)

    # --- the lake itself ----------------------------------------------------------------------------------------------

    def _advance(self, change: Advance) -> None:
        progress = Progress(change.seq, self.number, self.time)
        self.fields["producers"] = self.producers.set(change.producer, progress)

    def _elected(self, change: Elected) -> None:
        self.fields["term"] = change.term
        self.fields["elections"] = (*self.fields["elections"], (self.number, self.time))[-ELECTIONS_MAX:]

    def _forget(self, change: Forget) -> None:
        garbage: PersistentMap[str, Garbage] = self.fields["garbage"]
        for path in change.paths:
            garbage = garbage.remove(path)
        self.fields["garbage"] = garbage


_APPLY: Final[dict[type, Callable[[Draft, Any], None]]] = {
    CreateSchema: Draft._create_schema,
    DropSchema: Draft._drop_schema,
    CreateTable: Draft._create_table,
    AlterTable: Draft._alter_table,
    DropTable: fold_past.drop_table,
    UndropTable: fold_past.undrop_table,
    CloneTable: fold_past.clone_table,
    CreateView: fold_objects.create_view,
    DropView: fold_objects.drop_view,
    PutUser: Draft._put_user,
    DropUser: Draft._drop_user,
    PutSigningKey: Draft._put_signing_key,
    AlterView: fold_objects.alter_view,
    AlterSchema: fold_objects.alter_schema,
    CreateObject: fold_objects.create_object,
    AlterObject: fold_objects.alter_object,
    DropObject: fold_objects.drop_object,
    AdvanceSequence: fold_objects.advance_sequence,
    AddFiles: Draft._add_files,
    DeleteRows: Draft._delete_rows,
    Tiered: Draft._tiered,
    ReplaceFiles: Draft._replace_files,
    SealFiles: Draft._seal_files,
    Truncate: fold_past.truncate,
    ForgetPast: fold_past.forget_past,
    ForgetProducers: fold_past.forget_producers,
    Advance: Draft._advance,
    Elected: Draft._elected,
    Forget: Draft._forget,
}


def _check_columns(table: str, columns: Sequence[Column]) -> None:
    if not columns:
        raise InvalidTableDefinition(f'table "{table}" has no columns')
    for name in (column.name for column in columns):
        if name in RESERVED_COLUMNS:
            raise InvalidTableDefinition(f'column name "{name}" is kept for the lake\'s own column')
    for kind in ("name", "stored", "id"):
        seen: set[object] = set()
        for column in columns:
            value = getattr(column, kind)
            if value in seen or value == "":
                raise DuplicateColumn(f'column "{column.name}" specified more than once')
            seen.add(value)


def _resealed(table: Table, change: ReplaceFiles) -> tuple[Manifest, ...]:
    """The table's manifests when the one that lists the removed files gives way to another, or to none."""
    found: list[Manifest] = []
    for manifest in table.manifests:
        if manifest.path != change.manifest:
            found.append(manifest)
        elif change.resealed is not None:
            found.append(change.resealed)
    if all(manifest.path != change.manifest for manifest in table.manifests):
        raise UndefinedTable(f'files of table "{table.name}" to replace are gone')
    return tuple(found)


def _with_placed(deletes: TableDeletes, placed: Placed) -> TableDeletes:
    """Gone rows of files whose rows are in another order than before."""
    for path, (rows, numbers) in placed.items():
        deletes = deletes.with_file(path, Positions(decode_numbers(rows), decode_numbers(numbers)))
    return deletes


def _folded(known: dict[int, bytes], more: dict[int, bytes]) -> dict[int, bytes]:
    return {**known, **{id: sketches.merged([known.get(id, b""), sketch]) for id, sketch in more.items()}}
