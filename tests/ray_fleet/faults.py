"""Shared by the fault tests: faulty actors and engines, a bare run, the states of a run."""

import os
import signal
import time

import rlprof
from tests.ray_fleet.actors import Trainer

LIMITS = {
    "configure_timeout_s": 20, "start_timeout_s": 2, "stop_timeout_s": 3, "export_timeout_s": 60
}  # fmt: skip
SLACK_S = 4
"""How long the rest of a step may take on a busy machine."""


class Engine:
    """An engine in the process of its actor; it fails as *fault* says."""

    def __init__(self, fault):
        self.fault = fault
        self.calls = []
        self._is_open = False

    def is_profiling(self):
        return self._is_open

    def start_profile(self, folder):
        self._call("start")
        self._is_open = True

    def stop_profile(self):
        self._call("stop")
        self._is_open = False

    def _call(self, hook):
        self.calls.append(hook)
        what, _, where = self.fault.partition(" in ")
        if where != hook:
            return
        if what == "hangs":
            time.sleep(60)
        elif what == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "raises":
            raise RuntimeError("the engine is moody")


class Server:
    """An actor that keeps such an engine."""

    def __init__(self, fault=""):
        self.engine = Engine(fault)

    def generate(self, prompts):
        return len(prompts)

    def is_profiling(self):
        return self.engine.is_profiling()

    def calls(self):
        return self.engine.calls


def answers(ray, actor):
    """Whether an actor answers: False if Ray reports it dead, None if no answer comes in 5 s."""
    try:
        return bool(ray.get(actor.pid.remote(), timeout=5))
    except ray.exceptions.RayActorError:
        return False
    except ray.exceptions.GetTimeoutError:
        return None


def bare(ranks, steps):
    """Train without Ray and without rlprof; return the results of each step."""
    actors = [Trainer(rank) for rank in ranks]
    return [[actor.update(step, 0) for actor in actors] for step in steps]


def told(path):
    """Return the state of each capture, with its notes in one text."""
    return {
        f"{one.window.id} {one.target}": f"{one.state}: {' '.join(one.notes)}"
        for one in rlprof.read(path).captures
    }


def states(path):
    """Return the state of each capture."""
    return {name: words.partition(":")[0] for name, words in told(path).items()}
