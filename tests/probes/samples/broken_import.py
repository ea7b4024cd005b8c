"""Cannot be loaded."""

import no_such_module_at_all  # noqa: F401

NEEDS = {}
TIMEOUT = 10
