"""One window in one of an engine's processes: counts engine steps and gives each one a range."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_engine.wrapped import Wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlprof import Follower, Order

IDLE = "the engine had no step in the window"
_ATTRIBUTE = "_rlprof_recording"


@attrs.frozen(eq=False)
class Cut:
    """A method that ends a window, because a window records one phase of generation."""

    owner: Any
    method: str
    word: Callable[..., str] | None = None
    """Describes a call; empty if the call ends no window. None: use the name of the method."""


@attrs.frozen(eq=False)
class Place:
    """One of an engine's processes: its number, its place in the layout, and what to watch."""

    number: int
    """The number of the process in its engine."""
    coordinates: Mapping[str, int]
    """Its place in the engine's layout."""
    owner: Any
    """The object whose method runs a step; it also holds the recording."""
    method: str
    """The method that runs one engine step."""
    name: Callable[..., str]
    """Names a step from the arguments of the method."""
    cuts: Sequence[Cut] = ()
    is_lazy: bool = False
    """Whether to begin at the first step, so that idle time is not recorded."""
    instead: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)
    """Replacements for methods of the owner while a window is open, by name."""

    @property
    def lacks(self) -> str:
        """An error if the owner has no such `method`, as in an unknown release; else empty."""
        if callable(getattr(self.owner, self.method, None)):
            return ""
        what = f"{type(self.owner).__name__}.{self.method}"
        return f"this engine has no {what}; rlprof does not know its release"


def obeyed(text: str, place: Callable[[], Place]) -> str:
    """Carry out the order *text* in *place*; return the outcome as JSON. Never raise."""
    began = time.time_ns()
    try:
        answer = _obey(json.loads(text), place())
    except Exception as exc:  # an engine may not survive an exception
        answer = {"state": "failed", "why": f"{type(exc).__name__}: {exc}"[:500]}
    took = {"at_ns": began, "seconds": round((time.time_ns() - began) / 1e9, 6)}
    return json.dumps({**answer, "pid": os.getpid(), **took})


def _obey(message: dict[str, Any], place: Place) -> dict[str, Any]:
    from rlprof import Order

    order = Order.read(message["order"])
    number, coordinates = place.number, dict(place.coordinates)
    known = {"worker": number, **coordinates, "rank": order.rank(number)}
    recording: Recording | None = getattr(place.owner, _ATTRIBUTE, None)
    if not order.chooses(number):
        return {"state": "not chosen", **known}
    if place.lacks and order.verb != "end":
        return {"state": "refused", "why": place.lacks, **known}
    if order.window is None:
        order.follower(number, coordinates)
        return {"state": "ready", **known}
    if order.verb == "begin":
        if recording is not None:
            recording.end("the next window began")
        follower = order.follower(number, coordinates)
        recording = Recording(place, order, follower, **message["iterations"])
        setattr(place.owner, _ATTRIBUTE, recording)
        why = recording.begin()
        return {"state": "refused" if why else "recording", "why": why, **known}
    if recording is None or not recording.is_of(order):
        return {"state": "idle", "why": "it was not recording this window", **known}
    delattr(place.owner, _ATTRIBUTE)
    recording.end(order.reason)
    if not recording.why and recording.is_waiting:
        why = "the window ended before all engine steps of iterations.skip had run"
        if not recording.has_run and place.is_lazy:
            why = IDLE
        return {"state": "idle", "why": why, **known}
    return {"state": "ended", "why": recording.why, "iterations": recording.done, **known}


class Recording:
    """One window in one process."""

    def __init__(
        self,
        place: Place,
        order: Order,
        follower: Follower,
        skip: int = 0,
        count: int | None = None,
    ) -> None:
        self.window = order.window
        self.why = ""
        """Why it ended early, or could not begin."""
        self.done = 0
        """Number of engine steps recorded."""
        self._order = order
        self._place = place
        self._follower = follower
        self.has_run = False
        """Whether the engine has run a step since the window began."""
        self._skip = skip
        self.is_waiting = skip > 0 or place.is_lazy
        """Whether it is still waiting for the first step to record."""
        self._count = count
        self._is_open = False
        self._is_over = False
        """Whether it is over for good; a wrapper that somebody put over ours may still call us."""
        self._wrapped = Wrapped()

    def is_of(self, order: Order) -> bool:
        """Whether *order* is for this window; several runs may take turns to record one engine."""
        return (order.run, order.window) == (self._order.run, self.window)

    def begin(self) -> str:
        """Begin now, or at the first step to record; return why it cannot begin, else empty."""
        self._wrapped.put(self._place.owner, self._place.method, self._step)
        for cut in self._place.cuts:
            self._wrapped.put(cut.owner, cut.method, self._cutting(cut))
        for method, other in self._place.instead.items():
            self._wrapped.put(self._place.owner, method, other)
        return "" if self.is_waiting else self._open()

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
        """End the recording, in whatever state it is."""
        self._is_over = True
        self._wrapped.take_back()
        if self._is_open and self.window is not None:
            self._is_open = False
            self._follower.end(self.window, reason)

    def _step(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run one engine step in its own range."""
        if self._is_over:
            return inner(*args, **kwargs)
        self.has_run = True
        if not self._is_open:
            if self._skip > 0:
                self._skip -= 1
                return inner(*args, **kwargs)
            self._guarded(self._open)
        if not self._is_open:
            return inner(*args, **kwargs)
        self._guarded(lambda: self._follower.push(self._place.name(*args, **kwargs)))
        try:
            return inner(*args, **kwargs)
        finally:
            self._guarded(self._follower.pop)
            self.done += 1
            if self.done == self._count:
                reason = f"iterations.count {self._count} was reached"
                self.why = self.why or reason
                self._guarded(lambda: self.end(reason))

    def _cutting(self, cut: Cut) -> Callable[..., Any]:
        def call(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if not self._is_over:
                self._guarded(lambda: self._end_if(cut, *args, **kwargs))
            return inner(*args, **kwargs)

        return call

    def _end_if(self, cut: Cut, *args: Any, **kwargs: Any) -> None:
        """End the window, if it has an engine step: before the first, weights may be on the way."""
        if not self.has_run:
            return
        word = cut.method.replace("_", " ") if cut.word is None else cut.word(*args, **kwargs)
        if word:
            self.why = f"the engine was asked to {word}"
            self.end(self.why)

    def _guarded(self, function: Callable[[], Any]) -> None:
        """Call *function*; note an error instead of raising it into the engine step."""
        try:
            function()
        except Exception as exc:  # an engine step must not fail because of us
            self.why = self.why or f"{type(exc).__name__}: {exc}"[:500]
