"""What is known of an engine without a call to it.

A call can do harm: if it fails in the workers, it leaves answers unread. Every later call of the
engine then gets the answer of the previous call. So first read what can be seen from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rlprof_engine.answers import parameters_of, version_of
from rlprof_vllm import inside

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

METHODS = ("is_sleeping", "is_paused", "collective_rpc", "start_profile", "stop_profile")
"""Methods that an engine may have."""
CONTENTS = {
    "stack": "torch_profiler_with_stack",
    "shapes": "torch_profiler_record_shapes",
    "memory": "torch_profiler_with_memory",
    "flops": "torch_profiler_with_flops",
}
"""Contents of the tool torch, and the names of vLLM's own profiler for them."""
_COUNTS = ("delay_iterations", "max_iterations")
"""Its fields that count engine steps."""


@attrs.frozen
class Facts:
    """What can be seen of an engine from outside."""

    kind: str
    """How it is reached: `AsyncLLM`, `LLM`, `http`, or the class of the handle."""
    version: str = ""
    parameters: tuple[str, ...] = ()
    """The parameters of its `start_profile`."""
    profiler: str | None = None
    """vLLM's own profiler as the engine was launched: `torch`, `cuda`, `proton`, empty for none;
    None: unknown."""
    directory: str | None = None
    """The folder in which that profiler writes."""
    at_launch: Mapping[str, int] = attrs.field(factory=dict)
    """Its counts of engine steps unless a call sets others."""
    contents: tuple[str, ...] = ()
    """The contents that vLLM's own profiler was launched to record besides operators."""
    records_frontend: bool = False
    """Whether that profiler also records this process."""
    tp: int = 1
    pp: int = 1
    dp: int = 1
    has_layout: bool = False
    """Whether the sizes above are known."""
    device: str = ""
    is_here: bool = False
    """Whether its only worker runs in this process."""
    can_tell_workers: bool = False
    """Whether rlprof's code is in its workers."""
    methods: tuple[str, ...] = ()

    @property
    def workers(self) -> int:
        """Number of its workers."""
        return self.tp * self.pp * self.dp

    @property
    def is_npu(self) -> bool:
        """Whether vllm-ascend runs the workers; its profiler lacks newer options of vLLM."""
        return self.device == "npu"

    @property
    def has_prefix(self) -> bool:
        """Whether each session has its own prefix; before 0.32, the first one's stayed."""
        return "profile_prefix" in self.parameters and self.has_iterations

    @property
    def has_iterations(self) -> bool:
        """Whether each session counts its own engine steps: since 0.32, except on NPUs."""
        return "max_iterations" in self.parameters and not self.is_npu


async def looked_inside(facts: Facts, call: Callable[..., Awaitable[Any]]) -> Facts:
    """Check that all workers have our method, by a call that cannot fail in any of them."""
    if not facts.can_tell_workers:
        return facts
    found = await call("collective_rpc", "__dir__")
    has_it = bool(found) and all(inside.METHOD in names for names in found)
    return attrs.evolve(facts, can_tell_workers=has_it)


def seen(handle: Any) -> Facts:
    """Read the facts of an AsyncLLM, an LLM, or any object with the same methods."""
    start = getattr(handle, "start_profile", None)
    inner = getattr(handle, "llm_engine", handle)
    config = getattr(inner, "vllm_config", None)
    parallel = getattr(config, "parallel_config", None)
    # In an LLM, the inner engine has `is_sleeping`.
    known = tuple(name for name in METHODS if any(hasattr(one, name) for one in (handle, inner)))
    if parallel is None or callable(parallel):  # a proxy: all its attributes are methods
        return Facts(type(handle).__name__, parameters=parameters_of(start), methods=known)
    profiler = getattr(config, "profiler_config", None)
    is_here = type(getattr(inner, "engine_core", None)).__name__ == "InprocClient"
    if is_here:  # a worker of this process also takes our plugin late, installed during the run
        inside.install()
    return Facts(
        type(handle).__name__,
        version=version_of("vllm"),
        parameters=parameters_of(start),
        profiler=getattr(profiler, "profiler", "") or "",
        directory=getattr(profiler, "torch_profiler_dir", None),
        contents=tuple(w for w, name in CONTENTS.items() if getattr(profiler, name, False)),
        at_launch={name: getattr(profiler, name, 0) for name in _COUNTS},
        records_frontend=profiler is not None and not getattr(profiler, "ignore_frontend", False),
        tp=parallel.tensor_parallel_size,
        pp=parallel.pipeline_parallel_size,
        dp=parallel.data_parallel_size,
        has_layout=True,
        device=str(getattr(getattr(config, "device_config", None), "device_type", "")),
        is_here=is_here,
        # If vLLM has loaded our plugin here, it also loads it in the workers.
        can_tell_workers=inside.installed and hasattr(handle, "collective_rpc"),
        methods=known,
    )  # fmt: skip
