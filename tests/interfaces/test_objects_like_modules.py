"""Objects whose attributes are made on demand, and that texts of the package name like modules."""

from __future__ import annotations

from compatcheck.interfaces.reading import read_module
from compatcheck.interfaces.release import Release

OPS = "class _Ops: ...\nops = _Ops()\n"
USES = 'NAMES = ["torch.ops._c10d_functional.wait_tensor"]\n'


def test_what_only_texts_name_like_a_module_may_have_any_name() -> None:
    texts = {"torch": "from torch._ops import ops as ops\n", "torch._ops": OPS, "torch.fx": USES}
    release = Release({name: read_module(text, name, name == "torch") for name, text in texts.items()})
    assert release.find("torch.ops.aten.t.default").kind == "open"
    assert release.find("torch.fx.gone").kind == "missing"
    assert release.find("torch.gone").kind == "missing"
