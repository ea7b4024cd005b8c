"""Probes of what can be imported."""
