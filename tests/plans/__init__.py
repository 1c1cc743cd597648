"""Golden plans: SQL and the plan it becomes."""
