"""The CUDA of torch and its libraries, where no label and no installed file tells it."""

from __future__ import annotations

import re

from compatcheck.environment import Environment, Unknown
from compatcheck.inference.inferred import Inference, InferredFacts, Table
from compatcheck.inference.torch_builds import backend_of, default_runtime
from compatcheck.language import marked
from compatcheck.packages.versions import final_release, is_vendor_build

_VISIBLE = "environ.CUDA_VISIBLE_DEVICES"
_CONDA = re.compile(r"\.ya?ml$|pixi|conda")


def default_build(view: Environment, table: Table) -> InferredFacts:
    """The runtime of the build that the package index serves for Linux, for a run on NVIDIA's GPUs.

    That is what a release without a label is, unless conda or an index of one's own brought it.
    """
    torch, runs = view.get("distributions.torch"), evidence_of_cuda(view)
    on_linux = (view.get("platform.system"), view.get("platform.machine")) == ("Linux", "x86_64")
    if not on_linux or runs is None or view.get("cuda.runtime") != Unknown() or view.facts.get("torch_build"):
        return
    at = view.locations.get("distributions.torch")
    if not isinstance(torch, str) or "+" in torch or not final_release(torch) or (at and _CONDA.search(at.file)):
        return
    runtime = default_runtime(torch, table)
    if runtime:
        why = marked("the build of torch that the package index serves for Linux")
        sources = ("distributions.torch", "platform", runs, "tables/torch-cuda-builds")
        yield "cuda.runtime", Inference(runtime, why, sources)


def libraries(view: Environment) -> InferredFacts:
    """cuDNN and NCCL from the packages that torch takes them from: those for its generation of CUDA."""
    runtime, versions = view.get("cuda.runtime"), view.section("distributions")
    if not isinstance(runtime, str) or view.facts.get("torch_build"):
        return
    for library in ("cudnn", "nccl"):
        name = f"nvidia-{library}-cu{runtime.partition('.')[0]}"
        if isinstance(versions.get(name), str) and view.get(f"cuda.{library}") == Unknown():
            why = marked("from the package that provides this library to torch")
            yield f"cuda.{library}", Inference(versions[name], why, ("cuda.runtime", f"distributions.{name}"))


def has_cuda(view: Environment) -> bool:
    """Whether torch is built with a CUDA of unknown version: one is named, or the training runs on NVIDIA's GPUs.

    On Windows what the package index serves is a build for the CPU.
    """
    torch = view.get("distributions.torch")
    labelled = isinstance(torch, str) and (backend_of(torch) or is_vendor_build(torch))
    known = any(not isinstance(view.get(fact), Unknown) for fact in ("torch_build.cuda", "cuda.runtime"))
    if known or labelled or torch is None or view.get("platform.system") in ("Windows", "Darwin"):
        return False
    return isinstance(view.get("report.cuda"), str) or bool(
        view.facts.get("training") and evidence_of_cuda(view) is not None
    )


def evidence_of_cuda(view: Environment) -> str | None:
    """The fact that shows that a run is on NVIDIA's GPUs: their compute capability, or the variable that lists them."""
    if any(isinstance(view.get(fact), str) for fact in ("distributions.torch-npu", "torch_build.hip")):
        return None
    gpus = view.facts.get("gpus") or ()
    if gpus and all(gpu.get("compute_capability") for gpu in gpus):
        return "gpus"
    visible = view.get(_VISIBLE)
    return (
        _VISIBLE
        if isinstance(visible, str) and re.search(r"\d", visible) and "-1" not in visible and not gpus
        else None
    )
