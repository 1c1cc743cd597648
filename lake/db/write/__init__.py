"""Rows on their way in: ``incoming`` (rows from a door), ``prepare`` (defaults, casts, checks), ``path`` (log or files)."""
