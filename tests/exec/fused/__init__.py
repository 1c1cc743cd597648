"""Compiled loops against the plain way."""
