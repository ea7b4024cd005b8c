"""Probe release after release: every stack is installed, probed, recorded and deleted.

    python -m tools.sweep [--newest] [--only WORDS] [--folder FOLDER] [--limit SECONDS]
    python -m tools.sweep --kinds RELEASE [KIND ...] [--columns COLUMNS]
    python -m tools.sweep --page

`--kinds` probes every causal language model that a release of transformers knows.
What has been run with the present probes is not run again; `--page` writes docs/reference/sweep.md from the records.
"""
