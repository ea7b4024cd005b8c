"""Labelled bug reports: what each says as an environment, what its fix makes of it, and which remedy agrees."""
