"""Counts and activations of a model at its real width, without its memory.

Parameters are counted on the meta device, tied ones once. Activations are the bytes saved for the backward pass under
FakeTensorMode, which runs shapes and dtypes only, on 2 and on 4 layers, at the full length and at half of it: the
difference of depths is one layer, the difference of lengths separates what grows with the square of the length (scores
of attention), which fused attention does not keep on a GPU even where this CPU's kernel does.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from compatcheck.probes._criterion import Module, Request, Settings, Tensor
from compatcheck.probes.training._memory.setup import Setup
from compatcheck.probes.training._memory.states import Counts
from compatcheck.probes.training._model import Unbuildable, classes, config_errors, with_defaults
from compatcheck.probes.training._shrunk import LAYERS, text_config

FEW, MORE = 2, 4
BY_FORMULA = "estimated by formula"
FUSED = ("sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "xformers")


class Activations(NamedTuple):
    """Bytes kept for the backward pass: by one layer, by one layer's input alone, and outside of the layers.

    ``how`` says in words where the numbers come from.
    """

    layer: float
    residual: float
    outside: float
    how: str


class Architecture(NamedTuple):
    """The classes and the configuration of a model; nothing is built yet."""

    model_class: Any
    config_class: Any
    values: Settings

    def config(self, layers: int = 0) -> Any:
        """A configuration object of its own, cut to ``layers`` where that is not 0."""
        values = dict(self.values)
        if layers:
            name, count = self.depth()
            values = {
                key: value[:layers] if isinstance(value, list) and len(value) == count else value
                for key, value in values.items()
            }
            values[name] = layers
        return self.config_class(**values)

    def depth(self) -> Tuple[str, int]:
        """The key that holds the number of layers, and the number. Raises Unbuildable where there is none."""
        for name in LAYERS:
            if isinstance(self.values.get(name), int):
                return name, self.values[name]
        raise Unbuildable("the config has no number of layers")


def architecture(config: Settings, request: Request) -> Architecture:
    """What the config describes. Raises Unbuildable where the installed transformers does not know it."""
    config_class, model_class = classes(config, request)
    dropped = ("quantization_config", "torch_dtype", "dtype", "auto_map", "model_type", "architectures")
    full = with_defaults({key: value for key, value in text_config(config).items() if key not in dropped}, config_class)
    return Architecture(model_class, config_class, {key: full[key] for key in full if key not in dropped})


def count(known: Architecture, setup: Setup) -> Counts:
    """Parameters by use, on the meta device. Raises Unbuildable where the model cannot be made there."""
    import torch

    try:
        with _without_memory():
            model = known.model_class(known.config())
        model.tie_weights()
    except config_errors() as error:
        raise Unbuildable("%s cannot be built: %s" % (known.model_class.__name__, str(error)[:160])) from error
    output = model.get_output_embeddings()
    linear = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not output
    }
    targets = setup.targets or ("all-linear",)
    adapted = [module for name, module in linear.items() if _is_target(name, targets)]
    saved = sum(
        parameter.numel()
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if any(part in setup.saved_modules for part in name.split("."))
    )
    adapters = sum((module.in_features + module.out_features) * (setup.rank or 0) for module in adapted) + saved
    layers = _layers(model)
    return Counts(
        total=sum(parameter.numel() for parameter in model.parameters()),
        quantizable=sum(module.weight.numel() for module in linear.values()),
        layer=max(sum(parameter.numel() for parameter in layer.parameters()) for layer in layers),
        head=output.weight.numel() if output is not None else 0,
        vocabulary=int(output.weight.shape[0] if output is not None else model.config.vocab_size),
        layers=len(layers),
        adapters=adapters,
    )


def activations(known: Architecture, setup: Setup) -> Activations:
    """Bytes kept for the backward pass. Raises Unbuildable where the model does not run on fake tensors."""
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: F401
    except ImportError as error:
        raise Unbuildable("this torch has no FakeTensorMode, which 2.0 added") from error
    depth = known.depth()[1]
    few, more = (FEW, MORE) if depth >= MORE else (max(depth // 2, 1), depth)
    half = max(setup.length // 2, 1)
    sizes = {
        (layers, length): _saved(known, setup._replace(length=length), layers)
        for layers in sorted({few, more})
        for length in sorted({half, setup.length})
    }
    span = max(more - few, 1)

    def at(length: int) -> Tuple[float, float]:
        layer = (sizes[more, length][0] - sizes[few, length][0]) / span if more > few else sizes[few, length][0]
        return layer, max(sizes[few, length][0] - few * layer, 0.0)

    layer, outside = at(setup.length)
    if half < setup.length and _fused(known, setup):
        ratio = setup.length / half
        square = max(layer - ratio * at(half)[0], 0.0) / (1 - 1 / ratio)
        layer = layer - square if square > 0.02 * layer else layer
    how = "measured on %d and %d layers of fake tensors" % (few, more)
    return Activations(layer, sizes[few, setup.length][1], outside, how)


def formula(values: Settings, setup: Setup) -> Activations:
    """34 bytes a token and channel, and 5 a score where attention keeps them, for 16-bit products.

    Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, equation 1 and section 5,
    https://arxiv.org/abs/2205.05198.
    """
    hidden = int(values.get("hidden_size") or values.get("n_embd") or values.get("d_model") or 4096)
    heads = int(values.get("num_attention_heads") or values.get("n_head") or 32)
    tokens = setup.batch * setup.length
    wide = 2.0 if setup.compute in ("float32", "float64") else 1.0
    scores = 5.0 * heads * setup.length if setup.attention == "eager" else 0.0
    layer = wide * tokens * (34.0 * hidden + scores)
    return Activations(layer, 2.0 * wide * tokens * hidden, 2.0 * wide * tokens * hidden, BY_FORMULA)


def _saved(known: Architecture, setup: Setup, layers: int) -> Tuple[float, float]:
    """Bytes saved by a model of so many layers, and bytes of the input of one."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    default = torch.get_default_dtype()
    try:
        config = known.config(layers)
        config._attn_implementation = "sdpa" if _fused(known, setup) and _offers_sdpa(known) else "eager"
        torch.set_default_dtype(getattr(torch, setup.weights))
        with FakeTensorMode(allow_non_fake_inputs=True):
            model = known.model_class(config).train()
            backbone = getattr(model, model.base_model_prefix, model)
            if setup.rank is not None:
                _adapt(model, setup)
            torch.set_default_dtype(default)
            return _forward(backbone, model, setup)
    except config_errors() as error:
        lines = str(error).strip().splitlines() or [""]
        raise Unbuildable("%s on fake tensors: %s" % (type(error).__name__, lines[0][:160])) from error
    finally:
        torch.set_default_dtype(default)


def _fused(known: Architecture, setup: Setup) -> bool:
    """Whether the run's attention keeps no scores: as stated, else the model's own default."""
    return setup.attention in FUSED if setup.attention else _offers_sdpa(known)


def _offers_sdpa(known: Architecture) -> bool:
    return bool(getattr(known.model_class, "_supports_sdpa", False))


def _forward(backbone: Module, model: Module, setup: Setup) -> Tuple[float, float]:
    import torch

    held = {_storage(parameter): 0 for parameter in model.parameters()}
    kept: Dict[int, Tensor] = {}
    inputs: List[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.setdefault(_storage(tensor), tensor)
        return tensor

    def note(module: Module, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
        hidden = positional[0] if positional else named["hidden_states"]
        inputs.append(hidden.numel() * hidden.element_size())

    handle = _layers(model)[0].register_forward_pre_hook(note, with_kwargs=True)
    cast = torch.autocast("cpu", dtype=getattr(torch, setup.compute)) if setup.autocast else contextlib.nullcontext()
    ids = torch.zeros((setup.batch, setup.length), dtype=torch.long)
    if setup.rank is not None:
        model.get_input_embeddings().register_forward_hook(lambda module, args, output: output.requires_grad_(True))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), cast:
        output = backbone(input_ids=ids, use_cache=False)
    handle.remove()
    size = sum(tensor.untyped_storage().nbytes() for key, tensor in kept.items() if key not in held)
    del output
    return float(size), float(inputs[0] if inputs else 0)


def _adapt(model: Module, setup: Setup) -> None:
    """Freeze the model and add to each adapted layer what LoRA does: B(A(x)), in float32 outside DeepSpeed.

    Written out, as peft's own modules cannot be moved between fake devices.
    """
    import torch

    for parameter in model.parameters():
        parameter.requires_grad_(False)
    dtype = torch.float32 if setup.engine != "deepspeed" else getattr(torch, setup.weights)
    output = model.get_output_embeddings()

    def add(module: Module, positional: Sequence[Any], result: Any) -> object:
        down, up = adapters[module]
        return (result + up(down(positional[0].to(dtype)))).to(result.dtype)

    adapters = {}
    for name, module in model.named_modules():
        linear = isinstance(module, torch.nn.Linear) and module is not output
        if linear and _is_target(name, setup.targets or ("all-linear",)):
            rank = setup.rank or 1
            adapters[module] = (
                torch.nn.Linear(module.in_features, rank, bias=False, dtype=dtype),
                torch.nn.Linear(rank, module.out_features, bias=False, dtype=dtype),
            )
            module.register_forward_hook(add)
    model.adapters = torch.nn.ModuleList(part for pair in adapters.values() for part in pair)


def _layers(model: Module) -> List[Module]:
    """The blocks of the model: the list of modules with the most parameters."""
    import torch

    lists: List[Module] = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
    sizes = [sum(parameter.numel() for parameter in blocks.parameters()) for blocks in lists]
    if not sizes or not max(sizes):
        raise Unbuildable("the model has no list of layers")
    return list(lists[sizes.index(max(sizes))])


def _is_target(name: str, targets: Sequence[str]) -> bool:
    return "all-linear" in targets or any(name == target or name.endswith("." + target) for target in targets)


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


@contextlib.contextmanager
def _without_memory() -> Iterator[None]:
    """Build on the meta device; accelerate does it for a torch before 2.0."""
    import torch

    device: Any = torch.device("meta")
    if hasattr(device, "__enter__"):
        with device:
            yield
        return
    try:
        import accelerate
    except ImportError as error:
        raise Unbuildable(
            "this torch cannot build a model without allocating its memory, and accelerate is not installed"
        ) from error
    with accelerate.init_empty_weights():
        yield
