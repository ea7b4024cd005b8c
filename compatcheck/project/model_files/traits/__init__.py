"""Traits of a model's own code, one rule per file; the code is parsed and never run.

A rule is a module named after its trait, with ``KIND``, the kind of file it reads, and ``find(code)``, which returns
the line that shows the trait, or None. Its docstring says what the trait does to whom, with its source.
"""
