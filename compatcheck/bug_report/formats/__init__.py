"""Formats of what people paste into a report, a reader each."""
