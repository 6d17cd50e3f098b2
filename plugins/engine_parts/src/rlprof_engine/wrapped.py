"""Methods of single objects with ours in front of them, while a window is open."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Wrapped:
    """What was put in front of whose methods."""

    def __init__(self) -> None:
        self._put: list[tuple[Any, str, Any, Any]] = []
        """Whose method, its name, ours, and what stood there before."""

    def put(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Have *around*, given the method and its arguments, called instead of it, if there is one.

        Only *owner* is changed, and not its class.
        """
        inner = getattr(owner, name, None)
        if not callable(inner) or not hasattr(owner, "__dict__"):
            return

        @functools.wraps(inner)  # some look what it takes
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return around(inner, *args, **kwargs)

        before = vars(owner).get(name)
        setattr(owner, name, wrapped)
        self._put.append((owner, name, wrapped, before))

    def take_back(self) -> None:
        """Give them their methods back; what somebody has put over ours stays."""
        while self._put:
            owner, name, wrapped, before = self._put.pop()
            if vars(owner).get(name) is not wrapped:
                continue
            if before is None:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
