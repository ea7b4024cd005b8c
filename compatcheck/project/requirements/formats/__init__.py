"""Formats of requirement and lock files, a reader each."""
