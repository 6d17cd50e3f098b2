"""Start the processes of a test, and find those it left behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import attrs

CHILD = Path(__file__).with_name("child")
ENGINE = CHILD.parents[2] / "examples/third_party_engine/src"
_LAUNCHERS = ("RLPROF_", "TORCHELASTIC_", "SLURM_", "OMPI_", "RANK", "WORLD_SIZE", "MASTER_")


@attrs.define
class Child:
    pid: int
    out: Path
    err: Path
    bare: bool
    """Whether it does without rlprof."""
    wait: object
    """Takes seconds, returns the exit code as `subprocess` gives it."""

    def kill(self, number=signal.SIGKILL) -> None:
        os.kill(self.pid, number)


class Launcher:
    """Starts processes: with torch as children of one that has imported it, else afresh."""

    def __init__(self, site: Path) -> None:
        self.ended = {}
        """How scripts end without rlprof, as far as that is known."""
        self._path = [str(CHILD), str(ENGINE), str(site)]
        self._zygote = None
        self._lock = threading.Lock()

    def start(self, script: Path, env, *, warm: bool, bare: bool) -> Child:
        """Start *script* with *env* on top of this process' environment."""
        full = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS)}
        above = os.environ.get("PYTHONPATH")
        full["PYTHONPATH"] = os.pathsep.join([*self._path, *([above] if above else [])])
        full["OMP_NUM_THREADS"] = "1"
        if warm:
            with self._lock:
                self._zygote = self._zygote or _Zygote(full, self._path)
        full |= env
        out, err = script.with_suffix(".out"), script.with_suffix(".err")
        for file in (out, err):  # a test may look before the process has come so far
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
    """The other end of `child/zygote.py`; several threads may ask it."""

    def __init__(self, env, path) -> None:
        self._path = path
        self._codes = {}
        self._lock = threading.Lock()
        self._heard = b""
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD / "zygote.py")], env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def start(self, script, env, out, err) -> int:
        order = {"script": str(script), "env": env, "path": self._path}
        order |= {"out": str(out), "err": str(err)}
        with self._lock:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            while (pid := self._hear(60)) is None:
                pass
            return pid

    def wait(self, pid, bound_s) -> int:
        deadline = time.monotonic() + bound_s
        while pid not in self._codes:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {pid} did not end within {bound_s:g} s")
            with self._lock:
                while self._says_something():
                    self._hear(0)
            time.sleep(0.02)
        return self._codes[pid]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _hear(self, bound_s):
        """Read a line: return the process it says was started, note down one that ended."""
        while b"\n" not in self._heard:
            if not self._says_something(bound_s):
                raise TimeoutError(f"no process was started within {bound_s:g} s")
            heard = os.read(self._process.stdout.fileno(), 1 << 16)  # often several lines
            if not heard:
                raise RuntimeError("the process that starts the others has ended")
            self._heard += heard
        told, _, self._heard = self._heard.partition(b"\n")
        line = json.loads(told)
        if "ended" in line:
            self._codes[line["ended"]] = line["code"]
        return line.get("started")

    def _says_something(self, bound_s=0):
        return b"\n" in self._heard or bool(
            select.select([self._process.stdout], [], [], bound_s)[0]
        )


def left_behind(home: Path, sessions, bound_s: float = 15) -> list[str]:
    """List the processes of *home* or of *sessions* that are still there after *bound_s*."""
    deadline = time.monotonic() + bound_s
    while (found := _of(home, sessions)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def end_all(home: Path) -> None:
    """Kill what a test that failed has left."""
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
        except OSError:  # it has just ended, or is somebody else's
            continue
        state, session = fields[0], int(fields[3])
        if state not in "ZX" and (str(home).encode() in known or session in sessions):
            found.append(f"{folder.name} {command.replace(bytes(1), b' ').decode()}")
    return found
