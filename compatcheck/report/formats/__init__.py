"""The formats of every document; each file is one."""
