"""The Postgres wire, message by message."""
