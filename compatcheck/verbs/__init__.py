"""The verbs of the command line, a file each: ``command`` is the click command of that name."""
