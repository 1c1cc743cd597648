"""What is kept: objects, the log of commits, the catalog, the tail, files, and their upkeep.

    lake                Lake: opened, read, written, led                     start here, then ``README.md``
    options             what it can be told
    objects/            bytes by name: a folder, a memory
    commits/            commit bytes, the log and its fence, checkpoints, group commit, terms
    catalog/            tables, files, changes, the fold to a frozen state, statistics
    tail/               rows since the last tiering
    tables/             rows to Parquet and back, pruning, snapshots, hot columns
    tiering/            tail to files, eight files to one, what may go, the upkeep thread
    faults              named instants at which tests kill the process
"""

from __future__ import annotations

from lake.storage.commits.sequencer import Acknowledged, Append, Flush
from lake.storage.lake import Lake
from lake.storage.options import StorageOptions
from lake.storage.tables.snapshot import Snapshot, TableSnapshot
from lake.storage.tiering.upkeep import Upkeep

__all__ = ["Acknowledged", "Append", "Flush", "Lake", "Snapshot", "StorageOptions", "TableSnapshot", "Upkeep"]
