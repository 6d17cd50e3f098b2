"""The options of the engine `vllm`."""

from __future__ import annotations

from typing import Literal

import attrs

from rlprof_engine.iterations import Iterations, at_least


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
    profile_token_start: int | None = attrs.field(default=None, validator=at_least(0))
    """verl's name; read as `iterations.skip`, because vLLM counts engine steps, not tokens."""
    profile_token_end: int | None = attrs.field(default=None, validator=at_least(1))
    """verl's name; the engine step after the last recorded one."""

    def __attrs_post_init__(self) -> None:
        start, end = self.profile_token_start, self.profile_token_end
        if start is not None or end is not None:
            if self.iterations is not None:
                raise ValueError(
                    "profile_token_start and _end are verl's names for iterations; use one "
                    "or the other"
                )
            if end is not None and end <= (start or 0):
                raise ValueError(
                    f"profile_token_end: {end} is not after profile_token_start: {start or 0}"
                )

    @property
    def chosen(self) -> Iterations | None:
        """The engine steps to record, by either kind of option."""
        start, end = self.profile_token_start or 0, self.profile_token_end
        return self.iterations if end is None else Iterations(end - start, start)

    @property
    def foreign(self) -> dict[str, str]:
        """Options that mean something else in vLLM, and how they were read."""
        if self.profile_token_start is None and self.profile_token_end is None:
            return {}
        took = "nothing without profile_token_end"
        if self.chosen is not None:
            took = f"iterations: {{skip: {self.chosen.skip}, count: {self.chosen.count}}}"
        name = "profile_token_start" if self.profile_token_end is None else "profile_token_end"
        return {name: f"vLLM counts engine steps, not tokens of a response; read as {took}"}
