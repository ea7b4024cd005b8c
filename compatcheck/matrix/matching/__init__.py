"""Whether an entry speaks of an environment, and whether that is worth reporting."""
