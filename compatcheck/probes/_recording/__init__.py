"""What `compatcheck compare` runs in either environment: the same training in miniature, written down step by step.

`recorder.py` is run by the child as a probe is; the files beside it import nothing of compatcheck but probes.
"""
