"""Formats of training configurations, a reader each."""
