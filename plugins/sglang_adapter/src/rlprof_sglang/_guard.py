"""Keeps SGLang's profiler from ending its scheduler: catches what the profiler raises.

At a stop, the ranks of a group wait for each other. A rank that could not begin takes part with a
stand-in for the profiler; otherwise, the others would wait for it forever.

All of it is for SGLang 0.5.18 to 0.5.23: none of these releases survives what is caught here.
"""

from __future__ import annotations

import logging
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlprof_engine.wrapped import Wrapped
from rlprof_sglang._refusals import STOP, forward_ct, harm, is_busy, kind, read

_LOOKS = "_profile_batch_predicate"
"""The method by which SGLang's profiler checks each forward step."""
_TORCHS = {"CPU", "GPU", "XPU"}
"""Torch's activities; after a session with them, the ranks wait for each other."""
_log = logging.getLogger("rlprof.sglang")
_followed = Wrapped()
"""Wraps that method during a session; without a session, a step runs none of our code."""

last_why = ""
"""The last error since the last start that was caught here."""
refused_why = ""
"""Why the last request was refused; a server does not pass this on."""
ran = 0
"""Forward steps since the last start; without any, a scheduler leaves no trace or an empty one."""
until = 0.0
"""Monotonic time until which the session may last; 0: forever, as it is somebody else's."""


class Absent:
    """Stands in for a profiler that could not begin, so its rank meets the others at the stop."""

    _rlprof_watched = True
    """It needs no wrapper: it raises nothing."""

    def stop(self) -> None:
        """Do nothing: no profiler runs."""

    def export_chrome_trace(self, path: str) -> None:
        """Do nothing: there is no trace to write."""


def answered(original: Any, part: Any, request: Any, longest_s: float | None = None) -> Any:
    """Let SGLang answer a profile request, unless it would not survive it; always answer.

    *longest_s*: how long the session may last; None: forever.
    """
    global refused_why, until  # noqa: PLW0603 -- one profiler to a process
    has_begun = False
    try:
        if kind(request) != "START_PROFILE":
            return _stopped(original, part, request)
        refused_why = harm(part, request)
        if refused_why:
            return reply(f"rlprof: {refused_why}")
        has_begun = True  # on other ranks, even if it fails here
        until = time.monotonic() + longest_s if longest_s else 0.0
        return _started(original, part, request)
    except Exception as exc:
        why = _caught(exc)
        if has_begun:
            _stand_in(part)
        return reply(why)


def _started(original: Any, part: Any, request: Any) -> Any:
    global last_why, ran  # noqa: PLW0603 -- as above
    ran, last_why = 0, ""
    _follow(part)
    _see_to_folder(request)
    answer = original(part, request)
    if not answer.success:  # torch's own refusal; other ranks may have begun
        last_why = str(answer.message)[:500]
        _stand_in(part)
    _watch(part)
    return answer


def _stopped(original: Any, part: Any, request: Any) -> Any:
    try:
        return original(part, request)
    finally:
        _disarm(part)
        _followed.take_back()


def _follow(part: Any) -> None:
    """Wrap the check of each forward step by SGLang's profiler, until the session is stopped.

    An exception in it ends only the session.
    """

    def stepped(inner: Any, batch: Any) -> None:
        global ran  # noqa: PLW0603 -- as above
        ran += 1
        try:
            if is_overdue(part) and _is_alone(part) and not read(part, "profile_by_stage"):
                getattr(part, STOP)()
            elif not _waits(part, batch):
                inner(batch)
            _watch(part)
            _see_to_begin(part)
        except Exception as exc:
            _caught(exc)
            if _is_alone(part) or not read(part, "profile_in_progress"):
                _stand_in(part)
        if not is_busy(part):
            _followed.take_back()

    _followed.take_back()
    _followed.put(part, _LOOKS, stepped)


def is_overdue(part: Any) -> bool:
    """Whether a session runs whose run is gone: it would fill the memory.

    A single scheduler ends it by itself. Several schedulers of one engine would each end it at
    another step, and wait there forever for the others. So the next run makes all of them end it.
    """
    return bool(until and time.monotonic() > until and read(part, "profile_in_progress"))


def _waits(part: Any, batch: Any) -> bool:
    """Whether *batch* does not belong to the running session of a stage; a first decode ends it.

    SGLang runs each step in a range. Inside it, SGLang would end one stage's session and begin the
    next. Torch then writes the range's end into the ended session, whose memory is freed: the
    scheduler dies. SGLang would also end a session by the count of the other stage.
    """
    if not (read(part, "profile_by_stage") and read(part, "profile_in_progress")):
        return False
    mode, most = batch.forward_mode, part.profiler_target_prefill_ct
    is_of_prefill = 0 < part.profiler_prefill_ct <= most
    if mode.is_decode() and is_of_prefill:
        part.profiler_prefill_ct = most + 1
        getattr(part, STOP)(stage=type(mode).EXTEND)
        return True
    return bool(mode.is_prefill() and not is_of_prefill)


def _see_to_begin(part: Any) -> None:
    """Notice a session that should have begun at this step: SGLang drops torch's error."""
    global last_why  # noqa: PLW0603 -- as above
    start = read(part, "profiler_start_forward_ct")
    if start and start == forward_ct(part) and not read(part, "profile_in_progress"):
        last_why = "SGLang's profiler did not begin at its step; the scheduler's log says why"
        _stand_in(part)


def make_relative(part: Any, request: Any, message: dict[str, Any]) -> None:
    """Complete our request: count steps from now on, and exactly as many as were asked for."""
    request.output_dir = message["native"]
    count, skip = message["count"], message["skip"]
    if skip:  # begin with the step after the skipped ones
        request.start_step = forward_ct(part) + 1 + skip
    if count:
        request.num_steps = count


def reply(why: str) -> Any:
    """Return the answer to a profile request; *why* it was refused, empty if it was not."""
    from sglang.srt.managers.io_struct import ProfileReqOutput

    return ProfileReqOutput(success=not why, message=why or "Succeeded")


def _see_to_folder(request: Any) -> None:
    """Make the folder, or use another: a scheduler fails if it cannot make it at the end."""
    global last_why  # noqa: PLW0603 -- as above
    wanted = read(request, "output_dir")
    if not wanted:
        return
    try:
        Path(wanted).expanduser().mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        other = tempfile.gettempdir()
        last_why = f"{exc}; this rank writes into {other}"
        _log.warning("rlprof: %s", last_why)
        request.output_dir = other


def _watch(part: Any) -> None:
    """Catch what the profiler raises, because the ranks wait for each other after it."""
    profiler = read(part, "torch_profiler")
    if profiler is None or hasattr(profiler, "_rlprof_watched"):
        return
    profiler._rlprof_watched = True  # noqa: SLF001 -- ours, on an object of theirs
    for name in ("stop", "export_chrome_trace"):
        setattr(profiler, name, _quiet(getattr(profiler, name)))


def _quiet(method: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as exc:
            _caught(exc, method.__name__)
            return None

    return call


def _stand_in(part: Any) -> None:
    """Let this rank take part in a session that it could not begin; end that of a single rank."""
    if not hasattr(part, "profile_in_progress"):
        return
    with suppress(Exception):  # it may have begun
        part.torch_profiler.stop()
    asked = read(part, "profiler_activities")
    if _is_alone(part) or (asked and not _TORCHS & set(asked)):
        part.torch_profiler, part.profile_in_progress = None, False
        part.profile_by_stage = False
        _disarm(part)
        return
    part.torch_profiler, part.profile_in_progress = Absent(), True
    usual = {"torch_profiler_output_dir": Path(tempfile.gettempdir()), "profile_id": "none",
             "profiler_activities": ["CPU"], "profile_prefix": None}  # fmt: skip
    for name, value in usual.items():
        if read(part, name) is None:
            setattr(part, name, value)


def _disarm(part: Any) -> None:
    """Clear an armed start after a stop, or the next request makes SGLang begin it."""
    for name in ("profiler_start_forward_ct", "profiler_target_forward_ct"):
        if hasattr(part, name):
            setattr(part, name, None)
    if hasattr(part, "profile_by_stage") and not read(part, "profile_in_progress"):
        part.profile_by_stage = False


def _is_alone(part: Any) -> bool:
    """Whether no other rank waits for this one at a stop."""
    group = read(part, "dp_tp_cpu_group")
    if group is None:
        return True
    from torch import distributed

    return bool(distributed.get_world_size(group) == 1)


def _caught(exc: Exception, what: str = "SGLang's profiler") -> str:
    """Store and log an error; return its text."""
    global last_why  # noqa: PLW0603 -- as above
    last_why = f"{what}: {type(exc).__name__}: {exc}"[:500]
    _log.warning("rlprof: %s", last_why)
    return last_why
