"""One window of the tool `npu` inside an engine's process, which is this one."""

from __future__ import annotations

import json

import attrs

import rlprof
from rlprof_testing._inside import leading, linked

WINDOW = rlprof.Window(1, 2, "rollout")


@attrs.frozen
class Told:
    """What the process answered to each order, and the run that was left."""

    answers: list[dict]
    run: rlprof.Run

    @property
    def states(self):
        """What it says it did."""
        return [answer["state"] for answer in self.answers]

    @property
    def captures(self):
        """What the tool has left, by state and words."""
        return [one for one in self.run.captures if one.tool == "npu"]


def recorded(home, engine, obey, work):
    """Let a replica of *engine* record one window; *obey* takes orders, *work* does a step."""
    config = {
        "run_dir": str(home / "runs"),
        "scratch_dir": str(home / "scratch"),
        "steps": [1],
        "roles": {"rollout": {"engine": engine, "tool": "npu"}},
        "tools": {"npu": {"analysis": "none"}},
    }
    answers = []

    def say(order, iterations=None):
        text = json.dumps({"order": order, "iterations": iterations or {}})
        answers.append(json.loads(obey(text)))

    with leading(config) as prof:
        workers = linked(prof, config, None, None).workers
        say(workers.prepare())
        say(workers.begin(WINDOW))
        work()
        say(workers.end(WINDOW))
    return Told(answers, rlprof.read(prof.run_dir))
