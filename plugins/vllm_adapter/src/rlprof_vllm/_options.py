"""The options of the engine `vllm`."""

from __future__ import annotations

from typing import Literal

import attrs

from rlprof_engine.iterations import Iterations  # noqa: TC001 -- core reads the hints


@attrs.frozen
class VllmOptions:
    """Options of `vllm`."""

    way: Literal["auto", "native", "worker"] = "auto"
    """`native`: vLLM's own profiler; `worker`: rlprof's tools inside vLLM's workers; `auto`:
    `worker` if the workers can be reached, else `native`."""
    iterations: Iterations | None = None
    """Record only some engine steps of a window; none: all of them."""
    requests: bool = True
    """Record the life of each request: queued, prefill, decode, finished."""
    profiler_dir: str | None = None
    """The folder of vLLM's own profiler, on the engine's host; none: one below the system's folder
    for temporary files."""
