"""Calls to an engine: to an object in this process, or to a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rlprof import CaptureError
from rlprof_engine.calls import called, run_on
from rlprof_engine.wrapped import Wrapped
from rlprof_sglang._facts import looked_inside, seen
from rlprof_sglang._server import Engine, Server
from rlprof_sglang._turns import Turns, driven, turns_of

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine, Mapping, Sequence

_LATE_S = 1
"""Seconds to wait for an engine that has not answered its previous call."""
_IS_OVER = "_rlprof_is_over"


class CameToRestError(CaptureError):
    """The engine's loop ran for a moment only; later calls must run it themselves."""


def reach(handle: Any, admin_api_key: str | None = None, loop: Any = None) -> Engine:
    """Return the engine of *handle*; raise CaptureError if it cannot be recorded.

    *loop*: the loop on which it was attached.
    """
    if isinstance(handle, str):
        return Server(handle, admin_api_key)
    manager = getattr(handle, "tokenizer_manager", handle)
    if manager is None:
        raise CaptureError(
            "sglang: this node has no tokenizer manager; the node of rank 0 records all, so attach "
            "only its engine"
        )
    if not hasattr(manager, "start_profile"):
        raise CaptureError(
            f"sglang: {type(handle).__name__} is not an engine: it has no start_profile; attach an "
            "Engine, a TokenizerManager, or the address of a server"
        )
    return _Object(handle, manager, loop)


class _Object(Engine):
    """An Engine, a TokenizerManager, or any object with the same methods."""

    is_local = True

    def __init__(self, handle: Any, manager: Any, loop: Any) -> None:
        self._handle = handle
        self._manager = manager
        self._attached_on = loop
        _watch_its_end(handle)
        self._turns: Turns | None = None
        if self._own_loop is not None:
            self._take_turns(self._own_loop)  # from now on, its callers do, too
        self._late: concurrent.futures.Future[Any] | None = None
        """The last call, if the engine did not answer it in time."""
        self.facts = seen(handle)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the engine while that loop runs; None: any loop will do."""
        loop = self._own_loop
        if loop is None or not loop.is_running():
            return None
        return loop if loop_here() is loop or not self._take_turns(loop).is_taken else None

    @property
    def _own_loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop it belongs to for good: the loop of its first caller, or an Engine's own."""
        first = getattr(self._manager, "event_loop", None)
        mine = first, getattr(self._handle, "loop", None), self._attached_on
        return next((one for one in mine if isinstance(one, asyncio.AbstractEventLoop)), None)

    def _take_turns(self, loop: asyncio.AbstractEventLoop) -> Turns:
        if self._turns is None or self._turns.loop is not loop:
            self._turns = turns_of(self._handle, loop)
        return self._turns

    @property
    def _is_unborn(self) -> bool:
        """Whether it belongs to no loop yet, and its later loop is unknown.

        Our call would bind it to our loop for good; calls on another loop would get no answer.
        """
        if getattr(self._manager, "event_loop", self) is not None:
            return False
        own = getattr(self._handle, "loop", None)
        return self._attached_on is None if own is None else self._attached_on is not own

    @property
    def is_resting(self) -> bool:
        """Whether its loop runs only during a call, on the calling thread."""
        return self._own_loop is not None and self.loop is None

    @property
    def is_late(self) -> bool:
        """Whether a resting engine has not answered its previous call yet."""
        return self._late is not None and not self._late.done()

    def drive(
        self, hook: Coroutine[Any, Any, Any], within_s: float, *, begins: bool = False
    ) -> Any:
        loop = self._own_loop
        is_gone = loop is None or loop.is_closed()
        why = "the engine's event loop is closed" if is_gone else ""
        if loop_here() is not None:
            why = "an event loop runs on this thread; enter the phase with `async with`"
        if begins and loop is not None and self._take_turns(loop).has_strangers:
            why = (
                "another thread runs the engine's event loop, and only at times; call the Engine's "
                "own methods there, or let it run that loop for good, and name it: "
                "attach(engine, loop=engine.loop)"
            )
        if loop is None or why:
            hook.close()
            raise CaptureError(f"sglang: {why}")
        within_s = min(within_s, _LATE_S) if self.is_late else within_s
        call = driven(self._take_turns(loop), hook, within_s)
        if not call.done():
            self._late = call
            raise CaptureError(f"sglang: the engine did not answer within {within_s} s")
        return call.result()

    async def look(self) -> None:
        """Ask whether rlprof's code is in the schedulers."""
        if self._is_unborn:
            raise CaptureError(
                "sglang: the engine has no event loop yet, because nothing has called it; call it "
                "once before, or name its loop: attach(engine, loop=engine.loop); "
                "attach a TokenizerManager in a coroutine on its loop"
            )
        if hasattr(self._manager, "get_internal_state"):
            self.facts = looked_inside(self.facts, await self.states())

    async def states(self) -> Sequence[Mapping[str, Any]]:
        """Ask the schedulers for their state: one state per replica."""
        found: list[Mapping[str, Any]] = await self._call("get_internal_state")
        return found

    async def start(self, fields: Mapping[str, Any]) -> None:
        """Send the request."""
        from sglang.srt.managers.io_struct import ProfileReq

        await self._call("start_profile", ProfileReq(**fields))

    async def stop(self) -> None:
        """Send a request to stop; it is no error if nothing runs."""
        try:
            await self._call("stop_profile")
        except RuntimeError as exc:
            if "not in progress" not in str(exc):
                raise

    async def run(self, function: Callable[[], object]) -> None:
        """Call *function* on the engine's own loop."""
        loop = self._own_loop
        await run_on(loop if loop is not None and loop.is_running() else None, function)

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        loop = self._own_loop
        rests = CameToRestError("sglang: the engine's event loop no longer runs")
        if self._is_over:
            raise CaptureError("sglang: the engine was shut down")
        if loop is not None and not loop.is_running():
            raise rests
        promise = getattr(self._manager, method)(*args, **kwargs)
        try:
            return await called(promise, loop, self._is_deaf, f"sglang: {method}")
        except CaptureError as exc:
            if self._is_dead() or not self._is_deaf():
                raise
            raise rests from exc

    def _is_deaf(self) -> bool:
        """Whether the engine would not answer a call."""
        loop = self._own_loop
        return self._is_dead() or (loop is not None and not loop.is_running())

    def _is_dead(self) -> bool:
        return self._is_over or getattr(self._manager, "gracefully_exit", False) is True

    @property
    def _is_over(self) -> bool:
        return getattr(self._handle, _IS_OVER, False) is True


def loop_here() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _watch_its_end(handle: Any) -> None:
    """Note when an Engine is shut down, because it then answers no call."""

    def end(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        setattr(handle, _IS_OVER, True)
        return inner(*args, **kwargs)

    if not getattr(handle, "_attached", False):  # an attached one ends only its own part
        Wrapped().put(handle, "shutdown", end)
