"""Processes killed at random instants and named points: what was acknowledged is there afterwards, once.

    python -m tests crash --runs 200 --seed 1

Each run starts ``victim`` on a lake, lets it append with eight producers, write in bulk, tier, merge, clean up and read,
kills it (SIGKILL), and opens the lake again:

    acknowledged    every acknowledged batch is there, whole, once
    whole           a batch that was sent and not acknowledged is there whole or not at all
    retried         sending it again applies it exactly once
    never half      no query of the victim or after it sees a part of a batch

A lake lives through several runs, so that recovery is killed too. A run that fails prints its number and the seed that
replays it. Spec: HTTP, Append and bulk insert; architecture, invariants.
"""
