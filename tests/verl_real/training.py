"""The loop of examples/verl, trained to its end by one of a few ways, and what it has left.

Runs that differ in nothing train alike here: `alike.py` takes verl's races out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

import rlprof

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent.parent
BOUND_S = 900
_PROFILER = "actor_rollout_ref.actor.profiler"
RECORDED = (
    "global_profiler.tool=rlprof", "global_profiler.steps=[2]", f"{_PROFILER}.enable=true",
    f"{_PROFILER}.all_ranks=true", f"{_PROFILER}.tool_config.torch.discrete=true",
)  # fmt: skip
_BARE = {"VERL_USE_EXTERNAL_PLUGINS": "none"}
WAYS = {"bare": ((), _BARE), "off": ((), {}), "recorded": (RECORDED, {})}
"""Way → overrides of verl's config, and variables. bare: verl loads no plugin."""
_ALIKE = (
    "actor_rollout_ref.rollout.enable_prefix_caching=false",
    "actor_rollout_ref.rollout.max_num_seqs=1",  # a batch is computed in another order than one
    "trainer.logger=[console,file]",
)
_OF_TIME = re.compile(r"timing|perf/|mfu|memory|throughput|generate_sequences|compute_score")


@attrs.frozen
class Trained:
    """What a loop has left."""

    code: int
    log: str
    steps: dict[int, dict[str, float]]
    """Step → what verl logs of it."""
    weights: tuple[str, ...]
    """A digest of each update; two if the replicas got different weights."""
    run: rlprof.Run | None

    def numbers(self) -> dict[int, dict[str, float]]:
        """Return what verl logs, without times."""
        return {
            step: {key: value for key, value in data.items() if not _OF_TIME.search(key)}
            for step, data in self.steps.items()
        }


def train(
    way: str,
    home: Path,
    steps: int,
    *,
    overrides: Sequence[str] = (),
    modules: str = "alike",
) -> Trained:
    """Train by *way* in the folder *home*, and end what was started.

    verl loads *modules*, which are beside this file.
    """
    own, variables = WAYS[way]
    home.mkdir(parents=True, exist_ok=True)
    tmp = Path(tempfile.mkdtemp(prefix="rl", dir="/tmp"))  # Ray's sockets want a short path
    env = os.environ | {
        "PYTHONPATH": str(Path(__file__).parent),
        "VERL_USE_EXTERNAL_MODULES": modules, "ALIKE": str(home),
        "VERL_FILE_LOGGER_PATH": str(home / "metrics.jsonl"),
        "RAY_ADDRESS": "local", "RAY_TMPDIR": str(tmp), **variables,
    }  # fmt: skip
    argv = [
        str(ROOT / "examples/verl/loop.sh"), sys.executable, str(home / "folder"),
        f"global_profiler.save_path={home / 'runs'}", f"trainer.total_training_steps={steps}",
        *_ALIKE, *own, *overrides,
    ]  # fmt: skip
    with (home / "log").open("wb") as log:
        child = subprocess.Popen(
            argv, cwd=home, env=env, stdout=log, stderr=log, start_new_session=True
        )
        try:
            child.wait(BOUND_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            shutil.rmtree(tmp, ignore_errors=True)
    return left(home, child.returncode)


def left(home: Path, code: int) -> Trained:
    """Read what a loop has left in *home*."""
    logged = [json.loads(line) for line in _lines(home / "metrics.jsonl")]
    runs = list((home / "runs").glob("[!.]*")) if (home / "runs").is_dir() else []
    updates = zip(*(_lines(file) for file in home.glob("weights-*")), strict=False)
    return Trained(
        code,
        (home / "log").read_text(errors="replace"),
        {one["step"]: one["data"] for one in logged},
        tuple(digest for update in updates for digest in dict.fromkeys(update)),
        rlprof.read(runs[0]) if runs else None,
    )


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
