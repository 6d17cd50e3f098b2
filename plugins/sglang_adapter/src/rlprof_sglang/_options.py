"""The options of the engine `sglang`."""

from __future__ import annotations

import os
from typing import Any, Literal

import attrs

from rlprof_engine.iterations import Iterations  # noqa: TC001 -- core reads the hints

ACTIVITIES = ("CPU", "GPU", "XPU", "MEM", "CUDA_PROFILER")
"""SGLang's names for what its profiler records; it silently ignores any other."""


def _known(_: Any, __: Any, value: tuple[str, ...] | None) -> None:
    for word in value or ():
        if word not in ACTIVITIES:
            raise ValueError(f"{word!r} is not one of {', '.join(ACTIVITIES)}")
    if value == ():
        raise ValueError("is empty, and SGLang would record nothing; leave it out for CPU and GPU")


@attrs.frozen
class SglangOptions:
    """Options of `sglang`."""

    way: Literal["auto", "native", "worker"] = "auto"
    """`native`: SGLang's own profiler; `worker`: rlprof's tools inside SGLang's schedulers; `auto`:
    `worker` if the schedulers can be reached, else `native`."""
    iterations: Iterations | None = None
    """Record only some engine steps of a window; none: all of them. By stage: of each stage."""
    requests: bool = True
    """Record the life of each request: queued, prefill, decode, finished."""
    by_stage: bool = False
    """Record prefill and decode in separate traces; SGLang's own profiler does it."""
    native_merge: bool = False
    """Let SGLang also merge all ranks into one file. It merges on the scheduler's own thread, so
    every request waits, and it needs 5 bytes of memory per byte of the traces. `rlprof export --to
    timeline` merges elsewhere."""
    activities: tuple[str, ...] | None = attrs.field(default=None, validator=_known)
    """What SGLang's own profiler records, by its names; none: CPU, and GPU if there is one."""
    profiler_dir: str | None = None
    """The folder of SGLang's own profiler, on the engine's host; none: one below the system's
    folder for temporary files. For a server on another host, name a folder that both can see."""
    admin_api_key: str | None = attrs.field(default=None, repr=False)
    """The server's key, if it has one. Write `$NAME` to read it from that environment variable,
    because the config is written into the run folder."""

    def __attrs_post_init__(self) -> None:
        if self.by_stage and (self.iterations is None or self.iterations.count is None):
            raise ValueError(
                "by_stage needs iterations: {count: N}, the steps of each stage; without it "
                "SGLang's scheduler dies at its next prefill"
            )

    @property
    def key(self) -> str | None:
        """The server's key itself, from here or from the environment."""
        key = self.admin_api_key
        return os.environ.get(key[1:]) if key is not None and key.startswith("$") else key

    @property
    def needs_native(self) -> tuple[str, ...]:
        """The options that only SGLang's own profiler can carry out."""
        asked = {
            "by_stage": self.by_stage,
            "native_merge": self.native_merge,
            "activities": self.activities is not None,
        }
        return tuple(name for name, is_asked in asked.items() if is_asked)
