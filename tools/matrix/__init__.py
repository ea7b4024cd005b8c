"""What extends the matrix, in a checkout: a verb of `compatcheck matrix` each, or `python -m tools.matrix VERB`."""
