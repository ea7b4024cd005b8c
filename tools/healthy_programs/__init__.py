"""Training programs that are right, in the idioms of the libraries' examples: the guard must say nothing of them."""
