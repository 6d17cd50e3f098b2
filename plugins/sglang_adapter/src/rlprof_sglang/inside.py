"""Our own capture, inside SGLang's schedulers: orders come as requests to profile.

SGLang loads `install` in its main process and in every scheduler, by the entry point group
`sglang.srt.plugins`. Where the launch has not switched it on, it does nothing.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from rlprof_sglang._words import MARK, STATE, SWITCH

if TYPE_CHECKING:
    from rlprof_engine.recording import Place

_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
_ENDS = ("UpdateWeight", "BeginWeightUpdate", "ReleaseMemory")
"""How requests that end a window begin: what is recorded is one phase of generation."""

_scheduler: Any = None
"""This process' own, once it has said anything of itself."""
_answer = ""
"""To the last order."""


def install() -> None:
    """Hook a scheduler's state and its profiler; SGLang calls this in each of its processes."""
    if os.environ.get(SWITCH) != "1":
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from rlprof_sglang import _guard

    HookRegistry.register(f"{_SCHEDULER}.get_internal_state", describe, HookType.AFTER)
    part = _guard.profiler_part()
    HookRegistry.register(f"{part.path}.{part.handler}", asked, HookType.AROUND)


def describe(answer: Any, scheduler: Any, *_: Any, **__: Any) -> Any:
    """Add what we know to what a scheduler says of itself."""
    global _scheduler  # noqa: PLW0603 -- a process has one
    from rlprof_sglang import _guard

    _scheduler = scheduler
    try:
        number, coordinates = _numbered(scheduler)
        said: dict[str, Any] = {"number": number, **coordinates}
        said |= {"pid": os.getpid(), "answer": _answer, "device": str(scheduler.device)}
        said |= {"profiling": _guard.is_busy(_guard.part_of(scheduler)), "why": _guard.last_why}
        said["steps"] = _guard.steps
    except Exception as exc:  # what a server says of itself must not fail for us
        said = {"answer": _answer, "error": f"{type(exc).__name__}: {exc}"[:500]}
    answer.internal_state[STATE] = said
    return answer


def asked(original: Any, part: Any, request: Any) -> Any:
    """Obey an order, or see that a request to profile does no harm."""
    from rlprof_sglang import _guard

    text = getattr(request, "output_dir", None)
    if isinstance(text, str) and text.startswith(MARK):
        text = text.removeprefix(MARK)
        if '"native"' not in text[:12]:
            return _obeyed(text)
        try:
            _guard.make_relative(part, request, text)
        except (ValueError, KeyError, TypeError) as exc:  # anybody may name a folder so
            return _guard.reply(f"rlprof: {type(exc).__name__}: {exc}")
    return _guard.answered(original, part, request)


def _obeyed(text: str) -> Any:
    """Do what an order says. It was done, whatever came of it: the answer says that."""
    global _answer  # noqa: PLW0603 -- as above
    from rlprof_engine.recording import obeyed
    from rlprof_sglang import _guard

    verb = _verb(text)
    if verb == "begin" and _scheduler is not None and _guard.is_armed(_guard.part_of(_scheduler)):
        why = "somebody's session of SGLang's profiler is to begin by itself; stop it first"
        _answer = json.dumps({"state": "refused", "why": why, "pid": os.getpid()})
        return _guard.reply("")
    if verb in ("begin", "end"):  # also where this scheduler is not chosen: all refuse alike
        longest = time.monotonic() + _guard.LONGEST_S
        _guard.ours_until = longest if verb == "begin" else 0.0
    _answer = obeyed(text, place)
    return _guard.reply("")


def _verb(text: str) -> str:
    """Read what is to be done; empty: it cannot be read, which is for who obeys to say."""
    try:
        return str(json.loads(json.loads(text)["order"])["verb"])
    except (ValueError, KeyError, TypeError):
        return ""


def place() -> Place:
    """Say which of the engine's schedulers this is, and what of it is watched."""
    from rlprof_engine.recording import Cut, Place

    if _scheduler is None:
        raise LookupError("this scheduler has not said anything of itself yet")
    number, coordinates = _numbered(_scheduler)
    return Place(
        number=number,
        coordinates=coordinates,
        owner=_scheduler,
        method="run_batch",
        name=range_name,
        cuts=[Cut(_scheduler, "_request_dispatcher", _ended_by)],
        is_lazy=True,
    )


def _ended_by(request: Any = None, *_: Any, **__: Any) -> str:
    """Say what a request asks that ends a window; empty: nothing."""
    name = type(request).__name__
    if not name.startswith(_ENDS):
        return ""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.strip().removesuffix(" req input").removesuffix(" req")


def _numbered(scheduler: Any) -> tuple[int, dict[str, int]]:
    """Return which of an engine's schedulers this is, and where it stands in the layout."""
    sizes = _ranks(scheduler)
    tp, pp = sizes["tp_rank"], sizes["pp_rank"]
    dp = sizes["dp_rank"]
    block = 0 if sizes["has_dp_attention"] else dp
    number = (block * sizes["pp_size"] + pp) * sizes["tp_size"] + tp
    return number, {"tp": tp, "pp": pp, "dp": dp}


def _ranks(scheduler: Any) -> dict[str, int]:
    """Find them where this release keeps them: on the scheduler, since 0.5.13 on a part of it."""
    where = getattr(scheduler, "ps", None)
    if where is None and not hasattr(scheduler, "tp_rank"):
        from sglang.srt.runtime_context import get_parallel

        where = get_parallel()
    where = scheduler if where is None else where

    def read(name: str, usual: int) -> int:
        try:
            value = getattr(where, name)
        except Exception:  # a rank that was never set raises what it likes
            return usual
        return usual if value is None else int(value)

    found = {f"{name}_rank": read(f"{name}_rank", 0) for name in ("tp", "pp", "dp")}
    found |= {f"{name}_size": read(f"{name}_size", 1) for name in ("tp", "pp", "dp")}
    arguments = getattr(scheduler, "server_args", None)
    has_it = read("enable_dp_attention", int(bool(getattr(arguments, "enable_dp_attention", 0))))
    return {**found, "has_dp_attention": has_it}


def range_name(batch: Any = None, *_: Any, **__: Any) -> str:
    """Name a forward step as SGLang does: its stage, its requests, and the tokens of a prefill.

    SGLang has a range of that name itself where torch says that a profiler is active, which it does
    not of one that records all threads; there ours, around it, is called after what is run.
    """
    from torch.autograd import _profiler_enabled

    word = "run_batch" if _profiler_enabled() else "step"
    mode = getattr(getattr(batch, "forward_mode", None), "name", "?")
    count = len(getattr(batch, "reqs", None) or ())
    tokens = getattr(batch, "extend_num_tokens", None)
    return f"{word}[{mode} bs={count}" + (f" toks={tokens}]" if mode == "EXTEND" else "]")
