"""The user's own scripts that train with the transformers Trainer, read from their syntax tree and never run.

A rule is one file of `rules`, named after its trait: ``READS`` is the part of a `Script` that it reads,
``trainers`` or ``calls``, and ``find(script)`` returns the line that shows the trait, or None.
"""

from compatcheck.project.scripts._reading import KIND as KIND
from compatcheck.project.scripts._reading import TITLE as TITLE
from compatcheck.project.scripts._reading import identify as identify
from compatcheck.project.scripts._reading import identify_found as identify_found
from compatcheck.project.scripts._reading import read as read
from compatcheck.project.scripts._reading import traits_in as traits_in
