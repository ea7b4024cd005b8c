"""Faults of the dtype in which gradients are reduced; planted in every process of the stack."""

from __future__ import annotations

from tools.faults._plant import Fault

ASKED_FSDP2 = """
import torch
from torch.distributed import fsdp
original = fsdp.MixedPrecisionPolicy
fsdp.MixedPrecisionPolicy = lambda **options: original(**{**options, "reduce_dtype": torch.bfloat16})
"""
IGNORED_FSDP2 = """
import torch
from torch.distributed import fsdp
original = fsdp.MixedPrecisionPolicy
fsdp.MixedPrecisionPolicy = lambda **options: original()
"""
HOOK_IGNORED = """
import torch
from torch.nn.parallel.distributed import DistributedDataParallel
DistributedDataParallel.register_comm_hook = lambda self, *args, **options: None
"""
ROUNDED_BEFORE = """
import torch
from torch.nn.parallel.distributed import DistributedDataParallel
original = DistributedDataParallel.__init__
def build(self, module, *args, **options):
    for parameter in module.parameters():
        parameter.register_hook(lambda gradient: gradient.bfloat16().to(gradient.dtype))
    original(self, module, *args, **options)
DistributedDataParallel.__init__ = build
"""
IGNORED_ZERO = """
from deepspeed.runtime import config
config.get_communication_data_type = lambda *args, **options: None
"""
IGNORED_FSDP = """
import torch
from torch.distributed import fsdp
original = fsdp.MixedPrecision
fsdp.MixedPrecision = lambda **options: original()
"""
COMPRESSED_UNASKED = """
from torch.nn.parallel.distributed import DistributedDataParallel
import torch
import torch.distributed as dist
original = DistributedDataParallel.__init__
def compress(state, bucket):
    narrow = bucket.buffer().to(torch.bfloat16) / dist.get_world_size()
    done = dist.all_reduce(narrow, async_op=True).get_future()
    return done.then(lambda found: found.value()[0].to(bucket.buffer().dtype))
hook = DistributedDataParallel.register_comm_hook
def build(self, module, *args, **options):
    original(self, module, *args, **options)
    hook(self, None, compress)
DistributedDataParallel.__init__ = build
DistributedDataParallel.register_comm_hook = lambda self, *args, **options: None
"""
PROBE, NEEDS = "reduction_dtype", ("deepspeed",)
FSDP, FSDP2, DDP, ZERO = ({"ways": [way]} for way in ("fsdp", "fsdp2", "ddp", "zero"))
SHARDING, REDUCER, CONFIG = "torch.distributed.fsdp", "torch.nn.parallel.distributed", "deepspeed.runtime.config"
FAULTS = (
    Fault("FSDP2 reduces in bfloat16 whatever is asked", PROBE, None, FSDP2, start_up=(SHARDING, ASKED_FSDP2)),
    Fault("FSDP2 ignores reduce_dtype", PROBE, None, FSDP2, start_up=(SHARDING, IGNORED_FSDP2)),
    Fault(
        "FSDP ignores reduce_dtype",
        PROBE,
        None,
        FSDP,
        "skipped",
        below="FSDP refuses a CPU here",
        start_up=(SHARDING, IGNORED_FSDP),
    ),
    Fault("DDP compresses unasked", PROBE, None, DDP, start_up=(REDUCER, COMPRESSED_UNASKED)),
    Fault("DDP ignores its compression hook", PROBE, None, DDP, start_up=(REDUCER, HOOK_IGNORED)),
    Fault("gradients rounded to bfloat16 before DDP", PROBE, None, DDP, start_up=(REDUCER, ROUNDED_BEFORE)),
    Fault("ZeRO ignores communication_data_type", PROBE, None, ZERO, start_up=(CONFIG, IGNORED_ZERO), needs=NEEDS),
)
