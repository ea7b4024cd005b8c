"""`python -m tools.matrix VERB` is `compatcheck matrix VERB`."""

import sys

from compatcheck.cli import main

sys.argv[1:1] = ["matrix"]
main()
