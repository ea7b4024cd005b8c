"""The user's own scripts that train, read from their syntax tree and never run.

What their calls decide is read by the units of `settings`. A rule is one file of `rules`, named after its trait:
``READS`` is the part of a `Script` that it reads, ``trainers`` or ``calls``, and ``find(script)`` returns the line that
shows the trait, or None.
"""

from compatcheck.project.scripts._reading import KIND as KIND
from compatcheck.project.scripts._reading import imports_library as imports_library
from compatcheck.project.scripts._reading import read as read
from compatcheck.project.scripts._reading import read_settings as read_settings
from compatcheck.project.scripts._reading import recognises as recognises
from compatcheck.project.scripts._reading import trains as trains
from compatcheck.project.scripts._reading import traits_in as traits_in
