"""Needs a json from the future."""

NEEDS = {"json": ">=99.0"}
TIMEOUT = 10


def measure(request, stage):
    return {}
