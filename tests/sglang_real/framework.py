"""A plugin for SGLang as an RL framework would install it; it contains no rlprof code.

It counts the forward steps, with which the tests compare windows, and notes the
processes that were asked to profile. SGLang finds it as the distribution that `conftest`
writes, whose only content is an entry point of the group `sglang.srt.plugins`.
"""

import json
import os
from pathlib import Path

SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
PART = "sglang.srt.managers.scheduler_components.profiler_manager.SchedulerProfilerManager"


def register():
    """Hook the schedulers; SGLang calls this in each process that loads plugins."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in {
        f"{SCHEDULER}.run_batch": counted,
        f"{SCHEDULER}.get_internal_state": told_of,
        f"{PART}._profile": profiled,
    }.items():
        HookRegistry.register(target, hook, HookType.AROUND)


steps = 0


def counted(inner, scheduler, *args, **kwargs):
    """Count a batch that is run."""
    global steps  # noqa: PLW0603 - a process has one scheduler
    steps += 1
    return inner(scheduler, *args, **kwargs)


def told_of(inner, scheduler, *args, **kwargs):
    """Add the count to a scheduler's state."""
    answer = inner(scheduler, *args, **kwargs)
    answer.internal_state["framework"] = {"pid": os.getpid(), "steps": steps}
    return answer


def profiled(inner, part, request):
    """Note which process was asked to profile."""
    import setproctitle

    home, pid = json.loads(os.environ["DRIVE"])["home"], os.getpid()
    with Path(home, f"framework-{pid}.jsonl").open("a") as file:
        file.write(json.dumps({"pid": pid, "title": setproctitle.getproctitle()}) + "\n")
    return inner(part, request)
