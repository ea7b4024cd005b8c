"""How a newer matrix gets here: over HTTP, under The Update Framework, and unpacked with suspicion.

https://theupdateframework.github.io/specification/latest/
"""

from __future__ import annotations

from compatcheck.delivery._adopt import Adopted, adopt, last_url
from compatcheck.delivery._archive import Archive, unpack
from compatcheck.delivery._lock import only_one
from compatcheck.delivery._trusted import Repository, download, is_known
from compatcheck.errors import InputError

__all__ = [
    "Adopted",
    "Archive",
    "Repository",
    "adopt",
    "download",
    "is_known",
    "last_url",
    "only_one",
    "require_tuf",
    "unpack",
]


def require_tuf() -> None:
    """Raise InputError where the libraries of the extra ``update`` are not installed."""
    from importlib.util import find_spec

    if find_spec("tuf") is None:
        raise InputError("updating", "the matrix", "tuf is not installed", "run pip install 'compatcheck[update]'")
