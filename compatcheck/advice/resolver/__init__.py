"""The door of the resolver: uv's own, with its caches, indexes and credentials.

Two limits of uv shape what it is given. A preferred version may lose against a distribution that is decided earlier, so
a move is a constraint; and of a local label only the very one that an index serves counts, so a preference is stated
with it and without.
"""

from compatcheck.advice._credentials import redacted as redacted
from compatcheck.advice.resolver._compile import around as around
from compatcheck.advice.resolver._compile import lock as lock
from compatcheck.advice.resolver._compile import resolve as resolve
from compatcheck.advice.resolver._failures import IndexDown as IndexDown
from compatcheck.advice.resolver._local import require_known_settings as require_known_settings
from compatcheck.advice.resolver._platform import platform_of as platform_of
from compatcheck.advice.resolver._question import why_unsolvable as why_unsolvable
