"""Functions that know more than their arguments; importing this package registers them. Read ``readers`` first."""

from lake.db.functions import ai, files, readers, server  # noqa: F401
