"""The formats of the entries of a matrix; each file is one."""
