"""Our own capture inside SGLang's schedulers; orders come as profile requests.

SGLang loads `install` in its main process and in every scheduler, since 0.5.22 also in the
detokenizer and the data-parallel controller, by the entry point group `sglang.srt.plugins`. If the
launch did not switch it on, it does nothing.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlprof_sglang._words import MARK, STATE, SWITCH, longest_s

if TYPE_CHECKING:
    from rlprof_engine.recording import Place

_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
_MANAGER = "sglang.srt.managers.tokenizer_manager.TokenizerManager"
_STEP = "run_batch"
"""The scheduler's method that runs a step."""
_ENDS = ("UpdateWeight", "BeginWeightUpdate", "ReleaseMemory")
"""How the names of requests that end a window begin: a window is one phase of generation."""

_scheduler: Any = None
"""The scheduler of this process, once it has reported its state."""
_answer = ""
"""The answer to the last order."""
_open = ""
"""The open window in this engine: its run, and the window."""


def install() -> None:
    """Hook a scheduler's state and its profiler; SGLang calls this in each of its processes."""
    if os.environ.get(SWITCH) != "1":
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from rlprof_sglang import _refusals

    HookRegistry.register(f"{_SCHEDULER}.get_internal_state", describe, HookType.AFTER)
    HookRegistry.register(f"{_refusals.PART}.{_refusals.HANDLER}", asked, HookType.AROUND)
    if multiprocessing.parent_process() is None or _MANAGER.rpartition(".")[0] in sys.modules:
        # A process that may take requests; SGLang starts schedulers as children.
        from rlprof_sglang import _frontend

        for name in ("start_profile", "get_internal_state"):
            HookRegistry.register(f"{_MANAGER}.{name}", getattr(_frontend, name), HookType.AROUND)


def describe(answer: Any, scheduler: Any, *_: Any, **__: Any) -> Any:
    """Add what we know to the state that a scheduler reports; never make that fail."""
    global _scheduler  # noqa: PLW0603 -- a process has one
    _scheduler = scheduler
    try:
        answer.internal_state[STATE] = _state(scheduler)
    except Exception as exc:
        with suppress(Exception):
            why = f"{type(exc).__name__}: {exc}"[:500]
            answer.internal_state[STATE] = {"answer": _answer, "error": why}
    return answer


def _state(scheduler: Any) -> dict[str, Any]:
    from rlprof_sglang import _guard, _refusals

    number, coordinates = _numbered(scheduler)
    part = scheduler.profiler_manager
    return {
        "lacks": _lacks(scheduler, part),
        "number": number,
        **coordinates,
        "pid": os.getpid(),
        "device": str(scheduler.device),
        "answer": _answer,
        "profiling": _refusals.is_busy(part),
        "overdue": _guard.is_overdue(part),
        "ran": _guard.ran,
        "why": _guard.last_why,
        "refused": _guard.refused_why,
    }


def _lacks(scheduler: Any, part: Any) -> list[str]:
    """Name what our hooks did not find in this release: SGLang only logs it, and goes on."""
    from rlprof_sglang import _refusals

    is_there = {
        _refusals.HANDLER: hasattr(getattr(part, _refusals.HANDLER, None), "__wrapped__"),
        _refusals.STOP: hasattr(part, _refusals.STOP),
    }
    found = [f"{type(part).__name__}.{name}" for name, is_it in is_there.items() if not is_it]
    return found if callable(getattr(scheduler, _STEP, None)) else [*found, f"Scheduler.{_STEP}"]


def asked(original: Any, part: Any, request: Any) -> Any:
    """Carry out an order, or make sure that a profile request does no harm; always answer."""
    from rlprof_sglang import _guard

    most_s = None
    try:
        text = getattr(request, "output_dir", None)
        if isinstance(text, str) and text.startswith(MARK):
            text = text.removeprefix(MARK)
            message = _read(text)
            if "native" not in message:
                _obey(message, text)
                return _guard.reply("")
            _guard.make_relative(part, request, message)
            most_s = message.get("longest_s")
    except Exception as exc:  # a user's folder may have such a name
        return _guard.reply(f"rlprof: {type(exc).__name__}: {exc}"[:500])
    return _guard.answered(original, part, request, most_s)


def _read(text: str) -> dict[str, Any]:
    """Read an order; return an empty one if that fails, which `obeyed` then reports."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _obey(message: dict[str, Any], text: str) -> None:
    """Carry out an order; the state that the scheduler reports has the outcome."""
    global _answer, _open  # noqa: PLW0603 -- as above
    from rlprof_engine.recording import obeyed
    from rlprof_sglang import _refusals

    order = message.get("order")
    asked = _read(order) if isinstance(order, str) else {}
    verb, whose = asked.get("verb"), json.dumps([asked.get("run"), asked.get("window")])
    if verb == "begin" and _scheduler is not None:
        part = _scheduler.profiler_manager
        if _refusals.is_armed(part):
            why = "somebody's session of SGLang's profiler will begin by itself; stop it first"
            _answer = json.dumps({"state": "refused", "why": why, "pid": os.getpid()})
            return
    if verb == "begin":  # even if this scheduler is not chosen: all refuse alike
        most_s = longest_s(asked.get("config") or {}) or _refusals.LONGEST_S  # its run may die
        _open, _refusals.ours_until = whose, time.monotonic() + most_s
    if verb == "end" and whose == _open:  # else another run's window is open by now
        _refusals.ours_until = 0.0
    _answer = obeyed(text, place)


def place() -> Place:
    """Return this scheduler's number, its place in the layout, and what to watch."""
    from rlprof_engine.recording import Cut, Place

    if _scheduler is None:
        raise LookupError("this scheduler has not reported its state yet")
    number, coordinates = _numbered(_scheduler)
    return Place(
        number=number,
        coordinates=coordinates,
        owner=_scheduler,
        method=_STEP,
        name=range_name,
        cuts=[Cut(_scheduler, "_request_dispatcher", _ended_by)],
        is_lazy=True,
    )


def _ended_by(request: Any = None, *_: Any, **__: Any) -> str:
    """Describe a request that ends a window; empty if it ends none."""
    name = type(request).__name__
    if not name.startswith(_ENDS) or name.startswith("UpdateWeightVersion"):  # a label
        return ""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.strip().removesuffix(" req input").removesuffix(" req")


def _numbered(scheduler: Any) -> tuple[int, dict[str, int]]:
    """Return the scheduler's number in its engine, and its place in the layout."""
    sizes = _ranks(scheduler)
    tp, pp = sizes["tp_rank"], sizes["pp_rank"]
    dp = sizes["dp_rank"]
    block = 0 if sizes["has_dp_attention"] else dp
    number = (block * sizes["pp_size"] + pp) * sizes["tp_size"] + tp
    return number, {"tp": tp, "pp": pp, "dp": dp}


def _ranks(scheduler: Any) -> dict[str, int]:
    """Read the ranks and sizes from a part of the scheduler, or from the process (0.5.21)."""
    where = getattr(scheduler, "ps", None)
    if where is None:
        from sglang.srt.runtime_context import get_parallel

        where = get_parallel()

    def read(name: str, usual: int) -> int:
        try:
            value = getattr(where, name)
        except Exception:  # a rank that was never set may raise anything
            return usual
        return usual if value is None else int(value)

    found = {f"{name}_rank": read(f"{name}_rank", 0) for name in ("tp", "pp", "dp")}
    found |= {f"{name}_size": read(f"{name}_size", 1) for name in ("tp", "pp", "dp")}
    arguments = getattr(scheduler, "server_args", None)
    has_it = read("enable_dp_attention", int(bool(getattr(arguments, "enable_dp_attention", 0))))
    # Since 0.5.22 this is resolved to a separate size.
    return {**found, "has_dp_attention": int(bool(has_it) or read("attn_dp_size", 1) > 1)}


def range_name(batch: Any = None, *_: Any, **__: Any) -> str:
    """Name a forward step as SGLang does: its stage, its requests, and the tokens of a prefill.

    If torch reports an active profiler, SGLang has a range of that name itself. Ours encloses it,
    and is then named after the method. Torch does not report a profiler that records all threads.
    """
    from torch.autograd import _profiler_enabled

    word = "run_batch" if _profiler_enabled() else "step"
    mode = getattr(getattr(batch, "forward_mode", None), "name", "?")
    count = len(getattr(batch, "reqs", None) or ())
    tokens = getattr(batch, "extend_num_tokens", None)
    return f"{word}[{mode} bs={count}" + (f" toks={tokens}]" if mode == "EXTEND" else "]")
