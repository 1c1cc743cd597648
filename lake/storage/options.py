"""What storage can be told: one frozen value, with defaults that suit a folder."""

from __future__ import annotations

from msgspec import Struct


class StorageOptions(Struct, frozen=True):
    """Settings of the storage layer; the program fills them from its configuration.

    inline_bytes       a flush up to this size rides in the commit, a larger one is a segment
    tier_secs          least time between two tiering rounds, 0 for rounds on demand only; a table with ``tier_rows``
                       waiting rows does not wait
    retain_secs        how long replaced files and tiered segments stay
    gc_secs            how long commits stay that a checkpoint covers
    changelog_secs     how long commits stay for feeds
    keep_secs          how long the past of a table stays readable, unless its ``retention`` says
    purge_rows         deleted rows past their time that are enough to write files anew; so is a tenth of the table
    producers_secs     how long a producer that sends nothing is remembered
    orphan_secs        age at which a file that nothing names is removed
    file_versions, file_versions_days
                       how many versions of a stored file stay, and for how long
    codec              compression of data files: ``lz4``, ``zstd``, ``snappy``, ``none``
    backlog            rows that may wait for tiering before commits pause
    queue_flushes      flushes that may wait for a commit
    round_bytes        bytes of rows that one commit takes inline
    hot_bytes          decoded columns kept in memory; 0 is off
    workers            threads that write files and fetch commits
    sync               fsync before a write is acknowledged; off only for lakes that may be lost with the machine
    upkeep             whether a leader tiers, merges and cleans on a thread of its own; off where a test says when
    checkpoint_commits, checkpoint_bytes, checkpoint_secs
                       a checkpoint is due after so many commits or bytes, and not sooner than so many seconds
    """

    inline_bytes: int = 64 << 10
    tier_secs: float = 10.0
    tier_rows: int = 1_000_000
    retain_secs: float = 60.0
    gc_secs: float = 60.0
    changelog_secs: float = 0.0
    keep_secs: float = 86_400.0
    purge_rows: int = 100_000
    producers_secs: float = 30 * 86_400.0
    orphan_secs: float = 86_400.0
    file_versions: int = 50
    file_versions_days: int = 90
    codec: str = "lz4"
    backlog: int = 10_000_000
    queue_flushes: int = 16_384
    round_bytes: int = 16 << 20
    hot_bytes: int = 0
    workers: int = 2
    sync: bool = True
    upkeep: bool = True
    checkpoint_commits: int = 256
    checkpoint_bytes: int = 32 << 20
    checkpoint_secs: float = 5.0
