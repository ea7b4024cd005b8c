"""Packages: names, versions and ranges, requirement files, builds of torch, images that hold them."""
