"""Probe release after release: every stack is installed, probed, recorded and deleted.

    python -m tools.sweep [--newest] [--only WORDS] [--folder FOLDER] [--limit SECONDS]
    python -m tools.sweep --page

What has been run with the present probes is not run again; `--page` writes docs/reference/sweep.md from the records.
"""
