"""Steps of a training loop whose phases hold nothing."""

from __future__ import annotations

import rlprof


def train(prof, steps=(1,), *phases):
    """Take *steps*, each with these *phases* (`rollout`) one after the other; return the steps."""
    done = []
    for step in prof.steps(steps):
        for name in phases or ("rollout",):
            with prof.phase(name):
                done.append(step)
    return done


def record(config, steps=(1,), *phases, **how):
    """Open a session, train, close it; return it."""
    with rlprof.open(config, **how) as prof:
        train(prof, steps, *phases)
    return prof
