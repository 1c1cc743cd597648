"""The Postgres door, with the clients that people have."""
