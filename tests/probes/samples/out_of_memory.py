"""Finds no memory."""

NEEDS = {}
TIMEOUT = 10


def measure(request, criterion, stage):
    raise MemoryError("could not allocate 8 bytes")
