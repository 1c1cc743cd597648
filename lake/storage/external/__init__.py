"""Files outside the lake as rows: Parquet, CSV, newline-delimited JSON. Reading order: ``files``, ``parquet``, ``text``."""
