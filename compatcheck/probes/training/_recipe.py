"""How the user trains, as far as one process shows it: precision, adapters, quantisation, optimiser.

Read from the snapshot's training keys, which take the names of the Hugging Face TrainingArguments.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import Module, Request, Row, Settings, Tensor
from compatcheck.probes.training._model import ADAPTER_SCALE, BUILD_ERRORS, Unbuildable, draw, plain_name

AUTOCAST = {"bf16": "bfloat16", "fp16": "float16"}
DEFAULT_DTYPE = "bfloat16"
LEARNING_RATE = 1e-3
SGD_RATE = 0.1
EIGHT_BIT = {
    "adamw_8bit": "AdamW8bit",
    "adamw_bnb_8bit": "AdamW8bit",
    "paged_adamw_8bit": "PagedAdamW8bit",
    "paged_adamw_32bit": "PagedAdamW32bit",
    "paged_adamw": "PagedAdamW32bit",
    "lion_8bit": "Lion8bit",
    "paged_lion_8bit": "PagedLion8bit",
    "paged_lion_32bit": "PagedLion32bit",
}


class Recipe(NamedTuple):
    """A way of training. ``dtype`` is that of the products, ``weights`` that in which parameters are held.

    ``autocast``: products are cast as they come, from weights of another dtype. ``lora`` and ``quantization``
    hold the snapshot's keys, or None. ``attention`` and ``padding_side`` None: not stated.
    """

    dtype: str = DEFAULT_DTYPE
    weights: str = DEFAULT_DTYPE
    autocast: bool = False
    attention: Optional[str] = None
    lora: Optional[Settings] = None
    quantization: Optional[Settings] = None
    kbit_prepared: bool = False
    checkpointing: bool = False
    use_reentrant: Optional[bool] = None
    optimizer: str = "adamw_torch"
    learning_rate: float = LEARNING_RATE
    max_grad_norm: float = 0.0
    padding_side: Optional[str] = None

    @property
    def scaler(self) -> bool:
        """Whether the loss is scaled, as it is under float16 autocast."""
        return self.autocast and self.dtype == "float16"

    def plain(self) -> Recipe:
        """The same without quantisation and checkpointing, for the baseline and the exact model."""
        weights = "float32" if self.quantization and self.autocast else self.weights
        return self._replace(
            quantization=None, kbit_prepared=False, checkpointing=False, use_reentrant=None, weights=weights
        )

    def describe(self) -> str:
        """The recipe in a few words."""
        words = [f"{self.dtype} autocast over {self.weights}" if self.autocast else self.dtype]
        if self.quantization:
            words.append(f"{self.quantization.get('bits', 4)}-bit base")
        if self.lora is not None:
            words.append("LoRA")
        if self.checkpointing:
            words.append("gradient checkpointing")
        return ", ".join(words)


def recipe_of(request: Request) -> Recipe:
    """The recipe a request states; what it leaves open is the default of Recipe."""
    stated: Settings = request.get("training") or {}
    mixed = AUTOCAST.get(str(stated.get("mixed_precision")))
    dtype = str(request.get("dtype") or mixed or stated.get("dtype") or DEFAULT_DTYPE)
    if dtype not in ("float32", "bfloat16", "float16"):
        dtype = DEFAULT_DTYPE
    lora, quantization = stated.get("lora"), stated.get("quantization")
    autocast = mixed == dtype
    weights = str(stated.get("load_dtype") or "float32") if autocast else dtype
    return Recipe(
        dtype=dtype,
        weights=weights,
        autocast=autocast and (weights != dtype or lora is not None or bool(quantization)),
        attention=stated.get("attention"),
        lora=dict(lora) if lora is not None else {} if quantization else None,
        quantization=dict(quantization) if quantization else None,
        kbit_prepared=bool(quantization) and autocast and stated.get("kbit_prepared") is not False,
        checkpointing=bool(stated.get("gradient_checkpointing")),
        use_reentrant=(stated.get("gradient_checkpointing_kwargs") or {}).get("use_reentrant"),
        optimizer=str(stated.get("optimizer") or "adamw_torch"),
        learning_rate=LEARNING_RATE,
        max_grad_norm=float(stated.get("max_grad_norm") or 0.0),
        padding_side=stated.get("padding_side"),
    )


def apply(recipe: Recipe, model: Module, seed: int = 0) -> Module:
    """The model as the recipe trains it: base quantised, adapters with seeded weights, checkpointing on.

    Raises Unbuildable where a package for it is missing here or refuses.
    """
    try:
        if recipe.quantization:
            _quantize(recipe, model)
        if recipe.lora is not None:
            model = _with_adapters(recipe, model, seed)
        if recipe.checkpointing:
            _checkpoint(recipe, model)
    except BUILD_ERRORS as error:
        raise Unbuildable(f"{recipe.describe()} cannot be set up here: {type(error).__name__}: {error}") from error
    return model.train()


def dense(model: Module) -> Row:
    """Float64 values on the CPU by plain name, quantised weights as what they stand for."""
    return {plain_name(name): _value(parameter).double().cpu() for name, parameter in model.named_parameters()}


def trainable(model: Module) -> Row:
    """The parameters to train, by plain name."""
    return {plain_name(name): value for name, value in model.named_parameters() if value.requires_grad}


def computing(recipe: Recipe, device: str) -> Any:
    """The context in which the recipe runs the model."""
    import torch

    if not recipe.autocast:
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=getattr(torch, recipe.dtype))


def optimizer_of(recipe: Recipe, parameters: List[Tensor]) -> Tuple[Any, str]:
    """An optimiser and its name; raises Unbuildable where the one asked for cannot be made here."""
    import torch

    name, rate = recipe.optimizer, recipe.learning_rate
    if name in EIGHT_BIT:
        try:
            import bitsandbytes

            return getattr(bitsandbytes.optim, EIGHT_BIT[name])(parameters, lr=rate), EIGHT_BIT[name]
        except BUILD_ERRORS as error:
            raise Unbuildable(f"optimizer {name} cannot be created here: {type(error).__name__}: {error}") from error
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=SGD_RATE), "SGD"
    if name == "adamw_torch_fused":
        try:
            return torch.optim.AdamW(parameters, lr=rate, fused=True), "AdamW fused"
        except (RuntimeError, TypeError) as error:
            raise Unbuildable(f"fused AdamW cannot be created here: {error}") from error
    if name == "adagrad":
        return torch.optim.Adagrad(parameters, lr=rate), "Adagrad"
    if name == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=rate, scale_parameter=False, relative_step=False), "Adafactor"
    if name in ("adamw_torch", "adamw_hf", "adamw"):
        return torch.optim.AdamW(parameters, lr=rate), "AdamW"
    raise Unbuildable(f"optimizer {name} is not supported by this probe")


def _value(parameter: Tensor) -> Tensor:
    """What a parameter stands for."""
    state = getattr(parameter, "quant_state", None)
    if state is not None:
        from bitsandbytes.functional import dequantize_4bit

        return dequantize_4bit(parameter.data, state)
    if getattr(parameter, "SCB", None) is not None:
        return parameter.CB.float() * parameter.SCB.float().unsqueeze(1) / 127
    return parameter.detach()


def _quantize(recipe: Recipe, model: Module) -> None:
    """Replace each linear layer but the output by one of bitsandbytes, as transformers does."""
    import torch

    stated = recipe.quantization or {}
    output = model.get_output_embeddings()
    layers = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is torch.nn.Linear and child is not output
    ]
    bits = int(stated.get("bits") or 4)
    for parent, name, child in layers:
        setattr(parent, name, _quantized_linear(child, stated, bits, recipe.dtype))
    model.is_loaded_in_4bit, model.is_loaded_in_8bit = bits == 4, bits == 8
    for parameter in model.parameters():
        parameter.requires_grad_(False)


def _quantized_linear(linear: Module, stated: Settings, bits: int, dtype: str) -> Module:
    import bitsandbytes
    import torch

    device, bias = linear.weight.device, linear.bias is not None
    shape = (linear.in_features, linear.out_features)
    layer: Module
    if bits == 8:
        layer = bitsandbytes.nn.Linear8bitLt(*shape, bias=bias, has_fp16_weights=False, threshold=6.0)
        layer.weight = bitsandbytes.nn.Int8Params(linear.weight.data.cpu(), requires_grad=False, has_fp16_weights=False)
    else:
        compute = getattr(torch, str(stated.get("compute_dtype") or dtype))
        kind, twice = str(stated.get("type") or "fp4"), bool(stated.get("double_quant"))
        layer = bitsandbytes.nn.Linear4bit(
            *shape, bias=bias, compute_dtype=compute, compress_statistics=twice, quant_type=kind
        )
        layer.weight = bitsandbytes.nn.Params4bit(
            linear.weight.data.cpu(), requires_grad=False, compress_statistics=twice, quant_type=kind
        )
    if bias:
        layer.bias = linear.bias
    return layer.to(device)


def _with_adapters(recipe: Recipe, model: Module, seed: int) -> Module:
    import peft

    if recipe.kbit_prepared:
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    stated = recipe.lora or {}
    known = set(inspect.signature(peft.LoraConfig.__init__).parameters)
    kept = ("r", "lora_alpha", "bias", "use_dora", "use_rslora")
    options = {key: stated[key] for key in kept if stated.get(key) is not None and key in known}
    options["r"] = min(int(options.get("r") or 8), 64)
    options["modules_to_save"] = _present(stated.get("modules_to_save"), model) or None
    config = peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, target_modules=_targets(stated, model), **options)
    wrap = {}
    cast = stated.get("autocast_adapter_dtype")
    if cast is not None and "autocast_adapter_dtype" in inspect.signature(peft.get_peft_model).parameters:
        wrap["autocast_adapter_dtype"] = bool(cast)
    model = peft.get_peft_model(model, config, **wrap)
    _fill_adapters(model, seed)
    return model


def _targets(stated: Settings, model: Module) -> Any:
    """The modules named that this model has, or every linear layer but the output."""
    import torch

    output = model.get_output_embeddings()
    linear = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not output
    }
    return _present(stated.get("target_modules"), model) or sorted(linear)


def _present(names: Any, model: Module) -> List[str]:
    """Those of the names that modules of this model have."""
    everything = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    return [name for name in names or [] if name in everything]


def _fill_adapters(model: Module, seed: int) -> None:
    import torch

    drawn = dict(draw(model, seed, ADAPTER_SCALE))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_" in name and parameter.dim() > 1:
                parameter.copy_(drawn[plain_name(name)].to(parameter.device, parameter.dtype))


def _checkpoint(recipe: Recipe, model: Module) -> None:
    """Switch checkpointing on as the Trainer does, and let inputs carry gradients where the base is frozen."""
    options: Dict[str, Any] = {}
    if recipe.use_reentrant is not None:
        options["gradient_checkpointing_kwargs"] = {"use_reentrant": recipe.use_reentrant}
    model.gradient_checkpointing_enable(**options)
    if recipe.lora is not None:
        model.enable_input_require_grads()
