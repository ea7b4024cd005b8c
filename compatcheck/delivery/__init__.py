"""How a newer matrix gets here: over HTTP, under The Update Framework, and unpacked with suspicion.

https://theupdateframework.github.io/specification/latest/
"""

from __future__ import annotations

from compatcheck.delivery._archive import Archive, unpack
from compatcheck.delivery._lock import only_one
from compatcheck.delivery._trusted import Repository, download, is_known

__all__ = ["Archive", "Repository", "download", "is_known", "only_one", "unpack"]
