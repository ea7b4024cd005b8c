"""Three-valued matching."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compatcheck.environment import Environment
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict, Verdict, any_of, match_table

KEYS = ("distributions.torch", "training.attention", "training.packing")
CONDITIONS = {"distributions.torch": ">=2.5", "training.attention": "sdpa", "training.packing": True}
VALUES = {
    "distributions.torch": {True: "2.6.0", False: "2.4.0"},
    "training.attention": {True: "sdpa", False: "eager"},
    "training.packing": {True: True, False: False},
}
truths = st.sampled_from([True, False, None])


def no_traits(name: str, environment: Environment) -> TraitVerdict:
    return TraitVerdict(None, missing=(name,))


def environment(truth: dict[str, bool | None]) -> Environment:
    facts: dict[str, dict[str, object]] = {}
    for path, value in truth.items():
        if value is not None:
            section, key = path.split(".")
            facts.setdefault(section, {})[key] = VALUES[path][value]
    return Environment(facts)


@given(st.fixed_dictionaries(dict.fromkeys(KEYS, truths)))
def test_keys_are_joined_as_kleene_and(truth: dict[str, bool | None]) -> None:
    verdict = match_table(CONDITIONS, environment(truth), no_traits)
    expected = False if False in truth.values() else None if None in truth.values() else True
    assert verdict.holds is expected
    if expected is None:
        assert set(verdict.missing) == {key for key, value in truth.items() if value is None}


@given(st.lists(truths))
def test_tables_are_joined_as_kleene_or(truths: list[bool | None]) -> None:
    expected = True if True in truths else None if None in truths else False
    assert any_of(Verdict(truth, ("x",) if truth is None else ()) for truth in truths).holds is expected


@given(st.fixed_dictionaries(dict.fromkeys(KEYS, truths)), st.sampled_from(KEYS), st.booleans())
def test_learning_a_fact_never_overturns_a_decision(truth: dict[str, bool | None], key: str, value: bool) -> None:
    before = match_table(CONDITIONS, environment({**truth, key: None}), no_traits).holds
    after = match_table(CONDITIONS, environment({**truth, key: value}), no_traits).holds
    assert before is None or after is before


def test_the_keys_of_a_gpu_must_hold_on_one_gpu() -> None:
    conditions = {"gpu.compute_capability": ">=9.0", "gpu.memory_mib": "<=50000"}
    apart = [{"compute_capability": "9.0", "memory_mib": 81000}, {"compute_capability": "8.0", "memory_mib": 24000}]
    assert match_table(conditions, Environment({"gpus": apart}), no_traits).holds is False
    assert match_table(conditions, Environment({"gpus": [{"compute_capability": "9.0"}]}), no_traits).missing == (
        "gpu.memory_mib",
    )
    assert match_table(conditions, Environment({"gpus": []}), no_traits).holds is False
    assert match_table(conditions, Environment({}), no_traits).holds is None


@pytest.mark.parametrize(
    ("facts", "condition", "holds"),
    [
        ({}, "absent", None),
        ({"training": None}, "absent", True),
        ({"training": {"deepspeed": None}}, "absent", True),
        ({"training": {"deepspeed": {"zero_stage": 2}}}, "present", True),
        ({"training": {"deepspeed": {"zero_stage": 2}}}, ">=1", True),
        ({"training": {"deepspeed": {"zero_stage": 2}}}, [1, 3], False),
        ({"training": {"deepspeed": {"zero_stage": "auto"}}}, ">=1", None),
        ({"training": {"deepspeed": {"zero_stage": True}}}, ">=1", None),
    ],
)
def test_absent_unknown_and_value_differ(facts: dict[str, object], condition: object, holds: bool | None) -> None:
    key = "training.deepspeed.zero_stage"
    assert match_table({key: condition}, Environment(facts), no_traits).holds is holds


@pytest.mark.parametrize(
    ("condition", "holds"), [(">=2", True), (">1", True), (1, False), ("<2", False), (">=16", None), ([2, 4], None)]
)
def test_several_ranks_that_nobody_counted_meet_what_each_number_of_them_does(
    condition: object, holds: bool | None
) -> None:
    conditions, several = {"training.world_size": condition}, {"several_ranks": True}
    assert match_table(conditions, Environment({"training": several}), no_traits).holds is holds
    counted = {**several, "world_size": 1}
    assert match_table(conditions, Environment({"training": counted}), no_traits).holds is (condition in (1, "<2"))
    assert match_table(conditions, Environment({"training": {"several_ranks": False}}), no_traits).holds is None


def test_a_distribution_missing_from_a_complete_list_is_absent() -> None:
    listed = {"distributions": {"torch": "2.5.0"}}
    condition = {"distributions.peft": "<0.12"}
    assert match_table(condition, Environment(listed), no_traits).holds is None
    assert match_table(condition, Environment({**listed, "distributions_complete": True}), no_traits).holds is False


def test_a_vendor_build_inside_a_range_is_open() -> None:
    facts = {"distributions": {"torch": "2.5.0a0+872d972e41.nv24.08"}}
    inside, outside = {"distributions.torch": ">=2.4,<2.5"}, {"distributions.torch": ">=2.6"}
    assert match_table(inside, Environment(facts), no_traits).holds is None
    assert match_table(outside, Environment(facts), no_traits).holds is False


def test_a_condition_of_a_newer_matrix_is_unknown() -> None:
    verdict = match_table({"training.not_invented_yet": True}, Environment({}), no_traits)
    assert (verdict.holds, verdict.missing) == (None, ("training.not_invented_yet",))


OLDER = {"every_gpu.compute_capability": "<8.0"}
capabilities = st.lists(st.sampled_from(["7.0", "7.5", "8.0", "9.0", None, "unknown"]), max_size=4)


@given(capabilities)
def test_every_gpu_must_hold_and_the_fact_of_one_is_named_where_it_is_missing(listed: list[str | None]) -> None:
    gpus = [{} if each == "unknown" else {"compute_capability": each} for each in listed]
    verdict = match_table(OLDER, Environment({"gpus": gpus}), no_traits)
    newer = any(each in ("8.0", "9.0", None) for each in listed)
    assert verdict.holds is (False if newer or not gpus else None if "unknown" in listed else True)
    assert verdict.missing == (("gpu.compute_capability",) if verdict.holds is None else ())
    assert match_table(OLDER, Environment({}), no_traits).missing == ("gpu.compute_capability",)


DEEPSPEED = {"distributions.deepspeed": ">=0.12.4,<0.19.0", "training.deepspeed.overlap_comm": True}
ZOO = {"distributions.unsloth-zoo": ">=2025.7.5,<2025.7.9", "distributions.torch": "<2.6.0"}
FACTORY = {"distributions.llamafactory": "<0.9.4", "distributions.vllm": ">=0.10.0,<0.12.0"}
GEMMA = {"distributions.transformers": ">=4.42.0,<4.45.0", "model.type": "gemma2"}


@pytest.mark.parametrize(
    ("conditions", "facts", "narrowed"),
    [
        (DEEPSPEED, {"distributions": {"deepspeed": "0.14.4"}}, True),
        (DEEPSPEED, {"training": {"deepspeed": {"overlap_comm": True}}}, True),
        (DEEPSPEED, {}, False),
        (GEMMA, {"distributions": {"transformers": "4.43.0"}}, False),
        (GEMMA, {"model": {"type": "gemma2"}}, False),
        (
            {**GEMMA, "training.group_by_length": True},
            {"distributions": {"transformers": "4.43.0"}, "model": {"type": "gemma2"}},
            True,
        ),
        (
            {**GEMMA, "training.packing": True},
            {"distributions": {"transformers": "4.43.0"}, "model": {"type": "gemma2"}},
            False,
        ),
        ({"distributions.torch": ">=2.3", "training.packing": True}, {"distributions": {"torch": "2.9.0"}}, False),
        (
            {"distributions.liger-kernel": "<0.5.10", "training.use_liger_kernel": True},
            {"distributions": {"liger-kernel": "0.5.9"}},
            True,
        ),
        (
            {"distributions.trl": "<0.5.10", "training.use_liger_kernel": True},
            {"distributions": {"trl": "0.5.9"}},
            False,
        ),
        (ZOO, {"distributions": {"torch": "2.5.1"}}, False),
        (ZOO, {"distributions": {"torch": "2.5.1"}, "training": {"unsloth": False}}, False),
        (ZOO, {"distributions": {"torch": "2.5.1"}, "training": {"unsloth": True}}, True),
        (FACTORY, {"distributions": {"vllm": "0.11.0"}}, False),
        (FACTORY, {"distributions": {"vllm": "0.11.0"}, "training": {"framework": "trl"}}, False),
        (FACTORY, {"distributions": {"vllm": "0.11.0"}, "training": {"framework": "llama-factory"}}, True),
    ],
)
def test_an_open_table_is_told_only_where_something_singular_speaks_for_it(
    conditions: dict[str, object], facts: dict[str, object], narrowed: bool
) -> None:
    verdict = match_table(conditions, Environment(facts), no_traits)
    assert (verdict.holds, verdict.narrowed) == (None, narrowed)


FLASH = {
    "distributions.flash-attn": ">=2.0.0",
    "every_gpu.compute_capability": "<8.0",
    "training.attention": "flash_attention_2",
    "training.framework": "transformers",
}
SINGULAR: dict[str, dict[str, Any]] = {
    "hardware": {"gpus": [{"compute_capability": "7.5"}]},
    "setting": {"training": {"attention": "flash_attention_2"}},
    "common": {"training": {"framework": "transformers"}},
}


@given(st.sets(st.sampled_from(sorted(SINGULAR))))
def test_facts_of_two_kinds_make_up_for_a_package_that_nobody_names(told: set[str]) -> None:
    training = {key: value for each in told for key, value in SINGULAR[each].get("training", {}).items()}
    facts = {"training": training, **(SINGULAR["hardware"] if "hardware" in told else {})}
    verdict = match_table(FLASH, Environment(facts), no_traits)
    assert verdict.narrowed is ({"hardware", "setting"} <= told)
    assert "distributions.flash-attn" in verdict.missing


def test_a_gpu_by_itself_singles_nothing_out_and_an_unknown_one_is_not_what_an_entry_is_about() -> None:
    table = {**FLASH, "distributions.flash-attn": "present"}
    installed = {"distributions": {"flash-attn": "2.5.8"}}
    assert match_table(table, Environment({**installed, **SINGULAR["hardware"]}), no_traits).narrowed is False
    assert match_table(table, Environment({**installed, **SINGULAR["setting"]}), no_traits).narrowed is False


@pytest.mark.parametrize("spoken_of", ["model.type", "training.packing", "training.observed.nonfinite"])
def test_facts_of_two_kinds_do_not_make_up_for_what_the_entry_is_about(spoken_of: str) -> None:
    table = {**FLASH, spoken_of: "gemma2" if spoken_of == "model.type" else True}
    facts = {"gpus": [{"compute_capability": "7.5"}], "training": {"attention": "flash_attention_2"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is False


@pytest.mark.parametrize(("held", "open_"), list(product([True, False, None], repeat=2)))
def test_one_trait_of_a_list_is_enough(held: bool | None, open_: bool | None) -> None:
    verdicts = {"a": held, "b": open_}

    def traits(name: str, environment: Environment) -> TraitVerdict:
        here = (Occurrence("seen", ("x",)),) if verdicts[name] else ()
        return TraitVerdict(verdicts[name], here, (name,) if verdicts[name] is None else ())

    expected = True if True in verdicts.values() else None if None in verdicts.values() else False
    assert match_table({"traits": ["a", "b"]}, Environment({}), traits).holds is expected


@pytest.mark.parametrize(("attention", "told"), [("xformers", False), ("flex_attention", False), ("sdpa", True)])
def test_an_attention_that_few_choose_is_not_suspected_unless_it_is_stated(attention: str, told: bool) -> None:
    table = {"distributions.torch": ">=2.6.0,<2.7.0", "training.attention": attention}
    facts = {"distributions": {"torch": "2.6.0"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is told
    stated = {**facts, "training": {"attention": attention}}
    assert match_table(table, Environment(stated), no_traits).holds is True


@pytest.mark.parametrize(
    ("optimizer", "told"), [(["lion_8bit", "lion_32bit"], False), (["lion_8bit", "adamw_8bit"], True)]
)
def test_an_optimizer_that_few_choose_is_not_suspected_where_bitsandbytes_is(optimizer: list[str], told: bool) -> None:
    table = {"distributions.bitsandbytes": "<0.50.0", "training.optimizer": optimizer}
    facts = {"distributions": {"bitsandbytes": "0.45.0"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is told
    stated = {**facts, "training": {"optimizer": "lion_8bit"}}
    assert match_table(table, Environment(stated), no_traits).holds is True


@pytest.mark.parametrize(
    ("variable", "facts", "holds"),
    [
        ("VLLM_USE_V1", {"report": {}}, True),
        ("VLLM_USE_V1", {}, None),
        ("VLLM_USE_V1", {"report": {}, "environ": {"VLLM_USE_V1": "0"}}, False),
        ("LD_LIBRARY_PATH", {"report": {}}, None),
    ],
)
def test_a_variable_that_a_report_says_nothing_of_is_not_set(
    variable: str, facts: dict[str, object], holds: bool | None
) -> None:
    assert match_table({f"environ.{variable}": "absent"}, Environment(facts), no_traits).holds is holds
    contradicted = Environment(facts, {f"environ.{variable}": "line 1 says 0, line 2 says 1"})
    assert match_table({f"environ.{variable}": "absent"}, contradicted, no_traits).holds is not True


@pytest.mark.parametrize(
    ("variable", "value", "is_unset"),
    [
        ("VLLM_USE_V1", "1", True),
        ("VLLM_USE_V1", "0", False),
        ("WANDB_DISABLED", "false", True),
        ("WANDB_DISABLED", "true", False),
        ("FLASH_ATTENTION_TRITON_AMD_ENABLE", "1", True),
        ("LOCAL_RANK", "0", False),
        ("NO_SUCH_VARIABLE", "0", False),
    ],
)
def test_value_that_has_no_effect_counts_as_absent(variable: str, value: str, is_unset: bool) -> None:
    environment = Environment({"environ": {variable: value}})
    assert match_table({f"environ.{variable}": "absent"}, environment, no_traits).holds is is_unset
    assert match_table({f"environ.{variable}": "present"}, environment, no_traits).holds is not is_unset


@pytest.mark.parametrize(("release", "is_unset"), [("4.57.6", False), ("5.0.0", True), (None, False)])
def test_variable_that_a_release_ignores_counts_as_absent(release: str | None, is_unset: bool) -> None:
    facts = {"environ": {"WANDB_DISABLED": "true"}, "distributions": {"transformers": release}}
    assert match_table({"environ.WANDB_DISABLED": "absent"}, Environment(facts), no_traits).holds is is_unset


def test_adapters_on_all_linear_layers_are_not_suspected_unless_they_are_stated() -> None:
    table = {"distributions.peft": "<0.8.0", "training.lora.target_modules": ["all-linear"]}
    facts = {"distributions": {"peft": "0.7.1"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is False
    stated = {**facts, "training": {"lora": {"target_modules": ["all-linear"]}}}
    assert match_table(table, Environment(stated), no_traits).holds is True


@pytest.mark.parametrize(("value", "told"), [("0", False), ("present", False), (["a", "b"], False), ("absent", True)])
def test_a_variable_that_has_to_be_set_is_not_suspected(value: object, told: bool) -> None:
    table = {"distributions.vllm": ">=0.11.0,<0.11.1", "environ.VLLM_USE_V1": value}
    assert match_table(table, Environment({"distributions": {"vllm": "0.11.0"}}), no_traits).narrowed is told


@pytest.mark.parametrize(("system", "told"), [("Windows", False), ("Darwin", False), ("Linux", True)])
def test_a_system_that_few_train_on_is_not_suspected_unless_it_is_stated(system: str, told: bool) -> None:
    table = {"distributions.torch": "<2.7.0", "platform.system": system}
    facts = {"distributions": {"torch": "2.6.0"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is told


@pytest.mark.parametrize(("stage", "told"), [(0, False), (2, True), (">=1,<3", True)])
def test_deepspeed_without_zero_is_not_suspected_unless_it_is_stated(stage: int | str, told: bool) -> None:
    table = {"distributions.deepspeed": ">=0.8.0,<0.13.3", "training.deepspeed.zero_stage": stage}
    facts = {"distributions": {"deepspeed": "0.9.5"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is told
    stated = {**facts, "training": {"deepspeed": {"zero_stage": 0}}}
    assert match_table(table, Environment(stated), no_traits).holds is (stage == 0)


@pytest.mark.parametrize(("stage", "told"), [(None, False), (3, True)])
def test_weights_that_nobody_gathers_are_suspected_where_the_stage_that_splits_them_is_stated(
    stage: int | None, told: bool
) -> None:
    gathered = "training.deepspeed.stage3_gather_16bit_weights_on_model_save"
    table = {"distributions.transformers": "<5.0.0", "training.deepspeed.zero_stage": 3, gathered: False}
    facts = {"distributions": {"transformers": "4.57.1"}, "training": {"deepspeed": {"zero_stage": stage}}}
    assert match_table(table, Environment(facts), no_traits).narrowed is told


@pytest.mark.parametrize(("framework", "told"), [("alpaca-lora", False), ("trl", True)])
def test_a_script_that_few_still_train_with_is_not_suspected_unless_it_is_stated(framework: str, told: bool) -> None:
    table = {"distributions.peft": ">=0.3.0,<0.10.0", "training.framework": framework}
    facts = {"distributions": {"peft": "0.5.0"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is told
    stated = {**facts, "training": {"framework": framework}}
    assert match_table(table, Environment(stated), no_traits).holds is True


LLAMA = {"gpu.compute_capability": "<9.0", "model.type": "llama"}
GRPO = {"training.objective": "grpo", "training.deepspeed.zero_stage": 3}


@pytest.mark.parametrize(
    ("conditions", "facts", "told"),
    [
        (LLAMA, {"model": {"type": "llama"}, "gpus": [{"compute_capability": "8.0"}]}, False),
        ({"distributions.vllm": "<0.18.0"}, {"distributions": {"vllm": "0.11.0"}}, True),
        (GRPO, {"training": {"objective": "grpo", "deepspeed": {"zero_stage": 3}}}, True),
    ],
)
def test_vllm_is_suspected_where_it_is_installed_or_the_objective_needs_rollouts(
    conditions: dict[str, object], facts: dict[str, Any], told: bool
) -> None:
    table = {**conditions, "training.use_vllm": True}
    assert match_table(table, Environment(facts), no_traits).narrowed is told


@pytest.mark.parametrize(("setting", "told"), [("training.optimizer", True), ("training.quantization.bits", False)])
def test_bitsandbytes_speaks_for_its_optimizers_and_not_for_its_weights(setting: str, told: bool) -> None:
    table = {"distributions.bitsandbytes": "<0.41.1", setting: 8 if setting.endswith("bits") else ["adamw_8bit"]}
    facts = {"distributions": {"bitsandbytes": "0.41.0"}}
    assert match_table(table, Environment(facts), no_traits).narrowed is told


@pytest.mark.parametrize(
    ("condition", "version", "holds"),
    [
        (">=4.45.0,<4.46.0", "4.45.0.dev0", None),
        (">=4.45.0,<4.46.0", "4.46.0rc1", None),
        (">=4.45.0,<4.46.0", "4.45.2.dev0", True),
        (">=4.45.0,<4.46.0", "4.47.0.dev0", False),
        ("<4.46.0", "4.46.0.dev20240801", None),
        ("<=4.45.2", "4.46.0.dev0", False),
        (">=4.45.0.dev0,<4.46.0", "4.45.0.dev0", True),
        ("==4.45.0", "4.45.0.dev0", False),
    ],
)
def test_a_build_from_before_a_release_may_hold_what_changed_in_it(
    condition: str, version: str, holds: bool | None
) -> None:
    stated = Environment({"distributions": {"transformers": version}, "training": {"method": "lora"}})
    table = {"distributions.transformers": condition, "training.method": "lora"}
    verdict = match_table(table, stated, no_traits)
    assert verdict.holds is holds
    if holds is None:
        assert verdict.narrowed and version in verdict.partly["distributions.transformers"]


def test_a_build_from_before_a_release_is_there_whatever_it_holds() -> None:
    table = {"distributions.transformers": ">=4.39.0", "distributions.trl": "<0.8.0"}
    verdict = match_table(
        table, Environment({"distributions": {"transformers": "4.39.0.dev0", "trl": "0.7.11"}}), no_traits
    )
    assert (verdict.holds, verdict.narrowed) == (None, True)


@pytest.mark.parametrize(
    ("wanted", "framework", "releases", "holds", "missing"),
    [
        ("transformers", "transformers", {}, True, ()),
        ("transformers", "llama-factory", {}, True, ()),
        ("trl", "ms-swift", {}, True, ()),
        ("trl", "transformers", {}, False, ()),
        (["transformers", "verl"], "verl", {}, True, ()),
        ("transformers", "verl", {}, False, ()),
        ("transformers", "home-made", {}, False, ()),
        ("transformers", None, {}, False, ()),
        ("transformers", "?", {}, None, ("training.framework",)),
        ("lightning", "pytorch-lightning", {}, True, ()),
        ("transformers", "sentence-transformers", {"sentence-transformers": "3.0.0"}, True, ()),
        ("transformers", "sentence-transformers", {"sentence-transformers": "2.7.0"}, False, ()),
        ("transformers", "sentence-transformers", {}, None, ("distributions.sentence-transformers",)),
        ("transformers", "setfit", {"setfit": "1.1.0", "sentence-transformers": "3.1.0"}, True, ()),
        ("transformers", "setfit", {"setfit": "1.0.3", "sentence-transformers": "3.1.0"}, False, ()),
    ],
)
def test_a_run_goes_through_what_its_framework_runs_on(
    wanted: str | list[str],
    framework: str | None,
    releases: dict[str, str],
    holds: bool | None,
    missing: tuple[str, ...],
) -> None:
    training = {} if framework == "?" else {"framework": framework}
    facts = {"distributions": releases, "training": training}
    verdict = match_table({"training.runs_on": wanted}, Environment(facts), no_traits)
    assert (verdict.holds, verdict.missing) == (holds, missing)
    assert "training.framework" in verdict.paths or not holds
