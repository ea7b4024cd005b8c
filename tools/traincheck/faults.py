"""TrainCheck's published faults, and by what each is found here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from tools.traincheck import reproductions

By = Literal["guard", "entry", "nothing"]


class Fault(NamedTuple):
    """One fault: what goes wrong, what is expected to find it, and how that is tried.

    ``program`` is a reproduction of our own, which the guard has to answer with the alarm ``finds``; ``requires`` are
    the releases in which it lives, and without them it runs on any. Of an entry ``finds`` is the id, which has to apply
    to ``environment``. ``why`` says why nothing finds it, or what the reproduction stands for.
    """

    name: str
    wrong: str
    by: By
    finds: str = ""
    program: Callable[[], list[str]] | None = None
    requires: tuple[str, ...] = ()
    environment: Mapping[str, Any] = {}
    why: str = ""


FAULTS: tuple[Fault, ...] = (
    Fault(
        "deepspeed-1801",
        "gradients of layer norms are clipped on one rank of tensor parallelism only",
        "guard",
        "replicas-differ",
        reproductions.clipped_by_unlike_norms,
        why="two gloo ranks; no release has it, TrainCheck patches 0.6.2",
    ),
    Fault(
        "deepspeed-5794",
        "ranks of expert parallelism call all_to_all with other shapes, and hang",
        "nothing",
        why="two GPUs and Tutel; drop_tokens=False with uneven tokens needs a probe over ranks",
    ),
    Fault(
        "transformers-33844",
        "dropout stays on in evaluation under FlashAttention-2",
        "guard",
        "dropout-in-evaluation",
        reproductions.dropout_of_flash_attention,
        ("torch==2.4.1", "numpy<2", "transformers==4.45.0"),
        why="transformers 4.45.0 with a stand-in for the kernels",
    ),
    Fault(
        "transformers-34204",
        "the Pixtral processor returns the first example of a batch alone",
        "entry",
        "CC-2024-4701",
        environment={
            "distributions": {"transformers": "4.45.2"},
            "model": {"type": "llava", "name": "mistral-community/pixtral-12b"},
            "training": {"per_device_train_batch_size": 2, "observed": {"symptoms": ["wrong-data"]}},
        },
        why="its environment, as possible: compatcheck cannot see how the images are passed",
    ),
    Fault(
        "transformers-17877",
        "GPT-2 initialises the same weights four times",
        "entry",
        "CC-2022-4702",
        environment={"distributions": {"transformers": "4.20.1"}, "model": {"type": "gpt2"}},
        why="its environment, as possible: compatcheck cannot see whether the model is built or loaded",
    ),
    Fault(
        "transformers-23723",
        "Whisper generates more than max_new_tokens after a long prompt",
        "entry",
        "CC-2023-4703",
        environment={
            "distributions": {"transformers": "4.30.2"},
            "model": {"type": "whisper"},
            "training": {"observed": {"symptoms": ["index-error"]}},
        },
        why="its environment, as possible: compatcheck cannot see whether prompt_ids are passed",
    ),
    Fault(
        "pytorch-115607",
        "once gradients were None, a compiled step no longer has any effect",
        "nothing",
        program=reproductions.steps_skipped_after_no_gradient,
        requires=("torch==2.2.2", "numpy<2"),
        why="tried with torch 2.2.2 and a loop that is compiled as a whole: the hooks raise no alarm",
    ),
    Fault(
        "pytorch-84803",
        "copies between GPUs arrive as zeros",
        "guard",
        "replicas-differ",
        reproductions.copies_that_arrive_as_zeros,
        why="lost data is injected on one of two gloo ranks, as TrainCheck does",
    ),
    Fault(
        "pytorch-96600",
        "copies between GPUs arrive as zeros",
        "guard",
        "replicas-differ",
        reproductions.copies_that_arrive_as_zeros,
        why="the same injection, as TrainCheck does",
    ),
    Fault(
        "baichuan2-86",
        "copies between GPUs arrive as zeros, in inference",
        "nothing",
        why="the fault has no training step, and needs two GPUs whose copies fail",
    ),
    Fault(
        "pytorch-104336",
        "a DDP model that was moved no longer synchronises",
        "guard",
        "replicas-differ",
        reproductions.moved_after_wrapping,
        why="two gloo ranks; a change of dtype has the same effect as the move",
    ),
    Fault(
        "x-jxmnop-ddp-out-of-sync",
        "the model is wrapped in DDP in every other step only",
        "guard",
        "replicas-differ",
        reproductions.wrapped_in_every_other_step,
        why="two gloo ranks",
    ),
    Fault(
        "pytorch-51800",
        "spectral norm is evaluated before any pass in training mode",
        "guard",
        "spectral-norm-not-initialised",
        reproductions.spectral_norm_evaluated_first,
    ),
    Fault(
        "pytorch-forum-84911",
        "all parameters in the optimizer are frozen",
        "guard",
        "optimizer-holds-frozen-parameters",
        reproductions.frozen_after_the_optimizer_was_built,
    ),
    Fault(
        "stackoverflow-60335387",
        "gradients are never cleared",
        "guard",
        "gradients-not-cleared",
        reproductions.gradients_never_cleared,
    ),
    Fault(
        "stackoverflow-67180955",
        "workers of a DataLoader draw the same numbers from NumPy",
        "entry",
        "CC-2021-4704",
        environment={
            "distributions": {"torch": "1.8.0"},
            "training": {"observed": {"symptoms": ["wrong-data"]}},
            "platform": {"system": "Linux"},
        },
        why="its environment, as possible: compatcheck cannot see whether the dataset uses numpy.random",
    ),
    Fault(
        "lightning-thunder-725",
        "autocast does not reach primitive linear layers",
        "guard",
        "autocast-without-effect",
        reproductions.primitives_that_autocast_misses,
        why="our own layers, which run with autocast off like the traced layers",
    ),
    Fault(
        "mmpretrain-702",
        "frozen_stages freezes nothing until train() is called",
        "guard",
        "stages-not-frozen",
        reproductions.stages_that_are_not_frozen,
        why="our own backbone, which freezes its stages like the backbones of mmpretrain",
    ),
    Fault(
        "accelerate-2665",
        "the optimizer holds other parameters than the wrapped model (not among the 18)",
        "guard",
        "optimizer-holds-other-parameters",
        reproductions.optimizer_of_other_parameters,
    ),
)
"""In the order of `silent-issue-detection` at commit 2de9268 of the public workloads, by package; the last is extra."""
