"""From log to files to fewer files: ``tier``, ``compact``, ``expire``, and ``upkeep``, which runs them."""
