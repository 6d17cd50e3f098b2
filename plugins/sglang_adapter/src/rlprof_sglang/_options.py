"""The options of the engine `sglang`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof_engine.iterations import Iterations, at_least

if TYPE_CHECKING:
    from collections.abc import Mapping

ACTIVITIES = ("CPU", "GPU", "XPU", "MEM", "CUDA_PROFILER")
"""SGLang's names for what its profiler records; it silently ignores any other."""
VERL_CONTENTS = ("cuda", "cpu", "memory", "shapes", "stack", "profile-by-stage", "merge-profiles")
"""verl's names for what to record."""
_BOUND = 10
"""Number of steps if one is needed and verl's options give none; SGLang's authors propose it."""


def _known(_: Any, attribute: Any, value: tuple[str, ...] | None) -> None:
    words = ACTIVITIES if attribute.name == "activities" else VERL_CONTENTS
    for word in value or ():
        if word not in words:
            raise ValueError(f"{word!r} is not one of {', '.join(words)}")
    if attribute.name == "activities" and value == ():
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
    contents: tuple[str, ...] | None = attrs.field(default=None, validator=_known)
    """verl's names for what to record; none: the options of the tools apply."""
    step_start: int | None = attrs.field(default=None, validator=at_least(0))
    """verl's name; the first forward step to record, counted from 1 in each window."""
    step_end: int | None = attrs.field(default=None, validator=at_least(1))
    """verl's name; the forward step after the last recorded one."""

    def __attrs_post_init__(self) -> None:
        if self.step_start is not None or self.step_end is not None:
            if self.iterations is not None:
                raise ValueError(
                    "step_start and step_end are verl's names for iterations; use one or the other"
                )
            first, end = self._steps
            if end is not None and end <= first:
                raise ValueError(
                    f"step_end: {end} is not after step_start: {first}; the first step is 1"
                )
        if self.is_by_stage and self.contents is None and self._count is None:
            raise ValueError(
                "by_stage needs iterations: {count: N}, the steps of each stage; without it "
                "SGLang's scheduler dies at its next prefill"
            )

    @property
    def inside(self) -> SglangOptions:
        """The options for our own tools in the schedulers; those tools have their own contents."""
        return attrs.evolve(self, contents=None)

    @property
    def key(self) -> str | None:
        """The server's key itself, from here or from the environment."""
        said = self.admin_api_key
        return os.environ.get(said[1:]) if said is not None and said.startswith("$") else said

    @property
    def _steps(self) -> tuple[int, int | None]:
        """Verl's first and end step: it reads 0 as the first step, 1, and records at least one."""
        return max(1, self.step_start or 1), None if self.step_end is None else max(
            2, self.step_end
        )

    @property
    def _count(self) -> int | None:
        chosen = self._asked
        return None if chosen is None else chosen.count

    @property
    def _asked(self) -> Iterations | None:
        if self.step_start is None and self.step_end is None:
            return self.iterations
        first, end = self._steps
        return Iterations(None if end is None else end - first, first - 1)

    def chosen(self, tool: Mapping[str, Any]) -> Iterations | None:
        """Return the engine steps to record, by either kind of option.

        *tool*: the options of the tool torch.
        """
        asked = self._asked
        if self.unbounded(tool):
            return Iterations(_BOUND, 0 if asked is None else asked.skip)
        return asked

    def unbounded(self, tool: Mapping[str, Any]) -> str:
        """Name the option that needs a number of steps and has none; empty: no option."""
        if self._count is not None:
            return ""
        if self.is_by_stage:
            return "by stage"
        return "stack" if "stack" in self.contents_of(tool) else ""

    def foreign(self, tool: Mapping[str, Any]) -> dict[str, str]:
        """Return verl's options that mean something else in SGLang, and how they were read."""
        found = {}
        if self.step_start is not None or self.step_end is not None:
            name = "step_end" if self.step_start is None else "step_start"
            found[name] = (
                "SGLang counts forward steps since its launch; read as "
                f"iterations: {{{_written(self._asked or Iterations())}}} of each window"
            )
        if what := self.unbounded(tool):
            found["iterations"] = f"{what} needs a number of steps; {_BOUND} is used"
        return found

    @property
    def is_by_stage(self) -> bool:
        """Whether stages are recorded separately, by either kind of option."""
        return self.by_stage or "profile-by-stage" in (self.contents or ())

    @property
    def is_merged(self) -> bool:
        """Whether SGLang is to merge, by either kind of option."""
        return self.native_merge or "merge-profiles" in (self.contents or ())

    @property
    def needs_native(self) -> tuple[str, ...]:
        """The options that only SGLang's own profiler can carry out."""
        asked = {
            "contents": bool(self.contents),
            "by_stage": self.is_by_stage,
            "native_merge": self.is_merged,
            "activities": self.activities is not None,
        }
        return tuple(name for name, is_asked in asked.items() if is_asked)

    def contents_of(self, tool: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the contents to record besides operators: verl's, or those of the tool torch."""
        asked = tool.get("contents", ()) if self.contents is None else self.contents
        return tuple(word for word in asked if not word.endswith(("-stage", "-profiles")))


def _written(chosen: Iterations) -> str:
    count = "" if chosen.count is None else f", count: {chosen.count}"
    return f"skip: {chosen.skip}{count}"
