"""Which variables of the environment a launch script or a training script is read for."""

from __future__ import annotations

import re

_READ = re.compile(
    r"(NCCL|CUDA|CUDNN|CUBLAS|PYTORCH|TORCH|TORCHINDUCTOR|ACCELERATE|DS|OMP|TRITON|FLASH|BNB|HIP|HSA|ROCR|ASCEND)_[A-Z0-9_]+"
)
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL")


def is_read(name: str) -> bool:
    """Whether a variable may bear on a training and is no secret."""
    return _READ.fullmatch(name) is not None and not _SECRET.search(name)
