"""Steps of a training loop with empty phases."""

import os
import sys

import rlprof

BEGIN = """
import os, signal, sys, time
import rlprof
from tests.fakes import engines, tools
tools.register()
engines.register()
config = {"run_dir": sys.argv[1], "scratch_dir": sys.argv[2], "tool": "fake",
          "steps": {"every": 1}, "roles": {"actor": {}}}
"""
"""The first lines of a program that runs in its own process."""


def command(program, runs, scratch):
    """Return the arguments for `subprocess` that run *program* in its own process."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-c", BEGIN + program, str(runs), str(scratch)]
    return {"args": argv, "env": env}


def through(context):
    """Enter a context and leave it at once."""
    with context:
        pass


def train(prof, steps=(1,), *phases):
    """Run *steps*, each with these *phases* (`rollout`) in order; return one step per phase."""
    done = []
    for step in prof.steps(steps):
        for name in phases or ("rollout",):
            through(prof.phase(name))
            done.append(step)
    return done


def record(config, steps=(1,), *phases, **how):
    with rlprof.open(config, **how) as prof:
        train(prof, steps, *phases)
    return prof
