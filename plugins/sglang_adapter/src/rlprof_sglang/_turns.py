"""An Engine's loop is run by whoever asks it something: one at a time, our hooks among them.

Two threads that run one loop at the same time fail, and a rollout with them. So the methods of an
Engine that run its loop wait for each other, and for us, from when it is attached.
"""

from __future__ import annotations

import functools
import inspect
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rlprof_engine.wrapped import Wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_ATTRIBUTE = "_rlprof_turns"
_RUNS = "run_until_complete"


class Turns:
    """Whose turn it is to run one engine's loop."""

    def __init__(self, handle: Any) -> None:
        self._lock = threading.RLock()  # one method may call another
        self._depth = 0
        self.is_kept = False
        """Whether the engine's own calls wait for their turn."""
        self.is_over = False
        """Whether the engine was shut down: it answers nothing any more."""
        wrapped = Wrapped()
        for name in _running(type(handle)):
            self.is_kept = True
            wrapped.put(handle, name, self._in_turn)
        if self.is_kept and not getattr(handle, "_attached", False):  # then it ends a part alone
            wrapped.put(handle, "shutdown", self._end)

    @property
    def is_taken(self) -> bool:
        """Whether somebody runs it now."""
        return self._depth > 0

    def take(self, within_s: float) -> bool:
        """Wait for a turn; False: it did not come."""
        if not self._lock.acquire(timeout=within_s):
            return False
        self._depth += 1
        return True

    def give(self) -> None:
        """Let the next one run it."""
        self._depth -= 1
        self._lock.release()

    def _in_turn(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.take(-1)
        try:
            found = inner(*args, **kwargs)
        finally:
            self.give()
        return self._streamed(found) if inspect.isgenerator(found) else found

    def _end(self, inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Waits for no turn: it may be called because nothing answers."""
        self.is_over = True
        return inner(*args, **kwargs)

    def _streamed(self, tokens: Generator[Any, Any, Any]) -> Iterator[Any]:
        """Go through a stream, which runs the loop for each of its items."""
        following = functools.partial(next, tokens, self)
        with closing(tokens):
            while (one := self._in_turn(following)) is not self:
                yield one


def turns_of(handle: Any) -> Turns:
    """Return those of *handle*: the same for all who attach it."""
    found = vars(handle).get(_ATTRIBUTE) if hasattr(handle, "__dict__") else None
    if found is None:
        found = Turns(handle)
        if found.is_kept:
            setattr(handle, _ATTRIBUTE, found)
    return found


def _running(cls: type) -> Iterator[str]:
    """Name the methods of a class that run a loop until something is done."""
    for name in dir(cls):
        method = inspect.unwrap(inspect.getattr_static(cls, name), stop=None)
        code = getattr(method, "__code__", None)
        if code is not None and _RUNS in code.co_names and not name.startswith("__"):
            yield name
