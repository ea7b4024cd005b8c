"""Fuzzing of everything that reads what a stranger wrote: `python -m tools.fuzz --help`.

``targets.py`` is the one list of readers, ``seeds.py`` what they start from, ``mutate.py`` how inputs are damaged, and
``engine.py`` what one input may cost. `tests/tools/test_fuzz.py` fails where a reader of the package is in no target.
"""
