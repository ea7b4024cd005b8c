"""What follows from stated facts; see `complete`."""
