"""Probes of single operations against float64."""
