"""The life of each request in a window: one line per request, and the slices made from it.

A line is a JSON object. `id` names the request. `left` is the time when it ended, None if it is
still running. The times that the engine gave are in seconds: those of `TIMES` are monotonic,
`arrival` is of the wall clock. Other keys are shown as they are, e.g. `finish` and `tokens`.
Unknown values are left out.
"""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from rlprof import Artifact, CaptureError
from rlprof_engine.traces import header
from rlprof_traces import whole

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rlprof import Capture

FILE = "requests.jsonl"
"""In the window's folder: a first line with common values, then one line per request."""
TIMES = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
_MOST = 100_000
"""How many requests to keep of a window: if its run dies, a server keeps them until the next."""


def text_of(
    began: float, ended: float, lines: Iterable[dict[str, Any]], *, dropped: int = 0
) -> str:
    """Return the file of a window from *began* to *ended*, both in monotonic seconds.

    *dropped*: the number of requests that are not in *lines*.
    """
    first = {
        "realtime_ns": time.time_ns(),
        "monotonic_ns": time.monotonic_ns(),
        "began": began,
        "ended": ended,
        "dropped": dropped,
    }
    return "".join(json.dumps(line) + "\n" for line in (first, *lines))


def write(folder: Path, text: str) -> None:
    """Write the file of a window."""
    try:
        (folder / FILE).write_text(text, encoding="utf-8")
    except OSError as exc:
        raise CaptureError(f"requests cannot be written: {exc}") from exc


class Watched(dict[str, Any]):
    """Replaces the dict in which an engine's frontend holds its requests.

    Some releases remove a request by `pop`, others by `del`.
    """

    left: Callable[[str, Any, bool], None] | None = None
    """Called for each request that leaves, with its name, its state, and whether it might have left
    before; None: no window is open."""

    def pop(self, key: str, *default: Any) -> Any:
        """Remove a request, if it is there."""
        is_there = key in self
        state = super().pop(key, *default)
        if is_there:
            self._report(key, state, might_be_gone=bool(default))
        return state

    def __delitem__(self, key: str) -> None:
        """Remove a request."""
        state = self.get(key)
        super().__delitem__(key)
        self._report(key, state, might_be_gone=False)

    def _report(self, key: str, state: Any, *, might_be_gone: bool) -> None:
        left = self.left
        if left is not None and state is not None:
            with suppress(Exception):  # the engine's own loop must go on
                left(key, state, might_be_gone)


class Requests:
    """The requests of one engine in one window; an engine's own class says how it keeps them."""

    attribute: str
    """The attribute of the *keeper* with its requests."""

    def __init__(self, keeper: Any) -> None:
        self.unsupported: dict[str, str] = {}
        self._keeper = keeper
        self._watched: Watched | None = None
        self._gone: list[Any] = []
        """What `left` keeps of each request that has left."""
        self._dropped = 0
        self._began = 0.0
        if not isinstance(getattr(keeper, self.attribute, None), dict):
            self._keeper = None
            self.unsupported["requests"] = (
                "this engine's frontend is in another process; a server's can be recorded inside"
            )

    def start(self) -> None:
        """Start to watch for requests that leave."""
        if self._keeper is None:
            return
        states = getattr(self._keeper, self.attribute)
        if not isinstance(states, Watched):
            states = Watched(states)
            setattr(self._keeper, self.attribute, states)
        self._began = time.monotonic()
        states.left = self._leave
        self._watched = states

    def _leave(self, name: str, state: Any, might_be_gone: bool) -> None:  # noqa: FBT001
        if len(self._gone) < _MOST:
            self.left(name, state, might_be_gone)
        else:
            self._dropped += 1

    def left(self, name: str, state: Any, might_be_gone: bool) -> None:  # noqa: FBT001
        """Keep what is known of a request that leaves."""
        raise NotImplementedError

    def lines(self, there: Iterable[tuple[str, Any]]) -> Iterable[dict[str, Any]]:
        """Describe the requests that have left, and of *there* those that have not."""
        raise NotImplementedError

    def ended(self) -> str:
        """Stop to watch; return the file with the requests that have left, and those still there.

        Empty if nothing was watched.
        """
        watched, self._watched = self._watched, None
        if watched is None:
            return ""
        there = tuple(watched.items())  # first, or a request that leaves now is in neither
        watched.left = None
        now = time.monotonic()
        return text_of(self._began, now, self.lines(there), dropped=self._dropped)

    def put_back(self) -> None:
        """Give the frontend a plain dict again, unless another window watches it by now."""
        states = getattr(self._keeper, self.attribute, None)
        if isinstance(states, Watched) and states.left is None:
            setattr(self._keeper, self.attribute, dict(states))

    def stop(self, folder: Path, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Stop to watch, and write the file; *loop* is the one on which the frontend works."""
        text = self.ended()
        if loop is None:
            self.put_back()
        else:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.put_back)
        if text:
            write(folder, text)


def begun_in(file: Path) -> int:
    """Count the requests of *file* that got their first token in its window."""
    try:
        with file.open(encoding="utf-8") as lines:
            began = json.loads(next(lines))["began"]
            return sum(json.loads(line).get("first_token_ts", 0) > began for line in lines)
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return 0  # damage is reported elsewhere


def trace_of(capture: Capture, file: Path, out: Path, *, steps: int = 0) -> Artifact:
    """Make a trace of *file*; keep a damaged file unchanged.

    *steps*: the number of engine steps recorded. With it, a window without requests is not called
    idle if the engine was at work.
    """
    name = f"{capture.stem}_requests.trace.json.gz"
    note, events = "", 0
    status: Literal["whole", "partial"] = "whole"
    try:
        made = trace_events(file, capture.pid)
        first = next(made)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        shutil.copyfile(file, out / f"{capture.stem}_requests.jsonl")
        return Artifact(f"{capture.stem}_requests.jsonl", "files", "json-lines", "partial",
                        f"its lines cannot be read: {exc}")  # fmt: skip
    about = {**header(capture, capture.target), "epoch_ns": first["epoch_ns"], "error_ns": None}
    with whole(out / name) as packed:
        packed.write(f'{{"rlprof": {json.dumps(about)},\n"traceEvents": ['.encode())
        for event in made:
            packed.write((("," if events else "") + "\n" + json.dumps(event)).encode())
            events += 1
        packed.write(b"\n]}\n")
    if not first["requests"]:
        note = "idle: the engine had no request in the window"
        if steps:
            status = "partial"
            note = f"no request was seen, though the engine ran {steps} steps: another frontend "
            note += "holds them, or this release keeps them in a way that rlprof does not know"
    elif first["dropped"]:
        status, note = "partial", f"{first['dropped']} more requests were not kept"
    elif first["untimed"]:
        note = f"{first['untimed']} requests have no times: the engine gave none"
    return Artifact(name, "trace", "chrome-trace", status, note, events=events)


def trace_events(file: Path, pid: int) -> Iterator[dict[str, Any]]:
    """Turn the lines of *file* into slices, in lanes without overlaps.

    Raise ValueError if *file* is damaged. The first item is not an event: it has `epoch_ns` for the
    header. Times are microseconds after `epoch_ns`.
    """
    with file.open(encoding="utf-8") as lines:
        common = json.loads(next(lines, "null"))
        if common is None:
            raise ValueError("is empty")
        found = [_of_line(json.loads(line), common) for line in lines]
    offset_ns = common["realtime_ns"] - common["monotonic_ns"]
    epoch_ns = int(min([common["began"], *(one["begin"] for one in found)]) * 1e9) + offset_ns
    untimed = sum(one["is_untimed"] for one in found)
    dropped = common.get("dropped", 0)
    yield {"epoch_ns": epoch_ns, "requests": len(found), "untimed": untimed, "dropped": dropped}
    zero = (epoch_ns - offset_ns) / 1e9
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "requests"}}
    free: list[float] = []
    """When the last request of each lane ended."""
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
    """Place one request, and each part of its life, on the monotonic clock."""
    end = common["ended"] if line["left"] is None else line["left"]
    known = [(key, line[key]) for key in TIMES[:3] if line.get(key)]
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
    args = {key: value for key, value in line.items() if key not in (*TIMES, "arrival", "left")}
    if line["left"] is None:
        args["unfinished"] = "it was still running when the window ended"
    words = {"queued_ts": "queued", "scheduled_ts": "prefill", "first_token_ts": "decode"}
    slices = [(f"request {line['id']}", begin, end, args)]
    for index, (key, at) in enumerate(known):
        until = known[index + 1][1] if index + 1 < len(known) else end
        slices.append((words[key], at, min(max(until, at), end), {}))
    is_untimed = line["left"] is not None and not known
    return {"begin": begin, "end": end, "slices": slices, "is_untimed": is_untimed}
