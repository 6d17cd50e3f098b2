"""Our own capture, inside vLLM's workers: orders come as text through `collective_rpc`.

vLLM loads `install` as a general plugin in the frontend, the core and every worker. What it leaves
there is one method; nothing of rlprof is imported until a first order comes.

A method called by `collective_rpc` must not raise: where there are several workers, a failed call
leaves the answers of the others unread, and every later call gets the answer of the one before.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from rlprof_vllm._wrapped import Wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof import Follower, Order

METHOD = "rlprof_obey"
"""What `collective_rpc` is asked for."""

installed = False

_CUTS = ("sleep", "wake_up", "reload_weights", "start_weight_update", "update_weights",
         "load_model")  # fmt: skip
"""Methods of a worker that end a window: what is recorded is one generation phase."""

_ATTRIBUTE = "_rlprof_recording"


def install() -> None:
    """Give vLLM's worker wrapper a method that obeys orders; any number of times, silently."""
    global installed  # noqa: PLW0603 -- vLLM calls a function, and asks for nothing back
    try:
        from vllm.v1.worker.worker_base import WorkerWrapperBase
    except ImportError:
        try:  # until 0.11
            from vllm.worker.worker_base import WorkerWrapperBase
        except ImportError:
            return  # another vLLM than we know: its own profiler is left
    setattr(WorkerWrapperBase, METHOD, obey)
    installed = True


def obey(wrapper: Any, text: str) -> str:
    """Do what an order says; answer what came of it, as JSON."""
    began = time.time_ns()
    try:
        answer = _obey(wrapper.worker, json.loads(text))
    except Exception as exc:  # must not raise: see above
        answer = {"state": "failed", "why": f"{type(exc).__name__}: {exc}"[:500]}
    took = {"at_ns": began, "seconds": round((time.time_ns() - began) / 1e9, 6)}
    return json.dumps({**answer, "pid": os.getpid(), **took})


def _obey(worker: Any, said: dict[str, Any]) -> dict[str, Any]:
    from rlprof import Order

    order = Order.read(said["order"])
    number, coordinates = place_of(worker)
    known = {"worker": number, **coordinates, "rank": order.rank(number)}
    recording: Recording | None = getattr(worker, _ATTRIBUTE, None)
    if not order.chooses(number):
        return {"state": "not chosen", **known}
    if order.window is None:
        order.follower(number, coordinates)
        return {"state": "ready", **known}
    if order.verb == "begin":
        if recording is not None:
            recording.end("the next window began")
        follower = order.follower(number, coordinates)
        recording = Recording(worker, order, follower, **said["iterations"])
        setattr(worker, _ATTRIBUTE, recording)
        why = recording.begin()
        return {"state": "refused" if why else "recording", "why": why, **known}
    if recording is None or recording.window != order.window:
        return {"state": "idle", "why": "it was not recording this window", **known}
    delattr(worker, _ATTRIBUTE)
    recording.end(order.reason)
    if not recording.why and recording.is_waiting:
        why = "the window ended before the engine steps of iterations.skip were over"
        return {"state": "idle", "why": why, **known}
    return {"state": "ended", "why": recording.why, "iterations": recording.done, **known}


def place_of(worker: Any) -> tuple[int, dict[str, int]]:
    """Return which worker of its engine it is, and where it stands in the layout."""
    parallel = worker.vllm_config.parallel_config
    tp, pp = parallel.tensor_parallel_size, parallel.pipeline_parallel_size
    local = worker.rank % (tp * pp)
    index = getattr(parallel, "data_parallel_index", None)
    dp = parallel.data_parallel_rank if index is None else index
    return dp * tp * pp + local, {"tp": local % tp, "pp": local // tp, "dp": dp}


class Recording:
    """One window in one worker: its engine steps are counted, each has a range of its own."""

    def __init__(
        self, worker: Any, order: Order, follower: Follower, skip: int = 0, count: int = 0
    ) -> None:
        self.window = order.window
        self.why = ""
        """Why it ended before it was told to, or could not begin."""
        self.done = 0
        """How many engine steps it has recorded."""
        self._order = order
        self._worker = worker
        self._follower = follower
        self._skip = skip
        self.is_waiting = skip > 0
        """Whether engine steps are still passed over."""
        self._count = count
        self._is_open = False
        self._is_over = False
        """Whether nothing may begin any more; what somebody has put over ours still calls it."""
        self._wrapped = Wrapped()

    def begin(self) -> str:
        """Begin, at once or when so many engine steps are over; return why not, or nothing."""
        self._wrap_all()
        return "" if self._skip else self._open()

    def _open(self) -> str:
        self.is_waiting = False
        try:
            self.why = self._order.begin(self._follower)
            self._is_open = not self.why
        finally:
            if not self._is_open:  # else each engine step would try it again
                self._is_over = True
                self._wrapped.take_back()
        return self.why

    def end(self, reason: str) -> None:
        """End, whatever has become of it."""
        self._is_over = True
        self._wrapped.take_back()
        if self._is_open and self.window is not None:
            self._is_open = False
            self._follower.end(self.window, reason)

    def _step(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run one engine step in a range of its own."""
        if self._is_over:
            return inner(*args, **kwargs)
        if not self._is_open:
            if self._skip > 0:
                self._skip -= 1
                return inner(*args, **kwargs)
            self._guarded(self._open)
        if not self._is_open:
            return inner(*args, **kwargs)
        self._guarded(lambda: self._follower.push(range_name(args[0] if args else None)))
        try:
            return inner(*args, **kwargs)
        finally:
            self._guarded(self._follower.pop)
            self.done += 1
            if self.done == self._count:
                self.why = f"iterations.count {self._count} was reached"
                self._guarded(lambda: self.end(self.why))

    def _cut(self, name: str) -> Callable[..., Any]:
        def cut(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if not self._is_over:
                self.why = f"the engine was asked to {name.replace('_', ' ')}"
                self._guarded(lambda: self.end(self.why))
            return inner(*args, **kwargs)

        return cut

    def _guarded(self, function: Callable[[], Any]) -> None:
        """Keep what is wrong with recording out of the engine step it happens in."""
        try:
            function()
        except Exception as exc:  # an engine step must not fail for us
            self.why = self.why or f"{type(exc).__name__}: {exc}"[:500]

    def _wrap_all(self) -> None:
        worker = self._worker
        self._wrapped.put(worker, "execute_model", self._step)
        for name in _CUTS:
            self._wrapped.put(worker, name, self._cut(name))
        # Weights that a framework loads by itself go through the model's own method.
        model = getattr(getattr(worker, "model_runner", None), "model", None)
        if model is not None:
            self._wrapped.put(model, "load_weights", self._cut("load_weights"))


def range_name(output: Any) -> str:
    """Name an engine step as vLLM does: how many requests and tokens of either kind."""
    try:
        from vllm.v1.utils import compute_iteration_details

        found = compute_iteration_details(output)
        first, second = found.num_ctx_requests, found.num_ctx_tokens
        third, fourth = found.num_generation_requests, found.num_generation_tokens
    except Exception:  # until 0.12 vLLM did not, and what is internal may change
        tokens = dict(getattr(output, "num_scheduled_tokens", None) or {})
        new = {request.req_id for request in getattr(output, "scheduled_new_reqs", None) or ()}
        first, second = len(new), sum(n for name, n in tokens.items() if name in new)
        third, fourth = len(tokens) - first, sum(tokens.values()) - second
    return f"execute_context_{first}({second})_generation_{third}({fourth})"
