"""The loop of examples/verl, trained to its end in one of several ways, and its results."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import attrs

import rlprof

ROOT = Path(__file__).parent.parent.parent
BOUND_S = 900
_LOOK_S = 0.2
_CONFIG = "tools: {torch: {contents: [cpu, shapes]}}\ntool: torch\nroles: {actor: {}}\n"
"""Of the second shell: how often it looks at the loop, and its config."""
_PROFILER = "actor_rollout_ref.actor.profiler"
RECORDED = (
    "global_profiler.tool=rlprof", "global_profiler.steps=[2]", f"{_PROFILER}.enable=true",
    f"{_PROFILER}.all_ranks=true", f"{_PROFILER}.tool_config.torch.discrete=true",
    f"{_PROFILER}.tool_config.torch.contents=[cpu,shapes]",
)  # fmt: skip


@attrs.frozen
class Way:
    overrides: tuple[str, ...] = ()
    variables: Mapping[str, str] = attrs.field(factory=dict)
    attached: int = 0
    """Steps that a second shell records; 0: there is no such shell."""
    is_killed: bool = False
    """The second shell is killed as it records."""


WAYS = {
    "bare": Way(variables={"VERL_USE_EXTERNAL_PLUGINS": "none"}),  # verl loads no plugin
    "off": Way(),
    "recorded": Way(RECORDED),
    "attached": Way(attached=2),
    "attach_killed": Way(attached=100, is_killed=True),
}
_ALIKE = (
    "actor_rollout_ref.rollout.enable_prefix_caching=false",
    "actor_rollout_ref.rollout.max_num_seqs=1",  # a batch is computed in another order than one
    "trainer.logger=[console,file]",
)
_OF_TIME = re.compile(r"timing|perf/|mfu|memory|throughput|generate_sequences|compute_score")


@attrs.frozen
class Trained:
    code: int
    log: str
    steps: dict[int, dict[str, float]]
    """Step → what verl logs of it."""
    weights: tuple[str, ...]
    """A digest of each update; two if the replicas got different weights."""
    run: rlprof.Run | None
    shell: int | None = None
    """The exit code of the second shell; None: there was none."""

    def numbers(self) -> dict[int, dict[str, float]]:
        return {
            step: {key: value for key, value in data.items() if not _OF_TIME.search(key)}
            for step, data in self.steps.items()
        }


def train(way: str, home: Path, steps: int, *, overrides: Sequence[str] = ()) -> Trained:
    """Train by *way* in the folder *home*, and end what was started."""
    chosen = WAYS[way]
    home.mkdir(parents=True, exist_ok=True)
    tmp = Path(tempfile.mkdtemp(prefix="rl", dir="/tmp"))  # Ray's sockets want a short path
    env = os.environ | {
        "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}".rstrip(":"),
        "VERL_USE_EXTERNAL_MODULES": "alike", "ALIKE": str(home),
        "HOLDS": json.dumps({3: "shell-waits", steps: "shell-ended"} if chosen.attached else {}),
        "VERL_FILE_LOGGER_PATH": str(home / "metrics.jsonl"),
        "RAY_ADDRESS": "local", "RAY_TMPDIR": str(tmp),
        "RAY_worker_niceness": "0",  # else its workers wait for all else on the machine
        **_way_in(way), **chosen.variables,
    }  # fmt: skip
    argv = [
        str(ROOT / "examples/verl/loop.sh"), sys.executable, str(home.parent / "folder"),
        f"global_profiler.save_path={home / 'runs'}", f"trainer.total_training_steps={steps}",
        *_ALIKE, *chosen.overrides, *overrides,
    ]  # fmt: skip
    with (home / "log").open("wb") as log, ThreadPoolExecutor(1) as beside:
        to = {"stdout": log, "stderr": log}
        child = subprocess.Popen(argv, cwd=home, env=env, start_new_session=True, **to)
        asked = home, tmp, chosen.attached, chosen.is_killed
        shell = beside.submit(attach, child, *asked) if chosen.attached else None
        try:
            child.wait(BOUND_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            shutil.rmtree(tmp, ignore_errors=True)
    return left(home, child.returncode, None if shell is None else shell.result())


def _way_in(way: str) -> dict[str, str]:
    """Return the variables for a verl before 0.9, which has neither plugins nor platforms."""
    if not version("verl").startswith("0.8."):
        return {}
    is_plain = way == "bare" or WAYS[way].attached
    main = "verl.trainer.main_ppo" if is_plain else "rlprof_verl"
    return {"VERL_CPU": "verl08", "MAIN": main}


def left(home: Path, code: int, shell: int | None = None) -> Trained:
    logs = [home / "log", home / "shell"]
    logged = [json.loads(line) for line in _lines(home / "metrics.jsonl")]
    runs = list((home / "runs").glob("[!.]*")) if (home / "runs").is_dir() else []
    updates = zip(*(_lines(file) for file in home.glob("weights-*")), strict=False)
    return Trained(
        code,
        "".join(one.read_text(errors="replace") for one in logs if one.exists()),
        {one["step"]: one["data"] for one in logged},
        tuple(digest for update in updates for digest in dict.fromkeys(update)),
        rlprof.read(runs[0]) if runs else None,
        shell,
    )


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


# A second shell on the node of a loop: `rlprof attach`, as soon as the loop trains


def attach(
    loop: subprocess.Popen[bytes], home: Path, tmp: Path, steps: int, is_killed: bool
) -> int | None:
    """Record *steps* of *loop*, whose Ray is in *tmp*; return its exit code, or None.

    With *is_killed* the shell is killed as soon as it records. None: the loop ended before.
    The files `shell-waits` and `shell-ended` say how far it is; requests of the loop wait for them.
    """
    try:
        while not (home / "metrics.jsonl").exists():  # verl makes it when its actors are there
            if loop.poll() is not None:
                return None
            time.sleep(_LOOK_S)
        (port,) = tmp.glob("ray/session_latest/gcs_server_port_*")  # of the cluster's control store
        return _attach(loop, home, port.read_text(), steps, is_killed)
    finally:
        for file in ("shell-waits", "shell-ended"):
            (home / file).touch()


def _attach(
    loop: subprocess.Popen[bytes], home: Path, port: str, steps: int, is_killed: bool
) -> int:
    (home / "profile.yaml").write_text(_CONFIG)
    argv = [
        sys.executable, "-m", "rlprof", "attach", "--address", f"127.0.0.1:{port}",
        "--tool", "torch", "--config", str(home / "profile.yaml"), "--steps", str(steps),
        "--run-dir", str(home / "runs"), "--yes",
    ]  # fmt: skip
    env = os.environ | {"RAY_AUTH_MODE": "disabled"}
    with (home / "shell").open("wb") as out:
        shell = subprocess.Popen(argv, cwd=home, env=env, stdout=out, stderr=out)
        try:
            while shell.poll() is None and loop.poll() is None:
                printed = (home / "shell").read_bytes()
                if b"waiting for the next step" in printed:
                    (home / "shell-waits").touch()
                if is_killed and b": recording " in printed:
                    shell.kill()
                time.sleep(_LOOK_S)
            return shell.wait(60)
        finally:
            shell.kill()
