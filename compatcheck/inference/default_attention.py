"""The attention that transformers chooses for a model where none is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from compatcheck.environment import Environment, Unknown
from compatcheck.inference._releases import release_in
from compatcheck.inference.inferred import Inference, InferredFacts, Table
from compatcheck.language import marked
from compatcheck.packages.frameworks import framework_of
from compatcheck.packages.release_rows import rows_of
from compatcheck.packages.versions import contains, parse_range

_FACT = "training.attention"
_RULE = "training.attention_rule"
_LOADING = "training.calls.transformers.from_pretrained"
_GIVEN = ("attn_implementation", "_attn_implementation", "use_flash_attention_2", "config", "model_args")
"""Arguments of ``from_pretrained`` with which the model's own default does not decide, or may not."""
_WHY = marked("default of this transformers release for this model type")
_OF_OLD_TORCH = marked("this torch release lacks what transformers needs for sdpa")


def default_attention(view: Environment, table: Table) -> InferredFacts:
    """The default for the type of a model that is known to be loaded without saying which attention.

    Code or a configuration that a model brings may choose by itself, unsloth replaces attention, and on a TPU the
    default is another.
    """
    source = _loaded_by_default(view)
    model_type, release = view.get("model.type"), release_in(view, "transformers")
    asks = any(isinstance(view.get(path), str) for path in ("model.attn_implementation", "distributions.torch-xla"))
    own = asks or view.get("model.remote_code") is not False
    if source is None or view.get(_FACT) != Unknown() or release is None or not isinstance(model_type, str) or own:
        return
    framework = framework_of(view.get("training.framework"))
    if view.get("training.unsloth") is True or (framework and model_type in framework.chooses_attention_of):
        return
    known = table("default-attention")
    attention = next((row[2] for name, row in rows_of(release, known["attention"]) if name == model_type), None)
    if attention is None:
        return
    sources = (source, "model.type", "distributions.transformers", "tables/default-attention")
    if attention != "sdpa":
        yield _FACT, Inference(attention, _WHY, sources)
        return
    meets = _meets_need(view, release, known)
    if meets is not None:
        value, why = ("sdpa", _WHY) if meets else ("eager", _OF_OLD_TORCH)
        yield _FACT, Inference(value, why, (*sources, "distributions.torch"))


def _loaded_by_default(view: Environment) -> str | None:
    """The fact that says that the model is loaded without an attention; None where nothing does."""
    given = view.get(_LOADING)
    if isinstance(given, list) and not any(name in _GIVEN for name in given):
        return _LOADING
    return _RULE if view.get(_RULE) == "default" and _leaves_it(view) else None


def _leaves_it(view: Environment) -> bool:
    """Whether this release of the framework leaves attention to transformers where no setting speaks of it."""
    framework = framework_of(view.get("training.framework"))
    if framework is None or framework.default_attention is None:
        return False
    if not framework.default_attention:
        return True
    releases = [release_in(view, name) for name in framework.distributions]
    known = [each for each in releases if each is not None]
    return bool(known) and all(contains(parse_range(framework.default_attention), each) for each in known)


def _meets_need(view: Environment, release: Version, known: Mapping[str, Any]) -> bool | None:
    """Whether torch has what this release of transformers needs for sdpa; None where torch is not known."""
    needed = next((row[2] for _, row in rows_of(release, known["needs"])), None)
    if needed is None:
        return True
    torch = view.get("distributions.torch")
    version = release_in(view, "torch")
    return version >= Version(needed) if version is not None else None if isinstance(torch, Unknown) else None
