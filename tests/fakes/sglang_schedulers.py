"""Schedulers that profile like SGLang's: an exception here would end the real engine."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs

from tests.fakes.engines import kineto

RUNS = "Profiling is already in progress. Call /stop_profile first."
RESTS = "Profiling is not in progress. Call /start_profile first."


class Mode(Enum):
    """What a batch does, by SGLang's names."""

    EXTEND = auto()
    DECODE = auto()

    def is_prefill(self) -> bool:
        return self is Mode.EXTEND

    def is_decode(self) -> bool:
        return self is Mode.DECODE


@attrs.frozen
class Place:
    """Where a scheduler stands in its engine's layout, and how large that is."""

    tp: int = 0
    pp: int = 0
    dp: int = 0
    sizes: Mapping[str, int] = attrs.field(factory=lambda: {"tp": 1, "pp": 1, "dp": 1})

    @property
    def suffix(self) -> str:
        """The end of its file names: a rank is named where there are several."""
        ranks = {"tp": self.tp, "dp": self.dp, "pp": self.pp}
        return "".join(
            f"-{name.upper()}-{rank}"
            for name, rank in ranks.items()
            if name == "tp" or self.sizes[name] > 1
        )


class Trace:
    """Stands in for torch's profiler: keeps the names of the steps that it sees."""

    def __init__(self, rank: int) -> None:
        self.steps: list[tuple[int, str]] = []
        self.fails: dict[str, Exception] = {}
        """Method → what it raises."""
        self._rank, self.is_on = rank, True

    def stop(self) -> None:
        self.is_on = False
        self._fail("stop")

    def export_chrome_trace(self, path: str) -> None:
        self._fail("export_chrome_trace")
        Path(path).write_bytes(gzip.compress(kineto(self.steps, 5000 + self._rank, self._rank)))

    def _fail(self, method: str) -> None:
        if method in self.fails:
            raise self.fails[method]


class Profiler:
    """A scheduler's profiler, with SGLang's own names for what it remembers."""

    profile_id = ""
    torch_profiler = torch_profiler_output_dir = profiler_activities = None
    profiler_start_forward_ct = profiler_target_forward_ct = None
    profiler_prefill_ct = profiler_decode_ct = None
    profiler_target_prefill_ct = profiler_target_decode_ct = None
    profile_by_stage = profile_in_progress = False

    def __init__(self, place: Place, forward_ct: Callable[[], int]) -> None:
        self.place, self._counted = place, forward_ct
        self._last: Trace | None = None
        self.fails: dict[str, Exception] = {}
        """Method of torch's profiler → what it raises."""
        self.refusal: Exception | None = None
        """What torch's profiler raises when it is started."""
        self.met = 0
        """How often it reached the point where the ranks wait for each other, after writing."""
        self.profile_in_progress = False  # as SGLang makes its state: on the object

    def _profile(self, request: Any) -> Any:
        if request.req_type.name == "STOP_PROFILE":
            return self._stop_profile()
        init = self._init_profile(request)
        if request.profile_by_stage or getattr(request, "start_step", None):
            return init
        return self._start_profile()  # even if the first has failed

    def _init_profile(self, request: Any) -> Any:
        if self.profile_in_progress:
            return answer(RUNS)
        self.profile_by_stage = request.profile_by_stage
        self.torch_profiler_output_dir = Path(request.output_dir or "/tmp")
        activities = request.activities
        self.profiler_activities = ["CPU", "GPU"] if activities is None else activities
        self.profile_id = request.profile_id or str(time.time())
        start, count = getattr(request, "start_step", None), request.num_steps
        if start:
            self.profiler_start_forward_ct = max(start, self._counted() + 1)
        self.profiler_target_forward_ct = None
        if count and self.profile_by_stage:
            self.profiler_prefill_ct = self.profiler_decode_ct = 0
            self.profiler_target_prefill_ct = self.profiler_target_decode_ct = count
        elif count and start:
            self.profiler_target_forward_ct = (self.profiler_start_forward_ct or 0) + count
        elif count:
            self.profiler_target_forward_ct = self._counted() + count + 1
        return answer()

    def _start_profile(self, stage: Mode | None = None) -> Any:
        activities = self.profiler_activities or []
        if {"CPU", "GPU"} & set(activities):
            if self._last is not None and self._last.is_on:
                return answer("Profiler is already enabled on this thread")
            if self.refusal is not None:
                return answer(str(self.refusal))
            self.torch_profiler = self._last = Trace(self.place.tp)
            self.torch_profiler.fails = self.fails
            self.profile_in_progress = True
        if {"MEM", "CUDA_PROFILER"} & set(activities):
            raise AssertionError("Torch not compiled with CUDA enabled")
        return answer()

    def _stop_profile(self, stage: Mode | None = None) -> Any:
        if not self.profile_in_progress:
            return answer(RESTS)
        folder, trace = self.torch_profiler_output_dir, self.torch_profiler
        folder.mkdir(parents=True, exist_ok=True)
        if trace is not None:
            trace.stop()
            suffix = self.place.suffix + (f"-{stage.name}" if stage else "")
            file = folder / f"{self.profile_id}{suffix}.trace.json.gz"
            trace.export_chrome_trace(str(file))
            self.met += 1
        self.torch_profiler, self.profile_in_progress = None, False
        self.profiler_start_forward_ct = None
        return answer()

    def _profile_batch_predicate(self, batch: Any) -> None:
        if self.profile_by_stage:
            self._look_at_stage(batch.forward_mode)
            return
        target, start = self.profiler_target_forward_ct, self.profiler_start_forward_ct
        if target and target <= self._counted():
            self._stop_profile()
        if start and start == self._counted():
            self._start_profile()

    def _look_at_stage(self, mode: Mode) -> None:
        if mode is Mode.EXTEND:
            if self.profiler_prefill_ct == 0:
                self._start_profile(mode)
            self.profiler_prefill_ct += 1  # raises without num_steps
            if self.profiler_prefill_ct > self.profiler_target_prefill_ct:
                self._stop_profile(mode)
            return
        if self.profiler_decode_ct == 0:
            if self.profile_in_progress:
                self._stop_profile(Mode.EXTEND)
            self._start_profile(mode)
        self.profiler_decode_ct += 1
        if self.profiler_decode_ct > self.profiler_target_decode_ct:
            self._stop_profile(mode)


def answer(why: str = "") -> Any:
    return SimpleNamespace(success=not why, message=why or "Succeeded")


class Scheduler:
    """Runs and counts batches, and passes each to its profiler."""

    def __init__(self, place: Place, arguments: Any = None) -> None:
        self.forward_ct, self.device = 0, "cpu"
        self.server_args = arguments
        ranks = {f"{name}_rank": getattr(place, name) for name in place.sizes}
        sizes = {f"{name}_size": size for name, size in place.sizes.items()}
        self.ps = SimpleNamespace(**ranks, **sizes, enable_dp_attention=False)
        self.profiler_manager = Profiler(place, lambda: self.forward_ct)
        self.profiler_manager.get_forward_ct = lambda: self.forward_ct
        self.part: Profiler = self.profiler_manager
        """The part that holds the profiler's state."""
        self.around: dict[str, Callable[..., Any]] = {}
        """Method → what a plugin has put around it."""

    def run_batch(self, batch: Any) -> str:
        self.forward_ct += 1
        begun_in = self.part.torch_profiler if self.part.profile_in_progress else None
        self.part._profile_batch_predicate(batch)
        trace = self.part.torch_profiler
        if begun_in and trace and begun_in is not trace:
            raise MemoryError("a range ends in another session than it was begun in")
        if isinstance(trace, Trace) and self.part.profile_in_progress:
            mode = batch.forward_mode.name
            trace.steps.append((time.time_ns(), f"step[{mode} bs={len(batch.reqs)}]"))
        return "tokens"

    def get_internal_state(self, request: Any = None) -> Any:
        said = SimpleNamespace(internal_state={"last_gen_throughput": 1.0})
        after = self.around.get("get_internal_state")
        return said if after is None else after(said, self, request)

    def _request_dispatcher(self, request: Any) -> str:
        return type(request).__name__


def batch(mode: Mode, requests: int = 1) -> Any:
    return SimpleNamespace(
        forward_mode=mode, reqs=[None] * requests, extend_num_tokens=4 * requests
    )
