"""Training configurations, one reader per format: ``recognises(document)`` and ``read(path)``."""
