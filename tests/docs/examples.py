"""The plugins of examples/, imported from this checkout."""

from __future__ import annotations

import sys

from tests.docs.pages import ROOT

for _name in ("third_party_tool", "third_party_engine"):
    sys.path.append(str(ROOT / "examples" / _name / "src"))

from rlprof_mini import Mini  # noqa: E402 -- found through the paths above
from rlprof_stacks import Stacks  # noqa: E402

__all__ = ["Mini", "Stacks"]
