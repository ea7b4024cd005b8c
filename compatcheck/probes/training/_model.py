"""The user's architecture as the installed transformers builds it, small, with seeded weights.

Weights are drawn in float64 by parameter name, so that every copy of a model, in every version of
transformers, starts from the same numbers: normal with the variance 1 / fan-in for matrices (scores of
attention and logits of about 1, where a wrong mask or scale shows), the initial value plus noise for vectors.
"""

from __future__ import annotations

import contextlib
import copy
import os
import zlib
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import Module, Request, Row, Settings, Tensor, Tensors
from compatcheck.probes.training._exact import float64_everywhere
from compatcheck.probes.training._shrunk import DEFAULT_CONFIG, head_dim, shrink, special_ids, text_config

MOST_PARAMETERS = 200_000_000
NOISE = 0.1
ADAPTER_SCALE = 0.3
TRIAL_LENGTH = 5
BUILD_ERRORS = (
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Unbuildable(Exception):
    """The architecture cannot be built small here; the message says why, in one line."""


class Built(NamedTuple):
    """An architecture that builds and runs here.

    ``config`` is the shrunk configuration object, to be copied before use; ``weights`` the float64 values by
    parameter name; ``attentions`` the implementations the class offers; ``facts`` what to report.
    """

    model_class: Any
    config: Any
    weights: Tensors
    seed: int
    attentions: Tuple[str, ...]
    facts: Row

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return int(self.facts["vocabulary"])

    @property
    def special_ids(self) -> Tuple[int, ...]:
        """Ids of special tokens, which samples avoid."""
        return tuple(self.facts["special_ids"])

    @property
    def pad_id(self) -> int:
        """The id to pad with."""
        return int(self.facts["pad_id"])


def build(request: Request) -> Built:
    """The model of the request's ``config`` (or a small llama), shrunk, checked to run forwards and backwards.

    Raises Unbuildable where transformers does not know the architecture, it does not build, or it is too
    large when shrunk.
    """
    given = dict(request.get("config") or DEFAULT_CONFIG)
    seed = int(request.get("seed", 0))
    config_class, model_class = classes(given, request)
    known = with_defaults(text_config(given), config_class)
    longest = (request.get("training") or {}).get("max_length")
    problems: List[str] = []
    for square in (False, True):
        small = shrink(known, square, longest)
        try:
            return _tried(model_class, config_class(**small), seed, None if square else small.get("head_dim"))
        except config_errors() as error:
            problems.append(_one_line(error))
    raise Unbuildable(f"a scaled-down {model_class.__name__} does not run: {problems[0]}")


def instance(built: Built, dtype: str, attention: Optional[str] = None) -> Module:
    """A model of its own in train mode, its weights the master weights rounded once to ``dtype``.

    Made under that default dtype, as from_pretrained does, so that buffers such as rotary frequencies keep
    their own. ``attention`` None is the class's own choice. Raises Unbuildable where another is used.
    """
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        model = _construct(built.model_class, built.config, attention)
    finally:
        torch.set_default_dtype(before)
    used = getattr(model.config, "_attn_implementation", None) or "eager"
    if attention is not None and used != attention:
        raise Unbuildable(f"{built.model_class.__name__} uses {used} attention instead of the requested {attention}")
    load(model, built.weights)
    return model.train()


def exact_instance(built: Built, attention: str = "eager") -> Module:
    """A float64 model; run it inside `float64_everywhere`."""
    with float64_everywhere():
        return instance(built, "float64", attention)


def load(model: Module, weights: Mapping[str, Tensor]) -> None:
    """Give each parameter its value by plain name, rounded once to the parameter's dtype.

    Adapters are drawn here where ``weights`` lacks them. Raises KeyError for any other missing name.
    """
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[plain_name(name)].to(parameter.device, parameter.dtype))


def draw(model: Module, seed: int, scale: float = 1.0) -> Iterator[Tuple[str, Tensor]]:
    """Plain name and float64 value of each parameter, from seed and name alone but for the mean of vectors."""
    import torch

    for name, parameter in model.named_parameters():
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {plain_name(name)}".encode()))
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if parameter.dim() > 1:
            yield plain_name(name), noise * (scale / parameter.shape[-1] ** 0.5)
            continue
        mean = parameter.detach().double().cpu()
        yield plain_name(name), torch.where(mean.abs() <= 10, mean, torch.zeros_like(mean)) + NOISE * noise


def plain_name(name: str) -> str:
    """A parameter's name without what adapters and wrappers put around it."""
    for part in ("base_model.model.", "module.", "_checkpoint_wrapped_module.", "_orig_mod."):
        name = name.replace(part, "", 1) if name.startswith(part) else name
    for part in (".base_layer.", ".modules_to_save.default.", ".original_module."):
        name = name.replace(part, ".")
    return name


def classes(config: Settings, request: Request) -> Tuple[Any, Any]:
    """The configuration class and the causal language model's class."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING

    kind = str(text_config(config).get("model_type") or "")
    remote = config.get("auto_map")
    if remote and request.get("trust_remote_code") and request.get("model_folder"):
        return _remote_classes(dict(remote), str(request["model_folder"]))
    if kind not in CONFIG_MAPPING:
        if remote:
            raise Unbuildable(
                f"model type {kind!r} comes with its own code; run it with compatcheck probe --model FOLDER "
                "--trust-remote-code"
            )
        raise Unbuildable(f"the installed transformers knows no model type {kind!r}")
    config_class = CONFIG_MAPPING[kind]
    try:
        return config_class, MODEL_FOR_CAUSAL_LM_MAPPING[config_class]
    except KeyError:
        raise Unbuildable(f"the installed transformers has no causal language model of type {kind!r}") from None
    except BUILD_ERRORS as error:
        raise Unbuildable(f"the class of model type {kind!r} cannot be imported: {_one_line(error)}") from error


def _remote_classes(auto_map: Mapping[str, str], folder: str) -> Tuple[Any, Any]:
    """Classes from the user's own files, copied into a folder of this process only."""
    import tempfile

    from transformers import dynamic_module_utils

    model = auto_map.get("AutoModelForCausalLM") or auto_map.get("AutoModel")
    if "AutoConfig" not in auto_map or model is None:
        raise Unbuildable("the model's auto_map has no configuration or no causal language model")
    if "--" in auto_map["AutoConfig"] + model:
        raise Unbuildable("the model's auto_map points to code in another repository, which is not available here")
    os.environ["HF_HUB_OFFLINE"] = "1"
    dynamic_module_utils.HF_MODULES_CACHE = tempfile.mkdtemp(prefix="modules-")
    try:
        found = [
            dynamic_module_utils.get_class_from_dynamic_module(name, folder, local_files_only=True)
            for name in (auto_map["AutoConfig"], model)
        ]
    except BUILD_ERRORS as error:
        raise Unbuildable(f"the model's own code cannot be imported: {_one_line(error)}") from error
    return found[0], found[1]


def with_defaults(config: Settings, config_class: Any) -> Row:
    """The config with the class's own value for each key it lacks."""
    try:
        given = {key: value for key, value in config.items() if key not in ("torch_dtype", "dtype", "auto_map")}
        full = config_class(**given).to_dict()
    except config_errors() as error:
        raise Unbuildable(f"{config_class.__name__} rejects the config: {_one_line(error)}") from error
    return dict(full)


def config_errors() -> Tuple[Any, ...]:
    """BUILD_ERRORS, and what strict configuration classes raise (huggingface_hub 1.0 and later)."""
    from huggingface_hub import errors

    strict = getattr(errors, "StrictDataclassError", None)
    return BUILD_ERRORS if strict is None else (*BUILD_ERRORS, strict)


def _tried(model_class: Any, config: Any, seed: int, dimension: Optional[int]) -> Built:
    """The model drawn in float64, after one short pass forwards and backwards.

    Raises ValueError where its attention does not heed the head dimension that the config names.
    """
    import torch

    _check_size(model_class, config)
    with float64_everywhere():
        model = _construct(model_class, config, "eager")
        count = sum(parameter.numel() for parameter in model.parameters())
        for module in model.modules():
            if dimension and getattr(module, "head_dim", dimension) != dimension:
                raise ValueError(f"the attention heads have {module.head_dim} dimensions, not {dimension}")
        weights = dict(draw(model, seed))
        built = Built(model_class, config, weights, seed, _attentions(model_class), _facts(model, count))
        load(model, weights)
        ids = torch.arange(TRIAL_LENGTH).reshape(1, -1) + 3
        loss = model.train()(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss
        loss.backward()
    return built


def _construct(model_class: Any, config: Any, attention: Optional[str]) -> Module:
    own = copy.deepcopy(config)
    if attention is not None:
        own._attn_implementation = attention
    if hasattr(own, "_experts_implementation"):
        own._experts_implementation = "eager"
    return model_class(own)


def _attentions(model_class: object) -> Tuple[str, ...]:
    return ("eager", "sdpa") if getattr(model_class, "_supports_sdpa", False) else ("eager",)


def _facts(model: Module, count: int) -> Row:
    config = model.config
    small = config.to_dict()
    vocabulary = model.get_input_embeddings().weight.shape[0]
    specials = special_ids(small)
    pad = small.get("pad_token_id")
    return {
        "architecture": type(model).__name__,
        "model_type": config.model_type,
        "parameters": count,
        "layers": getattr(config, "num_hidden_layers", None),
        "hidden": getattr(config, "hidden_size", None),
        "heads": getattr(config, "num_attention_heads", None),
        "head_dim": head_dim(small),
        "vocabulary": vocabulary,
        "special_ids": list(specials),
        "pad_id": pad if isinstance(pad, int) and 0 <= pad < vocabulary else 0,
    }


def _check_size(model_class: Any, config: Any) -> None:
    """Raises Unbuildable where the parameters are too many; they are counted without memory for them."""
    import torch

    count = 0
    with contextlib.suppress(*BUILD_ERRORS), torch.device("meta"):
        count = sum(parameter.numel() for parameter in _construct(model_class, config, "eager").parameters())
    if count > MOST_PARAMETERS:
        raise Unbuildable(
            f"too large to shrink: {count / 1e6:.0f} million parameters remain, {MOST_PARAMETERS // 10**6} are allowed"
        )


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160] if lines else ''}".rstrip(": ")
