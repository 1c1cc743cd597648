"""Tests of `lake.storage`, file for file."""
