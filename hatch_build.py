"""Metadata of the product: in a checkout, its parts are taken from the checkout.

`pip install ".[torch]"` then needs no index that has them. `RLPROF_RELEASE=1 python -m build` names
them by version instead. A wheel with `file:` references is marked private: no index takes it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Checkout(MetadataHookInterface):
    """Replaces each distribution of ours by the folder it lies in."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the dynamic fields of *metadata*."""
        folders = {} if os.environ.get("RLPROF_RELEASE") else _folders(Path(self.root))
        extras = self.config["optional-dependencies"]
        metadata["dependencies"] = _local(self.config["dependencies"], folders)
        metadata["optional-dependencies"] = {
            name: _local(needs, folders) for name, needs in extras.items()
        }
        private = ["Private :: Do Not Upload"] if folders else []
        metadata["classifiers"] = [*self.config["classifiers"], *private]


def _folders(root: Path) -> dict[str, Path]:
    """Find the distributions below *root*; a source distribution holds none."""
    found = {}
    for file in (root / "core" / "pyproject.toml", *root.glob("plugins/*/pyproject.toml")):
        if file.exists():
            name = re.search(r'^name = "(.+)"', file.read_text(), re.MULTILINE)
            if name is not None:
                found[name[1]] = file.parent
    return found


def _local(needs: list[str], folders: dict[str, Path]) -> list[str]:
    names = [re.split(r"[\[<>=]", need)[0] for need in needs]
    return [
        f"{name} @ {folders[name].as_uri()}" if name in folders else need
        for name, need in zip(names, needs, strict=True)
    ]
