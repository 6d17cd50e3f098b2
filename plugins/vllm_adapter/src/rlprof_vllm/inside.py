"""Our own capture inside vLLM's workers; orders come as text through `collective_rpc`.

vLLM loads `install` as a general plugin in the frontend, the core and every worker. It adds one
method there, and records nothing until the first order comes. In the process of a server, orders
pass through the frontend, which then watches the requests.

A method called by `collective_rpc` must not raise. With several workers, a failed call leaves the
other answers unread, and every later call gets the answer of the previous call.
"""

from __future__ import annotations

import multiprocessing
from contextlib import nullcontext, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from rlprof_engine.recording import Cut, Place, obeyed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

METHOD = "rlprof_obey"
"""The method that `collective_rpc` calls."""

installed = False

_CUTS = ("sleep", "wake_up", "reload_weights", "start_weight_update", "update_weights",
         "load_model")  # fmt: skip
"""Methods of a worker that end a window, because a window records one generation phase."""


def install() -> None:
    """Give vLLM's worker wrapper a method that carries out orders; repeat it as you like."""
    global installed  # noqa: PLW0603 -- vLLM calls a function, and asks for nothing back
    try:
        from vllm.v1.worker.worker_base import WorkerWrapperBase
    except ImportError:
        return  # an unknown vLLM: only its own profiler remains
    setattr(WorkerWrapperBase, METHOD, obey)
    if not installed:
        with suppress(Exception):  # an unknown vLLM must start, too
            _watch_requests()
    installed = True


def _watch_requests() -> None:
    """Have the frontend of a server carry out the orders that pass through it.

    Only a server in development mode passes them on. It is no child of vLLM's.
    """
    from vllm import envs

    if not envs.VLLM_SERVER_DEV_MODE or multiprocessing.parent_process() is not None:
        return
    from vllm.v1.engine.async_llm import AsyncLLM

    from rlprof_engine.frontend import watched
    from rlprof_vllm._requests import Requests

    inner = AsyncLLM.collective_rpc

    @wraps(inner)
    async def collective_rpc(frontend: Any, method: Any, *args: Any, **kwargs: Any) -> Any:
        answers = await inner(frontend, method, *args, **kwargs)
        if method != METHOD or not kwargs.get("args"):
            return answers
        mine = watched(frontend, kwargs["args"][0], partial(Requests, frontend))
        return [*answers, mine] if mine else answers

    AsyncLLM.collective_rpc = collective_rpc


def obey(wrapper: Any, text: str) -> str:
    """Carry out an order; return the outcome as JSON."""
    return obeyed(text, lambda: place_of(wrapper.worker))


def place_of(worker: Any) -> Place:
    """Return the worker's number, its place in the layout, and what to watch."""
    parallel = worker.vllm_config.parallel_config
    tp, pp = parallel.tensor_parallel_size, parallel.pipeline_parallel_size
    local = worker.rank % (tp * pp)
    index = getattr(parallel, "data_parallel_index", None)
    dp = parallel.data_parallel_rank if index is None else index
    cuts = [Cut(worker, name) for name in _CUTS]
    # Weights that a framework loads by itself go through the model's own method.
    model = getattr(getattr(worker, "model_runner", None), "model", None)
    if model is not None:
        cuts.append(Cut(model, "load_weights"))
    profiler = getattr(worker, "profiler", None)
    instead: dict[str, Any] = {}
    if profiler is not None and not hasattr(profiler, "is_running"):
        # Until 0.27 vLLM names each step of a worker with a profiler, even if that is not running.
        instead["annotate_profile"] = partial(_unnamed, profiler)
    return Place(
        number=dp * tp * pp + local,
        coordinates={"tp": local % tp, "pp": local // tp, "dp": dp},
        owner=worker,
        method="execute_model",
        name=range_name,
        cuts=cuts,
        instead=instead,
    )


def _unnamed(profiler: Any, *_: Any, **__: Any) -> AbstractContextManager[None]:
    """Let vLLM's own profiler count a step without naming it; our range names it."""
    profiler.step()
    return nullcontext()


def range_name(output: Any = None, *_: Any, **__: Any) -> str:
    """Name an engine step as vLLM does: by the number of requests and tokens of each kind."""
    try:
        from vllm.v1.utils import compute_iteration_details

        found = compute_iteration_details(output)
        first, second = found.num_ctx_requests, found.num_ctx_tokens
        third, fourth = found.num_generation_requests, found.num_generation_tokens
    except Exception:  # internals of vLLM may change
        first = second = third = fourth = "?"
    return f"execute_context_{first}({second})_generation_{third}({fourth})"
