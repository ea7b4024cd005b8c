"""Raises after a row."""

NEEDS = {}
TIMEOUT = 10


def measure(request, criterion, stage):
    yield {"number": 0}
    stage("about to raise")
    raise ValueError("first line\nsecond line")
