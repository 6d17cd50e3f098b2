"""Training in miniature, seeded: `training.py HOME CONFIG` writes HOME/result.json."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import rlprof


def main(home: Path, asked: dict) -> None:
    if asked.get("relative"):
        home = Path(os.path.relpath(home))
    chance, weights, spans = random.Random(7), [0.0] * 8, 0  # noqa: S311 -- to be the same
    config = {
        "tool": "nsys", "steps": {"every": 1}, "roles": {"actor": {}},
        "tools": {"nsys": asked.get("options", {})}, "run_dir": str(home / "runs"),
        "scratch_dir": str(home / "scratch"), "limits": asked.get("limits", {}),
    } if asked.get("record", True) else None  # fmt: skip
    if asked.get("blind"):  # as nvtx is from 0.2.12 on: it reaches no tool
        del os.environ["NVTX_INJECTION64_PATH"]
    counts = []
    if asked.get("breaks_first"):
        _break(asked["by"], home)
    with rlprof.open(config, role="actor", rank=0, world_size=1) as prof:
        for step in prof.steps(range(1, asked["steps"] + 1)):
            spans = 0
            with prof.phase("update_actor"):
                spans += 1
                for _ in range(step):
                    with prof.phase("forward"):
                        spans += 1
                        weights = [weight + chance.gauss(0, 1) for weight in weights]
                if step == asked.get("dies_in"):
                    time.sleep(1)  # nsys takes ranges out of the program four times a second
                    os.kill(os.getpid(), signal.SIGKILL)
                if step == asked.get("breaks_in"):
                    _break(asked["by"], home)
            counts.append(spans)
    child = subprocess.check_output([sys.executable, "-c", "print('alive')"], text=True)
    result = {"child": child, "weights": [one.hex() for one in weights], "spans": counts}
    (home / "result.json").write_text(json.dumps(result))


def _break(how: str, home: Path) -> None:
    """Break nsys as a user or a machine might."""
    from rlprof_nsys._arguments import LAUNCHER, read_mark

    if how == "folder":  # of the window that is open
        raw = max((home / "scratch").rglob("raw"), key=str)
        gone = raw.rename(raw.with_name("gone"))  # at once: nsys may write into it meanwhile
        shutil.rmtree(gone, ignore_errors=True)
        return
    mark = read_mark(os.environ)
    if how == "agent":
        _kill(b"--start-agent", f"--session-name={mark.session}".encode())
        return
    if how == "keeper":
        _kill(LAUNCHER[-1].encode(), str(home).encode())
        return
    args = [mark.nsys, "shutdown", f"--session={mark.session}", "--kill=none"]
    subprocess.run(args, check=True, timeout=60, capture_output=True)


def _kill(*words: bytes) -> None:
    """Kill the one process, other than this, whose command has all *words*."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if set(words) <= set(command) and int(folder.name) != os.getpid():
            os.kill(int(folder.name), signal.SIGKILL)
            return
    raise AssertionError(f"no process {words}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
