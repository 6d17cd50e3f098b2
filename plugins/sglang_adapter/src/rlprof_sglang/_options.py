"""What the engine `sglang` can be asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof_engine.iterations import Iterations, at_least

if TYPE_CHECKING:
    from collections.abc import Mapping

ACTIVITIES = ("CPU", "GPU", "XPU", "MEM", "CUDA_PROFILER", "RPD")
"""SGLang's words for what its profiler records; it passes over any other without a word."""
VERL_CONTENTS = ("cuda", "cpu", "memory", "shapes", "stack", "profile-by-stage", "merge-profiles")
"""verl's words for it."""
_BOUND = 10
"""Steps where verl's words name none and one is needed, the number SGLang's authors propose."""


def _known(_: Any, attribute: Any, value: tuple[str, ...] | None) -> None:
    words = ACTIVITIES if attribute.name == "activities" else VERL_CONTENTS
    for word in value or ():
        if word not in words:
            raise ValueError(f"{word!r} is none of {', '.join(words)}")
    if attribute.name == "activities" and value == ():
        raise ValueError("is empty, and SGLang would record nothing; leave it out for CPU and GPU")


@attrs.frozen
class SglangOptions:
    """Options of `sglang`."""

    way: Literal["auto", "native", "worker"] = "auto"
    """`native`: SGLang's own profiler; `worker`: rlprof's tools inside SGLang's schedulers; `auto`:
    the schedulers where they can be reached, else SGLang's own."""
    iterations: Iterations | None = None
    """Record only some engine steps of a window; none: all of them. By stage: of each stage."""
    requests: bool = True
    """Record the life of each request: queued, prefill, decode, finished."""
    by_stage: bool = False
    """Prefill and decode apart, each in a trace of its own; SGLang's own profiler does it."""
    native_merge: bool = False
    """Have SGLang put all ranks into one file as well: on the scheduler's own thread, where every
    request waits for it, 5 bytes of memory for each of the traces. `rlprof export --to timeline`
    does it elsewhere."""
    detailed_annotations: bool = False
    """Have SGLang's own spans say how long the sequences of each step are (0.5.19)."""
    activities: tuple[str, ...] | None = attrs.field(default=None, validator=_known)
    """What SGLang's own profiler records, in its words; none: CPU, and GPU where there is one."""
    profiler_dir: str | None = None
    """Where SGLang's own profiler writes, on the engine's host; none: below the system's folder for
    temporary files. For a server on another host: a folder that both can see."""
    admin_api_key: str | None = attrs.field(default=None, repr=False)
    """The server's, where it has one. `$NAME`: what that environment variable holds; a config is
    written into the run folder."""
    contents: tuple[str, ...] | None = attrs.field(default=None, validator=_known)
    """verl's words; otherwise what is recorded is said by the tools' own options."""
    step_start: int | None = attrs.field(default=None, validator=at_least(0))
    """verl's word: the first forward step recorded, counted from 1, here in each window anew."""
    step_end: int | None = attrs.field(default=None, validator=at_least(1))
    """verl's word: the forward step after the last one recorded."""

    def __attrs_post_init__(self) -> None:
        if self.step_start is not None or self.step_end is not None:
            if self.iterations is not None:
                raise ValueError("step_start and step_end are iterations by verl's names; name one")
            first, end = self._steps
            if end is not None and end <= first:
                raise ValueError(
                    f"step_end: {end} is not after step_start: {first}; the first step is 1"
                )
        if self.is_by_stage and self.contents is None and self._count is None:
            raise ValueError(
                "by_stage needs iterations: {count: N}, so many steps of each stage; without it "
                "SGLang's scheduler dies at its next prefill"
            )

    @property
    def inside(self) -> SglangOptions:
        """The same for our own tools in the schedulers, which have contents of their own."""
        return attrs.evolve(self, contents=None)

    @property
    def key(self) -> str | None:
        """The server's key itself, whether it is written here or in the environment."""
        said = self.admin_api_key
        return os.environ.get(said[1:]) if said is not None and said.startswith("$") else said

    @property
    def _steps(self) -> tuple[int, int | None]:
        """Verl's two: it takes a 0 for the first step, which is 1, and ends after one at least."""
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
        """Return the engine steps to record, in whatever words they were asked for.

        *tool*: the options of the tool torch.
        """
        asked = self._asked
        if self.unbounded(tool):
            return Iterations(_BOUND, 0 if asked is None else asked.skip)
        return asked

    def unbounded(self, tool: Mapping[str, Any]) -> str:
        """Say what was asked that needs a number of steps, and has none; empty: nothing."""
        if self._count is not None:
            return ""
        if self.is_by_stage:
            return "by stage"
        return "stack" if "stack" in self.contents_of(tool) else ""

    def foreign(self, tool: Mapping[str, Any]) -> dict[str, str]:
        """Return what was asked in verl's words, and what they were taken for where it differs."""
        found = {}
        if self.step_start is not None or self.step_end is not None:
            name = "step_end" if self.step_start is None else "step_start"
            asked = self._asked
            took = "" if asked is None else _written(asked)
            found[name] = (
                "SGLang counts forward steps since its launch; taken for "
                f"iterations: {{{took}}} of each window"
            )
        if what := self.unbounded(tool):
            found["iterations"] = f"{what} needs a number of steps: {_BOUND} were taken"
        return found

    @property
    def is_by_stage(self) -> bool:
        """Whether stages are recorded apart, in whatever words that was asked for."""
        return self.by_stage or "profile-by-stage" in (self.contents or ())

    @property
    def is_merged(self) -> bool:
        """Whether SGLang is to merge, in whatever words that was asked for."""
        return self.native_merge or "merge-profiles" in (self.contents or ())

    @property
    def needs_native(self) -> tuple[str, ...]:
        """What was asked that only SGLang's own profiler can do."""
        asked = {
            "contents": bool(self.contents),
            "by_stage": self.is_by_stage,
            "native_merge": self.is_merged,
            "detailed_annotations": self.detailed_annotations,
            "activities": self.activities is not None,
        }
        return tuple(name for name, is_asked in asked.items() if is_asked)

    def contents_of(self, tool: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the contents to record besides operators: verl's options, or the tool torch's."""
        asked = tool.get("contents", ()) if self.contents is None else self.contents
        return tuple(word for word in asked if not word.endswith(("-stage", "-profiles")))


def _written(chosen: Iterations) -> str:
    count = "" if chosen.count is None else f", count: {chosen.count}"
    return f"skip: {chosen.skip}{count}"
