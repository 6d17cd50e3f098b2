"""The life of each request while a window is open, from vLLM's own state of it.

The frontend of an engine keeps a state per request, with the times at which the engine's core
queued it, scheduled it, and gave its first and last token. When the request ends, the frontend
drops the state; we watch for that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rlprof_engine.requests import TIMES
from rlprof_engine.requests import Requests as Watching

if TYPE_CHECKING:
    from collections.abc import Iterable


class Requests(Watching):
    """The requests of one engine in one window."""

    attribute = "request_states"

    def __init__(self, handle: Any) -> None:
        inner = getattr(handle, "llm_engine", handle)
        super().__init__(getattr(inner, "output_processor", None))

    def left(self, _: str, state: Any, might_be_gone: bool) -> None:  # noqa: FBT001
        """Keep what is known of a request that leaves; only an aborted one may have left before."""
        self._gone.append((_kept(state), might_be_gone, time.monotonic()))

    def lines(self, there: Iterable[tuple[str, Any]]) -> Iterable[dict[str, Any]]:
        """Describe the requests that have left, and of *there* those that have not."""
        known = {id(kept[4]) for kept, _, _ in self._gone if kept[4] is not None}
        still = [
            (_kept(state), False, None)
            for _, state in there
            if id(getattr(state, "stats", None)) not in known
        ]
        return [_line(*one) for one in (*self._gone, *still)]


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


def _line(kept: tuple[Any, ...], is_aborted: bool, left: float | None) -> dict[str, Any]:  # noqa: FBT001
    """Describe a request; *left* is when it ended, None if it is still running."""
    name, prompt, cached, most, stats = kept
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
