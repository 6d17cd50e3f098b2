"""The life of each request while a window is open, from vLLM's own state of it.

The frontend of an engine keeps a state per request, with the times at which the engine's core
queued it, scheduled it, and gave its first and last token. When the request ends, the frontend
drops the state; we watch for that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rlprof_engine.requests import TIMES, Watched, write

if TYPE_CHECKING:
    from pathlib import Path


def _counts_preemptions() -> bool:
    """Whether the vLLM in this process counts preemptions per request, as it does since 0.30."""
    import sys

    kept = getattr(sys.modules.get("vllm.v1.metrics.stats"), "RequestStateStats", None)
    return kept is None or hasattr(kept, "num_preemptions")


class Requests:
    """The requests of one engine in one window."""

    def __init__(self, handle: Any) -> None:
        self.unsupported: dict[str, str] = {}
        inner = getattr(handle, "llm_engine", handle)
        self._processor = getattr(inner, "output_processor", None)
        self._watched: Watched | None = None
        self._gone: list[tuple[tuple[Any, ...], float | None]] = []
        """The data of each request that has left, and the time when it left."""
        self._began = 0.0
        if not isinstance(getattr(self._processor, "request_states", None), dict):
            self._processor = None
            self.unsupported["requests"] = "this engine's frontend is in another process"
        elif not _counts_preemptions():
            self.unsupported["requests: preemptions"] = "this vLLM does not count them per request"

    def start(self) -> None:
        """Start to watch for requests that leave."""
        if self._processor is None:
            return
        states = self._processor.request_states
        if not isinstance(states, Watched):
            states = Watched(states)
            self._processor.request_states = states
        self._began = time.monotonic()
        states.left = self._left
        self._watched = states

    def _left(self, _: str, state: Any, might_be_gone: bool) -> None:  # noqa: FBT001
        # Only an aborted request may have left already.
        self._gone.append(((*_kept(state), might_be_gone), time.monotonic()))

    def stop(self, folder: Path) -> None:
        """Write the requests that have left, and those that are still there."""
        watched, self._watched = self._watched, None
        if watched is None:
            return
        there = tuple(watched.values())  # first, or a request that leaves now is in neither
        watched.left = None
        gone = self._gone
        now = time.monotonic()
        known = {id(kept[4]) for kept, _ in gone if kept[4] is not None}
        still = [
            ((*_kept(state), False), None)
            for state in there
            if id(getattr(state, "stats", None)) not in known
        ]
        write(folder, self._began, now, (_line(kept, left) for kept, left in (*gone, *still)))


def _kept(state: Any) -> tuple[Any, ...]:
    """Return the small data of a request, without its prompt and its text."""
    stats = getattr(state, "stats", None)
    name = getattr(state, "external_req_id", None) or getattr(state, "request_id", "")
    return (
        str(name),
        getattr(state, "prompt_len", None),
        getattr(state, "num_cached_tokens", None),
        getattr(state, "max_tokens_param", None),
        stats,
    )


def _line(kept: tuple[Any, ...], left: float | None) -> dict[str, Any]:
    """Describe a request; *left* is when it ended, None if it is still running."""
    name, prompt, cached, most, stats, is_aborted = kept
    line: dict[str, Any] = {"id": name, "left": left, "prompt_tokens": prompt}
    if is_aborted:
        line["finish"] = "abort"
    if cached:
        line["cached_tokens"] = cached
    if stats is None:
        return line
    line |= {key: value for key in TIMES if (value := getattr(stats, key, 0.0))}
    line["arrival"] = getattr(stats, "arrival_time", 0.0)
    if (tokens := getattr(stats, "num_generation_tokens", None)) is not None:
        line["tokens"] = tokens
    if left is not None and not is_aborted and tokens is not None:
        line["finish"] = "length" if most is not None and tokens >= most else "stop"
    if hasattr(stats, "num_preemptions"):
        line["preemptions"] = stats.num_preemptions
    return line
