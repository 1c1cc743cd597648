"""Functions that know more than their arguments; FUNCTIONS imports them like the engine's. Read ``readers`` first."""

from lake.sql.registry import FUNCTIONS

FUNCTIONS.fill_from(*(f"{__name__}.{name}" for name in ("ai", "files", "readers", "server")))
