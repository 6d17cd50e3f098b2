"""Starts the processes of a test and finds those it left behind."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import attrs

from tests.waiting import wait_until

CHILD = Path(__file__).with_name("child")
ENGINE = CHILD.parents[2] / "examples/third_party_engine/src"
_LAUNCHERS = ("RLPROF_", "TORCHELASTIC_", "SLURM_", "OMPI_", "RANK", "WORLD_SIZE", "MASTER_")


@attrs.define
class Child:
    pid: int
    out: Path
    err: Path
    bare: bool
    """Whether it runs without rlprof."""
    wait: object
    """Waits up to some seconds and returns the exit code as `subprocess` does."""

    def kill(self, number=signal.SIGKILL) -> None:
        os.kill(self.pid, number)


class Launcher:
    """Starts processes: with torch as forks of one that has imported it, otherwise new ones."""

    def __init__(self, site: Path) -> None:
        self.ended = {}
        """Script → its end without rlprof, if known."""
        self._path = [str(CHILD), str(ENGINE), str(site)]
        self._zygote = None
        self._lock = threading.Lock()

    def start(self, script: Path, env, *, warm: bool, bare: bool) -> Child:
        full = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS)}
        above = os.environ.get("PYTHONPATH")
        full["PYTHONPATH"] = os.pathsep.join([*self._path, *([above] if above else [])])
        full["OMP_NUM_THREADS"] = "1"
        if warm:
            with self._lock:
                self._zygote = self._zygote or _Zygote(full, self._path)
        full |= env
        out, err = script.with_suffix(".out"), script.with_suffix(".err")
        for file in (out, err):  # a test may read them before the process writes
            file.touch()
        if warm:
            pid = self._zygote.start(script, full, out, err)
            return Child(pid, out, err, bare, lambda bound_s: self._zygote.wait(pid, bound_s))
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                [sys.executable, str(script)], env=full, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=out_file, stderr=err_file,
            )  # fmt: skip
        return Child(process.pid, out, err, bare, process.wait)

    def close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()


class _Zygote:
    """The other end of `child/zygote.py`, which several threads may use."""

    def __init__(self, env, path) -> None:
        self._path = path
        self._started, self._codes = queue.Queue(), {}
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD / "zygote.py")], env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def start(self, script, env, out, err) -> int:
        order = {"script": str(script), "env": env, "path": self._path}
        order |= {"out": str(out), "err": str(err)}
        with self._lock:
            self._process.stdin.write(f"{json.dumps(order)}\n")
            self._process.stdin.flush()
            return self._started.get(timeout=60)

    def wait(self, pid, bound_s) -> int:
        wait_until(lambda: pid in self._codes, f"the end of process {pid}", bound_s)
        return self._codes[pid]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._listener.join()
        self._process.stdout.close()

    def _listen(self) -> None:
        for line in self._process.stdout:
            said = json.loads(line)
            if "ended" in said:
                self._codes[said["ended"]] = said["code"]
            else:
                self._started.put(said["started"])


def left_behind(home: Path, sessions, bound_s: float = 15) -> list[str]:
    """List the processes of *home* or *sessions* that still exist after *bound_s*."""
    deadline = time.monotonic() + bound_s
    while (found := _of(home, sessions)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def end_all(home: Path) -> None:
    for line in _of(home, []):
        with suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)


def _of(home, sessions) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            known = command + (folder / "environ").read_bytes()
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended, or is another user's
            continue
        state, session = fields[0], int(fields[3])
        if state not in "ZX" and (str(home).encode() in known or session in sessions):
            found.append(f"{folder.name} {command.replace(bytes(1), b' ').decode()}")
    return found
