"""Raises after a row."""

NEEDS = {}
TIMEOUT = 10


def measure(request, stage):
    yield {"number": 0}
    stage("about to raise")
    raise ValueError("first line\nsecond line")
