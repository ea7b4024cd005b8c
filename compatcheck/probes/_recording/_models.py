"""The models that are recorded: the user's in miniature, or a few that stand for most."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from compatcheck.probes._criterion import Module, Request, Row, Tensor
from compatcheck.probes._recording._sketch import counters
from compatcheck.probes._recording._weights import fill
from compatcheck.probes.training._model import Unbuildable, classes, config_errors, with_defaults
from compatcheck.probes.training._shrunk import is_square, shrink, text_config

VOCABULARY = 128
LENGTHS = (9, 24, 17)
IGNORED = -100
DROPOUT = 0.1

_COMMON: Row = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "use_cache": False,
}
STANDARD: Dict[str, Row] = {
    "llama": {**_COMMON, "model_type": "llama", "rms_norm_eps": 1e-5},
    "qwen2": {**_COMMON, "model_type": "qwen2", "tie_word_embeddings": True},
    "gemma2": {
        **_COMMON,
        "model_type": "gemma2",
        "head_dim": 16,
        "sliding_window": 8,
        "query_pre_attn_scalar": 16,
        "tie_word_embeddings": True,
    },
    "mixtral": {**_COMMON, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 4},
    "gpt2": {
        "model_type": "gpt2",
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 128,
        "vocab_size": VOCABULARY,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "use_cache": False,
    },
}
_DROPOUTS = ("attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop", "hidden_dropout", "dropout")


class Subject(NamedTuple):
    """A model to record: its name in the report, its class and its small configuration."""

    name: str
    model_class: Any
    config: Any

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return int(getattr(self.config, "vocab_size", VOCABULARY))

    @property
    def attentions(self) -> Sequence[str]:
        """The implementations of attention that every environment offers."""
        return ("eager", "sdpa") if getattr(self.model_class, "_supports_sdpa", False) else ("eager",)


def subjects(request: Request) -> List[Subject]:
    """The user's model alone where there is one, else the standard ones that this transformers knows."""
    if request.get("config"):
        given = dict(request["config"])
        config_class, model_class = classes(given, request)
        known = with_defaults(text_config(given), config_class)
        longest = (request.get("training") or {}).get("max_length")
        return [Subject(str(known.get("model_type")), model_class, _config(config_class, known, longest))]
    found = []
    for name, config in STANDARD.items():
        try:
            config_class, model_class = classes(config, request)
            found.append(Subject(name, model_class, config_class(**_own(config))))
        except (Unbuildable, *config_errors()):
            continue
    if not found:
        raise Unbuildable("the installed transformers has none of the standard models")
    return found


def _own(config: Row) -> Row:
    return {key: value for key, value in config.items() if key != "model_type"}


def _config(config_class: Any, known: Row, longest: Optional[float]) -> Any:
    """The user's configuration, small, and the same in releases that take a head dimension and in those that do not."""
    problem: Optional[BaseException] = None
    for square in dict.fromkeys((is_square(known), True)):
        small = shrink(known, square, longest)
        try:
            return config_class(**_own(small))
        except config_errors() as error:
            problem = problem or error
    raise Unbuildable(f"{config_class.__name__} rejects the small configuration: {problem}")


def make(
    subject: Subject,
    *,
    attention: Optional[str] = None,
    dtype: str = "float32",
    seed: int = 0,
    shift: float = 0.0,
    dropout: bool = False,
) -> Module:
    """A model of its own in train mode, with the weights that every environment gives it."""
    import torch

    config = copy.deepcopy(subject.config)
    for name in _DROPOUTS:
        if hasattr(config, name):
            setattr(config, name, DROPOUT if dropout else 0.0)
    if attention:
        config._attn_implementation = attention
    if hasattr(config, "_experts_implementation"):
        config._experts_implementation = "eager"
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        model = subject.model_class(config)
    finally:
        torch.set_default_dtype(before)
    fill(model, seed, shift)
    return model.train()


def sequences(vocabulary: int, lengths: Sequence[int] = LENGTHS, stream: int = 1) -> List[Tensor]:
    """Token ids, without the ten lowest, of which some are special."""
    return [counters(length, 1000 * stream + row) % (vocabulary - 40) + 10 for row, length in enumerate(lengths)]


def padded(chosen: Sequence[Tensor], side: str, pad_id: int = 0) -> Row:
    """One batch as the collators of libraries make it: every real token has a label."""
    import torch

    longest = max(len(each) for each in chosen)
    ids = torch.full((len(chosen), longest), pad_id, dtype=torch.long)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for row, each in enumerate(chosen):
        start = longest - len(each) if side == "left" else 0
        place = slice(start, start + len(each))
        ids[row, place], mask[row, place], labels[row, place] = each, 1, each
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def late(chosen: Tensor, first: int) -> Row:
    """One row whose positions begin at ``first``."""
    import torch

    ids = chosen.reshape(1, -1)
    return {"input_ids": ids, "position_ids": torch.arange(first, first + len(chosen)).reshape(1, -1), "labels": ids}


def packed(chosen: Sequence[Tensor]) -> Row:
    """One row of all sequences, told apart by positions that begin anew."""
    import torch

    positions = torch.cat([torch.arange(len(each)) for each in chosen]).reshape(1, -1)
    ids = torch.cat(list(chosen)).reshape(1, -1)
    return {"input_ids": ids, "position_ids": positions, "labels": torch.where(positions == 0, IGNORED, ids)}
