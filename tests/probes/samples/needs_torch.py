"""Needs torch and does nothing with it."""

NEEDS = {"torch": ">=0"}
TIMEOUT = 10


def measure(request, stage):
    return {}
