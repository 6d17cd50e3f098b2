"""SGLang's own profiler: one window of it, in a folder of its own.

SGLang believes what it is told, and a scheduler that fails takes the whole engine with it, often
the process that hosts it, too. So what would make one fail is never sent.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import shutil
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import attrs

from rlprof import CaptureError, safe_name
from rlprof_engine.calls import aside
from rlprof_engine.cuts import Cuts
from rlprof_sglang._engine import RefusedError, UnsaidError
from rlprof_sglang._facts import EXACT, RANGES
from rlprof_sglang._installed import is_version_2
from rlprof_sglang._words import MARK, STATE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlprof import Target, Window
    from rlprof_engine.iterations import Iterations
    from rlprof_sglang._engine import Engine
    from rlprof_sglang._options import SglangOptions

FILES = "native"
"""Where in the window's folder the files of SGLang's profiler are put."""
State = Literal["idle", "armed", "running", "unknown"]
"""What our session is in: `armed`, the schedulers begin it by themselves; `unknown`, a call of it
was not answered, and whatever is sent may be of harm."""

_CUTS = ("update_weights_from_disk", "update_weights_from_distributed",
         "update_weights_from_tensor", "update_weights_from_ipc", "begin_weight_update",
         "release_memory_occupation")  # fmt: skip
"""Methods of a tokenizer manager that end a window."""
_TRACE = re.compile(r"-TP-\d+.*\.trace\.json\.gz$")
_LATE_S = 20
"""Ranks of a later pipeline stage write after the stop is answered; so long they are awaited."""
_LOOK_S = 0.2
_ON_NPU = {
    "profile_id": "torch_npu names its folders itself, one for each process",
    "native_merge": "SGLang merges no folders of torch_npu",
    "flops": "SGLang does not pass it on",
}
"""What stands for nothing where SGLang's torch.profiler is torch_npu's."""


class Native:
    """One window, by SGLang's own profiler."""

    def __init__(
        self, engine: Engine, handle: Any, options: SglangOptions, torch: Mapping[str, Any]
    ) -> None:
        self._engine = engine
        self._options = options
        self._chosen = options.chosen(torch)
        self._contents = options.contents_of(torch)
        self._cuts = Cuts(getattr(handle, "tokenizer_manager", handle), _CUTS)
        self._folder: Path | None = None
        self._is_given_up = False
        """Whether our stop has come and gone while the start was not answered."""
        self.state: State = "idle"
        self.ran: dict[str, int] = {}
        """By the number of the first scheduler of a replica: its steps in the window, if known."""
        self.whys: list[str] = []
        """What went wrong in schedulers, and was caught there by our part."""
        self.applied: dict[str, Any] = {}
        self.unsupported: dict[str, str] = {}

    @property
    def cut(self) -> str:
        """Why the window ended before it was told to; empty: it did not."""
        return self._cuts.reason

    @property
    def folder(self) -> Path | None:
        """The folder of this window's files, on the engine's host; None: it has none yet."""
        return self._folder

    async def start(self, window: Window, target: Target, below: Path, run_id: str) -> None:
        """Start it, in the words its release knows."""
        self._check_version_2()
        self._check_stages()
        self._folder = self._made(below, window, run_id)
        fields = self._fields(window, target)
        self.state = "unknown"  # until it is answered, or refused before it was sent
        try:
            await self._engine.start(fields)
        except TypeError as exc:  # by the frontend, before it asks
            self.state = "idle"
            raise CaptureError(f"sglang: start_profile: {exc}"[:500]) from exc
        except RefusedError:
            self.state = "idle"
            raise
        except UnsaidError as exc:  # our part refuses alike in all schedulers, and says why
            self.state = "idle" if await self._refused() else "running"
            raise CaptureError("; ".join([str(exc), *self.whys])[:500]) from exc
        except RuntimeError as exc:  # refused by a scheduler; another may have begun
            is_theirs = "already in progress" in str(exc)
            self.state = "idle" if is_theirs else "running"
            if self._is_given_up and not is_theirs:
                await self._undo()
            why = "somebody else is profiling this engine" if is_theirs else f"start_profile: {exc}"
            raise CaptureError(f"sglang: {why}"[:500]) from exc
        if self._is_given_up:
            await self._undo()
            return
        self.state = "armed" if self._options.is_by_stage else "running"
        if self._engine.facts.kind != "http":
            self._cuts.watch()

    async def _undo(self) -> None:
        """End a session nobody waits for any more: it would fill the memory of the schedulers."""
        await self._engine.stop()
        self.state = "idle"
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _check_version_2(self) -> None:
        """Refuse where a stop would end the schedulers, which have our environment."""
        if is_version_2():
            raise CaptureError(
                "sglang: SGLANG_PROFILE_V2 is set, whose profiler ends the schedulers when it is "
                "stopped; unset it"
            )

    def _check_stages(self) -> None:
        """Refuse where SGLang would write over its schedulers' memory: see `_stages`."""
        facts = self._engine.facts
        is_safe = facts.is_inside or (bool(facts.release) and facts.release < RANGES)
        if self._options.is_by_stage and not is_safe:
            raise CaptureError(
                f"sglang: by_stage: SGLang {facts.version or '(of an unknown release)'} overwrites "
                "its schedulers' memory between two stages, and they may die of it; start it with "
                "what rlprof.launch gives, whose part in the schedulers prevents that"
            )

    def _made(self, below: Path, window: Window, run_id: str) -> Path:
        """Make the window's folder and write into it: SGLang would try so at the stop, and die."""
        if not self._engine.is_local and self._options.profiler_dir is None:
            raise CaptureError(
                "sglang: the server is on another host; name a folder that both can see: "
                "profiler_dir"
            )
        own = f"step{window.start_step}_{safe_name(run_id)[-20:]}_{secrets.token_hex(4)}"
        folder = below / own
        try:
            folder.mkdir(parents=True)
            probe = folder / ".rlprof"
            probe.write_text("rlprof has seen that files can be written here\n")
            probe.unlink()
            if self._engine.facts.kind == "http":  # which may be another user's
                folder.chmod(0o777)
        except OSError as exc:
            raise CaptureError(
                f"sglang: profiler_dir: {exc}; SGLang would not survive that, so nothing was asked"
            ) from exc
        return folder

    def _fields(self, window: Window, target: Target) -> dict[str, Any]:
        """Write the request, without what this release does not know."""
        options, facts, contents = self._options, self._engine.facts, self._contents
        replica = 0 if target.replica is None else target.replica
        wanted: dict[str, Any] = {
            "output_dir": str(self._folder),
            "activities": list(self._activities()),
            "with_stack": "stack" in contents,
            "record_shapes": "shapes" in contents,
            "profile_id": f"gs{window.start_step}-r{replica}",
        }
        if options.is_by_stage:
            wanted["profile_by_stage"] = True
        if options.is_merged:
            wanted["merge_profiles"] = True
        if options.detailed_annotations:
            wanted["detailed_annotations"] = True
        words = {"merge_profiles": "native_merge"}
        for name in [name for name in wanted if not facts.takes(name)]:
            del wanted[name]
            if name != "profile_id":
                self.unsupported[words.get(name, name)] = f"SGLang {facts.version} has none"
        if "flops" in contents:
            self.unsupported["contents: flops"] = "SGLang's profiler cannot count them"
        if facts.is_npu:
            self._tell_of_npu(wanted)
        self._count(wanted)
        return wanted

    def _activities(self) -> tuple[str, ...]:
        """Say what to record as SGLang does, without what would end a scheduler."""
        options, facts = self._options, self._engine.facts
        if options.activities is not None:
            asked = options.activities
        else:
            named = [word.upper().replace("CUDA", "GPU") for word in self._contents]
            asked = tuple(word for word in ("CPU", "GPU") if word in named) or ("CPU", "GPU")
            if "memory" in self._contents:
                asked = (*asked, "MEM")
        if facts.device == "cpu" and "GPU" in asked:  # torch would warn at best
            if "cuda" in self._contents or options.activities is not None:
                self.unsupported["activities: GPU"] = "the engine runs on a CPU, which is recorded"
            asked = tuple(dict.fromkeys(word.replace("GPU", "CPU") for word in asked))
        needs_cuda = [word for word in ("MEM", "CUDA_PROFILER") if word in asked]
        if facts.device != "cuda":
            where = f"on {facts.device}" if facts.device else "of an engine whose device is unknown"
            for word in needs_cuda:
                self.unsupported[f"activities: {word}"] = f"{where} SGLang's scheduler dies of it"
            asked = tuple(word for word in asked if word not in needs_cuda)
        if "RPD" in asked and not facts.is_inside:  # nobody there would see if it can be had
            self.unsupported["activities: RPD"] = "a scheduler without its packages dies of it"
            asked = tuple(word for word in asked if word != "RPD")
        if not asked:
            raise CaptureError(
                f"sglang: activities: {', '.join(needs_cuda)} need CUDA, and nothing else is asked"
                if needs_cuda
                else "sglang: activities: RPD needs rlprof in the schedulers; add CPU"
            )
        here = {"cuda": "GPU", "npu": "GPU", "xpu": "XPU"}.get(facts.device)
        if not {"CPU", "MEM", "CUDA_PROFILER", "RPD", here} & set(asked):
            raise CaptureError(  # torch would assert, and SGLang catches less than that
                f"sglang: activities: {', '.join(asked)} cannot be recorded on "
                f"{facts.device or 'an unknown device'}; add CPU"
            )
        return asked

    def _tell_of_npu(self, wanted: dict[str, Any]) -> None:
        asked = {"profile_id": True, "native_merge": self._options.is_merged,
                 "flops": "flops" in self._contents}  # fmt: skip
        self.unsupported |= {name: why for name, why in _ON_NPU.items() if asked[name]}
        self.unsupported["npu"] = (
            "SGLang chooses the level and the metrics (Level1, PipeUtilization); a folder for each "
            "process stands for a trace"
        )
        wanted.pop("merge_profiles", None)

    def _count(self, wanted: dict[str, Any]) -> None:
        """Have forward steps counted from the window's begin, or say what cannot be."""
        chosen, facts = self._chosen, self._engine.facts
        if chosen is None:
            return
        if self._options.is_by_stage:
            wanted["num_steps"] = chosen.count
            if chosen.skip:
                self.unsupported["iterations: skip"] = "by stage SGLang passes over no step"
            self.applied["iterations"] = {"count": chosen.count, "of": "each stage"}
            return
        if facts.is_inside and facts.nodes == 1:  # which counts from now on, if all ranks do
            wanted["output_dir"] = MARK + json.dumps(
                {"native": wanted["output_dir"], "skip": chosen.skip, "count": chosen.count}
            )
            self.applied["iterations"] = attrs.asdict(chosen)
            return
        if chosen.skip:
            self.unsupported["iterations: skip"] = (
                "SGLang counts forward steps since its launch and tells nobody how many there "
                "were; rlprof in its schedulers can count from the window's begin"
            )
        if chosen.count is not None:
            is_exact = not facts.release or facts.release >= EXACT
            wanted["num_steps"] = chosen.count + (0 if is_exact else 1)
            self.applied["iterations"] = {"count": chosen.count}

    async def stop(self, folder: Path) -> None:
        """Stop it, whatever became of it, and fetch what it wrote."""
        await self._cuts.unwatch()
        state, self.state = self.state, "unknown"
        self._is_given_up = state == "unknown"
        try:
            if state in ("armed", "running") and not self._cuts.has_stopped:
                await self._engine.stop()
            if state != "unknown":
                self.state = "idle"
                await self._all_are_there()
                await self._ask_of_it()
        except Exception as exc:
            raise CaptureError(f"sglang: stop_profile: {type(exc).__name__}: {exc}"[:500]) from exc
        finally:
            await aside(partial(self._fetch, folder / FILES))  # it may be gigabytes

    async def _refused(self) -> bool:
        """Whether our part in the schedulers did, and why."""
        if self._engine.facts.is_inside:
            with suppress(Exception):  # the engine has gone
                said = [state.get(STATE) or {} for state in await self._engine.states()]
                self.whys = [str(one["refused"]) for one in said if one.get("refused")][:1]
        return bool(self.whys)

    async def _ask_of_it(self) -> None:
        """Ask how many steps there were, for a scheduler without any may leave no trace; and more.

        What our part has caught there is told.
        """
        if not self._engine.facts.is_inside:
            return
        with suppress(Exception):  # the engine has gone
            said = [state.get(STATE) or {} for state in await self._engine.states()]
            self.ran = {str(one["number"]): one["ran"] for one in said if "ran" in one}
            self.whys = [f"worker {one['number']}: {one['why']}" for one in said if one.get("why")]

    async def _all_are_there(self) -> None:
        """Wait for the files of ranks that write after the stop is answered."""
        facts = self._engine.facts
        if facts.pp == 1 or facts.nodes > 1 or self._folder is None:
            return
        for _ in range(round(_LATE_S / _LOOK_S)):
            names = [path.name for path in self._folder.iterdir()]
            if sum(bool(_TRACE.search(name)) for name in names) >= facts.workers:
                return
            await asyncio.sleep(_LOOK_S)

    def _fetch(self, into: Path) -> None:
        """Move the files; the engine's folder of this window goes with the last of them."""
        if self._folder is None:
            return
        if not into.parent.exists():  # answered long after the window was over
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        into.mkdir(exist_ok=True)
        with suppress(OSError):
            for path in sorted(self._folder.iterdir()):
                with suppress(FileNotFoundError):  # somebody tidies up
                    shutil.move(str(path), str(into / path.name))
            if self.state == "idle":
                self._folder.rmdir()


def written(chosen: Iterations | None) -> dict[str, Any]:
    """Write *chosen* as an order has it."""
    return {} if chosen is None else attrs.asdict(chosen)
