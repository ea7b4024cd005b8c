"""Faults between processes: collectives, averaging, accumulation. Planted in every process of the stack."""

from __future__ import annotations

from tools.faults._plant import Fault

DROPPED = """
import torch.distributed as dist
original = dist.all_reduce
def all_reduce(tensor, *args, **options):
    if dist.get_rank() == 1:
        tensor.zero_()
    return original(tensor, *args, **options)
dist.all_reduce = all_reduce
"""
LAST_BIT = """
import torch
import torch.distributed as dist
original = dist.all_reduce
def all_reduce(tensor, *args, **options):
    work = original(tensor, *args, **options)
    if dist.get_rank() == 1 and tensor.is_floating_point():
        tensor.view(-1)[0] += tensor.view(-1)[0] * torch.finfo(tensor.dtype).eps
    return work
dist.all_reduce = all_reduce
"""
EXCHANGED = """
import torch.distributed as dist
original = dist.all_gather
def all_gather(parts, tensor, *args, **options):
    original(parts, tensor, *args, **options)
    first = parts[0].clone()
    parts[0].copy_(parts[1])
    parts[1].copy_(first)
dist.all_gather = all_gather
"""
NOW_AND_THEN = """
import torch.distributed as dist
original = dist.all_reduce
calls = [0]
def all_reduce(tensor, *args, **options):
    original(tensor, *args, **options)
    calls[0] += 1
    if calls[0] % 5 == 0:
        tensor.view(-1)[0] += 1
dist.all_reduce = all_reduce
"""
NOT_DELIVERED = """
import torch.distributed as dist
dist.broadcast = lambda tensor, *args, **options: None
"""
SUMMED = """
from torch.nn.parallel.distributed import DistributedDataParallel
original = DistributedDataParallel.__init__
def build(self, module, *args, **options):
    for parameter in module.parameters():
        parameter.register_hook(lambda gradient: gradient * 2)
    original(self, module, *args, **options)
DistributedDataParallel.__init__ = build
"""
NOT_SYNCHRONISED = """
from torch.nn.parallel.distributed import DistributedDataParallel
original = DistributedDataParallel.forward
def forward(self, *args, **options):
    self.require_backward_grad_sync = False
    return original(self, *args, **options)
DistributedDataParallel.forward = forward
"""
FIRST_LOST = """
from deepspeed.runtime.engine import DeepSpeedEngine
original = DeepSpeedEngine.backward
def backward(self, loss, *args, **options):
    if self.gradient_accumulation_steps() > 1 and self.micro_steps % self.gradient_accumulation_steps() == 0:
        loss = loss * 0
    return original(self, loss, *args, **options)
DeepSpeedEngine.backward = backward
"""
DIVIDED_TWICE = """
from deepspeed.runtime.engine import DeepSpeedEngine
original = DeepSpeedEngine.backward
def backward(self, loss, *args, **options):
    return original(self, loss / self.gradient_accumulation_steps(), *args, **options)
DeepSpeedEngine.backward = backward
"""
NORM_DOUBLED = """
from deepspeed.runtime.engine import DeepSpeedEngine
original = DeepSpeedEngine.get_global_grad_norm
DeepSpeedEngine.get_global_grad_norm = lambda self: 2 * original(self)
"""
LAST_BUCKET = """
import torch
from torch.nn.parallel.distributed import DistributedDataParallel
original = DistributedDataParallel.__init__
def own_gradients(state, bucket):
    if bucket.is_last():
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    return default_hooks.allreduce_hook(state, bucket)
def build(self, *args, **options):
    original(self, *args, **options)
    self.register_comm_hook(None, own_gradients)
DistributedDataParallel.__init__ = build
"""
FIRST_PASS_LOST = """
from torch.nn.parallel.distributed import DistributedDataParallel
original = DistributedDataParallel.no_sync
import contextlib
@contextlib.contextmanager
def no_sync(self):
    with original(self):
        yield
    self.zero_grad()
DistributedDataParallel.no_sync = no_sync
"""
NOT_ALIKE = """
from torch.nn.parallel import distributed
distributed._sync_module_states = lambda *args, **options: None
"""
BUFFERS_APART = """
from torch.nn.parallel.distributed import DistributedDataParallel
DistributedDataParallel._sync_buffers = lambda self, *args, **options: None
"""
OWN_NORM = """
from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer
original = DeepSpeedZeroOptimizer.scaled_global_norm
DeepSpeedZeroOptimizer.scaled_global_norm = lambda self, *args, **options: original(self, *args, **options) / 2**0.5
"""
CLIPPED = """
from deepspeed.runtime import config
config.get_gradient_clipping = lambda *args, **options: 1.0
"""
LAST_ALONE = """
from deepspeed.runtime.engine import DeepSpeedEngine
original = DeepSpeedEngine.backward
def backward(self, loss, *args, **options):
    last = self.is_gradient_accumulation_boundary()
    return original(self, loss if last else loss * 0, *args, **options)
DeepSpeedEngine.backward = backward
"""
NOT_GATHERED = """
from deepspeed.runtime.zero import stage_1_and_2
import torch.distributed as dist
original = stage_1_and_2.all_gather_dp_groups
def all_gather_dp_groups(*args, **options):
    before = [each.clone() for each in options["groups_flat"]]
    original(*args, **options)
    if dist.get_rank() == 1:
        for each, old in zip(options["groups_flat"], before):
            each[: each.numel() // 2].copy_(old[: each.numel() // 2])
stage_1_and_2.all_gather_dp_groups = all_gather_dp_groups
"""
VALUES_LOST = """
from deepspeed.runtime.zero import partition_parameters
original = partition_parameters.GatheredParameters.__exit__
def leave(self, *raised):
    if getattr(self, "src_rank", None) is not None:
        for each in self.params:
            if each.dim() == 1:
                each.data.zero_()
    return original(self, *raised)
partition_parameters.GatheredParameters.__exit__ = leave
"""
OWN_TOKENS = """
from transformers import trainer
original = trainer.Trainer.get_batch_samples
def get_batch_samples(self, *args, **options):
    batches, _ = original(self, *args, **options)
    return batches, sum((batch["labels"] != -100).sum() for batch in batches)
trainer.Trainer.get_batch_samples = get_batch_samples
"""
RANKS_FORGOTTEN = """
from transformers import trainer
original = trainer.Trainer.compute_loss
def compute_loss(self, *args, **options):
    return original(self, *args, **options) / self.accelerator.num_processes
trainer.Trainer.compute_loss = compute_loss
"""
DIST, DDP, ENGINE = "torch.distributed", "torch.nn.parallel.distributed", "deepspeed.runtime.engine"
TRAINER = "transformers.trainer"
DEEPSPEED, TRANSFORMERS = ("deepspeed",), ("transformers", "accelerate")
ZERO = {"stages": [2], "dtype": "float32"}
TRAINED = {"training": {"deepspeed": {"zero_stage": 2}, "gradient_accumulation_steps": 2}, "dtype": "float32"}
SHORT = {"seconds": 3}
FAULTS = (
    Fault("all-reduce drops a rank", "all_reduce", start_up=(DIST, DROPPED)),
    Fault("sums of two ranks differ in the last bit", "all_reduce", start_up=(DIST, LAST_BIT)),
    Fault("broadcast delivers nothing", "all_reduce", start_up=(DIST, NOT_DELIVERED)),
    Fault("gradients summed, not averaged", "ddp_gradients", start_up=(DDP, SUMMED)),
    Fault("gradients never exchanged", "ddp_gradients", start_up=(DDP, NOT_SYNCHRONISED)),
    Fault("last bucket not exchanged", "ddp_gradients", start_up=(DDP, LAST_BUCKET)),
    Fault("passes under no_sync lost", "ddp_gradients", start_up=(DDP, FIRST_PASS_LOST)),
    Fault("ranks begin with weights of their own", "ddp_gradients", start_up=(DDP, NOT_ALIKE)),
    Fault("buffers of ranks drift apart", "ddp_gradients", start_up=(DDP, BUFFERS_APART)),
    Fault("tokens of one rank counted", "trainer_ranks", start_up=(TRAINER, OWN_TOKENS), needs=TRANSFORMERS),
    Fault("loss divided by the ranks", "trainer_ranks", start_up=(TRAINER, RANKS_FORGOTTEN), needs=TRANSFORMERS),
    Fault("gradients never exchanged", "trainer_ranks", start_up=(DDP, NOT_SYNCHRONISED), needs=TRANSFORMERS),
    Fault(
        "last pass alone counts",
        "zero_backward_passes",
        None,
        {"stages": [2], "dtype": "float32"},
        start_up=(ENGINE, LAST_ALONE),
        needs=DEEPSPEED,
    ),
    Fault(
        "clipped though clipping is off",
        "zero_default_clipping",
        None,
        {"stages": [2]},
        start_up=("deepspeed.runtime.config", CLIPPED),
        needs=DEEPSPEED,
    ),
    Fault(
        "clipped by the norm of one rank's part",
        "zero_training",
        None,
        {"training": {"deepspeed": {"zero_stage": 2, "gradient_clipping": 0.1}}, "dtype": "float32"},
        start_up=("deepspeed.runtime.zero.stage_1_and_2", OWN_NORM),
        needs=DEEPSPEED,
    ),
    Fault(
        "parameters of one rank not gathered after a step",
        "zero_training",
        None,
        {"training": {"deepspeed": {"zero_stage": 2}}, "dtype": "float32"},
        start_up=("deepspeed.runtime.zero.stage_1_and_2", NOT_GATHERED),
        needs=DEEPSPEED,
    ),
    Fault(
        "vectors lost when parameters are gathered and changed",
        "zero_init",
        None,
        {},
        start_up=("deepspeed.runtime.zero.partition_parameters", VALUES_LOST),
        needs=DEEPSPEED,
    ),
    Fault("first micro-batch lost", "zero_gradients", None, ZERO, start_up=(ENGINE, FIRST_LOST), needs=DEEPSPEED),
    Fault(
        "divided twice by the micro-batches",
        "zero_gradients",
        None,
        ZERO,
        start_up=(ENGINE, DIVIDED_TWICE),
        needs=DEEPSPEED,
    ),
    Fault("all-reduce drops a rank", "collectives", None, SHORT, start_up=(DIST, DROPPED)),
    Fault("gathered parts change places", "collectives", None, SHORT, start_up=(DIST, EXCHANGED)),
    Fault("every fifth sum is wrong", "collectives", None, SHORT, start_up=(DIST, NOW_AND_THEN)),
    Fault("first micro-batch lost", "zero_training", None, TRAINED, start_up=(ENGINE, FIRST_LOST), needs=DEEPSPEED),
    Fault("norm told twice", "zero_training", None, TRAINED, start_up=(ENGINE, NORM_DOUBLED), needs=DEEPSPEED),
)
