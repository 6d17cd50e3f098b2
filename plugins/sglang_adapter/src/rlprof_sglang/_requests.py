"""The life of each request while a window is open, from SGLang's own answers.

The frontend keeps a state of each request until the request ends. Its last answer says what the
scheduler did with the request. We watch for the frontend to drop the state, and read that answer.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof_engine.requests import Watched, write

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_KEPT = ("id", "prompt_tokens", "completion_tokens", "cached_tokens", "num_retractions",
         "total_retractions", "finish_reason", "queue_time", "forward_entry_time",
         "prefill_finished_time", "prefill_finished_ts", "dp_rank")  # fmt: skip
"""The small fields of an answer; we do not keep its text."""


class Answers(list[Any]):
    """The answers to a request, unchanged; the small fields of the last answer are copied.

    We do not keep the answers themselves. Thousands of them, held until the window's end, would
    keep text and tokens in memory, and slow down garbage collection.
    """

    def __init__(self, answers: Iterable[Any], said: dict[str, Any]) -> None:
        super().__init__(answers)
        self._said = said
        for answer in self:
            self._keep(answer)

    def append(self, answer: Any) -> None:
        """Add one more answer."""
        with suppress(Exception):  # the engine must go on
            self._keep(answer)
        super().append(answer)

    def _keep(self, answer: Any) -> None:
        meta = answer.get("meta_info") if isinstance(answer, dict) else None
        if isinstance(meta, dict):
            self._said |= {name: meta[name] for name in _KEPT if meta.get(name) is not None}
            reason = self._said.get("finish_reason")
            if isinstance(reason, dict):
                self._said["finish_reason"] = str(reason.get("type", reason))


class Requests:
    """The requests of one engine in one window."""

    def __init__(self, handle: Any, *, has_metrics: bool) -> None:
        self.unsupported: dict[str, str] = {}
        self._manager = getattr(handle, "tokenizer_manager", handle)
        self._watched: Watched | None = None
        self._gone: list[tuple[dict[str, float], dict[str, Any], float]] = []
        """For each request that has left: its times, what its answer says (now or later), and
        when it left."""
        self._began = 0.0
        if not isinstance(getattr(self._manager, "rid_to_state", None), dict):
            self._manager = None
            self.unsupported["requests"] = "this engine's frontend is in another process"
        elif not has_metrics:
            self.unsupported["requests: queued, prefill"] = (
                "SGLang reports these times only with enable_metrics=True; rlprof.launch gives it"
            )

    def start(self) -> None:
        """Start to watch for requests that leave."""
        if self._manager is None:
            return
        states = self._manager.rid_to_state
        if not isinstance(states, Watched):
            states = Watched(states)
            self._manager.rid_to_state = states
        self._began = time.monotonic()
        states.left = self._left
        self._watched = states

    def _left(self, key: str, state: Any, _: bool) -> None:  # noqa: FBT001
        """Keep what is known of a request. Its last answer comes next, or has just come."""
        said: dict[str, Any] = {"id": key}
        times = _times(state)
        state.out_list = Answers(getattr(state, "out_list", ()), said)
        self._gone.append((times, said, time.monotonic()))

    def stop(self, folder: Path) -> None:
        """Write the requests that have left, and those that are still there."""
        watched, self._watched = self._watched, None
        if watched is None:
            return
        there = [(name, _times(state)) for name, state in tuple(watched.items())]
        watched.left = None
        gone = self._gone
        offset = time.time() - time.monotonic()
        lines = [_line(times, said, left, offset) for times, said, left in gone]
        known = {line["id"] for line in lines}
        lines += [
            _line(times, {"id": name}, None, offset) for name, times in there if name not in known
        ]
        write(folder, self._began, time.monotonic(), lines)


def _times(state: Any) -> dict[str, float]:
    """Return when the frontend received a request and its first and last tokens, monotonic."""
    stats = getattr(state, "time_stats", None)
    words = {"created_time": "created", "first_token_time": "first_token_ts",
             "last_time": "last_token_ts"}  # fmt: skip
    found = {word: getattr(stats, name, 0.0) for name, word in words.items()}
    if stats is None:  # until 0.5.9 they were on the state itself, by the wall clock
        found["created"] = getattr(state, "created_time", 0.0) - (time.time() - time.monotonic())
    return {word: at for word, at in found.items() if isinstance(at, float) and at > 0}


def _line(
    times: dict[str, float], meta: dict[str, Any], left: float | None, offset: float
) -> dict[str, Any]:
    """Describe a request; *left* is when it ended, None if it is still running."""
    line: dict[str, Any] = {"id": str(meta.get("id", "?")), "left": left}
    words = {"prompt_tokens": "prompt_tokens", "completion_tokens": "tokens",
             "cached_tokens": "cached_tokens", "num_retractions": "retractions",
             "total_retractions": "retractions", "dp_rank": "dp"}  # fmt: skip
    line |= {word: meta[name] for name, word in words.items() if meta.get(name) is not None}
    if left is not None and meta.get("finish_reason"):
        line["finish"] = str(meta["finish_reason"])
    scheduled = meta.get("forward_entry_time")
    first = meta.get("prefill_finished_time") or meta.get("prefill_finished_ts")
    if scheduled:
        line["scheduled_ts"] = scheduled - offset
        line["queued_ts"] = line["scheduled_ts"] - max(0.0, meta.get("queue_time") or 0.0)
    elif times.get("created"):
        line["queued_ts"] = times["created"]
    if scheduled and first:
        line["first_token_ts"] = first - offset
    elif times.get("first_token_ts"):
        line["first_token_ts"] = times["first_token_ts"]
    if times.get("last_token_ts"):
        line["last_token_ts"] = times["last_token_ts"]
    return line
