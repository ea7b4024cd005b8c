"""The user's own scripts that train with the transformers Trainer, read from their syntax tree and never run.

A rule is one file of `rules`: ``TRAIT``, ``OF`` what it looks at in a `Script` (``trainers`` or ``made``), and
``find(script)`` that gives the line which shows it, or None.
"""

from compatcheck.project.scripts._reading import KIND as KIND
from compatcheck.project.scripts._reading import TITLE as TITLE
from compatcheck.project.scripts._reading import met as met
from compatcheck.project.scripts._reading import read as read
from compatcheck.project.scripts._reading import recognised as recognised
from compatcheck.project.scripts._reading import traits_in as traits_in
