"""What is reported; each file turns one kind of value into a document."""
