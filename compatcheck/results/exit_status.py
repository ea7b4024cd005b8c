"""Exit statuses that a verdict chooses; those of errors are in `compatcheck.errors`."""

CLEAN, FINDINGS, REQUIRED_MISSING, BUG, INTERRUPTED = 0, 1, 4, 5, 130
