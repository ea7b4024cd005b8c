"""What a terminal can show, and progress on it."""
