"""The life of each request while a window is open, from what vLLM itself keeps of it.

The frontend of an engine keeps a state per request, with the times at which the engine's core
queued it, scheduled it, and gave its first and last token. The state is dropped when the request
ends; what is looked at here is its being dropped.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE = "requests.jsonl"
"""In the window's folder: a line per request, after one that says what all have in common."""

_TIMES = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")


class Watched(dict[str, Any]):
    """A frontend's requests, as they are; somebody may be told of each that leaves.

    It stays in its place when a window ends: another thread may be using it.
    """

    gone: list[tuple[Any, float]] | None = None
    """States that have left, and when; None: nobody wants to know."""

    def pop(self, key: str, *default: Any) -> Any:
        """Let a request go."""
        state = super().pop(key, *default)
        gone = self.gone
        if gone is not None and state is not None:
            # Only what is aborted may be gone already, and so only that has a default.
            gone.append(((*_kept(state), bool(default)), time.monotonic()))
        return state


def _counts_preemptions() -> bool:
    """Whether the vLLM of this process does, by what it keeps of a request: since 0.30."""
    import sys

    kept = getattr(sys.modules.get("vllm.v1.metrics.stats"), "RequestStateStats", None)
    return kept is None or hasattr(kept, "num_preemptions")


class Requests:
    """What one window sees of the requests of one engine."""

    def __init__(self, handle: Any) -> None:
        self.unsupported: dict[str, str] = {}
        inner = getattr(handle, "llm_engine", handle)
        self._processor = getattr(inner, "output_processor", None)
        self._watched: Watched | None = None
        self._began = 0.0
        if not isinstance(getattr(self._processor, "request_states", None), dict):
            self._processor = None
            self.unsupported["requests"] = "this engine's frontend is in another process"
        elif not _counts_preemptions():
            self.unsupported["requests: preemptions"] = "this vLLM counts none by request"

    def start(self) -> None:
        """Look at every request that leaves from now on."""
        if self._processor is None:
            return
        states = self._processor.request_states
        if not isinstance(states, Watched):
            states = Watched(states)
            self._processor.request_states = states
        self._began = time.monotonic()
        states.gone = []
        self._watched = states

    def stop(self, folder: Path) -> None:
        """Write down those that have left, and those that are still there."""
        watched, self._watched = self._watched, None
        if watched is None:
            return
        there = tuple(watched.values())  # first: who leaves now would be in neither
        gone, watched.gone = watched.gone or [], None
        now = time.monotonic()
        known = {id(kept[4]) for kept, _ in gone if kept[4] is not None}
        still = [
            ((*_kept(state), False), None)
            for state in there
            if id(getattr(state, "stats", None)) not in known
        ]
        first = {
            "realtime_ns": time.time_ns(),
            "monotonic_ns": time.monotonic_ns(),
            "began": self._began,
            "ended": now,
        }
        with (folder / FILE).open("w", encoding="utf-8") as file:
            file.write(json.dumps(first) + "\n")
            for kept, left in (*gone, *still):
                file.write(json.dumps(_line(kept, left)) + "\n")


def _kept(state: Any) -> tuple[Any, ...]:
    """Keep what is small of a request: its prompt and its text are not ours to hold."""
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
    """Describe a request; *left* is when it ended, None if it goes on."""
    name, prompt, cached, most, stats, is_aborted = kept
    line: dict[str, Any] = {"id": name, "left": left, "prompt_tokens": prompt}
    if is_aborted:
        line["finish"] = "abort"
    if cached:
        line["cached_tokens"] = cached
    if stats is None:
        return line
    line |= {key: value for key in _TIMES if (value := getattr(stats, key, 0.0))}
    line["arrival"] = getattr(stats, "arrival_time", 0.0)
    line["tokens"] = stats.num_generation_tokens
    if left is not None and not is_aborted:
        line["finish"] = "length" if most is not None and line["tokens"] >= most else "stop"
    if hasattr(stats, "num_preemptions"):
        line["preemptions"] = stats.num_preemptions
    return line


def trace_events(file: Path, pid: int) -> Iterator[dict[str, Any]]:
    """Turn the lines of *file* into slices, in lanes in which none overlaps another.

    Raise ValueError if it is damaged. The first event is a mark for whoever writes the header:
    `{"epoch_ns": …}`; times are microseconds after it.
    """
    with file.open(encoding="utf-8") as lines:
        common = json.loads(next(lines, "null"))
        if common is None:
            raise ValueError("is empty")
        found = [_of_line(json.loads(line), common) for line in lines]
    offset_ns = common["realtime_ns"] - common["monotonic_ns"]
    epoch_ns = int(min([common["began"], *(one["begin"] for one in found)]) * 1e9) + offset_ns
    yield {"epoch_ns": epoch_ns, "requests": len(found)}
    zero = (epoch_ns - offset_ns) / 1e9
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "requests"}}
    free: list[float] = []
    """By lane: when its last request ended."""
    for one in sorted(found, key=lambda one: one["begin"]):
        lane = next((n for n, end in enumerate(free) if end <= one["begin"]), len(free))
        if lane == len(free):
            free.append(0.0)
        free[lane] = one["end"]
        place = {"ph": "X", "cat": "request", "pid": pid, "tid": lane + 1}
        for name, begin, end, args in one["slices"]:
            yield place | {
                "name": name,
                "ts": round((begin - zero) * 1e6, 3),
                "dur": round(max(0.0, end - begin) * 1e6, 3),
                "args": args,
            }
    for lane in range(len(free)):
        name = {"name": f"request lane {lane + 1}"}
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": lane + 1, "args": name}


def _of_line(line: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """Place one request on the monotonic clock: all of it, and each part of its life."""
    end = common["ended"] if line["left"] is None else line["left"]
    known = [(key, line[key]) for key in _TIMES[:3] if line.get(key)]
    last = line.get("last_token_ts")
    if last and line["left"] is not None and line.get("finish") != "abort":
        end = max(last, known[-1][1] if known else last)
    arrived = line.get("arrival")
    if known:
        begin = known[0][1]
    elif arrived:
        begin = arrived - (common["realtime_ns"] - common["monotonic_ns"]) / 1e9
    else:
        begin = common["began"]
    end = max(end, begin)
    args = {key: value for key, value in line.items() if key not in (*_TIMES, "arrival", "left")}
    if line["left"] is None:
        args["unfinished"] = "it went on when the window ended"
    words = {"queued_ts": "queued", "scheduled_ts": "prefill", "first_token_ts": "decode"}
    slices = [(f"request {line['id']}", begin, end, args)]
    for index, (key, at) in enumerate(known):
        until = known[index + 1][1] if index + 1 < len(known) else end
        slices.append((words[key], at, min(max(until, at), end), {}))
    return {"begin": begin, "end": end, "slices": slices}
