"""Tests of being a database, file for file."""
