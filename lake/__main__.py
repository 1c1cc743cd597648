"""`python -m lake`, and the program `lake`: the command line as a process of its own."""

from __future__ import annotations

import gc
import sys
from typing import Final

from lake.cli import main

COLLECTED_AFTER: Final = 20_000
"""Objects made before Python looks for cycles; at its 700 that is a tenth of the time until a small statement's answer."""


class WithoutPandas:
    """An import hook by which pandas is not there.

    pyarrow imports it, where it is installed, at its first array of a list, which takes as long as all the rest of a small
    statement. The program has no use for it: a frame is only ever given to or asked of ``lake`` the package.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Refuses the one name, and leaves the others to the next hook."""
        if name == "pandas":
            raise ModuleNotFoundError(f"the program does without {name}", name=name)


def run() -> int:
    """Runs the program in this process, which is its own; the exit status."""
    gc.set_threshold(COLLECTED_AFTER)
    sys.meta_path.insert(0, WithoutPandas)
    return main()


if __name__ == "__main__":
    sys.exit(run())
