"""Records of keys and values: the Trainer's printed dictionaries and every ``.jsonl`` of training logs.

The Trainer prints ``{'loss': 2.3, 'grad_norm': 1.1, 'learning_rate': 2e-05, 'epoch': 0.01}``, from release 5 on with
the numbers in quotes. LLaMA-Factory's ``trainer_log.jsonl``, ms-swift's ``logging.jsonl``, mmengine's ``scalars.json``,
Axolotl and TRL write the same as JSON or print it so.
https://github.com/huggingface/transformers/blob/main/src/transformers/trainer_callback.py
"""

from __future__ import annotations

import re

from compatcheck.symptoms._reading import Reading, reading

MARKS = ("loss'", 'loss"', "grad_norm'", 'grad_norm"')
_PAIR = re.compile(r"""(['"])([^'"{}]{1,60})\1\s*:\s*['"]?([-+.\w/]+)""")


def read(text: str) -> Reading | None:
    return reading((key, value) for _, key, value in _PAIR.findall(text))
