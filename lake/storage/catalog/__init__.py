"""What exists: ``model`` (tables, files), ``changes`` (the fold), ``state`` (look-ups), ``statistics``, ``manifests``."""
