"""`python -m lake`: the program, as `lake` runs it."""

import sys

from lake.cli import main

if __name__ == "__main__":
    sys.exit(main())
