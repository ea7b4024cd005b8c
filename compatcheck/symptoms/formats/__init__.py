"""Log formats, a file each."""
