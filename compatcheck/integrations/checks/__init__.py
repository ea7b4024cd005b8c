"""What the guard looks at in a running training: a file per check, listed at run time.

Each has a class ``Check``, made with the `TrainingRun` before the first step. Its methods may be left out.
"""
