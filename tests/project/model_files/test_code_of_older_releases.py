"""Rules over a model's own code: imports, calls and declarations that later releases of transformers do not take."""

from __future__ import annotations

from pathlib import Path

import pytest

from compatcheck.files.python_syntax import parse_code
from compatcheck.project.model_files._code import codes
from compatcheck.project.model_files.traits._code import Code
from compatcheck.project.model_files.traits._rules import traits_of

EXTRACTS = """
class AForCausalLM(PreTrainedModel):
    def _update_model_kwargs_for_generation(self, outputs, model_kwargs, standardize_cache_format=False):
        name, cache = self._extract_past_from_model_output(outputs, standardize_cache_format=standardize_cache_format)
        model_kwargs[name] = cache
"""
LAYER = """
from transformers.models.llama.modeling_llama import LlamaAttention
class Layer(Module):
    def forward(self, x, mask, **kwargs):
        return self.self_attn(hidden_states=x, attention_mask=mask, **kwargs)
"""
INNER = """
class APreTrained(PreTrainedModel): ...
class AForCausalLM(APreTrained):
    def prepare_inputs_for_generation(self, x): ...
"""


ASKED = "class A:\n    @property\n    def _supports_sdpa(self):\n        "
BUILT = "class A:\n    def __init__(self):\n        "
SETTINGS = "reads-generation-settings-from-config"
MASKS = "from transformers.masking_utils import create_causal_mask\ndef forward(c, x, p, m):\n    "
FORWARD = "class A:\n    def forward(self, mask):\n        "


def traits(source: str, *entry_points: str) -> list[str]:
    tree = parse_code(source)
    assert tree is not None
    return [trait for trait, _ in traits_of(Code("modeling_a.py", "model", tree, frozenset(entry_points)))]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (f"{FORWARD}mask = self.get_head_mask(mask, 2)", "calls-get-head-mask"),
        (f"{FORWARD}mask = self.get_head_mask(mask, 2) if hasattr(self, 'get_head_mask') else None", None),
        (f"{FORWARD}mask = self.get_head_mask(mask, 2)\n    def get_head_mask(self, mask, n): ...", None),
        (f"{FORWARD}mask = self.get_extended_attention_mask(mask, (2, 3))", "calls-get-extended-attention-mask"),
        ("class A:\n    def __init__(self, config):\n        n = config.max_length", SETTINGS),
        ("class A:\n    def __init__(self, config):\n        n = getattr(config, 'max_length', 9)", None),
        ("class A:\n    def chat(self):\n        return self.config.max_length", None),
        ("def f(config):\n    config.max_length = 9\n    return config.max_length", None),
        ("def f(generation_config):\n    return generation_config.max_length", None),
        ("class A(PretrainedConfig):\n    def __init__(self):\n        n = self.forced_bos_token_id", SETTINGS),
        ("class A(Module):\n    def __init__(self):\n        n = self.max_length", None),
        (f"{BUILT}self.rates = [x.item() for x in torch.linspace(0, 1, 9)]", "reads-values-while-built"),
        (f"{BUILT}self.rates = [x.item() for x in torch.linspace(0, 1, 9, device='cpu')]", None),
        (f"{BUILT}self.rates = [x.item() for x in np.linspace(0, 1, 9)]", None),
        (f"{FORWARD}return mask.sum().item()", None),
        ("AutoConfig.register('aimv2', AIMv2Config)", "registers-aimv2"),
        ("AutoConfig.register('aimv2', AIMv2Config, exist_ok=True)", None),
        ("AutoConfig.register('ovis', OvisConfig)", None),
        (f"{ASKED}return self.language_model._supports_sdpa", "sdpa-support-asked-of-submodel"),
        (f"{ASKED}return self.config.wants_sdpa", None),
        (f"{ASKED}return True", None),
        ("class A:\n    _supports_sdpa = True", None),
        (f"{MASKS}mask = create_causal_mask(config=c, input_embeds=x)", "masks-given-cache-position"),
        (
            f"{MASKS}if not isinstance(m, dict):\n        m = create_causal_mask(c, x, cache_position=p)",
            "masks-given-cache-position",
        ),
        (f"{MASKS}given = {{'cache_position': p}}\n    m = create_causal_mask(**given)", "masks-given-cache-position"),
        (
            f"{MASKS}given = {{'cache_position': p}}\n    given.pop('cache_position')\n    create_causal_mask(**given)",
            None,
        ),
        (f"{MASKS}if version < '5':\n        m = create_causal_mask(c, x, cache_position=p)", None),
        (f"{MASKS}try:\n        m = create_causal_mask(c, cache_position=p)\n    except TypeError: ...", None),
        ("def create_causal_mask(): ...\nmask = create_causal_mask(cache_position=p)", None),
        (f"{MASKS}given = {{'cache_position': p}}\n    given = f(given)\n    create_causal_mask(**given)", None),
        (
            f"{MASKS}given = {{'cache_position': p}}\n    del given['cache_position']\n    create_causal_mask(**given)",
            None,
        ),
        (f"{MASKS}mask = self.create_causal_mask(cache_position=p)", None),
        (f"{MASKS}create_causal_mask = adapted()\n    mask = create_causal_mask(cache_position=p)", None),
        (
            f"{MASKS}if NEW:\n        m = create_causal_mask(c, x)\n"
            "    else:\n        m = create_causal_mask(c, x, cache_position=p)",
            None,
        ),
        (
            "from transformers.masking_utils import create_causal_mask as made\nmask = made(c, x, cache_position=p)",
            "masks-given-cache-position",
        ),
        (
            "from transformers.masking_utils import create_causal_mask as made\n"
            "def create_causal_mask(x, cache_position): return made(x)\nmask = create_causal_mask(x, cache_position=p)",
            None,
        ),
        (f"{MASKS}mask = create_causal_mask(config=c, inputs_embeds=x)", "masks-given-inputs-embeds"),
        (f"{MASKS}mask = create_causal_mask(c, x, mask, past)", None),
        ("class A:\n    _tied_weights_keys = ['lm_head.weight']", "tied-weights-keys-as-list"),
        ("class A:\n    _tied_weights_keys: list = ['lm_head.weight']", "tied-weights-keys-as-list"),
        ("class A:\n    _tied_weights_keys = {'lm_head.weight': 'embed.weight'}", None),
        ("class A:\n    _tied_weights_keys = []", None),
        ("class A:\n    _tied_weights_keys = ['a'] if old else {'a': 'b'}", None),
    ],
)
def test_imports_and_declarations(line: str, found: str | None) -> None:
    assert traits(line) == ([found] if found else [])


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", {"past-extracted-by-inherited-method", "past-extracted-in-standard-format"}),
        (", standardize_cache_format=standardize_cache_format)", ")", {"past-extracted-by-inherited-method"}),
        ("class A", "def _extract_past_from_model_output(o): ...\nclass A", set()),
        (
            "        model_kwargs[name]",
            "        if hasattr(self, '_extract_past_from_model_output'): ...\n        x[name]",
            set(),
        ),
        ("        name, cache", "        if old: name, cache", set()),
    ],
)
def test_the_helper_that_generation_inherits(old: str, new: str, found: set[str]) -> None:
    assert set(traits(EXTRACTS.replace(old, new, 1) if old else EXTRACTS)) == found


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("", "", True),
        ("attention_mask=mask", "attention_mask=mask, position_embeddings=angles", False),
        ("mask, **kwargs):", "mask, position_embeddings=None, **kwargs):", False),
        ("transformers.models.llama.modeling_llama", ".modeling_llama", False),
        ("import LlamaAttention", "import LlamaMLP", False),
    ],
)
def test_attention_of_llama_without_its_angles(old: str, new: str, has: bool) -> None:
    code = LAYER.replace(old, new, 1) if old else LAYER
    assert ("llama-attention-without-position-embeddings" in traits(code)) is has


@pytest.mark.parametrize(
    ("old", "new", "entry_point", "has"),
    [
        ("", "", "InternVLChatModel", True),
        ("", "", "AForCausalLM", False),
        ("(PreTrainedModel)", "(PreTrainedModel, GenerationMixin)", "InternVLChatModel", False),
        ("(APreTrained)", "(APreTrained, GenerationMixin)", "InternVLChatModel", False),
        ("prepare_inputs_for_generation", "prepare", "InternVLChatModel", False),
        ("    def prepare", "    def generate(self): ...\n    def prepare", "InternVLChatModel", False),
    ],
)
def test_a_language_model_inside_another_model(old: str, new: str, entry_point: str, has: bool) -> None:
    code = INNER.replace(old, new, 1) if old else INNER
    assert ("inner-model-lacks-generation-mixin" in traits(code, entry_point)) is has


@pytest.mark.parametrize(
    ("sets", "found"),
    [("self.seq_length = 9", ["reads-generation-settings-from-config"]), ("self.max_length = 9", [])],
)
def test_a_setting_that_the_models_own_configuration_has_is_let_be(tmp_path: Path, sets: str, found: list[str]) -> None:
    files = {
        "configuration_a.py": f"class AConfig(PretrainedConfig):\n    def __init__(self):\n        {sets}",
        "modeling_a.py": "from .configuration_a import AConfig\nclass A(B):\n    def __init__(self, config):\n"
        "        self.longest = config.max_length",
    }
    assert sorted(_of_folder(tmp_path, files)) == found


def test_files_beside_the_model_are_read(tmp_path: Path) -> None:
    files = {
        "configuration_a.py": "AutoConfig.register('aimv2', AIMv2Config)",
        "hf_prefixlm_converter.py": f"{ASKED}return self.language_model._supports_sdpa",
        "modeling_a.py": "from .configuration_a import A\nfrom .hf_prefixlm_converter import convert",
    }
    assert sorted(_of_folder(tmp_path, files)) == ["registers-aimv2", "sdpa-support-asked-of-submodel"]


def _of_folder(folder: Path, files: dict[str, str]) -> set[str]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    config = {"auto_map": {"AutoConfig": "configuration_a.AConfig", "AutoModel": "modeling_a.A"}}
    return {trait for code in codes(str(folder), sorted(files), config) for trait, _ in traits_of(code)}


@pytest.mark.stack
def test_the_librarys_own_models_show_nothing_that_it_does_not_take() -> None:
    transformers = pytest.importorskip("transformers")
    of_older = {"tied-weights", "past-extracted", "llama-attention"}
    for path in sorted((Path(transformers.__file__).parent / "models").rglob("modeling_[abglq]*.py"))[::3]:
        found = traits(path.read_text(encoding="utf-8"))
        assert not [trait for trait in found if trait.startswith(tuple(of_older))], path
