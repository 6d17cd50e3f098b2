"""Other profilers: announced in the environment, or active in this process.

Two profilers can rarely share a resource (CUPTI, the interpreter's hook, Kineto): in most cases,
one of them records nothing and does not say so.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof_cli.doctor._finding import Finding, unless_wrong

if TYPE_CHECKING:
    from collections.abc import Mapping

_INJECTED = "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "CUPTI_INJECTION64_PATH"
"""Variables whose libraries NVTX, CUDA and CUPTI load into every process that uses them."""

_ANNOUNCED = {
    "NSYS_PROFILING_SESSION_ID": "Nsight Systems records this process",
    "NV_COMPUTE_PROFILER_PERFWORKS_DIR": "Nsight Compute records this process",
    "NV_NSIGHT_INJECTION_TRANSPORT_TYPE": "Nsight Compute records this process",
    "NV_NSIGHT_INJECTION_PORT_BASE": "Nsight Compute records this process",
    "KINETO_USE_DAEMON": "dynolog may start Kineto in this process at any time",
    "MSMONITOR_USE_DAEMON": "msmonitor may start a profiler in this process at any time",
    "PROFILING_MODE": "msprof records this process",
    "PROFILER_SAMPLECONFIG": "msprof records this process",
}
"""Variables that a profiler sets in the environment of a recorded process."""

_PRELOADED = re.compile(
    r"ToolsInjection|InterceptorInjection|TreeLauncher|nsys|nsight|ncu|mspti|msprof|rocprof|"
    r"roctracer|cupti|vtune|ittnotify|dynolog|heaptrack|memray|libprofiler|gprofng|asan|tsan",
    re.IGNORECASE,
)
_ONE_RECORDS = "two profilers at once lose data; start the run without it, or leave our tool out"
_OFF = frozenset({"", "0", "false", "FALSE", "off"})


def look_at_environment(env: Mapping[str, str] | None = None) -> list[Finding]:
    """Name the profilers that the environment loads into every process started here."""
    env = os.environ if env is None else env
    wrong = []
    for name in _INJECTED:
        library = env.get(name)
        if library:
            there = "" if Path(library).exists() else ", which is not there,"
            what = f"is set: {library}{there} is loaded into every process"
            wrong.append(Finding("warn", name, what, f"unset it for this run; {_ONE_RECORDS}"))
    for library in re.split(r"[:\s]+", env.get("LD_PRELOAD", "")):
        if _PRELOADED.search(Path(library).name):
            what = f"{library} is another profiler's"
            wrong.append(Finding("warn", "LD_PRELOAD", what, _ONE_RECORDS))
    for name, what in _ANNOUNCED.items():
        if env.get(name, "") not in _OFF:
            wrong.append(Finding("warn", name, what, _ONE_RECORDS))
    if env.get("CUDA_LAUNCH_BLOCKING", "") not in _OFF:
        what = "the CPU waits for every kernel, so a trace does not show your normal run"
        wrong.append(Finding("warn", "CUDA_LAUNCH_BLOCKING", what, "unset it for this run"))
    return unless_wrong("environment", "brings no other profiler", wrong)


def look_at_process() -> list[Finding]:
    """Name the profilers and debuggers that are active in the calling process right now."""
    wrong = [*_tracer(), *_hooks(), *_torch()]
    return unless_wrong("process", "no other profiler is active in it", wrong)


def _tracer() -> list[Finding]:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux: there is no other source
        return []
    pid = next((line.split()[1] for line in status.splitlines() if "TracerPid" in line), "0")
    if pid == "0":
        return []
    try:
        name = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        name = "?"
    what = f"it is traced by pid {pid} ({name}), which may stop it at any moment"
    return [Finding("warn", "process", what, "detach the debugger before you trust a duration")]


def _hooks() -> list[Finding]:
    found = {"sys.setprofile": sys.getprofile(), "sys.settrace": sys.gettrace()}
    return [
        Finding(
            "warn", "process", f"{_named(hook)} is called for every function ({name})",
            "end the other profiler, debugger or coverage first; it is in every trace",
        )
        for name, hook in found.items()
        if hook is not None
    ]  # fmt: skip


def _named(hook: Any) -> str:
    kind = hook if isinstance(hook, type) or hasattr(hook, "__qualname__") else type(hook)
    return f"{getattr(hook, '__module__', None) or kind.__module__}.{kind.__qualname__}"


def _torch() -> list[Finding]:
    """Check torch if it is imported already; importing it would not be cheap."""
    from rlprof.session import _current

    profiler: Any = sys.modules.get("torch.autograd.profiler")
    ours = _current.session is not None and _current.session.is_recording
    if profiler is None or ours or not getattr(profiler, "_is_profiler_enabled", False):
        return []
    what = "a torch profiler is running in it, so that no window of torch can open"
    return [Finding("BAD", "process", what, "stop it before rlprof records (two lose both traces)")]
