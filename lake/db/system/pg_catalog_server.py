"""pg_catalog: the server itself: its database, roles, settings, functions; and relations that never have rows.

Source: PostgreSQL documentation, chapters 53 and 54. Spec: Doors, Postgres door.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from lake.db.system import system_table
from lake.db.system.pg_catalog_oids import DATABASE, OWNER
from lake.sql.registry import FUNCTIONS, Aggregate, Generator, TableFunction, Window
from lake.types import BOOLEAN, DOUBLE, INT, OID, SMALLINT, TEXT, TIMESTAMPTZ, List, Type

if TYPE_CHECKING:
    from lake.db.catalog import StatementCatalog

Row = tuple[Any, ...]
OIDS, TEXTS, SMALLINTS = List(OID), List(TEXT), List(SMALLINT)


@system_table(
    "pg_catalog", "pg_database",
    columns={"oid": OID, "datname": TEXT, "datdba": OID, "encoding": INT, "datlocprovider": TEXT,
             "datistemplate": BOOLEAN, "datallowconn": BOOLEAN, "datconnlimit": INT, "datfrozenxid": OID,
             "datminmxid": OID, "dattablespace": OID, "datcollate": TEXT, "datctype": TEXT, "daticulocale": TEXT,
             "daticurules": TEXT, "datcollversion": TEXT, "datacl": TEXTS},
)  # fmt: skip
def pg_database(catalog: StatementCatalog) -> Iterator[Row]:
    """The lake."""
    yield (DATABASE, catalog.lake, OWNER, 6, "c", False, True, -1, 0, 0, 1663, "C", "C", None, None, None, None)


ROLE: Final[dict[str, Type]] = {
    "oid": OID, "rolname": TEXT, "rolsuper": BOOLEAN, "rolinherit": BOOLEAN, "rolcreaterole": BOOLEAN,
    "rolcreatedb": BOOLEAN, "rolcanlogin": BOOLEAN, "rolreplication": BOOLEAN, "rolconnlimit": INT,
    "rolpassword": TEXT, "rolvaliduntil": TIMESTAMPTZ, "rolbypassrls": BOOLEAN, "rolconfig": TEXTS,
}  # fmt: skip


def _roles(catalog: StatementCatalog) -> Iterator[tuple[int, str, bool, bool]]:
    """Oid, name, whether it is a superuser and whether it signs in: of tokens, users and roles."""
    yield from ((OWNER, "admin", True, True), (OWNER + 1, "writer", False, True), (OWNER + 2, "reader", False, True))
    for name, user in sorted(catalog.state.users.items()):
        yield OWNER + 16 + user.id % 2_000_000_000, name, user.superuser, not user.is_role


@system_table("pg_catalog", "pg_roles", columns=ROLE)
@system_table("pg_catalog", "pg_authid", columns=ROLE)
def pg_roles(catalog: StatementCatalog) -> Iterator[Row]:
    """The three roles that tokens have, users and roles."""
    for oid, name, rules, enters in _roles(catalog):
        yield oid, name, rules, True, rules, False, enters, False, -1, "********", None, rules, None


@system_table(
    "pg_catalog", "pg_user",
    columns={"usename": TEXT, "usesysid": OID, "usecreatedb": BOOLEAN, "usesuper": BOOLEAN, "userepl": BOOLEAN,
             "usebypassrls": BOOLEAN, "passwd": TEXT, "valuntil": TIMESTAMPTZ, "useconfig": TEXTS},
)  # fmt: skip
def pg_user(catalog: StatementCatalog) -> Iterator[Row]:
    """Those that sign in."""
    for oid, name, rules, enters in _roles(catalog):
        if not enters:
            continue
        yield name, oid, False, rules, False, rules, "********", None, None


@system_table(
    "pg_catalog", "pg_settings",
    columns={"name": TEXT, "setting": TEXT, "unit": TEXT, "category": TEXT, "short_desc": TEXT, "extra_desc": TEXT,
             "context": TEXT, "vartype": TEXT, "source": TEXT, "min_val": TEXT, "max_val": TEXT, "enumvals": TEXTS,
             "boot_val": TEXT, "reset_val": TEXT, "sourcefile": TEXT, "sourceline": INT, "pending_restart": BOOLEAN},
)  # fmt: skip
def pg_settings(catalog: StatementCatalog) -> Iterator[Row]:
    """The session's settings."""
    for name, value in sorted(catalog.settings.session.items()):
        yield (name, value, None, "lake", "", None, "user", "string", "session", None, None, None, value, value, None,
               None, False)  # fmt: skip


PROC: Final[dict[str, Type]] = {
    "oid": OID, "proname": TEXT, "pronamespace": OID, "proowner": OID, "prolang": OID, "procost": DOUBLE,
    "prorows": DOUBLE, "provariadic": OID, "prosupport": TEXT, "prokind": TEXT, "prosecdef": BOOLEAN,
    "proleakproof": BOOLEAN, "proisstrict": BOOLEAN, "proretset": BOOLEAN, "provolatile": TEXT, "proparallel": TEXT,
    "pronargs": SMALLINT, "pronargdefaults": SMALLINT, "prorettype": OID, "proargtypes": List(OID, spelled="oidvector"), "proallargtypes": OIDS,
    "proargmodes": TEXTS, "proargnames": TEXTS, "proargdefaults": TEXT, "prosrc": TEXT, "probin": TEXT, "proacl": TEXTS,
}  # fmt: skip


@system_table("pg_catalog", "pg_proc", columns=PROC)
def pg_proc(catalog: StatementCatalog) -> Iterator[Row]:
    """Functions, an entry for each overload; argument types are not told, since many take any."""
    for name in sorted(FUNCTIONS):
        for place, item in enumerate(FUNCTIONS[name]):
            kind = {Aggregate: "a", Window: "w"}.get(type(item), "f")
            names = [parameter.name for parameter in item.signature.parameters]
            oid = 20_000_000 + zlib.crc32(f"{name}/{place}".encode()) % 900_000_000
            yield (
                oid, name, 11, OWNER, 12, 1.0, 0.0, 0, "-", kind, False, False, True, isinstance(item, TableFunction | Generator),
                "i", "s", len(names), 0, 25, [0] * len(names), None, None, names, None, name, None, None,
            )  # fmt: skip


@system_table("pg_catalog", "pg_am", columns={"oid": OID, "amname": TEXT, "amhandler": TEXT, "amtype": TEXT})
def pg_am(catalog: StatementCatalog) -> Iterator[Row]:
    """Access methods, by Postgres's names."""
    yield 2, "heap", "heap_tableam_handler", "t"
    yield 403, "btree", "bthandler", "i"


@system_table("pg_catalog", "pg_language", columns={"oid": OID, "lanname": TEXT, "lanispl": BOOLEAN})
def pg_language(catalog: StatementCatalog) -> Iterator[Row]:
    """Languages of functions."""
    yield 12, "internal", False
    yield 14, "sql", False


@system_table("pg_catalog", "pg_collation",
              columns={"oid": OID, "collname": TEXT, "collnamespace": OID, "collowner": OID,
                       "collprovider": TEXT, "collisdeterministic": BOOLEAN, "collencoding": INT, "collcollate": TEXT,
                       "collctype": TEXT, "colliculocale": TEXT})  # fmt: skip
def pg_collation(catalog: StatementCatalog) -> Iterator[Row]:
    """The one order of texts: by code points."""
    yield 100, "default", 11, OWNER, "d", True, -1, None, None, None
    yield 950, "C", 11, OWNER, "c", True, -1, "C", "C", None


@system_table("pg_catalog", "pg_tablespace",
              columns={"oid": OID, "spcname": TEXT, "spcowner": OID, "spcacl": TEXTS, "spcoptions": TEXTS})
def pg_tablespace(catalog: StatementCatalog) -> Iterator[Row]:
    """The one place of all tables."""
    yield 1663, "pg_default", OWNER, None, None


@system_table("pg_catalog", "pg_stat_activity",
              columns={"datid": OID, "datname": TEXT, "pid": INT, "usesysid": OID, "usename": TEXT,
                       "application_name": TEXT, "client_addr": TEXT, "client_port": INT, "backend_start": TIMESTAMPTZ,
                       "xact_start": TIMESTAMPTZ, "query_start": TIMESTAMPTZ, "state_change": TIMESTAMPTZ,
                       "wait_event_type": TEXT, "wait_event": TEXT, "state": TEXT, "backend_xid": OID,
                       "backend_xmin": OID, "query_id": OID, "query": TEXT, "backend_type": TEXT})  # fmt: skip
def pg_stat_activity(catalog: StatementCatalog) -> Iterator[Row]:
    """The caller's own session."""
    settings = catalog.settings
    pid = int(settings.session.get("lake.backend_pid", "0"))
    yield (DATABASE, catalog.lake, pid, OWNER, settings.user, settings.session.get("application_name", ""), None, None,
           None, None, None, None, None, None, "active", None, None, None, None, "client backend")  # fmt: skip


# Relations of things that do not exist here: name, then columns with the first letter of their type.
#   o oid   i int   s smallint   b boolean   t text   T text[]   S smallint[]   O oid[]   d double   z timestamptz
NEVER: Final = """
pg_range rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o rngsubopc:o rngcanonical:t rngsubdiff:t
pg_policy oid:o polname:t polrelid:o polcmd:t polpermissive:b polroles:O polqual:t polwithcheck:t
pg_publication oid:o pubname:t pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b pubviaroot:b
pg_publication_rel oid:o prpubid:o prrelid:o prqual:t prattrs:S
pg_publication_namespace oid:o pnpubid:o pnnspid:o
pg_publication_tables pubname:t schemaname:t tablename:t attnames:T rowfilter:t
pg_subscription oid:o subname:t subowner:o subenabled:b
pg_statistic_ext oid:o stxrelid:o stxname:t stxnamespace:o stxowner:o stxstattarget:i stxkeys:S stxkind:T stxexprs:t
pg_statistic starelid:o staattnum:s stainherit:b stanullfrac:d stawidth:i stadistinct:d
pg_stats schemaname:t tablename:t attname:t inherited:b null_frac:d avg_width:i n_distinct:d
pg_inherits inhrelid:o inhparent:o inhseqno:i inhdetachpending:b
pg_trigger oid:o tgrelid:o tgparentid:o tgname:t tgfoid:o tgtype:s tgenabled:t tgisinternal:b tgconstrrelid:o tgconstrindid:o tgconstraint:o tgdeferrable:b tginitdeferred:b tgnargs:s tgattr:S tgargs:t tgqual:t tgoldtable:t tgnewtable:t
pg_event_trigger oid:o evtname:t evtevent:t evtowner:o evtfoid:o evtenabled:t evttags:T
pg_rewrite oid:o rulename:t ev_class:o ev_type:t ev_enabled:t is_instead:b ev_qual:t ev_action:t
pg_rules schemaname:t tablename:t rulename:t definition:t
pg_depend classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:t
pg_shdepend dbid:o classid:o objid:o objsubid:i refclassid:o refobjid:o deptype:t
pg_shdescription objoid:o classoid:o description:t
pg_seclabel objoid:o classoid:o objsubid:i provider:t label:t
pg_extension oid:o extname:t extowner:o extnamespace:o extrelocatable:b extversion:t extconfig:O extcondition:T
pg_available_extensions name:t default_version:t installed_version:t comment:t
pg_foreign_table ftrelid:o ftserver:o ftoptions:T
pg_foreign_server oid:o srvname:t srvowner:o srvfdw:o srvtype:t srvversion:t srvacl:T srvoptions:T
pg_foreign_data_wrapper oid:o fdwname:t fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:T fdwoptions:T
pg_partitioned_table partrelid:o partstrat:t partnatts:s partdefid:o partattrs:S partclass:O partcollation:O partexprs:t
pg_auth_members oid:o roleid:o member:o grantor:o admin_option:b inherit_option:b set_option:b
pg_db_role_setting setdatabase:o setrole:o setconfig:T
pg_default_acl oid:o defaclrole:o defaclnamespace:o defaclobjtype:t defaclacl:T
pg_opclass oid:o opcmethod:o opcname:t opcnamespace:o opcowner:o opcfamily:o opcintype:o opcdefault:b opckeytype:o
pg_opfamily oid:o opfmethod:o opfname:t opfnamespace:o opfowner:o
pg_operator oid:o oprname:t oprnamespace:o oprowner:o oprkind:t oprcanmerge:b oprcanhash:b oprleft:o oprright:o oprresult:o oprcom:o oprnegate:o oprcode:t oprrest:t oprjoin:t
pg_cast oid:o castsource:o casttarget:o castfunc:o castcontext:t castmethod:t
pg_conversion oid:o conname:t connamespace:o conowner:o conforencoding:i contoencoding:i conproc:t condefault:b
pg_aggregate aggfnoid:o aggkind:t aggnumdirectargs:s
pg_ts_config oid:o cfgname:t cfgnamespace:o cfgowner:o cfgparser:o
pg_ts_dict oid:o dictname:t dictnamespace:o dictowner:o dicttemplate:o dictinitoption:t
pg_largeobject_metadata oid:o lomowner:o lomacl:T
pg_locks locktype:t database:o relation:o pid:i mode:t granted:b
pg_prepared_xacts gid:t owner:t database:t
pg_prepared_statements name:t statement:t
pg_cursors name:t statement:t
pg_matviews schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b definition:t
pg_stat_user_tables relid:o schemaname:t relname:t seq_scan:o n_live_tup:o n_dead_tup:o
pg_statio_user_tables relid:o schemaname:t relname:t
pg_stat_replication pid:i usename:t state:t
pg_group groname:t grosysid:o grolist:O
pg_timezone_names name:t abbrev:t is_dst:b
"""
_LETTERS: Final[dict[str, Type]] = {
    "o": OID, "i": INT, "s": SMALLINT, "b": BOOLEAN, "t": TEXT, "T": TEXTS, "S": SMALLINTS, "O": OIDS, "d": DOUBLE,
    "z": TIMESTAMPTZ,
}  # fmt: skip


def _no_rows(catalog: StatementCatalog) -> Iterator[Row]:
    """Nothing: what the relation would list does not exist."""
    return iter(())


for _line in NEVER.strip().splitlines():
    _name, *_columns = _line.split()
    _pairs = (column.split(":") for column in _columns)
    system_table("pg_catalog", _name, columns={key: _LETTERS[letter] for key, letter in _pairs})(_no_rows)
