"""Rules over the user's own training scripts, a trait each."""
