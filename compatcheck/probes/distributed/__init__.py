"""Probes on two processes."""
