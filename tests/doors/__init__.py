"""The doors, as their clients see them."""
