"""What releases of packages define, and what code asks of them: read once on syntax trees, then linked."""
