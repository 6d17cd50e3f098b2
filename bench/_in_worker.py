"""What the benchmark of the vLLM adapter needs inside vLLM's worker: a bare profiler, and a watch.

vLLM mixes `Extension` into its worker (`worker_extension_cls`); its methods are called there by
`collective_rpc`. It stands apart because the worker imports it, and should import nothing else.
"""

from __future__ import annotations

import time
from typing import Any

STEPS = ("execute_model", "sample_tokens")
"""The two calls vLLM makes for each engine step."""
INNER = "inner"
"""The first of them inside of what a recording has put around it."""
STOPS = ("bench_end", "rlprof_obey", "profile")
"""The calls that end a recording: the bare one, rlprof's, vLLM's own."""

_log: list[tuple[str, float, float, float, float]] = []


class Extension:
    """Beside vLLM's worker."""

    def bench_watch(self) -> None:
        """Time every engine step and stop from now on, outside and inside of what wraps them."""
        from vllm.v1.worker.worker_base import WorkerWrapperBase

        for name in (*STEPS, *STOPS):
            inner = vars(WorkerWrapperBase).get(name)
            setattr(WorkerWrapperBase, name, _timed(name, inner))
        kind: Any = type(self)
        kind.execute_model = _timed(INNER, kind.execute_model)

    def bench_log(self) -> list[tuple[str, float, float, float, float]]:
        """Return and forget name, beginning, wall, CPU of the thread and of the process of each."""
        found = list(_log)
        _log.clear()
        return found

    def bench_begin(self: Any) -> None:
        """Start bare torch.profiler, with a range around each engine step as the others have."""
        import torch

        from rlprof_torch._options import is_unsafe

        all_threads = not is_unsafe(torch.__version__)
        config: Any = torch._C._profiler._ExperimentalConfig(profile_all_threads=all_threads)
        cpu = torch.profiler.ProfilerActivity.CPU
        inner = type(self).execute_model

        def ranged(*args: Any, **kwargs: Any) -> Any:
            with torch.profiler.record_function("execute_context_0(0)_generation_0(0)"):
                return inner(self, *args, **kwargs)

        last = getattr(self, "bench_profile", None)
        if last is not None:  # rlprof frees the last window's events here, too; else they pile up
            last.profiler.kineto_results = None
        self.bench_profile = torch.profiler.profile(activities=[cpu], experimental_config=config)
        self.bench_profile.start()
        self.execute_model = ranged

    def bench_end(self: Any, file: str) -> None:
        """Stop it and have Kineto write its raw trace."""
        del self.execute_model
        self.bench_profile.stop()
        self.bench_profile.export_chrome_trace(file)

    def bench_native(self: Any, changes: dict[str, bool]) -> dict[str, bool]:
        """Launch vLLM's own profiler anew, with other options; return those it had."""
        config = self.profiler_config
        before = {name: getattr(config, name) for name in changes}
        for name, value in changes.items():
            setattr(config, name, value)
        self.profiler = None  # made by the next start
        return before


def _timed(name: str, inner: Any) -> Any:
    def call(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
        function = inner.__get__(wrapper) if inner else getattr(wrapper.worker, name)
        thread, process, began = time.thread_time(), time.process_time(), time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            wall = time.perf_counter() - began
            used = time.thread_time() - thread, time.process_time() - process
            _log.append((name, began, wall, *used))

    return call
