"""The lake against Postgres: `server.py` starts one, `test_slt_pg.py` runs golden files on it."""
