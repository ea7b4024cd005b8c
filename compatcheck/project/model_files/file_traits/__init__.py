"""Traits of a model's files other than its code, one rule per file.

A rule is a module named after its trait, with ``find(files)``, which returns whether the files show the trait. Its
docstring says what the trait does to whom, with its source.
"""
