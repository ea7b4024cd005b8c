"""From a case to the entries that explain it, the most probable first.

`features` says in numbers what of the case speaks for an entry and against it, `ranking` makes probabilities of them
by the weights in `matrix/tables/ranking.toml`, which `tools/fit_ranking.py` fits.
"""
