"""What to launch an engine with so that it can be recorded: arguments, or for old versions env.

We read the sources of the installed vLLM: an import takes seconds, and vLLM may not be installed
here.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlprof import Launch, safe_name
from rlprof_vllm._facts import CONTENTS
from rlprof_vllm._installed import PLUGIN, PROFILER, fields, has_known_profiler, sources_here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlprof import Target
    from rlprof_vllm._options import VllmOptions

_OLDEST = ("profiler", "torch_profiler_dir", "torch_profiler_with_stack",
           "torch_profiler_with_flops", "torch_profiler_use_gzip",
           "torch_profiler_dump_cuda_time_total", "torch_profiler_record_shapes",
           "torch_profiler_with_memory", "ignore_frontend", "delay_iterations",
           "max_iterations")  # fmt: skip
"""Fields of ProfilerConfig since 0.13: assumed if no vLLM is installed here."""


def engine_launch(
    options: VllmOptions, target: Target, tools: Mapping[str, Mapping[str, Any]]
) -> Launch:
    """Return what the engine of *target* must be launched with."""
    arguments: dict[str, Any] = {}
    env: dict[str, str] = {}
    if options.requests:
        arguments["disable_log_stats"] = False  # without its statistics vLLM times no request
    if options.way != "worker":
        wanted = _wanted(options, target, tools)
        sources = sources_here()
        known = _OLDEST if sources is None else fields(sources, PROFILER, "ProfilerConfig")
        if sources is not None and not has_known_profiler(sources):
            pass  # vLLM would refuse to start with half of it; the window says what is missing
        elif known:
            arguments["profiler_config"] = {k: v for k, v in wanted.items() if k in known}
        elif sources is not None:
            env |= _env(wanted, (sources / "envs.py").read_text(encoding="utf-8"))
    if options.way != "native":
        env |= _admitted(os.environ.get("VLLM_PLUGINS"))
        if "nsys" in tools:  # it cannot see a process forked without exec
            env["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
    return Launch(env=env, engine_args=arguments)


def server_args(launch: Launch) -> list[str]:
    """Return the engine arguments of *launch* as the command line of vLLM's server."""
    found = []
    for name, value in launch.engine_args.items():
        flag = "--" + name.replace("_", "-")
        if value is False and name.startswith("disable_"):
            continue  # the server's default
        if value is True:
            found.append(flag)
        else:
            found += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    return found


def profiler_dir(options: VllmOptions, target: Target) -> str:
    """Return the folder that vLLM's own profiler writes to; this needs no engine."""
    if options.profiler_dir is not None:
        return str(Path(options.profiler_dir).absolute())
    name = f"{safe_name(target.role)}_{target.rank}"
    return str(Path(tempfile.gettempdir(), f"rlprof-vllm-{safe_name(getpass.getuser())}", name))


def _wanted(
    options: VllmOptions, target: Target, tools: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the settings of vLLM's own profiler, by the names of its newest version.

    Keep it light: the engine stops for tables and for compression, so do without both. A profiler
    in the frontend would crash together with one of the hosting process, so do without it, too.
    """
    contents = tools.get("torch", {}).get("contents", ())
    wanted: dict[str, Any] = {
        "profiler": "torch",
        "torch_profiler_dir": profiler_dir(options, target),
        **{name: word in contents for word, name in CONTENTS.items()},
        "torch_profiler_use_gzip": False,
        "torch_profiler_dump_cuda_time_total": False,
        "ignore_frontend": True,
    }
    if options.chosen is not None:
        wanted |= native_iterations(options.chosen)
    return wanted


def native_iterations(chosen: Any) -> dict[str, int]:
    """Translate *chosen* for vLLM: with a delay of N, it begins with step N, not after it."""
    delay = chosen.skip + 1 if chosen.skip else 0
    return {"delay_iterations": delay, "max_iterations": chosen.count or 0}


_VARIABLES = {
    "torch_profiler_dir": "VLLM_TORCH_PROFILER_DIR",
    "torch_profiler_with_stack": "VLLM_TORCH_PROFILER_WITH_STACK",
    "torch_profiler_record_shapes": "VLLM_TORCH_PROFILER_RECORD_SHAPES",
    "torch_profiler_with_memory": "VLLM_TORCH_PROFILER_WITH_PROFILE_MEMORY",
    "torch_profiler_with_flops": "VLLM_TORCH_PROFILER_WITH_FLOPS",
    "torch_profiler_use_gzip": "VLLM_TORCH_PROFILER_USE_GZIP",
    "torch_profiler_dump_cuda_time_total": "VLLM_TORCH_PROFILER_DUMP_CUDA_TIME_TOTAL",
    "ignore_frontend": "VLLM_TORCH_PROFILER_DISABLE_ASYNC_LLM",
    "delay_iterations": "VLLM_PROFILER_DELAY_ITERS",
    "max_iterations": "VLLM_PROFILER_MAX_ITERS",
}
"""The environment variables for these settings before 0.13."""


def _env(wanted: Mapping[str, Any], envs: str) -> dict[str, str]:
    """Express *wanted* in variables of the installed vLLM; *envs*: the text of its `envs.py`."""
    known = set(re.findall(r"VLLM_[A-Z_]+", envs))
    return {
        variable: value if isinstance(value, str) else str(int(value))
        for field, variable in _VARIABLES.items()
        if variable in known and (value := wanted.get(field)) is not None
    }


def _admitted(allowed: str | None) -> dict[str, str]:
    """Add our plugin to VLLM_PLUGINS, if that names the plugins to load."""
    if allowed is None or PLUGIN in allowed.split(","):
        return {}
    return {"VLLM_PLUGINS": ",".join(filter(None, [*allowed.split(","), PLUGIN]))}
