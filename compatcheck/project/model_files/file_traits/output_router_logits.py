"""A mixture-of-experts model to whose loss that of its routers is added, as its configuration asks for their logits.

https://github.com/huggingface/transformers/blob/v5.24.0/src/transformers/models/mixtral/modeling_mixtral.py
"""

from __future__ import annotations

from compatcheck.project.model_files.file_traits._files import Files

FILE = "config.json"


def find(files: Files) -> bool:
    inner = files.config.get("text_config")
    return any(part.get("output_router_logits") is True for part in (files.config, inner) if isinstance(part, dict))
