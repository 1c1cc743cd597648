"""Rows of a table: ``write`` and ``read`` Parquet, ``prune``, ``snapshot``, ``hot`` columns."""
