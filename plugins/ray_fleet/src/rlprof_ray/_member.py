"""One actor, seen from the driver: its calls and its state."""

from __future__ import annotations

import copy
import re
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rlprof_ray import _inside
from rlprof_ray._tie import CUT, tie

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlprof.types import Target, Window
    from rlprof_ray._messages import Hello

_GRACE_S = 5.0
"""How long an actor lives on that training has dropped: its exports end, or the fleet closes."""
_SYSTEM = "_ray_system"
"""A concurrency group of every actor: calls in it wait for no other call."""


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_GUESSES = re.compile(r" (There are some potential root causes|Some common causes|Owner Id:).*")
"""Sentences of Ray on what may end any process, and numbers."""
_DROPPED = "all references to the actor were removed"


def in_short(exc: BaseException) -> str:
    """Shorten an error of Ray to a line: its beginning, and its end with the cause."""
    text = _GUESSES.sub("", _COLOUR.sub("", str(exc)))
    if _DROPPED in text:  # else Ray says, too, that it died unexpectedly
        return "its last handle was dropped"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ends = lines[:1] if len(lines) < 2 else [lines[0], lines[-1]]
    return ": ".join([type(exc).__name__, *(end.rstrip(".:") for end in ends)])[:500]


def id_of(actor: Any) -> str:
    """Return the actor's id."""
    return str(actor._actor_id.hex())  # noqa: SLF001 -- Ray has no other name for it


def uncounted(actor: Any) -> Any:
    """Return a handle that does not keep *actor* alive, so that training can drop it.

    An actor ends with its last handle that is not weak; only then are its CPUs free.
    """
    if "_ray_weak_ref" not in getattr(actor, "__dict__", ()):  # then Ray would count out the copy
        return actor
    handle = object.__new__(type(actor))
    vars(handle).update(vars(actor), _ray_weak_ref=True)
    return handle


def is_ordered(actor: Any) -> bool:
    """Whether its calls run one by one, in the order they were made."""
    return not getattr(actor, "_ray_allow_out_of_order_execution", False)


def aside(actor: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Call *function* in an actor without waiting for its work; return the reference."""
    return actor.__ray_call__.options(concurrency_group=_SYSTEM).remote(function, *args)


def order(function: Callable[..., Any], *args: Any) -> bytes:
    """Pickle a call once for many members: bytes are cheapest for Ray to pass on."""
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
    refused: str = ""
    """Why Ray did not take the call: another cluster's actor, or PendingCallsLimitExceeded."""
    is_late: bool = False


def all_of(asks: Sequence[Ask]) -> dict[Ask, bytes]:
    """Get all answers at once, which is cheaper; empty if one of them is an error."""
    import ray

    try:
        return dict(zip(asks, ray.get([ask.ref for ask in asks]), strict=True))
    except Exception:  # the caller gets them one by one to find it
        return {}


class Member:
    """An actor of the fleet.

    If it runs its calls in order, questions run in that order, too. So a window begins and ends
    where the driver meant, on the working thread. An actor that runs several calls at a time has no
    such order. An async actor opens windows on its event loop, which does the work; a threaded
    actor, or one with an engine, opens them on another thread, at once.
    """

    def __init__(self, actor: Any, hello: Hello) -> None:
        self.actor = uncounted(actor)
        self._kept: Any = copy.copy(actor)  # counts, as the one of training does
        self.is_closing = False
        """Whether the fleet closes, so that it must not end yet."""
        weakref.finalize(actor, self._dropped).atexit = False
        self.hello = hello
        self.died = ""
        """Why its process is gone for good."""
        self._tie = tie()
        self.unanswered = ""
        """The question that it did not answer in time."""
        self.window: Window | None = None
        """The window that is open on it, as far as the driver knows."""
        self.has_begun = False
        """Whether it is known to have begun that window."""
        self._last: Any = None
        """Its last question, if its calls have no order."""
        self.has_entered = False
        """Whether it was asked to open its session."""
        self.is_leaving = False
        """Whether it was asked to close it."""
        self.workers: dict[str, str] = {}
        """Ray's id of the process → the name of its files; a restarted actor has two."""
        self.why_full = ""
        """Why its process opens no further window."""
        self.offset_ns = 0
        """The lead of its wall clock over the driver's."""
        self.boot_id = ""
        """The boot id of its machine, once its clock was read."""
        self.is_ordered = hello.is_ordered
        """Whether its calls run one by one, on the working thread."""
        self.is_on_loop = False
        """Whether its windows open and close on its event loop."""

    def _dropped(self) -> None:
        """Let it go soon, for training has dropped it, and needs its CPUs and GPUs."""
        with suppress(RuntimeError):  # Python ends
            later = threading.Timer(_GRACE_S, self.let_go)
            later.daemon = True
            later.start()

    def let_go(self) -> None:
        """Let it end, unless somebody else keeps it, or the fleet closes."""
        if not self.is_closing:
            self._kept = None

    @property
    def gone(self) -> str:
        """Why it cannot be asked any more."""
        return self.died or (CUT if self.is_cut else "")

    @property
    def is_cut(self) -> bool:
        """Whether its Ray was shut down; also if the actor seemed to die of that."""
        return tie() != self._tie

    @property
    def id(self) -> str:
        """The actor's id; one actor may be known under several roles."""
        return id_of(self.actor)

    @property
    def target(self) -> Target:
        """The target it is captured as."""
        return self.hello.target

    def enter(self, within_s: float) -> Ask:
        """Ask it to open its session."""
        self.has_entered = True
        return self._ask("configure", within_s, None, order(_inside.enter, self.hello))

    def begin(self, window: Window, how: bytes, within_s: float) -> Ask:
        """Ask it to open *window*."""
        self.window, self.has_begun = window, False
        return self._ask("start", within_s, window, how)

    def end(self, window: Window, how: bytes, within_s: float) -> Ask:
        """Ask it to close *window*."""
        self.window = None
        return self._ask("stop", within_s, window, how)

    def send(self, what: bytes) -> None:
        """Ask it for something without waiting for the answer."""
        if not self.gone:
            with suppress(Exception):  # Ray takes no more calls; the end of the window will say so
                self._call(what, off_loop=True)  # on its event loop it might come after its calls

    def comes_after(self, other: Member) -> None:
        """Order its questions after those to the same actor as *other*."""
        self._last = other._last

    def ping(self, within_s: float) -> Ask:
        """Ask it to answer, which it does once it has done its work."""
        return self._ask("ping", within_s, None, order(_inside.ping))

    def leave(self, within_s: float) -> Ask:
        """Ask it to close its session."""
        self.is_leaving = True
        return self._ask("close", within_s, None, order(_inside.leave, self.hello.run))

    def _ask(self, what: str, within_s: float, window: Window | None, how: bytes) -> Ask:
        sent_ns = time.time_ns()
        deadline = time.monotonic() + within_s
        try:
            return Ask(self, what, self._call(how), deadline, window, sent_ns)
        except Exception as exc:  # plain Exception is what Ray raises, e.g. for another cluster
            return Ask(self, what, None, deadline, window, sent_ns, refused=in_short(exc))

    def _call(self, how: bytes, *, off_loop: bool = False) -> Any:
        call = self.actor.__ray_call__
        if self.is_ordered:
            return call.remote(_inside.do, how)
        off_loop = off_loop or self.hello.attribute is not None  # an engine needs its event loop
        do = _inside.do if off_loop else _inside.do_at_work
        call = call.options(concurrency_group=_SYSTEM)
        self._last = call.remote(do, how, self._unfinished())
        return self._last

    def _unfinished(self) -> Any:
        """Return the last call, for which Ray makes the next one wait; None: it has ended.

        Otherwise, two calls of the group may swap: an end could come before its phases.
        """
        import ray

        if self._last is None or ray.wait([self._last], timeout=0)[0]:
            return None
        return self._last
