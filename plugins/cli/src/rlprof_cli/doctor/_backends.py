"""Extensions that `import torch` loads: a broken one breaks every import of torch."""

from __future__ import annotations

import os

from rlprof_cli.doctor._child import ask
from rlprof_cli.doctor._finding import Finding

_SWITCH = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_WHERE = "torch.backends"


def look_at_backends(timeout_s: float) -> list[Finding]:
    """Import torch as training would, if extensions are loaded with it; then without them."""
    found = ask("backends", timeout_s=timeout_s)
    if found.fault:
        advice = "repair the distribution; torch reads all of them when it is imported"
        return [Finding("BAD", _WHERE, f"reading the entry points {found.fault}", advice)]
    if not found.value:
        return []
    names = ", ".join(found.value)
    if os.environ.get(_SWITCH) == "0":
        what = f"{names}: not loaded with torch, because {_SWITCH} is 0"
        return [Finding("warn", _WHERE, what, "import it yourself where you need it")]
    whole = ask("import_torch", timeout_s=timeout_s)
    if not whole.fault:
        return [Finding("ok", _WHERE, f"{names}: loaded with torch {whole.value}")]
    if whole.raised and whole.raised[-1].startswith("ModuleNotFoundError: No module named 'torch'"):
        return []  # reported by the tools that need torch
    alone = ask("import_torch", timeout_s=timeout_s, env={_SWITCH: "0"})
    if alone.fault:  # it fails without extensions too, so torch itself is broken
        return [Finding("BAD", "torch", f"its import {whole.fault}", "reinstall torch")]
    cause = f" (cause: {whole.raised[0]})" if len(whole.raised) > 1 else ""
    what = f"{names}: breaks every `import torch`, which {whole.fault}{cause}"
    advice = f"set {_SWITCH}=0 for the run, or repair or uninstall it"
    return [Finding("BAD", _WHERE, what, advice)]
