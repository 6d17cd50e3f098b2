"""SGLang's profiler in a scheduler, kept from ending it.

A scheduler that raises takes the whole engine with it. What would make one raise is refused, the
same on all ranks: where one of several does not take part, the others wait for it for ever.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from rlprof_engine.wrapped import Wrapped

_MANAGERS = "sglang.srt.managers"
_NOT_COUNTED = (0, 5, 16)
"""Before, a session of N steps without a first one recorded N - 1."""
_LOOKS = "_profile_batch_predicate"
"""What SGLang's profiler looks at each forward step with."""
_log = logging.getLogger("rlprof.sglang")
_followed = Wrapped()
"""That method, while a session is on: with none, a step passes nothing of ours."""

last_why = ""
"""What went wrong last, and was caught here."""
steps = 0
"""Forward steps since the last start: a scheduler without any leaves no trace, or an empty one."""
ours_until = 0.0
"""Until when, monotonic, a window of ours may be open, in this scheduler or in another one of the
engine; whoever opened it may be gone."""
LONGEST_S = 3600


@attrs.frozen
class Part:
    """Where a scheduler's profiler is."""

    path: str
    handler: str
    """Answers a request to profile."""


def profiler_part() -> Part:
    """Return where it is in this release."""
    new = f"{_MANAGERS}.scheduler_components.profiler_manager"
    if _is_there(new):
        return Part(f"{new}.SchedulerProfilerManager", "_profile")
    return Part(f"{_MANAGERS}.scheduler_profiler_mixin.SchedulerProfilerMixin", "profile")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package
        return False


def part_of(scheduler: Any) -> Any:
    """Return what holds the profiler's state: since 0.5.13 a part of the scheduler."""
    return getattr(scheduler, "profiler_manager", scheduler)


def is_busy(part: Any) -> bool:
    """Whether a session runs or is armed."""
    if _read(part, "profile_in_progress"):
        return True
    if _read(part, "profile_by_stage") and _read(part, "profiler_target_prefill_ct"):
        return True
    return bool(_read(part, "profiler_start_forward_ct"))


def is_armed(part: Any) -> bool:
    """Whether a session is to begin by itself: inside a recording of torch's it would crash."""
    return is_busy(part) and not _read(part, "profile_in_progress")


def answered(original: Any, part: Any, request: Any) -> Any:
    """Have SGLang answer a request to profile, unless it would not survive it; always answer."""
    global last_why, steps  # noqa: PLW0603 -- one profiler to a process
    is_start = _kind(request) == "START_PROFILE"
    try:
        why = _harm(part, request) if is_start else ""
    except Exception as exc:  # what cannot be judged is not asked
        why = f"{type(exc).__name__}: {exc}"[:500]
    if why:
        last_why = why  # a server tells nobody
        return reply(f"rlprof: {why}")
    try:
        if is_start:
            steps, last_why = 0, ""
            _follow(part)
            _see_to_folder(request)
        else:
            _see_to_stop(part)
        answer = original(part, request)
    except Exception as exc:
        return reply(_caught(part, exc))
    if is_start:
        _watch(part)
    else:
        _disarm(part)
        _followed.take_back()
    return answer


def _follow(part: Any) -> None:
    """Be there when SGLang's profiler looks at a forward step, until the session is stopped.

    Whatever it raises ends the session alone.
    """

    def stepped(inner: Any, *args: Any, **kwargs: Any) -> None:
        global steps  # noqa: PLW0603 -- as above
        steps += 1
        try:
            inner(*args, **kwargs)
        except Exception as exc:
            _caught(part, exc)
        _watch(part)

    _followed.take_back()
    _followed.put(part, _LOOKS, stepped)


def make_relative(part: Any, request: Any, text: str) -> None:
    """Fill in a request of ours: steps counted from now on, and exactly as many as were asked."""
    said = json.loads(text)
    request.output_dir = said["native"]
    count, skip = said["count"], said["skip"]
    if skip:  # the step after the ones passed over is the first
        request.start_step = _forward_ct(part) + 1 + skip
    if count:
        request.num_steps = count + (not skip and _is_one_short())


def reply(why: str) -> Any:
    """Answer a request to profile; *why* it was refused, empty: it was not."""
    from sglang.srt.managers.io_struct import ProfileReqOutput

    return ProfileReqOutput(success=not why, message=why or "Succeeded")


def _harm(part: Any, request: Any) -> str:
    """Say why a scheduler would not survive a request, or what it would silently lose."""
    if time.monotonic() < ours_until:  # two torch profilers in a process end it
        return "a window of rlprof is open in this engine; ask again when it is over"
    if is_busy(part):
        return "somebody's session is already in progress; stop it first"
    count = _read(request, "num_steps")
    if count is not None and count < 1:
        return f"num_steps is {count}; at least one is needed"
    if _read(request, "profile_by_stage") and not count:
        return "profile_by_stage needs num_steps"
    names = _read(request, "activities")
    if names is not None and not names:
        return "activities is empty; nothing would be recorded"
    from torch import cuda

    needs = [name for name in names or () if name in ("MEM", "CUDA_PROFILER")]
    if needs and not cuda.is_available():
        return f"activities: {', '.join(needs)} need CUDA"
    if not hasattr(part, "profile_in_progress") and not _read(request, "profile_by_stage"):
        return "with SGLANG_PROFILE_V2 its profiler can only record by stage"
    return ""


def _see_to_folder(request: Any) -> None:
    """Make the folder and write into it, for a scheduler fails where it cannot do so at the end.

    Elsewhere, if need be: other ranks are on other hosts, and may be able to.
    """
    global last_why  # noqa: PLW0603 -- one profiler to a process
    wanted = _read(request, "output_dir")
    if not wanted:
        return
    try:
        _try_folder(Path(wanted).expanduser())
    except OSError as exc:
        other = tempfile.mkdtemp(prefix="rlprof-sglang-")
        last_why = f"{exc}; this rank writes into {other}"
        _log.warning("rlprof: %s", last_why)
        request.output_dir = other


def _try_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def _see_to_stop(part: Any) -> None:
    """Have a folder there to write into: somebody may have tidied up."""
    folder = _read(part, "torch_profiler_output_dir")
    if folder is None or not _read(part, "profile_in_progress"):
        return
    try:
        _try_folder(Path(folder))
    except OSError:
        part.torch_profiler_output_dir = Path(tempfile.mkdtemp(prefix="rlprof-sglang-"))


def _watch(part: Any) -> None:
    """Keep what the profiler raises from its scheduler: after it the ranks wait for each other."""
    profiler = _read(part, "torch_profiler")
    if profiler is None or hasattr(profiler, "_rlprof_watched"):
        return
    profiler._rlprof_watched = True  # noqa: SLF001 -- ours, on an object of theirs
    for name in ("stop", "export_chrome_trace"):
        setattr(profiler, name, _quiet(getattr(profiler, name)))


def _quiet(method: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        global last_why  # noqa: PLW0603 -- as above
        try:
            return method(*args, **kwargs)
        except Exception as exc:
            last_why = f"{method.__name__}: {type(exc).__name__}: {exc}"[:500]
            _log.warning("rlprof: SGLang's profiler: %s", last_why)
            return None

    return call


def _disarm(part: Any) -> None:
    """After a stop nothing may begin by itself: SGLang would, on somebody's later request."""
    for name in ("profiler_start_forward_ct", "profiler_target_forward_ct"):
        if hasattr(part, name):
            setattr(part, name, None)
    if hasattr(part, "profile_by_stage") and not _read(part, "profile_in_progress"):
        part.profile_by_stage = False


def _caught(part: Any, exc: Exception) -> str:
    """Put the profiler back to where another session can begin; say what was caught."""
    global last_why  # noqa: PLW0603 -- as above
    last_why = f"SGLang's profiler: {type(exc).__name__}: {exc}"[:500]
    _log.warning("rlprof: %s", last_why)
    if hasattr(part, "profile_in_progress"):
        part.profile_in_progress = part.profile_by_stage = False
        part.torch_profiler = None
        _disarm(part)
    return last_why


def _read(owner: Any, name: str) -> Any:
    return getattr(owner, name, None)


def _kind(request: Any) -> str:
    """Return what is asked: `req_type` since 0.5.15, `type` before."""
    kind = getattr(request, "req_type", None) or getattr(request, "type", None)
    return str(getattr(kind, "name", kind))


def _forward_ct(part: Any) -> int:
    count = getattr(part, "get_forward_ct", None)
    return int(count() if callable(count) else part.forward_ct)


def _is_one_short() -> bool:
    import sglang

    from rlprof_sglang._facts import release

    found = release(str(getattr(sglang, "__version__", "")))
    return bool(found) and found < _NOT_COUNTED
