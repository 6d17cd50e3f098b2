"""Counters of an engine or its server, read by a thread that nothing waits for."""

from __future__ import annotations

import threading
import time
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_EVERY_S, _MOST_S = 1.0, 5.0
_SHARE = 50
"""An answer costs time on the server's event loop; pause for this many times as long, but for
`_MOST_S` at most: a busy server, whose counters matter most, answers late without working on it."""
_AGAIN_S = 30.0
"""The pause while a server has not answered yet, or has no such counters."""
_ANSWER_S = 2.0
_MOST = 4 << 20


class Polled:
    """The last answer of one server."""

    def __init__(self, ask: Callable[[], Mapping[str, float]]) -> None:
        self._ask = ask
        self._next = 0.0
        self._has_answered = False
        self._news: Mapping[str, float] = {}

    def news(self) -> Mapping[str, float]:
        """Return the answer that came since the last call; never wait."""
        found, self._news = self._news, {}
        if time.monotonic() >= self._next:
            self._next = float("inf")
            with suppress(RuntimeError):  # the process is ending
                threading.Thread(target=self._look, name="rlprof-ask", daemon=True).start()
        return found

    def _look(self) -> None:
        began = time.monotonic()
        found: Mapping[str, float] = {}
        with suppress(Exception):  # the server is not up yet, or gone; training goes on
            found = self._ask()
        now = time.monotonic()
        self._news = found
        self._has_answered |= bool(found)
        pause_s = min(max(_EVERY_S, _SHARE * (now - began)), _MOST_S)
        self._next = now + (pause_s if self._has_answered else _AGAIN_S)


def fetched(url: str) -> bytes:
    """Get *url*; raise OSError if it does not answer soon."""
    with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:  # noqa: S310 -- what the user attached
        return bytes(answer.read(_MOST))


def own(thing: Any, name: str) -> Any:
    """Return an attribute only if *thing* really has it: a proxy of an actor has every name."""
    return getattr(thing, "__dict__", {}).get(name)


def samples(text: bytes, names: Sequence[str]) -> dict[str, list[float]]:
    """Read metrics from Prometheus' text: one value for each set of labels."""
    found: dict[str, list[float]] = {}
    for line in text.decode("utf-8", "replace").splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in names:
            with suppress(ValueError):
                found.setdefault(name, []).append(float(line.rpartition("}")[2].split()[-1]))
    return found


def totals(
    running: Sequence[float], waiting: Sequence[float], kv_cache: Sequence[float]
) -> dict[str, float]:
    """Combine the counters of one engine's schedulers; empty if they report nothing.

    Each scheduler runs its requests in one batch.
    """
    found: dict[str, float] = {}
    if running:
        found |= {"requests_running": sum(running), "batch_size": max(running)}
    if waiting:
        found["requests_waiting"] = sum(waiting)
    if kv_cache:
        found["kv_cache_use"] = sum(kv_cache) / len(kv_cache)
    return found
