"""Functions that know more than their arguments; importing this package registers them. Reading order: ``readers``."""

from lake.db.functions import readers  # noqa: F401
