"""The boundary between rlprof and training: catches what would reach a step.

In a run, no exception of rlprof or its plugins reaches a step. Each kind is logged once and noted
in the manifest; with `strict: true` it is raised instead.
"""

from __future__ import annotations

import errno
import functools
import logging
import signal
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

log = logging.getLogger("rlprof")


def _named(record: logging.LogRecord) -> bool:
    """Name rlprof in *record* if no handler does: `logging.lastResort` prints the message alone."""
    if not log.hasHandlers():
        record.msg = f"rlprof: {record.msg}"
    return True


log.addFilter(_named)

_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""The errors of a disk that takes no more."""

T = TypeVar("T")


class Boundary:
    """Calls functions that may fail, for one session."""

    def __init__(self, *, strict: bool, name: str) -> None:
        self.strict = strict
        self._name = name
        self._warned: set[str] = set()

    def call(
        self, what: str, function: Callable[[], T], failed: Callable[[str], object] | None = None
    ) -> T | None:
        """Return the result of *function*; if it raises, pass the reason to *failed*."""
        with Guard(self, what, failed):
            return function()
        return None

    def log(self, message: str, level: int = logging.INFO) -> None:
        """Log a message for the user."""
        write_log(level, "%s: %s", self._name, message)

    def warn(self, what: str, reason: str, exc: BaseException | None = None) -> None:
        """Log a failure of *what*: the first time as a warning, later at DEBUG level."""
        level = logging.DEBUG if what in self._warned else logging.WARNING
        self._warned.add(what)
        known = exc is None or type(exc).__module__.startswith("rlprof")
        known = known or getattr(exc, "errno", None) in _DISKS  # no code is at fault
        text = "%s: %s: %s" + (" Training" if reason.endswith("?") else "; training") + " goes on"
        write_log(level, text, self._name, what, reason, exc_info=None if known else exc)
        if known and exc is not None:  # its message is enough, except for debugging
            write_log(logging.DEBUG, "%s: %s was raised here:", self._name, what, exc_info=exc)


class Guard:
    """A `with` whose code may fail: *failed* gets the reason, and training continues."""

    __slots__ = ("_boundary", "_failed", "_what")

    def __init__(
        self, boundary: Boundary, what: str, failed: Callable[[str], object] | None = None
    ) -> None:
        self._boundary = boundary
        self._what = what
        self._failed = failed

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: object, exc: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if exc is None:
            return False
        reason = f"{type(exc).__name__}: {exc}"  # a plugin may call sys.exit, too
        is_the_users = _is_the_users(exc)
        if self._failed is not None:
            self._failed(f"interrupted by {reason}" if is_the_users else reason)
        if is_the_users or self._boundary.strict:
            return False
        self._boundary.warn(self._what, reason, exc)
        return True


def write_log(level: int, message: str, *args: Any, **more: Any) -> None:
    """Log; a handler that raises would not have been called without us."""
    try:
        log.log(level, message, *args, **more)
    except Exception as exc:
        if _is_the_users(exc):
            raise


def _is_the_users(exc: BaseException) -> bool:
    """Whether *exc* came from a signal, not from the call.

    Ctrl-C and exceptions of the user's signal handlers (a TimeoutError, for example) may hit any
    line of ours and must pass. A plugin whose library replaces them sets `from_signal` on its own.
    """
    if isinstance(exc, KeyboardInterrupt) or hasattr(exc, "from_signal"):
        return True
    codes = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    return any(frame.f_code in codes for frame, _ in walk_tb(exc.__traceback__))


def _code(handler: Any) -> Any:
    """Return the code that runs when *handler*, perhaps an object or a partial, is called."""
    handler = getattr(handler, "func", handler)
    if callable(handler) and not hasattr(handler, "__code__"):
        handler = type(handler).__call__
    return getattr(handler, "__code__", None)


def survives(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let *method* of an object with a `boundary` return None instead of raising."""
    what = method.__name__.strip("_")

    @functools.wraps(method)
    def survivor(self: Any, *args: Any) -> Any:
        with Guard(self.boundary, what):
            return method(self, *args)
        return None

    return survivor
