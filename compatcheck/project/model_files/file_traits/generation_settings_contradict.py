"""A ``generation_config.json`` that turns sampling or beam search off and sets what only these use.

transformers 4.37 to 5.22 load it with a warning and refuse to save it, as was tried at ten releases for every key here.
https://github.com/huggingface/transformers/blob/v4.48.0/src/transformers/generation/configuration_utils.py
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

FILE = "generation_config.json"

_OF_SAMPLING = {"temperature": 1.0, "top_p": 1.0, "typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}
_OF_BEAMS = {"length_penalty": 1.0, "early_stopping": False}


def find(files: Files) -> bool:
    stated = files.json(FILE) or {}
    greedy = stated.get("do_sample", False) is False
    contrastive = stated.get("penalty_alpha") is not None
    unused = dict(_OF_SAMPLING) if greedy else {}
    if greedy and not contrastive:
        unused["top_k"] = 50
    if stated.get("num_beams", 1) == 1:
        unused |= _OF_BEAMS
    return any(stated.get(name) not in (None, neutral) for name, neutral in unused.items())
