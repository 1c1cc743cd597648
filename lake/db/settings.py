"""Settings of a session: what SET takes, what SHOW answers.

Names with a dot are the engine's and are checked when set; names without one are Postgres's, kept for the drivers that
set them and shown again. Spec: SQL, Other statements; the Postgres door's fixed answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from lake.db.engine_options import ENGINE_OPTIONS
from lake.errors import InvalidParameter, UndefinedObject, near_name
from lake.late import late_pattern
from lake.sql.bind.aggregate import NULL_ORDER_SETTING

# Which of our null orders DuckDB's words mean; ``nulls_max`` is the dialect's own: last ascending, first descending.
NULL_ORDERS: Final = {
    "nulls_first": "nulls_first", "nulls first": "nulls_first", "first": "nulls_first",
    "nulls_last": "nulls_last", "nulls last": "nulls_last", "last": "nulls_last",
    "nulls_first_on_asc_last_on_desc": "nulls_min", "sqlite": "nulls_min", "mysql": "nulls_min",
    "nulls_last_on_asc_first_on_desc": "nulls_max", "postgres": "nulls_max",
    "nulls_min": "nulls_min", "nulls_max": "nulls_max", "": "nulls_max",
}  # fmt: skip
DIALECTS: Final = ("postgres", "postgresql", "generic", "duckdb", "spark", "databricks")
ALIASES: Final = {
    "default_null_order": NULL_ORDER_SETTING, "null_order": NULL_ORDER_SETTING,
    "time_zone": "timezone", "datafusion.execution.time_zone": "timezone", "time zone": "timezone",
}  # fmt: skip
FIXED: Final = (
    "server_version", "server_version_num", "integer_datetimes", "server_encoding", "block_size", "max_index_keys",
    "max_identifier_length",
)  # fmt: skip


class Setting(Struct, frozen=True):
    """A setting's value in a session and the value RESET brings back."""

    value: str
    default: str


class SessionSettings:
    """The settings of one session, those it starts with until it changes them."""

    def __init__(self) -> None:
        self._changed: dict[str, Setting] = {}
        self._texts: Mapping[str, str] = _STARTING_TEXTS

    def __getitem__(self, name: str) -> Setting:
        return self._changed.get(name) or _STARTING[name]

    def get(self, name: str) -> Setting | None:
        """A setting by its own name; None where there is none."""
        return self._changed.get(name) or _STARTING.get(name)

    def items(self) -> list[tuple[str, Setting]]:
        """All settings by name."""
        return list((_STARTING | self._changed).items())

    def milliseconds(self, name: str) -> float:
        """A time setting in milliseconds, which may have its unit with it: ``5s``, ``1min``; 0 where it is none."""
        setting = self.get(name)
        return 0.0 if setting is None else _milliseconds(setting.value)

    def put(self, name: str, setting: Setting) -> None:
        """Changes a setting."""
        self._changed[name] = setting
        self._texts = {key: each.value for key, each in self.items()}

    def clear(self) -> None:
        """Takes every change back."""
        self._changed = {}
        self._texts = _STARTING_TEXTS

    @property
    def texts(self) -> Mapping[str, str]:
        """The values by name; the mapping never changes."""
        return self._texts


@lru_cache(64)
def _milliseconds(text: str) -> float:
    text, factor = text.strip().lower(), 1
    for unit, each in (("ms", 1), ("min", 60_000), ("s", 1_000), ("h", 3_600_000)):
        if text.endswith(unit):
            text, factor = text.removesuffix(unit).strip(), each
            break
    return float(text) * factor if text.replace(".", "", 1).isdigit() else 0.0


def change_setting(settings: SessionSettings, name: str, value: str | None) -> None:
    """Sets or, with None, resets a setting.

    22023  a value the setting does not take, or a setting that cannot be changed
    42704  an engine setting that does not exist
    """
    key = canonical(name)
    if key == "all" and value is None:
        settings.clear()
        return
    if key in FIXED:
        raise InvalidParameter(f'parameter "{key}" cannot be changed')
    if "." in key and key not in _DEFAULTS:
        raise UndefinedObject(f'no setting "{key}"', hint=near_name(key, _DEFAULTS) or "SHOW ALL lists the settings")
    known = settings.get(key) or Setting("", _DEFAULTS.get(key, ""))
    if value is None or value.lower() == "default":
        value = known.default
    settings.put(key, Setting(_checked(key, value), known.default))


def canonical(name: str) -> str:
    """A setting's own name, whatever alias and case it was called by."""
    lowered = name.lower()
    return ALIASES.get(lowered, lowered)


def _checked(key: str, value: str) -> str:
    if ENGINE_OPTIONS.get(key) in ("true", "false"):
        return {"on": "true", "off": "false"}.get(value.lower(), value)
    if key == "timezone":
        return _zone(value)
    if key == "datafusion.sql_parser.dialect" and value.lower() not in DIALECTS:
        raise InvalidParameter(f'invalid value for "{key}": "{value}"', hint=f"one of {', '.join(DIALECTS)}")
    if key == NULL_ORDER_SETTING:
        if value.lower() not in NULL_ORDERS:
            words = ", ".join(dict.fromkeys(NULL_ORDERS.values()))
            raise InvalidParameter(f'invalid value for "{key}": "{value}"', hint=f"one of {words}")
        return NULL_ORDERS[value.lower()]
    if key == "lake.result_cache" and value.lower() not in ("on", "off"):
        raise InvalidParameter(f'invalid value for "{key}": "{value}"', hint="on or off")
    if key == "client_encoding" and value.lower().replace("-", "") not in ("utf8", "unicode"):
        raise InvalidParameter(f'invalid value for "client_encoding": "{value}"', hint="text is always UTF8")
    return value


def _zone(value: str) -> str:
    offset = _OFFSET.fullmatch(value.strip())
    if offset is not None:
        sign, hours, minutes = offset.groups()
        return f"{sign}{int(hours):02}:{int(minutes or 0):02}"
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        if value[:1] in "+-" and value[1:3].isdigit():
            return value
        raise InvalidParameter(f'invalid value for "timezone": "{value}"') from error
    return value


_OFFSET: Final = late_pattern(r"([+-])(\d{1,2})(?::?(\d{2}))?")

_DEFAULTS: Final = {
    **ENGINE_OPTIONS,
    "timezone": "UTC",
    "datafusion.sql_parser.dialect": "postgres",
    "lake.result_cache": "on",
    "application_name": "",
    "block_size": "8192",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "bytea_output": "hex",
    "default_table_access_method": "heap",
    "default_transaction_read_only": "off",
    "idle_in_transaction_session_timeout": "0",
    "jit": "off",
    "lock_timeout": "0",
    "transaction_read_only": "off",
    "default_transaction_isolation": "repeatable read",
    "extra_float_digits": "1",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "lc_collate": "C",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "search_path": "public",
    "server_encoding": "UTF8",
    "server_version": "16.0",
    "server_version_num": "160000",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "transaction_isolation": "repeatable read",
}
_STARTING: Final = {name: Setting(value, value) for name, value in _DEFAULTS.items()}
_STARTING_TEXTS: Final[Mapping[str, str]] = MappingProxyType(_DEFAULTS)
