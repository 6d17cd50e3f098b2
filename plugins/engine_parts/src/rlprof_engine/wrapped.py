"""Wraps methods of single objects while a window is open."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Wrapped:
    """The methods that we have wrapped."""

    def __init__(self) -> None:
        self._put: list[tuple[Any, str, Any, Any]] = []
        """Owner, name of the method, our wrapper, and the attribute it replaced."""

    def put(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Wrap method *name* of *owner*, if it exists, in *around*.

        *around* gets the method and its arguments. Change only *owner*, not its class.
        """
        inner = getattr(owner, name, None)
        if not callable(inner) or not hasattr(owner, "__dict__"):
            return

        @functools.wraps(inner)  # some callers inspect its signature
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return around(inner, *args, **kwargs)

        before = vars(owner).get(name)
        setattr(owner, name, wrapped)
        self._put.append((owner, name, wrapped, before))

    def take_back(self) -> None:
        """Restore the methods; keep a wrapper that somebody put over ours."""
        while self._put:
            owner, name, wrapped, before = self._put.pop()
            if vars(owner).get(name) is not wrapped:
                continue
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
