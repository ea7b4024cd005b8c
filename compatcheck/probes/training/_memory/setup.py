"""The settings that decide how much memory a training run takes."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from compatcheck.probes._criterion import Request, Settings

WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
SHARDING = {"FULL_SHARD": 3, "HYBRID_SHARD": 3, "1": 3, "4": 3, "SHARD_GRAD_OP": 2, "2": 2, "NO_SHARD": 0, "3": 0}
MANY = 1024
UNSTATED = "adamw"


class Setup(NamedTuple):
    """One way of training.

    ``weights``: dtype in which parameters are held, ``compute``: dtype of the products; where they differ, products
    are cast as they come (autocast). ``engine``: deepspeed and fsdp shard by ``stage`` over ``world`` processes; both
    empty: one process, or DDP. ``rank`` None trains every parameter; ``bits`` None leaves the weights as they are.
    """

    batch: int
    length: int
    weights: str
    compute: str
    optimizer: str = UNSTATED
    checkpointing: bool = False
    accumulates: bool = False
    attention: Optional[str] = None
    rank: Optional[int] = None
    targets: Tuple[str, ...] = ()
    saved_modules: Tuple[str, ...] = ()
    bits: Optional[int] = None
    double_quant: bool = False
    kbit_prepared: Optional[bool] = None
    engine: str = ""
    stage: int = 0
    world: int = 1
    offload_optimizer: bool = False
    offload_params: bool = False
    bucket: Optional[float] = None
    overlap: Optional[bool] = None
    fused_loss: bool = False

    @property
    def autocast(self) -> bool:
        """Whether products are taken in a narrower dtype than the weights'."""
        return WIDTH[self.compute] < WIDTH[self.weights]

    def describe(self) -> str:
        """The settings in a few words."""
        words = [f"{self.batch} x {self.length} tokens", f"{self.compute} over {self.weights} weights"]
        words += [f"LoRA r={self.rank}"] if self.rank is not None else []
        words += [f"{self.bits}-bit base"] if self.bits else []
        words += ["gradient checkpointing"] if self.checkpointing else []
        words += [f"{self.engine} stage {self.stage} over {self.world}"] if self.engine else []
        return ", ".join([*words, self.optimizer])


class Stated(NamedTuple):
    """The setups that a request may mean and what it leaves open.

    Several where the dtype of the weights is open, and where the number of processes is that share the states.
    """

    setups: Tuple[Setup, ...]
    unknown: Tuple[str, ...]


def stated(request: Request, devices: int) -> Stated:
    """What a request says. ``devices``: the GPUs seen here, for a world size that is not stated; 0 unknown.

    Batch size and length that are not stated are 1 and 1, so that what is found is a lower bound.
    """
    training: Settings = request.get("training") or {}
    deepspeed: Settings = training.get("deepspeed") or {}
    fsdp: Settings = training.get("fsdp") or {}
    engine = "deepspeed" if deepspeed else "fsdp" if fsdp else ""
    strategy = str(fsdp.get("sharding_strategy") or "FULL_SHARD").upper()
    stage = int(deepspeed.get("zero_stage") or 0) if deepspeed else SHARDING.get(strategy, 3) if fsdp else 0
    batch, length = _count(training.get("per_device_train_batch_size")), _count(training.get("max_length"))
    unknown = [key for key, count in (("per_device_train_batch_size", batch), ("max_length", length)) if not count]
    world = _count(request.get("world_size") or training.get("world_size"))
    if not world and engine and stage:
        unknown += [] if devices else ["world_size"]
    lora, quantization = training.get("lora"), training.get("quantization")
    adapters = lora is not None or bool(quantization) or str(training.get("method") or "").endswith("lora")
    offload = str(deepspeed.get("offload") or "")
    common: Dict[str, Any] = {
        "batch": batch or 1,
        "length": length or 1,
        "optimizer": str(training.get("optimizer") or UNSTATED).lower().replace("optimizernames.", ""),
        "checkpointing": bool(training.get("gradient_checkpointing")),
        "accumulates": _count(training.get("gradient_accumulation_steps")) > 1,
        "attention": training.get("attention"),
        "rank": _count((lora or {}).get("r")) or 8 if adapters else None,
        "targets": tuple((lora or {}).get("target_modules") or ()),
        "saved_modules": tuple((lora or {}).get("modules_to_save") or ()),
        "bits": int((quantization or {}).get("bits") or 4) if quantization else None,
        "double_quant": bool((quantization or {}).get("double_quant")),
        "kbit_prepared": training.get("kbit_prepared"),
        "engine": engine,
        "stage": stage,
        "world": world or (devices if engine else 0) or 1,
        "offload_optimizer": bool(offload) or _has_name(deepspeed.get("offload_optimizer_device")),
        "offload_params": "param" in offload or _has_name(deepspeed.get("offload_param_device")),
        "bucket": _number(deepspeed.get("reduce_bucket_size")),
        "overlap": deepspeed.get("overlap_comm"),
        "fused_loss": bool(training.get("use_liger_kernel") or training.get("unsloth")),
    }
    setups = [Setup(compute=compute, weights=weights, **common) for compute, weights in _dtypes(request, engine)]
    if "world_size" in unknown:
        setups += [setup._replace(world=MANY) for setup in setups]
    return Stated(tuple(setups), tuple(unknown))


def _dtypes(request: Request, engine: str) -> List[Tuple[str, str]]:
    """Dtypes of products and weights: both of the latter where a 16-bit run does not say how it loads them."""
    training: Settings = request.get("training") or {}
    mixed = {"bf16": "bfloat16", "fp16": "float16"}.get(str(training.get("mixed_precision")))
    compute = str(mixed or training.get("dtype") or request.get("dtype") or "bfloat16")
    compute = compute if compute in WIDTH else "bfloat16"
    loaded = str(training.get("load_dtype") or "")
    if engine == "deepspeed" or compute in ("float32", "float64"):
        return [(compute, compute)]
    return [(compute, weights) for weights in ([loaded] if loaded in WIDTH else [compute, "float32"])]


def _has_name(device: object) -> bool:
    return str(device or "none").lower() not in ("none", "")


def _count(value: Any) -> int:
    """A number of things, 0 where none is stated: frameworks write -1 for "as many as there are"."""
    number = _number(value)
    return int(number) if number is not None and 1 <= number < float("inf") else 0


def _number(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
