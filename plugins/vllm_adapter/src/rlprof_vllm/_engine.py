"""Calls to an engine: to an object in this process, or to a server."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_engine.calls import called, run_on
from rlprof_vllm._facts import seen
from rlprof_vllm._server import Engine, Server

if TYPE_CHECKING:
    from collections.abc import Callable


def reach(handle: Any, directory: str) -> Engine:
    """Return the engine of *handle*; raise CaptureError if it cannot be recorded."""
    if isinstance(handle, str):
        return Server(handle, directory)
    if not any(hasattr(handle, name) for name in ("start_profile", "collective_rpc")):
        raise CaptureError(
            f"vllm: {type(handle).__name__} is not an engine: it has neither start_profile nor "
            "collective_rpc; attach an AsyncLLM, an LLM, or the address of a server"
        )
    return _Object(handle)


class _Object(Engine):
    """An AsyncLLM, an LLM, or any object with the same methods."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._inner = getattr(handle, "llm_engine", handle)
        self.facts = seen(handle)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop it runs on; None: it has none, or any loop will do."""
        resources = getattr(getattr(self._handle, "engine_core", None), "resources", None)
        tasks = (
            getattr(self._handle, "output_handler", None),
            getattr(resources, "output_queue_task", None),
        )
        return next((task.get_loop() for task in tasks if isinstance(task, asyncio.Task)), None)

    @property
    def is_unborn(self) -> bool:
        """Whether the first call will bind it, for good, to the loop of the caller."""
        return getattr(self._handle, "output_handler", self) is None and self.loop is None

    @property
    def is_errored(self) -> bool:
        """Whether it is known to be dead."""
        return getattr(self._handle, "errored", False) is True

    async def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call *method* on the engine's own loop, if it has one; never cut it short there."""
        owner = self._handle if hasattr(self._handle, method) else self._inner
        result = getattr(owner, method)(*args, **kwargs)
        if not inspect.isawaitable(result):
            return result
        return await called(result, self.loop, lambda: self.is_errored, f"vllm: {method}")

    async def run(self, function: Callable[[], object]) -> None:
        """Call *function* on the engine's own loop, if it has one."""
        await run_on(self.loop, function)
