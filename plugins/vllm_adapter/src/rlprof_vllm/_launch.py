"""What to launch an engine with so that it can be recorded.

We read the sources of the installed vLLM: an import takes seconds, and vLLM may not be installed
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlprof import Launch
from rlprof_engine.launching import admitted, profiler_dir
from rlprof_vllm._facts import CONTENTS
from rlprof_vllm._installed import has_known_profiler, profiler_fields, sources_here

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
        known = _OLDEST if sources is None else profiler_fields(sources)
        if sources is None or has_known_profiler(sources):  # else the window says what is missing
            arguments["profiler_config"] = {k: v for k, v in wanted.items() if k in known}
    if options.way != "native":
        env |= admitted("VLLM_PLUGINS")
        if "nsys" in tools:  # it cannot see a process forked without exec
            env["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
    return Launch(env=env, engine_args=arguments)


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
        "torch_profiler_dir": str(profiler_dir("vllm", options.profiler_dir, target)),
        **{name: word in contents for word, name in CONTENTS.items()},
        "torch_profiler_use_gzip": False,
        "torch_profiler_dump_cuda_time_total": False,
        "ignore_frontend": True,
    }
    if options.iterations is not None:
        wanted |= native_iterations(options.iterations)
    return wanted


def native_iterations(chosen: Any) -> dict[str, int]:
    """Translate *chosen* for vLLM: with a delay of N, it begins with step N, not after it."""
    delay = chosen.skip + 1 if chosen.skip else 0
    return {"delay_iterations": delay, "max_iterations": chosen.count or 0}
