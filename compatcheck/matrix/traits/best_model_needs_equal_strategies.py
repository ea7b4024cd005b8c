"""``load_best_model_at_end`` where checkpoints are not written at evaluations, which TrainingArguments refuses."""

from __future__ import annotations

from compatcheck.environment import Environment, Unknown
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix._traits import Table
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict

_ARGUMENTS = "training.arguments."
_BEST = f"{_ARGUMENTS}load_best_model_at_end"
_STRATEGIES = (f"{_ARGUMENTS}save_strategy", f"{_ARGUMENTS}eval_strategy")
_STEPS = (f"{_ARGUMENTS}save_steps", f"{_ARGUMENTS}eval_steps")
_WHY = marked("every checkpoint is evaluated with this setting")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Judge the strategies, and steps where both are by steps; ``save_strategy="best"`` saves after evaluating."""
    wanted = environment.get(_BEST)
    if isinstance(wanted, Unknown):
        return TraitVerdict(None, missing=(_BEST,))
    saves, evaluates = (environment.get(path) for path in _STRATEGIES)
    if not wanted or saves == "best":
        return TraitVerdict(False)
    if missing := _unknown(environment, _STRATEGIES):
        return TraitVerdict(None, missing=missing)
    if saves != evaluates:
        seen = _("load_best_model_at_end is on, but save_strategy is {save} and eval_strategy is {evaluate}")
        return _verdict(seen.format(save=saves, evaluate=evaluates), environment, _STRATEGIES)
    if saves != "steps":
        return TraitVerdict(False)
    if missing := _unknown(environment, _STEPS):
        return TraitVerdict(None, missing=missing)
    save, evaluate = (environment.get(path) for path in _STEPS)
    if save < 1 or evaluate < 1 or save % evaluate == 0:
        return TraitVerdict(False)
    seen = _("load_best_model_at_end is on, but save_steps ({save}) is not a multiple of eval_steps ({evaluate})")
    return _verdict(seen.format(save=save, evaluate=evaluate), environment, _STEPS)


def _unknown(environment: Environment, paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if isinstance(environment.get(path), Unknown))


def _verdict(seen: str, environment: Environment, paths: tuple[str, str]) -> TraitVerdict:
    """The setting to change is that of saving, unless nothing is evaluated."""
    save, evaluate = (environment.get(path) for path in paths)
    config = {paths[0]: evaluate} if evaluate != "no" else {paths[1]: save}
    place = next((environment.locations[path] for path in (*paths, _BEST) if path in environment.locations), None)
    occurrence = Occurrence(seen, ("transformers",), why=_WHY, location=place, config=config)
    return TraitVerdict(True, (occurrence,), facts=(_BEST, *paths))
