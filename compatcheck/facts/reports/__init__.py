"""Environments as people paste them into a report, a file per format.

``TITLE`` names the format, ``recognises(block)`` gives the lines that are its own, and ``read(lines)`` what they
claim. ``TYPED`` marks one that people also write by hand, to say what they advise. What no format recognises is read
as prose.
"""
