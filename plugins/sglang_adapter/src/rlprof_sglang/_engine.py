"""How an engine is reached."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Protocol

from rlprof import CaptureError
from rlprof_engine.calls import called, run_on
from rlprof_engine.wrapped import Wrapped
from rlprof_sglang._facts import Facts, looked_inside, seen
from rlprof_sglang._server import Server
from rlprof_sglang._turns import Turns, driven, turns_of
from rlprof_sglang._words import MARK, STATE

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Coroutine, Mapping, Sequence

_LATE_S = 1
"""An engine that has not answered before is waited for no longer."""
_IS_OVER = "_rlprof_is_over"


class CameToRestError(CaptureError):
    """Somebody ran the engine's loop for a moment; it is to be run for whatever else is asked."""


class Engine(Protocol):
    """One engine, whatever it is made of."""

    facts: Facts
    is_local: bool
    """Whether its first scheduler surely sees the files of this host."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop it lives on while that runs; None: any will do."""

    @property
    def is_resting(self) -> bool:
        """Whether its loop runs only while it is asked something, on the thread that asks."""

    @property
    def is_late(self) -> bool:
        """Whether a resting engine has not answered yet what it was asked before."""

    def drive(self, hook: Coroutine[Any, Any, Any], within_s: float) -> Any:
        """Run *hook* on the loop of a resting engine, at once, for up to this long."""

    async def look(self) -> None:
        """Find out what cannot be seen without asking; nothing asked can hurt."""

    async def states(self) -> Sequence[Mapping[str, Any]]:
        """Ask what the schedulers say of themselves: a state of each replica."""

    async def start(self, fields: Mapping[str, Any]) -> None:
        """Send a request to start profiling."""

    async def stop(self) -> None:
        """Send a request to stop; nothing in progress is success."""

    async def run(self, function: Callable[[], object]) -> None:
        """Call *function* where the engine's frontend works, so that nothing comes between."""


def reach(handle: Any, admin_api_key: str | None = None, loop: Any = None) -> Engine:
    """Find out what *handle* is; raise CaptureError if it is no engine that can be recorded.

    *loop*: where it was attached.
    """
    if isinstance(handle, str):
        return Server(handle, admin_api_key)
    manager = getattr(handle, "tokenizer_manager", handle)
    if manager is None:
        raise CaptureError(
            "sglang: this node has no tokenizer manager; the node of rank 0 records all, so attach "
            "its engine alone"
        )
    if not hasattr(manager, "start_profile"):
        raise CaptureError(
            f"sglang: {type(handle).__name__} is no engine: it has no start_profile; attach an "
            "Engine, a TokenizerManager, or the address of a server"
        )
    return _Object(handle, manager, loop)


async def told(engine: Engine, order: str, more: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Carry an order to all schedulers; return what the first of each replica answered."""
    said = json.dumps({"order": order, **more})
    # Where nobody obeys it, on a node that was launched otherwise, nothing is recorded by this.
    nothing = {"activities": ["rlprof"], "with_stack": False, "record_shapes": False}
    await engine.start({"output_dir": MARK + said, **nothing})
    answers = [(state.get(STATE) or {}).get("answer") for state in await engine.states()]
    return [json.loads(answer) for answer in answers if answer]


class _Object:
    """An Engine, a TokenizerManager, or anything with methods of their names."""

    is_local = True

    def __init__(self, handle: Any, manager: Any, loop: Any) -> None:
        self._handle = handle
        self._manager = manager
        self._attached_on = loop
        _watch_its_end(handle)
        turns_of(self._own_loop)  # from now on, whoever else has it run
        self._late: concurrent.futures.Future[Any] | None = None
        """What it was asked last and did not answer within its time."""
        self.facts = seen(handle)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop it lives on while that runs; None: any will do."""
        loop = self._own_loop
        is_its_own = loop is not None and loop.is_running()
        return loop if is_its_own and (loop_here() is loop or not self._turns.is_taken) else None

    @property
    def _own_loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop it belongs to, for ever: the one that asks it first, an Engine's own."""
        first = getattr(self._manager, "event_loop", None)
        mine = first, getattr(self._handle, "loop", None), self._attached_on
        return next((one for one in mine if isinstance(one, asyncio.AbstractEventLoop)), None)

    @property
    def _turns(self) -> Turns:
        return turns_of(self._own_loop)

    @property
    def _is_unborn(self) -> bool:
        """Whether it belongs to no loop yet, and nobody knows to which it will.

        To ask it first would bind it for ever, and leave whoever asks it on another without answer.
        """
        if getattr(self._manager, "event_loop", self) is not None:
            return False
        own = getattr(self._handle, "loop", None)
        return self._attached_on is None if own is None else self._attached_on is not own

    @property
    def is_resting(self) -> bool:
        """Whether its loop runs only while it is asked something, on the thread that asks."""
        return self._own_loop is not None and self.loop is None

    @property
    def is_late(self) -> bool:
        """Whether a resting engine has not answered yet what it was asked before."""
        return self._late is not None and not self._late.done()

    def drive(self, hook: Coroutine[Any, Any, Any], within_s: float) -> Any:
        """Run *hook* on a resting engine's own loop, here and now; never cut it short."""
        loop = self._own_loop
        is_gone = loop is None or loop.is_closed()
        why = "the engine's event loop is closed" if is_gone else ""
        if loop_here() is not None:
            why = "an event loop runs on this thread; enter the phase by `async with`"
        if loop is None or why:
            hook.close()
            raise CaptureError(f"sglang: {why}")
        within_s = min(within_s, _LATE_S) if self.is_late else within_s
        call = driven(loop, hook, within_s)
        if not call.done():
            self._late = call
            raise CaptureError(f"sglang: the engine did not answer within {within_s} s")
        return call.result()

    async def look(self) -> None:
        """Ask whether rlprof's code is in the schedulers."""
        if self._is_unborn:
            raise CaptureError(
                "sglang: the engine has no event loop yet, because nothing has called it; call it "
                "once before, or name its loop: attach(engine, loop=engine.loop), a "
                "TokenizerManager in a coroutine of its loop"
            )
        if hasattr(self._manager, "get_internal_state"):
            self.facts = looked_inside(self.facts, await self.states())

    async def states(self) -> Sequence[Mapping[str, Any]]:
        """Ask what the schedulers say of themselves: a state of each replica."""
        found: list[Mapping[str, Any]] = await self._call("get_internal_state")
        return found

    async def start(self, fields: Mapping[str, Any]) -> None:
        """Send it in the shape of this release: one object since 0.5.15."""
        if "req" not in self.facts.parameters:
            await self._call("start_profile", **fields)
            return
        from sglang.srt.managers.io_struct import ProfileReq

        await self._call("start_profile", ProfileReq(**fields))

    async def stop(self) -> None:
        """Send a request to stop; nothing in progress is success."""
        try:
            await self._call("stop_profile")
        except RuntimeError as exc:
            if "not in progress" not in str(exc):
                raise

    async def run(self, function: Callable[[], object]) -> None:
        """Call it on the engine's own loop."""
        loop = self._own_loop
        await run_on(loop if loop is not None and loop.is_running() else None, function)

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        loop = self._own_loop
        rests = CameToRestError("sglang: the engine's event loop does not run any more")
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
        """Whether nobody hears what it is asked."""
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
    """Know from now on when an Engine is shut down: it answers nothing any more."""
    if not hasattr(handle, "__dict__") or _IS_OVER in vars(handle):
        return

    def end(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        setattr(handle, _IS_OVER, True)
        return inner(*args, **kwargs)

    if not getattr(handle, "_attached", False):  # such a one ends a part of itself alone
        Wrapped().put(handle, "shutdown", end)
