"""Reading the attention of model types and the defaults of arguments out of the sources of releases."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tools.tables._runs import runs
from tools.tables.argument_defaults import Package, defaults, rows_of_class
from tools.tables.default_attention import Release

UTILS = """
class PreTrainedModel:
    _supports_sdpa = False

    @classmethod
    def _autoset_attn_implementation(cls, config): ...

    @classmethod
    def _check_and_enable_sdpa(cls, config, hard_check_only=False): ...
"""
NEEDS = 'def is_torch_sdpa_available():\n    return version.parse(torch) >= version.parse("2.1.1")\n'
BASE = "class {0}PreTrainedModel(PreTrainedModel):\n    _supports_sdpa = {1}\n\n\n"
HEAD = "class {0}ForCausalLM({0}PreTrainedModel):\n    pass\n\n\n"
EAGER = """
class OddPreTrainedModel(PreTrainedModel):
    _supports_sdpa = True

    @classmethod
    def _check_and_enable_sdpa(cls, config, hard_check_only=False):
        config = super()._check_and_enable_sdpa(config, hard_check_only=hard_check_only)
        if not hard_check_only:
            config._attn_implementation = "eager"
        return config


"""
OWN = EAGER.replace('"eager"', "choose(config)")
SETS = "        self.config._attn_implementation = 'eager'\n"
CALLS = "def attend(q, k, v):\n    return F.scaled_dot_product_attention(q, k, v)\n"
CONFIG = 'class OddConfig(PretrainedConfig):\n    model_type = "odd"\n'
PAIRED = 'MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([("odd", "OddForCausalLM")])\n'


def release(model: str, config: str = CONFIG, utils: str = UTILS) -> Release:
    return Release(
        {
            "transformers/modeling_utils.py": utils,
            "transformers/utils/import_utils.py": NEEDS,
            "transformers/models/auto/modeling_auto.py": PAIRED,
            "transformers/models/odd/modeling_odd.py": model + HEAD.format("Odd"),
            "transformers/models/odd/configuration_odd.py": config,
        }
    )


@pytest.mark.parametrize(
    ("model", "config", "expected"),
    [
        (BASE.format("Odd", True), CONFIG, {"odd": "sdpa"}),
        (BASE.format("Odd", False), CONFIG, {"odd": "eager"}),
        (EAGER, CONFIG, {"odd": "eager"}),
        (OWN, CONFIG, {}),
        (BASE.format("Odd", False) + CALLS, CONFIG, {}),
        (BASE.format("Odd", True) + "def prepare(self):\n" + SETS[4:], CONFIG, {}),
        (BASE.format("Odd", True), CONFIG + '    sub_configs = {"text": TextConfig}\n', {}),
        (BASE.format("Odd", True), CONFIG + "    def __init__(self):\n        self._attn_implementation = 1\n", {}),
    ],
)
def test_the_flags_of_a_class_decide_where_nothing_else_does(model: str, config: str, expected: dict[str, str]) -> None:
    found = release(model, config)
    assert dict(found.defaults()) == expected
    assert found.torch_needed == "2.1.1"


@pytest.mark.parametrize(("own", "expected"), [("", {"odd": "eager"}), (CALLS, {})])
def test_before_releases_chose_a_model_was_eager(own: str, expected: dict[str, str]) -> None:
    found = release(BASE.format("Odd", True) + own, utils="class PreTrainedModel:\n    pass\n")
    assert dict(found.defaults()) == expected and found.torch_needed == ""


ARGUMENTS = """
class Base(TrainingArguments):
    bf16: Optional[bool] = field(default=None)

    def __post_init__(self):
        self.bf16 = not (self.fp16) if self.bf16 is None else self.bf16


class SFTConfig(Base):
    default_optim = "adamw_torch"
    if is_torch_available():
        if is_torch_greater_or_equal_than_2_8:
            default_optim = "adamw_torch_fused"
    optim: str = field(default=default_optim)
    max_steps: int = field(default=-1)
    learning_rate: float = 2e-5
    max_length: Optional[int] = None
    report_to: str | list[str] = "none"
    output_dir: str = "out"
"""
TRL = Package("trl", "0.9.0", "", r"trl/(?:trainer|old/\w+)/\w+_config\.py", r"(?!Base)[A-Z]\w+Config")


def test_the_fields_of_a_class_and_of_those_it_inherits() -> None:
    found = defaults(TRL, {"trl/trainer/sft_config.py": ARGUMENTS})["trl.SFTConfig"]
    assert found == {
        "bf16": ((True, ""),),
        "optim": (("adamw_torch", "torch<2.8"), ("adamw_torch_fused", "torch>=2.8")),
        "max_steps": ((-1, ""),),
        "learning_rate": ((2e-5, ""),),
        "max_length": (),
        "report_to": ((["none"], ""),),
    }


MOVED = """
with quietly():
    from ..old.sft import SFTConfig as _SFTConfig


class SFTConfig(_SFTConfig):
    def __post_init__(self):
        warn("moved")
"""


def test_a_class_that_moved_is_read_where_it_is_now() -> None:
    files = {"trl/trainer/sft_config.py": MOVED, "trl/old/sft/sft_config.py": ARGUMENTS}
    assert defaults(TRL, files) == defaults(TRL, {"trl/trainer/sft_config.py": ARGUMENTS})
    goes_on = "from trl import SFTConfig as _SFTConfig\n\n\nclass NewConfig(_SFTConfig):\n    max_steps: int = 5\n"
    found = defaults(TRL, {"trl/trainer/sft_config.py": ARGUMENTS, "trl/old/new/new_config.py": goes_on})
    assert found["trl.NewConfig"] == {**found["trl.SFTConfig"], "max_steps": ((5, ""),)}


def test_what_init_puts_in_the_place_of_none_is_the_default() -> None:
    code = (
        "class QConfig:\n    def __init__(self, bnb_4bit_compute_dtype=None, bnb_4bit_quant_type='fp4'):\n"
        "        if bnb_4bit_compute_dtype is None:\n            self.bnb_4bit_compute_dtype = torch.float32\n"
    )
    package = Package("transformers", "4.30.0", "", "q.py", "QConfig")
    found = defaults(package, {"q.py": code})["transformers.QConfig"]
    assert found == {"bnb_4bit_compute_dtype": (("float32", ""),), "bnb_4bit_quant_type": (("fp4", ""),)}


def test_runs_end_where_the_value_changes_or_is_missing() -> None:
    known = [Version(f"1.{number}") for number in range(6)]
    values = dict(zip(known, ["a", "a", None, "a", "b", "b"]))
    assert runs(values, known) == [("1.0", "1.1", "a"), ("1.3", "1.3", "a"), ("1.4", "1.5", "b")]
    by_release = {known[0]: {"r": ((8, ""),)}, known[1]: {"r": ((None, ""),)}}
    assert rows_of_class(by_release, known[:2]) == {"r": [["1.0", "1.0", 8], ["1.1", "1.1"]]}
