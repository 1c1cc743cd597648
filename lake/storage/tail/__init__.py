"""The newest rows: ``segment`` (rows as bytes) and ``tail`` (rows since the last tiering)."""
