"""Files of the sqllogictest format in the dialects of other engines, run on the lake: `python -m tests slt`."""
