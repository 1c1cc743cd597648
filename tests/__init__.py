"""The tests of `lake`: `python -m tests` runs them all, and its subcommands are listed in `tests/__main__.py`."""
