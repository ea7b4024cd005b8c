"""Probes of training steps: of the user's own architecture in miniature, and of what surrounds it."""
