"""A benchmark of SGLang in a process of its own, where SGLang finds what it asks for on a CPU.

The interpreter looks for the stand-ins (tests/sglang_real/stand_ins) when it starts, and SGLang's
processes are started by one that has them.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOT = Path(__file__).parent.parent


def run(script: str, home: Path, *argv: str, more: Sequence[Path] = ()) -> int:
    """Run *script* with the small model at hand and *more* on its path; return its status."""
    sys.path.append(str(_ROOT))
    tiny: Any = importlib.import_module("tests.sglang_real.tiny")
    path = [_ROOT / "tests/sglang_real/stand_ins", _ROOT, *more]
    given = {"home": str(home), "model": str(home / "model")}
    own = {"PYTHONPATH": os.pathsep.join(map(str, path)), "TMPDIR": str(home),
           "KINETO_LOG_LEVEL": "99", "DRIVE": json.dumps(given)}  # fmt: skip
    env = os.environ | tiny.QUIET | own
    model = [sys.executable, str(_ROOT / "examples/ray_rl/tiny_model.py"), given["model"]]
    subprocess.run(model, env=env, check=True, capture_output=True)
    return subprocess.run([sys.executable, script, *argv], env=env).returncode
