"""Properties of whole queries, over random tables."""
