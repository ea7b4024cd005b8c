"""The user's own files: which of them are ours, what they say together, and how that meets what is installed."""

from compatcheck.facts.project._reading import read_paths as read_paths
