"""Random queries in DuckDB's friendly forms, answered by the lake and by DuckDB: `python -m tests random --friendly`."""
