"""The loop of examples/verl, run to its end in a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import attrs
import pytest

import rlprof

ROOT = Path(__file__).parent.parent.parent
BOUND_S = 600
STEPS = 3
PROFILER = "actor_rollout_ref.actor.profiler"
RECORDED = (
    "global_profiler.tool=rlprof", "global_profiler.steps=[2]", f"{PROFILER}.enable=true",
    f"{PROFILER}.all_ranks=true", f"{PROFILER}.tool_config.torch.discrete=true",
)  # fmt: skip


@attrs.frozen
class Loop:
    """What a loop has left."""

    code: int
    log: str
    run: rlprof.Run


def loop(home, *overrides, **env):
    """Train in the folder *home*; what was started ends with it."""
    argv = [str(ROOT / "examples/verl/loop.sh"), sys.executable, str(home), *overrides]
    argv += [f"trainer.total_training_steps={STEPS}", f"global_profiler.save_path={home / 'runs'}"]
    own = {"PYTHONPATH": str(Path(__file__).parent), "RAY_ADDRESS": "local"}  # a cluster of its own
    with (home / "log").open("wb") as log:
        child = subprocess.Popen(
            argv,
            cwd=home,
            env=os.environ | own | env,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            child.wait(BOUND_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    text = (home / "log").read_text(errors="replace")
    runs = list((home / "runs").glob("[!.]*"))
    assert len(runs) == 1, text[-4000:]
    return Loop(child.returncode, text, rlprof.read(runs[0]))


@pytest.fixture(name="recorded", scope="session")
def _recorded(tmp_path_factory):
    """Record step 2 of a loop, by four keys of verl's and the tool."""
    return loop(tmp_path_factory.mktemp("recorded"), *RECORDED)
