"""The request to SGLang's own profiler for one window.

Options that would end a scheduler are left out and reported, or refused if nothing else is asked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError
from rlprof_sglang._words import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlprof import Target, Window
    from rlprof_sglang._facts import Facts
    from rlprof_sglang._options import SglangOptions

_HERE = {"cuda": {"GPU", "MEM", "CUDA_PROFILER"}, "npu": {"GPU"}, "xpu": {"XPU"}}
"""What can be recorded on a device, besides CPU."""


@attrs.define
class Request:
    """A request to start profiling, and which options it can carry."""

    options: SglangOptions
    facts: Facts
    tool: Mapping[str, Any]
    """The options of the tool torch."""
    longest_s: float | None = None
    """How long the run may keep the session open; None: unknown."""
    applied: dict[str, Any] = attrs.field(factory=dict)
    unsupported: dict[str, str] = attrs.field(factory=dict)

    @property
    def _contents(self) -> Sequence[str]:
        found: Sequence[str] = self.tool.get("contents", ())
        return found

    def fields(self, folder: Path, window: Window, target: Target) -> dict[str, Any]:
        """Return the fields of the request."""
        options, facts, contents = self.options, self.facts, self._contents
        replica = 0 if target.replica is None else target.replica
        wanted: dict[str, Any] = {
            "output_dir": str(folder),
            "activities": list(self.activities()),
            "with_stack": "stack" in contents,
            "record_shapes": "shapes" in contents,
            "profile_id": f"gs{window.start_step}-r{replica}",
        }
        if options.by_stage:
            wanted["profile_by_stage"] = True
        if options.native_merge:
            wanted["merge_profiles"] = True
        if "flops" in contents:
            self.unsupported["contents: flops"] = "SGLang's profiler cannot count them"
        if facts.is_npu:
            wanted.pop("merge_profiles", None)
            self.unsupported["npu"] = (
                "SGLang chooses the level and the metrics; each process writes a folder that "
                "torch_npu names, and SGLang does not merge these"
            )
        shown = ("activities", "with_stack", "record_shapes")
        self.applied |= {name: wanted[name] for name in shown}
        self._count(wanted)
        return wanted

    def activities(self) -> tuple[str, ...]:
        """Return the activities by SGLang's names, without those that would end a scheduler."""
        chosen, device = self.options.activities, self.facts.device
        named = [word.upper().replace("CUDA", "GPU") for word in self._contents]
        asked = chosen or tuple(word for word in ("CPU", "GPU") if word in named) or ("CPU", "GPU")
        if chosen is None and "memory" in self._contents:
            asked = (*asked, "MEM")
        if device == "cpu" and "GPU" in asked:  # torch would warn at best
            if "cuda" in self._contents or chosen is not None:
                self.unsupported["activities: GPU"] = "the engine runs on a CPU; CPU is recorded"
            asked = tuple(dict.fromkeys(word.replace("GPU", "CPU") for word in asked))
        where, here = device or "an unknown device", {"CPU"} | _HERE.get(device, set())
        if not here & set(asked):  # torch would assert, and SGLang catches less than that
            raise CaptureError(
                f"sglang: activities: {', '.join(asked)} cannot be recorded on {where}; add CPU"
            )
        for word in {"MEM", "CUDA_PROFILER"} & set(asked) - here:
            self.unsupported[f"activities: {word}"] = f"on {where} it kills SGLang's scheduler"
            asked = tuple(other for other in asked if other != word)
        return asked

    def _count(self, wanted: dict[str, Any]) -> None:
        """Count forward steps from the start of the window, or report what cannot be counted."""
        chosen, facts = self.options.iterations, self.facts
        if self.options.by_stage and chosen is not None:
            wanted["num_steps"] = chosen.count
            if chosen.skip:
                self.unsupported["iterations: skip"] = "by stage SGLang skips no step"
            self.applied["iterations"] = {"count": chosen.count, "of": "each stage"}
            return
        counted = {} if chosen is None else attrs.asdict(chosen)
        if facts.is_inside and facts.nodes == 1:  # it counts from now on, if all ranks do
            folder, usual = wanted["output_dir"], {"skip": 0, "count": None}
            message = {"native": folder, "longest_s": self.longest_s} | usual | counted
            wanted["output_dir"] = MARK + json.dumps(message)
            self.applied |= {"iterations": counted} if counted else {}
            return
        if chosen is None:
            return
        if chosen.skip:
            self.unsupported["iterations: skip"] = (
                "SGLang counts forward steps since its launch and does not report the count; "
                "rlprof in its schedulers can count from the start of the window"
            )
        if chosen.count is not None:
            wanted["num_steps"] = chosen.count
            self.applied["iterations"] = {"count": chosen.count}
