"""The life of each request while a window is open, from SGLang's own answers.

The frontend keeps a state of each request until the request ends. Its last answer says what the
scheduler did with the request. We watch for the frontend to drop the state, and read that answer.
"""

from __future__ import annotations

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
        """Keep what is known of a request. Its last answer comes next, or has just come."""
        said: dict[str, Any] = {"id": name}
        times = _times(state)
        state.out_list = Answers(getattr(state, "out_list", ()), said)
        self._gone.append((times, said, time.monotonic()))

    def lines(self, there: Iterable[tuple[str, Any]]) -> Iterable[dict[str, Any]]:
        """Describe the requests that have left, and of *there* those that have not."""
        offset = time.time() - time.monotonic()
        lines = [_line(times, said, left, offset) for times, said, left in self._gone]
        known = {line["id"] for line in lines}
        rest = [(_times(state), {"id": name}) for name, state in there if name not in known]
        return lines + [_line(times, said, None, offset) for times, said in rest]


def _times(state: Any) -> dict[str, float]:
    """Return when the frontend received a request and its first and last tokens, monotonic."""
    stats = getattr(state, "time_stats", None)
    words = {"created_time": "created", "first_token_time": "first_token_ts",
             "last_time": "last_token_ts"}  # fmt: skip
    found = {word: getattr(stats, name, 0.0) for name, word in words.items()}
    return {word: at for word, at in found.items() if isinstance(at, float) and at > 0}


def _line(
    times: dict[str, float], meta: dict[str, Any], left: float | None, offset: float
) -> dict[str, Any]:
    """Describe a request; *left* is when it ended, None if it is still running."""
    line: dict[str, Any] = {"id": str(meta.get("id", "?")), "left": left}
    words = {"prompt_tokens": "prompt_tokens", "completion_tokens": "tokens",
             "cached_tokens": "cached_tokens", "num_retractions": "retractions",
             "dp_rank": "dp"}  # fmt: skip
    line |= {word: meta[name] for name, word in words.items() if meta.get(name) is not None}
    if left is not None and meta.get("finish_reason"):
        line["finish"] = str(meta["finish_reason"])
    scheduled = meta.get("forward_entry_time")
    first = meta.get("prefill_finished_time")
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
