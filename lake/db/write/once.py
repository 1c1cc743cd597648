"""Writes applied once: producers and job ids. Spec: HTTP, Append and bulk insert; Query, ``job``."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from lake.errors import InvalidParameter
from lake.storage.catalog.state import State

JOB_CHARS_MAX: Final = 256


class Once(Struct, frozen=True):
    """A producer's send: ``seq`` counts from 1; with ``prev`` it applies only if that is the producer's last."""

    producer: str
    seq: int
    prev: int | None = None

    def is_known(self, state: State) -> bool:
        """Whether this send was applied already."""
        progress = state.producers.get(self.producer)
        return progress is not None and self.seq <= progress.seq


def once_of_job(job: str | None) -> Once | None:
    """A statement's job id as a producer that sends once.

    22023  an id that is empty or too long
    """
    if job is None:
        return None
    if not 1 <= len(job) <= JOB_CHARS_MAX:
        raise InvalidParameter(f"a job id has 1 to {JOB_CHARS_MAX} characters")
    return Once(f"sql:{job}", 1)
