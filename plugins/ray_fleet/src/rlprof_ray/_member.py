"""One actor, seen from the driver: how it is asked, and what is known of it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_ray import _inside
from rlprof_ray._tie import CUT, tie

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlprof.types import Window
    from rlprof_ray._messages import Hello

_SYSTEM = "_ray_system"
"""A concurrency group every actor has: what is called in it waits for no other call."""


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def in_short(exc: BaseException) -> str:
    """Say an error of Ray's in a line: it begins with what happened, and ends with the cause."""
    lines = [line.strip() for line in _COLOUR.sub("", str(exc)).splitlines() if line.strip()]
    ends = lines[:1] if len(lines) < 2 else [lines[0], lines[-1]]
    return f"{type(exc).__name__}: {' ... '.join(ends)}"[:500]


def id_of(actor: Any) -> str:
    """Return the actor's id."""
    return str(actor._actor_id.hex())  # noqa: SLF001 -- Ray has no other name for it


def is_ordered(actor: Any) -> bool:
    """Whether its calls come one by one, in the order they were made."""
    return not getattr(actor, "_ray_allow_out_of_order_execution", False)


def aside(actor: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Call *function* in an actor beside its work, whatever that is; return the reference."""
    return actor.__ray_call__.options(concurrency_group=_SYSTEM).remote(function, *args)


def order(function: Callable[..., Any], *args: Any) -> bytes:
    """Write down a call once, for many members: bytes are what Ray passes on at the least cost."""
    import ray

    return bytes(ray.cloudpickle.dumps((function, args)))


@attrs.define(eq=False)
class Ask:
    """One question to one member, on its way."""

    member: Member
    what: str
    ref: Any
    deadline: float
    window: Window | None
    sent_ns: int
    """When it was sent, by the driver's wall clock."""
    is_late: bool = False


class Member:
    """An actor of the fleet.

    What it is asked comes in the order of its other calls where it has an order, so that a window
    begins and ends where the driver meant, on the thread that works. An actor that runs several
    calls at a time has no such order. An async one opens windows on its event loop, which works; a
    threaded one, or one with an engine, opens them beside its work, at once.
    """

    def __init__(self, actor: Any, hello: Hello) -> None:
        self.actor = actor
        self.hello = hello
        self._gone = ""
        self._tie = tie()
        self.unanswered = ""
        """What it was asked and has not answered within its time."""
        self.window: Window | None = None
        """The window that is open on it, as far as is known here."""
        self._last: Any = None
        """What it was asked last, if it has no order of its own."""
        self.has_entered = False
        """Whether it was asked to open its session."""
        self.is_leaving = False
        """Whether it was asked to close it."""
        self.workers: dict[str, str] = {}
        """What its files are called, by Ray's id of the process: one that was restarted has two."""
        self.why_full = ""
        """Why its process opens no further window."""
        self.offset_ns = 0
        """How far its wall clock is ahead of the driver's."""
        self.boot_id = ""
        """Of its machine, once its clock was read."""
        self.is_ordered = is_ordered(actor)
        self.is_on_loop = False
        """Whether its windows open and close on its event loop."""

    @property
    def gone(self) -> str:
        """Why it cannot be asked any more."""
        return self._gone or (CUT if self.is_cut else "")

    @gone.setter
    def gone(self, why: str) -> None:
        self._gone = why

    @property
    def is_cut(self) -> bool:
        """Whether its Ray was shut down; an actor that was seen to die of that is cut, too."""
        return tie() != self._tie

    @property
    def id(self) -> str:
        """The actor's id; one actor may be known under several roles."""
        return id_of(self.actor)

    @property
    def role(self) -> str:
        """The role it is captured as."""
        return self.hello.target.role

    @property
    def name(self) -> str:
        """Its target in words."""
        return str(self.hello.target)

    def enter(self, within_s: float) -> Ask:
        """Have it open its session."""
        self.has_entered = True
        return self._ask("configure", within_s, None, order(_inside.enter, self.hello))

    def begin(self, window: Window, how: bytes, within_s: float) -> Ask:
        """Have it open *window*."""
        self.window = window
        return self._ask("start", within_s, window, how)

    def end(self, window: Window, how: bytes, within_s: float) -> Ask:
        """Have it close *window*."""
        self.window = None
        return self._ask("stop", within_s, window, how)

    def tell(self, what: bytes) -> None:
        """Have it do something that nobody waits for."""
        if not self.gone:
            self._call(what, is_beside=True)  # on its event loop it might come after its calls

    def comes_after(self, other: Member) -> None:
        """Be asked after what the same actor was asked as *other*."""
        self._last = other._last

    def aside(self, function: Callable[..., Any]) -> Any:
        """Call *function* beside its work, whatever that is; return the reference."""
        return aside(self.actor, function, self.hello.run)

    def leave(self, within_s: float) -> Ask:
        """Have it close its session."""
        self.is_leaving = True
        return self._ask("close", within_s, None, order(_inside.leave, self.hello.run))

    def _ask(self, what: str, within_s: float, window: Window | None, how: bytes) -> Ask:
        sent_ns = time.time_ns()
        ref = self._call(how)
        return Ask(self, what, ref, time.monotonic() + within_s, window, sent_ns)

    def _call(self, how: bytes, *, is_beside: bool = False) -> Any:
        call = self.actor.__ray_call__
        if self.is_ordered:
            return call.remote(_inside.do, how)
        beside = is_beside or self.hello.attribute is not None  # an engine needs its event loop
        do = _inside.do_beside if beside else _inside.do_at_work
        call = call.options(concurrency_group=_SYSTEM)
        self._last = call.remote(do, how, self._unfinished())
        return self._last

    def _unfinished(self) -> Any:
        """Return the call before, which Ray lets the next one wait for; None: it is over.

        Without, two calls of the group come in any order: an end before the phases it ends.
        """
        import ray

        if self._last is None or ray.wait([self._last], timeout=0)[0]:
            return None
        return self._last
