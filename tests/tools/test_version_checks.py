"""What an import of a package compares, read from the modules of a release."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tools.tables import start_up_checks
from tools.tables._version_checks import read_module

LLAMAFACTORY = {
    "llamafactory/__init__.py": "",
    "llamafactory/hparams/__init__.py": "",
    "llamafactory/hparams/parser.py": "from ..extras.misc import check_dependencies\ncheck_dependencies()\n",
    "llamafactory/extras/__init__.py": "",
    "llamafactory/extras/misc.py": (
        "import os\n"
        "from transformers.utils.versions import require_version\n"
        "def check_dependencies() -> None:\n"
        "    if os.environ.get('DISABLE_VERSION_CHECK', '0') in ['1']:\n"
        "        print('disabled')\n"
        "    else:\n"
        "        require_version('datasets>=2.16.0,<=2.21.0', 'To fix: pip install')\n"
        "def of_a_setting(name):\n"
        "    require_version('vllm>=0.4.3')\n"
    ),
}
TRANSFORMERS = {
    "transformers/__init__.py": "from . import dependency_versions_check\n",
    "transformers/dependency_versions_table.py": (
        "deps = {'accelerate': 'accelerate>=0.26.0', 'numpy': 'numpy>=1.17', 'tokenizers': 'tokenizers>=0.21,<0.22',\n"
        "        'torch': 'torch>=2.0'}\n"
    ),
    "transformers/dependency_versions_check.py": (
        "from .dependency_versions_table import deps\n"
        "from .utils.versions import require_version_core\n"
        "pkgs_to_check_at_runtime = ['python', 'numpy', 'tokenizers', 'accelerate']\n"
        "for pkg in pkgs_to_check_at_runtime:\n    require_version_core(deps[pkg])\n"
    ),
}


@pytest.mark.parametrize(
    ("package", "files", "demands"),
    [
        ("llamafactory", LLAMAFACTORY, {"datasets": "<=2.21.0,>=2.16.0"}),
        ("transformers", TRANSFORMERS, {"numpy": ">=1.17", "tokenizers": "<0.22,>=0.21"}),
    ],
)
def test_only_what_every_import_reaches_counts(
    tmp_path: Path, package: str, files: dict[str, str], demands: dict[str, str]
) -> None:
    path = tmp_path / "release.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    assert start_up_checks.demands(package, path) == demands


@pytest.mark.parametrize(
    ("text", "demands"),
    [
        (
            "import pyarrow\nif version.parse(pyarrow.__version__).major < 8:\n    raise ImportWarning()\n",
            ["pyarrow>=8"],
        ),
        (
            "import numpy as np\n_nlv = Version(np.__version__)\n_least = '1.22.4'\n"
            "if _nlv < Version(_least):\n    raise ImportError(_least)\n",
            ["numpy>=1.22.4"],
        ),
        ("from trl import __version__ as v\nif not parse(v) >= parse('0.9'):\n    raise ImportError\n", ["trl>=0.9"]),
        ("import trl\nassert version.parse(trl.__version__) <= version.parse('0.9.4')\n", ["trl<=0.9.4"]),
        ("import trl\nif parse(trl.__version__) == parse('0.9'):\n    warn('old')\n", []),
        ("import trl\nif DEVICE == 'npu' and parse(trl.__version__) < parse('0.9'):\n    raise ImportError\n", []),
        ("import trl\ndef check():\n    if parse(trl.__version__) < parse('0.9'):\n        raise ImportError\n", []),
        ("import trl\ntry:\n    assert parse(trl.__version__) < parse('0.9')\nexcept Exception:\n    trl = None\n", []),
        ("if is_trl_available():\n    require_version('trl>=0.9')\n    require_version('peft>=0.9')\n", ["trl>=0.9"]),
        (
            "try:\n    _xformers = metadata.version('xformers')\n"
            "    if Version(metadata.version('torch')) < Version('1.12'):\n        raise ValueError()\n"
            "except metadata.PackageNotFoundError:\n    _xformers = None\n",
            [],
        ),
    ],
)
def test_condition_that_ends_the_import_is_a_demand(text: str, demands: list[str]) -> None:
    module = read_module(text, "package.module", is_package=False)
    assert [f"{package}{clause}" for package, clause in module.checks] == demands


def test_rows_that_entries_tell_are_kept_apart() -> None:
    rows = {"numpy": [["4.42.0", "4.42.4", "<2.0"]], "tokenizers": [["4.47.0", "4.55.4", "<0.22,>=0.21"]]}
    text = start_up_checks.render(Path(), (), {"transformers": rows, "told": {}})
    sections = text.partition("[transformers]")[2].partition("[told.transformers]")
    assert "numpy" in sections[0]
    assert "tokenizers" in sections[2]
