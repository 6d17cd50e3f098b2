"""torch_npu's own analysis of a window, run in a process of its own, and its files checked.

It exits with 0 and writes `analyse.done` even if it failed, so its files are what counts.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from rlprof.session.interpreter import command, environment
from rlprof_npu._raw import OUTPUT, first_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LOG = "analysis.log"
"""Next to torch_npu's folder: what the analysis printed."""
_KILL_S = 10.0
_LONGEST = 4 << 20
"""How much of it is searched for the first error: it may print without end."""


def analyse(made: Path, timeout_s: float) -> str:
    """Analyse torch_npu's folder *made*; return why that failed, as far as torch_npu says."""
    argv = command("rlprof_npu.analysing", str(os.getpid()), str(made))
    log = made.parent / LOG
    # torch_npu imports torch, which would import torch_npu once more.
    env = environment() | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            start_new_session=True, cwd=made.parent,
        )  # fmt: skip
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return f"it took longer than analysis_timeout_s {timeout_s:g}"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # with all it started in its session
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_S)
    with log.open("rb") as stream:
        error = first_error(stream.read(_LONGEST).decode("utf-8", "replace"))
    return error or (f"it ended with {code}" if code else "")


def missing_of(
    made: Path, *, activities: Sequence[str], level: str, exports: Sequence[str]
) -> list[str]:
    """List what the analysis should have left and did not; `_trace` judges the trace."""
    output = made / OUTPUT
    found = []
    has_kernels = "npu" in activities and level != "none"
    if "text" in exports:
        if not (output / "trace_view.json").is_file():
            found.append("it left no trace_view.json")
        if has_kernels and not (output / "kernel_details.csv").is_file():
            found.append("it left no kernel_details.csv")
    if "db" in exports and not any(file.stat().st_size for file in output.glob("*profiler*.db")):
        found.append("it left no database")
    return found
