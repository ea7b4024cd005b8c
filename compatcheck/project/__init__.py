"""The user's own files: which of them are ours, what they say together, and how that meets what is installed."""
