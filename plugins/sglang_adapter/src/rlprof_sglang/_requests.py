"""The life of each request while a window is open, from SGLang's own answers.

The frontend keeps a state of each request until the request ends. Its last answer says what the
scheduler did with the request. We watch for the frontend to drop the state, and read that answer.
Its caller takes the answer in a later turn of the engine's loop.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof_engine.requests import Requests as Watching

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEPT = ("id", "prompt_tokens", "completion_tokens", "cached_tokens", "num_retractions",
         "finish_reason", "queue_time", "forward_entry_time",
         "prefill_finished_time", "dp_rank")  # fmt: skip
"""The small fields of an answer; we do not keep its text."""


class Requests(Watching):
    """The requests of one engine in one window."""

    attribute = "rid_to_state"

    def __init__(self, handle: Any, *, has_metrics: bool) -> None:
        super().__init__(getattr(handle, "tokenizer_manager", handle))
        if not self.unsupported and not has_metrics:
            self.unsupported["requests: queued, prefill"] = (
                "SGLang reports these times only with enable_metrics=True; rlprof.launch gives it"
            )

    def left(self, name: str, state: Any, _: bool) -> None:  # noqa: FBT001
        """Note a request. Its last answer comes in this turn of the loop, or has just come."""
        request: dict[str, Any] = {"id": name}
        self._gone.append((request, time.monotonic()))
        asyncio.get_running_loop().call_soon(_keep, state, request)

    def lines(self, there: Iterable[tuple[str, Any]]) -> Iterable[dict[str, Any]]:
        """Describe the requests that have left, and of *there* those that have not."""
        offset = time.time() - time.monotonic()
        known = {request["id"] for request, _ in self._gone}
        rest = [({"id": name} | _times(state), None) for name, state in there if name not in known]
        return [_line(request, left, offset) for request, left in (*self._gone, *rest)]


def _keep(state: Any, request: dict[str, Any]) -> None:
    """Keep the times and the small fields; thousands of whole answers would fill the memory."""
    with suppress(Exception):  # the engine must go on
        request |= _times(state)
        meta = state.out_list[-1]["meta_info"]
        request |= {name: meta[name] for name in _KEPT if meta.get(name) is not None}


def _times(state: Any) -> dict[str, float]:
    """Return when the frontend received a request and its first and last tokens, monotonic."""
    stats = getattr(state, "time_stats", None)
    words = {"created_time": "created", "first_token_time": "first_token_ts",
             "last_time": "last_token_ts"}  # fmt: skip
    found = {word: getattr(stats, name, 0.0) for name, word in words.items()}
    return {word: at for word, at in found.items() if isinstance(at, float) and at > 0}


def _line(request: dict[str, Any], left: float | None, offset: float) -> dict[str, Any]:
    """Describe a request; *left* is when it ended, None if it is still running."""
    words = {"id": "id", "prompt_tokens": "prompt_tokens", "completion_tokens": "tokens",
             "cached_tokens": "cached_tokens", "num_retractions": "retractions", "dp_rank": "dp",
             "first_token_ts": "first_token_ts", "last_token_ts": "last_token_ts"}  # fmt: skip
    line = {"left": left} | {word: request[name] for name, word in words.items() if name in request}
    if reason := request.get("finish_reason"):
        line["finish"] = str(reason.get("type", reason) if isinstance(reason, dict) else reason)
    if scheduled := request.get("forward_entry_time"):
        line["scheduled_ts"] = scheduled - offset
        line["queued_ts"] = line["scheduled_ts"] - max(0.0, request.get("queue_time") or 0.0)
        if first := request.get("prefill_finished_time"):
            line["first_token_ts"] = first - offset
    elif "created" in request:
        line["queued_ts"] = request["created"]
    return line
