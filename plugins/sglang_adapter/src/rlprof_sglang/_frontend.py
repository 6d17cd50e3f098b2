"""Our code in the process of a server: orders pass through it, and it watches the requests."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof_sglang._words import FRONTEND, MARK

if TYPE_CHECKING:
    from collections.abc import Callable

_ASKED_S = 60.0
"""How long the answer waits for the plugin to ask for it."""

_answer: tuple[float, str] = (0.0, "")
"""The answer to the last order, and until when it waits."""


async def start_profile(
    original: Callable[..., Any], manager: Any, *args: Any, **kwargs: Any
) -> Any:
    """Pass a profile request on; then do what it orders for the requests, if it is our order."""
    global _answer  # noqa: PLW0603 -- a process has one server
    found = await original(manager, *args, **kwargs)
    asked = args[0] if args else kwargs.get("req")
    with suppress(Exception):  # a server must go on
        text = getattr(asked, "output_dir", None) or ""
        if text.startswith(MARK):
            _answer = (time.monotonic() + _ASKED_S, _watched(manager, text.removeprefix(MARK)))
    return found


async def get_internal_state(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Add our answer to the state of the first scheduler."""
    states = await original(*args, **kwargs)
    until, answer = _answer
    if answer and time.monotonic() < until:
        with suppress(Exception):
            states[0][FRONTEND] = answer
    return states


def _watched(manager: Any, text: str) -> str:
    from rlprof_engine.frontend import watched
    from rlprof_sglang._requests import Requests

    def watch() -> Requests:
        return Requests(manager, has_metrics=bool(getattr(manager, "enable_metrics", False)))

    return watched(manager, text, watch)
