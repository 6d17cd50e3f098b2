"""The time and memory that fetching 2 GB from a node's agent takes, compared with `cp`.

The object store is 100 MB; the disk is the same for all. `.envs/test/bin/python bench/collect.py`
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")

import ray
from _measure import machine, verdict

from rlprof.rundir import RunFolder
from rlprof_ray._collect import collect
from rlprof_run import Place

FILES = 8
MOST_MB = 64
"""How much more memory the driver may take than before; not a share of what is brought."""
SLOWEST = 50
"""MB/s; half of what a network of 1 Gbit/s brings."""


class Memory(threading.Thread):
    """Looks at the resident memory of this process, shared pages included, while it works."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.now()
        self.peak = dict(self.before)
        self.is_over = False

    @staticmethod
    def now() -> dict[str, float]:
        """Return its parts in MB."""
        lines = Path("/proc/self/status").read_text().splitlines()
        found = [line.split() for line in lines if line.startswith(("VmRSS", "RssShmem"))]
        return {words[0].rstrip(":"): int(words[1]) * 1024 / 1e6 for words in found}

    def run(self) -> None:
        while not self.is_over:
            now = self.now()
            self.peak = {name: max(now[name], self.peak[name]) for name in now}
            time.sleep(0.01)


def fill(folder: Path, total: int) -> None:
    """Write the folder of a node: *total* bytes in some files, as a member leaves them."""
    header = '{"run_id": "a-run", "owner": {"attempt": 1, "opened_ns": 1}}'
    for number in range(FILES):
        file = folder / f"step_{number:06d}/update/actor_0_of_1/torch/trace.json.gz"
        file.parent.mkdir(parents=True)
        with file.open("wb") as out:
            for _ in range(total // FILES >> 20):
                out.write(os.urandom(1 << 20))
    (folder / "run.json").write_text(header)


def copy(source: Path, target: Path) -> float:
    """Copy with `cp` and have it on disk, as collecting does; return seconds."""
    began = time.monotonic()
    subprocess.run(["cp", "-r", source, target], check=True)
    subprocess.run(["sync", "-f", target], check=True)
    return time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=2000)
    parser.add_argument("--dir", default=None, help="a folder on the disk to use")
    args = parser.parse_args()
    print(f"collect: {machine()}, ray {ray.__version__}")
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        object_store_memory=100 << 20, logging_level="error",
    )  # fmt: skip
    work = Path(tempfile.mkdtemp(dir=args.dir))
    try:
        return bring(work, args.mb << 20)
    finally:
        ray.shutdown()
        shutil.rmtree(work)


def bring(work: Path, total: int) -> int:
    far, home = work / "node" / "a-run", work / "home" / "a-run"
    fill(far, total)
    home.mkdir(parents=True)
    peer = copy(far, work / "peer")
    shutil.rmtree(work / "peer")
    place = Place(ray.get_runtime_context().get_node_id(), socket.gethostname(), str(far))
    asked: dict[str, Any] = {"of": "driver", "within_s": 600}
    memory = Memory()
    memory.start()
    began = time.monotonic()
    (outcome,) = collect(RunFolder(home, "a-run", 1), [place], **asked)
    seconds = time.monotonic() - began
    memory.is_over = True
    memory.join()
    assert outcome.error == "", outcome.error
    speed, more = outcome.bytes / 1e6 / seconds, {
        name: memory.peak[name] - memory.before[name] for name in memory.peak
    }  # fmt: skip
    print(f"  {outcome.bytes / 1e6:,.0f} MB in {outcome.files} files: {seconds:.1f} s,")
    print(
        f"  {speed:.0f} MB/s; cp and sync of the same: {peer:.1f} s, {total / 1e6 / peer:.0f} MB/s"
    )
    print(f"  memory before {memory.before['VmRSS']:.0f} MB, at most {memory.peak['VmRSS']:.0f} MB")
    holds = [
        verdict("memory of the driver, more than before", more["VmRSS"], MOST_MB, "MB"),
        verdict("of it shared with the object store", more["RssShmem"], 1, "MB"),
        verdict("seconds for 2 GB, at most", 2000 / speed, 2000 / SLOWEST, "s"),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
