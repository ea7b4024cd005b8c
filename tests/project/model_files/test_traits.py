"""The rules over a model's own code: each on code that has the trait and on neighbours that have not."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.files.python_syntax import parse_code
from compatcheck.project.model_files.file_traits._files import rules as file_rules
from compatcheck.project.model_files.traits._code import Code, Kind
from compatcheck.project.model_files.traits._rules import rules, traits_of

SETTER = "def _set_gradient_checkpointing(self, module, value=False): module.gradient_checkpointing = value"
LATE = """
class ATokenizer(PreTrainedTokenizer):
    def __init__(self, vocab_file, **kwargs):
        super().__init__(**kwargs)
        self.sp_model = load(vocab_file)
    @property
    def vocab_size(self):
        return self.sp_model.get_piece_size()
    def get_vocab(self):
        return {self.convert_ids_to_tokens(i): i for i in range(self.vocab_size)}
"""
NESTED = """
class ATokenizer(PreTrainedTokenizer):
    def apply_chat_template(self, conversation, tokenize=True, return_dict=False):
        result = self.handle(conversation)
        output = self.batch_encode_plus([result] if isinstance(result[0], int) else result, is_split_into_words=True)
        if return_dict:
            return output
        return output["input_ids"]
"""
TAKES_ONE = """
class A(PreTrainedModel):
    def _update_model_kwargs_for_generation(self, outputs, model_kwargs, standardize_cache_format=False):
        model_kwargs["past_key_values"] = self._extract_past_from_model_output(
            outputs, standardize_cache_format=standardize_cache_format)
        return model_kwargs
"""
BARE = """
class APreTrained(PreTrainedModel):
    config_class = AConfig
class AForCausalLM(APreTrained):
    def __init__(self, config):
        super().__init__(config)
        self.layer = Layer(config)
"""


def override(body: str, also: str = "pass") -> str:
    return f"class A(B):\n    def gradient_checkpointing_enable(self, kwargs=None):\n        {body}\n    {also}\n"


def traits(kind: Kind, source: str, *entry_points: str, special_tokens: bool = True) -> list[str]:
    tree = parse_code(source)
    assert tree is not None
    prefix = "modeling" if kind == "model" else "tokenization"
    code = Code(f"{prefix}_a.py", kind, tree, frozenset(entry_points), names_special_tokens=special_tokens)
    return [trait for trait, _ in traits_of(code)]


@pytest.mark.parametrize(
    ("code", "has"),
    [
        (override("if not self.supports_gradient_checkpointing: raise ValueError"), True),
        (override("self.ready = True"), True),
        (override("return self.gradient_checkpointing"), True),
        (override("pass", SETTER), False),
        (override("self.gradient_checkpointing = True"), False),
        (override("self.encoder.layer.gradient_checkpointing = True"), False),
        (override("super().gradient_checkpointing_enable(kwargs)"), False),
        (override("self.model.gradient_checkpointing_enable()"), False),
        (override("self.apply(partial(self._set_gradient_checkpointing, value=True))"), False),
        (override("setattr(self, 'gradient_checkpointing', True)"), False),
        ("class A(B):\n    pass\n", False),
    ],
)
def test_a_switch_that_turns_nothing_on(code: str, has: bool) -> None:
    assert ("gradient-checkpointing-noop" in traits("model", code)) is has


@pytest.mark.parametrize(
    ("code", "has"),
    [
        ("class AForCausalLM:\n def forward(self, x, labels=None): ...\n", True),
        ("class AForCausalLM:\n def forward(self, x, labels=None, **kwargs): ...\n", False),
        ("class AForCausalLM:\n def forward(self, x): ...\n", False),
        ("class ALayer:\n def forward(self, x, labels=None): ...\n", False),
    ],
)
def test_a_head_whose_forward_takes_no_kwargs(code: str, has: bool) -> None:
    assert ("forward-takes-no-kwargs" in traits("model", code)) is has


@pytest.mark.parametrize(
    ("code", "has"),
    [
        ("class T:\n def _pad(self, x, max_length=None): ...\n", True),
        ("class T:\n def _pad(self, x, padding_side=None): ...\n", False),
        ("class T:\n def _pad(self, x, *, padding_side=None): ...\n", False),
        ("class T:\n def _pad(self, x, **kwargs): ...\n", False),
        ("class T:\n def pad(self, x): ...\n", False),
    ],
)
def test_a_pad_that_does_not_know_the_side(code: str, has: bool) -> None:
    assert ("tokenizer-pad-lacks-padding-side" in traits("tokenizer", code)) is has


@pytest.mark.parametrize(
    ("code", "has"),
    [
        (f"class A(B):\n    {SETTER}\n", True),
        ("class A(B):\n def _set_gradient_checkpointing(self, module, value): ...\n", True),
        (override("self._set_gradient_checkpointing(self, True)", SETTER), False),
        (
            "class A(B):\n def _set_gradient_checkpointing(self, enable=True, gradient_checkpointing_func=f): ...\n",
            False,
        ),
        ("class A(B):\n def _set_gradient_checkpointing(self, module, value=True, **kwargs): ...\n", False),
        ("class A(B):\n def _set_gradient_checkpointing(self, module, enable=True, value=None): ...\n", False),
    ],
)
def test_a_setter_of_the_form_before_transformers_4_35(code: str, has: bool) -> None:
    assert ("set-gradient-checkpointing-takes-value" in traits("model", code)) is has


@pytest.mark.parametrize(
    ("code", "has"),
    [
        ("y = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)", True),
        ("y = checkpoint(layer, x, use_reentrant=False)", True),
        ("y = checkpoint(layer, x, use_reentrant=True)", False),
        ("y = checkpoint(layer, x, use_reentrant=flag)", False),
        ("y = checkpoint(layer, x)", False),
        ("y = other(layer, use_reentrant=False)", False),
    ],
)
def test_checkpointing_without_reentry(code: str, has: bool) -> None:
    assert ("checkpoints-without-reentry" in traits("model", code)) is has


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("(PreTrainedTokenizer)", "(transformers.PreTrainedTokenizer)", True),
        ("self.vocab_size", "len(self.sp_model)", True),
        ("(PreTrainedTokenizer)", "(PreTrainedTokenizerFast)", False),
        ("        super", "        self.sp_model = None\n        super", False),
        ("        super", "        self.load(vocab_file)\n        super", False),
        ("        super", "        setattr(self, 'sp_model', 1)\n        super", False),
        ("    def __init__", "    sp_model = None\n    def __init__", False),
        ("def get_vocab", "def get_all", False),
        ("return self.sp_model.get_piece_size()", "return 5", False),
        ("def get_vocab", "def _add_tokens(self, new, special_tokens=False): pass\n    def get_vocab", False),
        ("super().__init__(**kwargs)", "pass", False),
        ("super().__init__(**kwargs)", "PreTrainedTokenizer.__init__(self)", False),
    ],
)
def test_a_tokenizer_that_is_filled_after_the_inherited_init(old: str, new: str, has: bool) -> None:
    code = LATE.replace(old, new, 1) if old else LATE
    assert ("tokenizer-filled-after-init" in traits("tokenizer", code)) is has


@pytest.mark.parametrize(
    ("old", "new", "special_tokens", "has"),
    [
        ("", "", True, True),
        ("", "", False, False),
        ("for token in new_tokens", "for token in self.sp_model", False, True),
        ("in new_tokens:", "in new_tokens: pass\n        if self.sp_model:", False, True),
        ("super().__init__(", "super().__init__(pad_token='<pad>', ", False, True),
    ],
)
def test_a_loop_over_the_tokens_to_add_asks_for_nothing_where_there_are_none(
    old: str, new: str, special_tokens: bool, has: bool
) -> None:
    adds = """
    def _add_tokens(self, new_tokens, special_tokens=False):
        for token in new_tokens:
            assert token in self.sp_model
        return 0
"""
    code = f"{LATE}{adds}".replace(old, new, 1)
    found = traits("tokenizer", code, special_tokens=special_tokens)
    assert ("tokenizer-filled-after-init" in found) is has


def test_a_vocabulary_that_is_ready_for_being_asked_early() -> None:
    line = "        return self.sp_model.get_piece_size()"
    guarded = f"        try:\n    {line}\n        except AttributeError:\n            return 0"
    assert "tokenizer-filled-after-init" in traits("tokenizer", LATE)
    assert traits("tokenizer", LATE.replace(line, guarded)) == []


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("self.batch_encode_plus(", "self(", True),
        ('output["input_ids"]', "output.input_ids", True),
        ('output["input_ids"]', 'output["input_ids"][0]', False),
        (
            "        if return_dict",
            '        if one:\n            return output["input_ids"][0]\n        if return_dict',
            False,
        ),
        ("[result] if isinstance(result[0], int) else result", "result", False),
        ("def apply_chat_template", "def build_chat_input", False),
        ('return output["input_ids"]', "return result", False),
        ("output = self.batch_encode_plus", "output = other.batch_encode_plus", False),
    ],
)
def test_a_template_that_returns_a_list_within_a_list(old: str, new: str, has: bool) -> None:
    code = NESTED.replace(old, new) if old else NESTED
    assert ("chat-template-returns-nested-list" in traits("tokenizer", code)) is has


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("n = past_key_values.get_max_length()", ["cache-get-max-length"]),
        ("n = self.cache.get_max_length()", ["cache-get-max-length"]),
        ("n = tokenizer.get_max_length()", []),
        ("n = past_key_values.get_max_length() if hasattr(past_key_values, 'get_max_length') else None", []),
        ("try:\n    n = past_key_values.get_max_length()\nexcept AttributeError:\n    n = None", []),
        ("if is_transformers_4_48_or_lower:\n    n = past_key_values.get_max_length()", []),
        ("if version.parse(v) < new:\n    n = past_key_values.get_max_length()", []),
        ("if using_static_cache:\n    n = past_key_values.get_max_length()", []),
        ("if isinstance(past_key_values, StaticCache) and x:\n    n = past_key_values.get_max_length()", []),
        ("if isinstance(past_key_values, Cache):\n    n = past_key_values.get_max_length()", ["cache-get-max-length"]),
        ("def get_max_length(self): ...\nn = past_key_values.get_max_length()", []),
        ("n = past_key_value.get_usable_length(4, 0)", ["cache-usable-length"]),
        ("n = past_key_values.seen_tokens", ["cache-usable-length"]),
        ("n = past_key_values.get_seq_length()", []),
        ("c = DynamicCache.from_legacy_cache(past)", ["cache-legacy-conversion"]),
        ("c = next_decoder_cache.to_legacy_cache()", ["cache-legacy-conversion"]),
    ],
)
def test_members_that_caches_no_longer_have(line: str, found: list[str]) -> None:
    assert traits("model", line) == found


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        (", standardize_cache_format=standardize_cache_format", "", True),
        ('model_kwargs["past_key_values"] = self', "cache_name, cache = self", False),
        (
            "    def _update",
            "    def _extract_past_from_model_output(self, outputs, **kw): ...\n    def _update",
            False,
        ),
        ("= self._extract_past", "= other._extract_past", False),
        ("        return model_kwargs", "        x = self._extract_past_from_model_output(outputs)[1]", False),
    ],
)
def test_a_cache_taken_as_one_value(old: str, new: str, has: bool) -> None:
    code = TAKES_ONE.replace(old, new, 1) if old else TAKES_ONE
    assert ("past-extracted-as-one-value" in traits("model", code)) is has


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("(PreTrainedModel)", "(PreTrainedModel, GenerationMixin)", True),
        ("Layer(config)\n", "Layer(config)\n        self.init_weights()\n", True),
        ("Layer(config)\n", "Layer(config)\n        self.post_init()\n", False),
        ("(PreTrainedModel)", "(LlamaPreTrainedModel)", False),
        ("(PreTrainedModel)", "(PreTrainedModel, SomeMixin)", False),
        ("AForCausalLM", "APart", False),
        ("    config_class", "    def __init__(self, c):\n        self.post_init()\n    config_class", False),
    ],
)
def test_a_class_that_never_calls_post_init(old: str, new: str, has: bool) -> None:
    code = BARE.replace(old, new, 1) if old else BARE
    assert ("post-init-never-called" in traits("model", code, "AForCausalLM")) is has


def test_of_several_classes_that_can_be_loaded_all_must_leave_the_call_out() -> None:
    other = BARE.replace("AForCausalLM", "AForRanking")
    assert "post-init-never-called" in traits("model", BARE + other, "AForCausalLM", "AForRanking")
    calling = other.replace("Layer(config)\n", "Layer(config)\n        self.post_init()\n", 1)
    assert "post-init-never-called" not in traits("model", BARE + calling, "AForCausalLM", "AForRanking")


PAST = """
class A(PreTrainedModel):
    def forward(self, input_ids, past_key_values=None):
        past = 0
        if past_key_values is not None:
            past = past_key_values[0][0].shape[2]
"""


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("shape[2]", "size(-2)", True),
        ("is not None:", "is not None and True:", True),
        ("if past_key_values is not None:", "if past_key_values:", False),
        ("past = 0", "past = past_key_values.get_seq_length()", False),
        ("past = 0", "past = isinstance(past_key_values, Cache)", False),
        ("past = 0", "past = isinstance(past_key_values, (Cache, list))", False),
        ("past = 0", "past = isinstance(past_key_values, tuple)", False),
        ("past = 0", "past = hasattr(past_key_values, 'layers')", False),
        ("past = 0", "past = isinstance(inputs_embeds, tuple)", True),
        ("past = 0", "past = past_key_values.to_legacy_cache()", False),
        ("is not None:", "is not None and past_key_values[0][0] is not None:", False),
        ("past_key_values=None", "past_key_values=None, query_embeds=None", False),
        ("    def forward", "    def _prepare_cache_for_generation(self, *given): ...\n    def forward", False),
        ("past_key_values[0][0]", "past_key_values[1][0]", False),
        ("def forward", "def stream_chat", False),
        ("past_key_values[0][0]", "hidden_states[0][0]", False),
        ("    def forward", "    def _supports_default_dynamic_cache(cls): ...\n    def forward", False),
        ("    def forward", "    _supports_cache_class = True\n    def forward", False),
    ],
)
def test_a_cache_read_as_tuples(old: str, new: str, has: bool) -> None:
    assert ("cache-indexed-as-tuple" in traits("model", PAST.replace(old, new) if old else PAST)) is has


HANDS_ON = """
class A(PreTrainedModel):
    def prepare_inputs_for_generation(self, input_ids, past_key_values=None, **kwargs):
        prepared = {"input_ids": input_ids, "past_key_values": past_key_values}
        prepared.update(kwargs)
        return prepared
    def forward(self, input_ids, past_key_values=None): ...
"""


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("prepared.update(kwargs)", "prepared = {**kwargs, **prepared}", True),
        ("prepared.update(kwargs)", "prepared = super().prepare_inputs_for_generation(input_ids, **kwargs)", False),
        ("prepared.update(kwargs)", "prepared.update(use_cache=kwargs.get('use_cache'))", False),
        ("prepared.update(kwargs)", "kwargs.pop('cache_position', None); prepared.update(kwargs)", False),
        ("past_key_values=None): ...", "past_key_values=None, **kwargs): ...", False),
        ("past_key_values=None): ...", "past_key_values=None, cache_position=None): ...", False),
        ("past_key_values=None, **kwargs):", "past_key_values=None, cache_position=None, **kwargs):", False),
        ("past_key_values=None, **kwargs):", "past_key_values=None, kwargs=()):", False),
    ],
)
def test_a_forward_that_is_handed_more_than_it_takes(old: str, new: str, has: bool) -> None:
    assert ("forward-lacks-cache-position" in traits("model", HANDS_ON.replace(old, new) if old else HANDS_ON)) is has


@pytest.mark.parametrize(("parent", "has"), [("LlamaForCausalLM", True), ("MptForCausalLM", False)])
def test_a_forward_that_is_handed_what_its_parent_prepares(parent: str, has: bool) -> None:
    code = HANDS_ON.replace("PreTrainedModel", parent).replace(
        "prepared.update(kwargs)", "prepared = super().prepare_inputs_for_generation(input_ids, **kwargs)"
    )
    assert ("forward-lacks-inherited-cache-position" in traits("model", code)) is has


STREAM = """
class A(PreTrainedModel):
    def stream(self, input_ids):
        processor = self._get_logits_processor(generation_config=given, logits_processor=processors)
        criteria = self._get_stopping_criteria(generation_config=given, stopping_criteria=stops)
"""


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("processor = ", "self._prepare_special_tokens(given); processor = ", False),
        ("    def stream", "    def _get_logits_processor(self): ...\n    def stream", False),
        ("self._get_", "own_", False),
    ],
)
def test_streaming_by_the_helpers_of_generate(old: str, new: str, has: bool) -> None:
    assert ("prepares-generation-itself" in traits("model", STREAM.replace(old, new) if old else STREAM)) is has


ROPE = """
class ARotaryEmbedding(nn.Module):
    def __init__(self, config):
        if config.rope_scaling is not None:
            self.rope_type = config.rope_scaling.get("rope_type")
        else:
            self.rope_type = "default"
        self.rope_init_fn = ROPE_INIT_FUNCTIONS[self.rope_type]
"""


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("self.rope_init_fn =", "if known: self.rope_init_fn =", False),
        ('= "default"', '= "linear"', False),
        ("        if config", "        ROPE_INIT_FUNCTIONS['default'] = own\n        if config", False),
        ("ROPE_INIT_FUNCTIONS[self.rope_type]", "ROPE_INIT_FUNCTIONS.get(self.rope_type, own)", False),
        ("    def __init__", "    def compute_default_rope_parameters(self): ...\n    def __init__", False),
        ("\nclass", "\nfrom transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS\nclass", True),
        ("\nclass", "\nfrom .rope_utils import ROPE_INIT_FUNCTIONS\nclass", False),
        ("\nclass", "\nROPE_INIT_FUNCTIONS = {'default': own}\nclass", False),
        ("\nclass", "\nROPE_INIT_FUNCTIONS.setdefault('default', own)\nclass", False),
    ],
)
def test_a_default_rope_that_is_looked_up(old: str, new: str, has: bool) -> None:
    assert ("looks-up-default-rope" in traits("model", ROPE.replace(old, new) if old else ROPE)) is has


def test_a_rule_reads_only_its_kind_of_file() -> None:
    assert traits("tokenizer", override("pass")) == traits("model", LATE) == []


def test_a_class_that_is_its_own_ancestor_ends() -> None:
    assert traits("model", "class A(B): ...\nclass B(A): ...\n", "A") == []


def test_every_rule_keeps_its_contract() -> None:
    for rule in rules().values():
        assert rule.__doc__ and "https://" in rule.__doc__ and rule.KIND in ("model", "tokenizer")
        assert callable(rule.find)
    for file_rule in file_rules().values():
        assert file_rule.__doc__ and "https://" in file_rule.__doc__ and callable(file_rule.find)
    assert not set(rules()) & set(file_rules())


@pytest.mark.stack
def test_the_librarys_own_models_give_no_false_alarm() -> None:
    transformers = pytest.importorskip("transformers")
    never = {"gradient-checkpointing-noop", "past-extracted-as-one-value", "tokenizer-filled-after-init"}
    never |= {"cache-usable-length", "cache-legacy-conversion", "tokenizer-pad-lacks-padding-side"}
    models = Path(transformers.__file__).parent / "models"
    for path in sorted((*models.rglob("modeling_[abglq]*.py"), *models.rglob("tokenization_*.py")))[::3]:
        kind: Kind = "tokenizer" if path.name.startswith("tokenization") else "model"
        assert not never & set(traits(kind, path.read_text(encoding="utf-8"))), path
