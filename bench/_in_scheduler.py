"""What the benchmark of the SGLang adapter needs in its schedulers: a bare profiler, and a watch.

A plugin of SGLang's own kind (`sglang.srt.plugins`). Orders come as rlprof's do, as requests to
profile whose folder is none. It stands apart because a scheduler imports it, and should import
nothing else.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

MARK = "bench:"
"""Begins what stands in a request to profile instead of a folder: an order, and a file's name."""
STEP = "run_batch"
INNER = "inner"
"""The same inside of what a recording has put around it."""
STOP = "profile"
"""A request to profile, for the scheduler or its process."""

_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
_log: list[tuple[str, float, float, float, float]] = []
_depth = 0


def install() -> None:
    """Watch a scheduler from its birth on: by then all plugins are in, and this is around them."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(f"{_SCHEDULER}.__init__", _born, HookType.AROUND)


def _born(inner: Any, scheduler: Any, *args: Any, **kwargs: Any) -> None:
    from sglang.srt.managers.scheduler_components.profiler_manager import SchedulerProfilerManager

    answer: Any = SchedulerProfilerManager._profile
    bare = Bare(scheduler)

    def asked(part: Any, request: Any) -> Any:
        text = request.output_dir or ""
        if text.startswith(MARK):
            return bare.obey(*text.removeprefix(MARK).split(" ", 1))
        return _timed(STOP, answer)(part, request)

    SchedulerProfilerManager._profile = asked
    type(scheduler).run_batch = Outside(type(scheduler).run_batch)
    inner(scheduler, *args, **kwargs)


class Outside:
    """A scheduler's `run_batch`, timed outside of whatever is put in its place, and inside."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __get__(self, scheduler: Any, kind: object = None) -> Any:
        """Return what is in its place; before there is anything, what all else is put around."""
        if scheduler is None:
            return self._function
        return _timed(STEP, vars(scheduler).get(STEP) or self._function.__get__(scheduler))

    def __set__(self, scheduler: Any, value: Any) -> None:
        """Put something in its place."""
        vars(scheduler)[STEP] = value

    def __delete__(self, scheduler: Any) -> None:
        """Take it away."""
        del vars(scheduler)[STEP]


class Bare:
    """torch.profiler and nothing else, around the steps of a scheduler."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._profile: Any = None

    def obey(self, order: str, file: str) -> Any:
        """Do what is asked; *file* is where the trace goes, or the log."""
        from sglang.srt.managers.io_struct import ProfileReqOutput

        if order == "begin":
            self.begin()
        elif order == "end":
            _timed(STOP, self.end)(file)
        else:
            Path(file).write_text(json.dumps(_log), encoding="utf-8")
            _log.clear()
        return ProfileReqOutput(success=True, message="Succeeded")

    def begin(self) -> None:
        """Start it, with a range around each step as the others have."""
        import torch

        from rlprof_torch._options import is_unsafe

        all_threads = {} if is_unsafe(torch.__version__) else {"profile_all_threads": True}
        config: Any = torch._C._profiler._ExperimentalConfig(**all_threads)
        inner = self._scheduler.run_batch

        def ranged(*args: Any, **kwargs: Any) -> Any:
            with torch.profiler.record_function("step[DECODE bs=4]"):
                return inner(*args, **kwargs)

        if self._profile is not None:  # rlprof frees the last window's events here, too
            self._profile.profiler.kineto_results = None
        cpu = torch.profiler.ProfilerActivity.CPU
        self._profile = torch.profiler.profile(activities=[cpu], experimental_config=config)
        self._profile.start()
        self._scheduler.run_batch = ranged

    def end(self, file: str) -> None:
        """Stop it and have Kineto write its raw trace."""
        del self._scheduler.run_batch
        self._profile.stop()
        self._profile.export_chrome_trace(file)


def _timed(name: str, function: Any) -> Any:
    """Log each call: its beginning, its wall, CPU of the thread and of the process."""

    def call(*args: Any, **kwargs: Any) -> Any:
        global _depth  # noqa: PLW0603 -- one thread runs the steps
        called = INNER if _depth else name
        _depth += 1
        thread, process, began = time.thread_time(), time.process_time(), time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            wall = time.perf_counter() - began
            used = time.thread_time() - thread, time.process_time() - process
            _log.append((called, began, wall, *used))
            _depth -= 1

    return call
