"""Ends windows of an engine's own profiler when the engine sleeps or gets new weights.

A window records one phase of generation. Inside an engine's processes, `recording` ends it; this
module watches the calls through the engine's frontend. A caller waits at most `_PATIENCE_S` for the
profiler to stop, unless the profiler belongs to the calling thread.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import TYPE_CHECKING, Any

from rlprof_engine.wrapped import Wrapped

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

_PATIENCE_S = 60
"""After this many seconds, the caller stops waiting for the profiler to stop."""

_LOOK_S = 0.05


class Cuts:
    """Watches the calls of one engine that end an open window."""

    def __init__(
        self,
        handle: Any,
        methods: Sequence[str],
        remote: re.Pattern[str] | None = None,
        *,
        is_here: bool = False,
    ) -> None:
        """Take the *methods* of *handle* that end a window.

        *remote*: a pattern for worker methods called by `collective_rpc`. *is_here*: the profiler
        belongs to the calling thread.
        """
        self.reason = ""
        """Why the window ended early; empty: it did not."""
        self.has_stopped = False
        """Whether the profiler then stopped without an error."""
        self._handle = handle
        self._methods = methods
        self._for_workers = remote
        self._is_here = is_here
        self._wrapped = Wrapped()
        self._is_over = threading.Event()

    def watch(self) -> None:
        """Start to watch; a server's address has no calls to watch."""
        if isinstance(self._handle, str):
            return
        for name in self._methods:
            self._wrapped.put(self._handle, name, self._cutting(name))
        if self._for_workers is not None:
            self._wrapped.put(self._handle, "collective_rpc", self._remote)

    async def unwatch(self) -> None:
        """Stop watching; wait for a stop that a call has begun."""
        self._wrapped.take_back()
        for _ in range(round(_PATIENCE_S / _LOOK_S)):
            if not self.reason or self._is_over.is_set():
                return
            await asyncio.sleep(_LOOK_S)  # no executor: at exit, its threads are waited for

    def _cutting(self, name: str) -> Callable[..., Any]:
        def call(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if inspect.iscoroutinefunction(inner):
                return self._later(name, inner, args, kwargs)
            if not inspect.iscoroutinefunction(self._handle.stop_profile):
                self._cut(name)
            return inner(*args, **kwargs)

        return call

    def _remote(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """End the window if *remote* matches the method that the workers are to run."""
        method = args[0] if args else kwargs.get("method")
        if isinstance(method, str) and self._for_workers and self._for_workers.search(method):
            return self._cutting(method)(inner, *args, **kwargs)
        return inner(*args, **kwargs)

    async def _later(
        self, name: str, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if self._begins(name):
            try:
                stopping = asyncio.ensure_future(self._handle.stop_profile())
            except Exception as exc:  # the engine's own call must not fail
                self.reason += f"; stop_profile: {type(exc).__name__}: {exc}"[:500]
                self._is_over.set()
                return await inner(*args, **kwargs)
            stopping.add_done_callback(lambda _: self._is_over.set())
            await asyncio.wait({stopping}, timeout=_PATIENCE_S)
            self._look(stopping)
        return await inner(*args, **kwargs)

    def _look(self, stopping: asyncio.Future[Any]) -> None:
        """Note how the stop ended; ignore what it raises later."""
        if not stopping.done():
            self.reason += f"; its profiler had not stopped after {_PATIENCE_S} s"
            stopping.add_done_callback(lambda late: late.cancelled() or late.exception())
        elif (exc := stopping.exception()) is not None:
            self.reason += f"; stop_profile: {type(exc).__name__}: {exc}"[:500]
        else:
            self.has_stopped = True

    def _cut(self, name: str) -> None:
        if not self._begins(name):
            return
        if self._is_here:  # the profiler belongs to this thread
            self._stop()
            return
        thread = threading.Thread(target=self._stop, name="rlprof-engine-cut", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread can be started: the window's stop comes later
            self.reason = ""
            return
        thread.join(_PATIENCE_S)
        if thread.is_alive():
            self.reason += f"; its profiler had not stopped after {_PATIENCE_S} s"

    def _stop(self) -> None:
        try:
            self._handle.stop_profile()
            self.has_stopped = True
        except Exception as exc:  # the engine must sleep anyway
            self.reason += f"; stop_profile: {type(exc).__name__}: {exc}"[:500]
        self._is_over.set()

    def _begins(self, name: str) -> bool:
        """Mark the window as over; return False if it was already."""
        if self.reason:
            return False
        self.reason = f"the engine was asked to {name.replace('_', ' ')}"
        return True
