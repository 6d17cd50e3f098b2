"""Console blocks of a page, run as typed; their output is compared by its shape."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL

import rlprof
from rlprof_run import find_runs
from tests.waiting import wait_until

_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LAUNCHERS = ("RLPROF_", "TORCHELASTIC_", "SLURM_", "OMPI_", "RANK", "WORLD_SIZE", "MASTER_")


class Shell:
    """A folder in which the commands of a page are run, one after the other."""

    def __init__(self, home, env=None):
        self.home = home
        bin_ = home / "bin"
        bin_.mkdir()
        modules = {"torchrun": "-m torch.distributed.run", "rlprof": "-m rlprof", "python": ""}
        for name, module in modules.items():
            (bin_ / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
            (bin_ / name).chmod(0o755)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(_LAUNCHERS)}
        self.env |= {"PATH": f"{bin_}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        self.env |= env or {}
        self._runs = {}
        self._background = []

    def run(self, command):
        """Run one command; return its output on both streams, as a terminal shows it."""
        if command.startswith("rlprof capture"):
            self._wait_for_a_live_run()
        command = _RUN_ID.sub(self._real, command)
        own = {"cwd": self.home, "env": self.env, "start_new_session": True}
        if command.endswith("&"):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            argv = ["bash", "-c", f"exec env {command[:-1]}"]
            self._background.append(subprocess.Popen(argv, **own, **quiet))
            return ""
        done = subprocess.run(
            ["bash", "-c", command], **own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=120,
        )  # fmt: skip
        killed = re.compile(r"^bash: .*(Killed).*$", re.MULTILINE)
        return killed.sub("Killed", done.stdout)

    def close(self):
        for process in self._background:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)
            process.wait()

    def _real(self, found):
        """Return the latest run for an id of the page, the same one each time."""
        name = found[0]
        if name not in self._runs:
            self._runs[name] = find_runs(self.home / "outputs/profile")[-1].name
        return self._runs[name]

    def _wait_for_a_live_run(self):
        folder = self.home / "outputs/profile"
        wait_until(lambda: any(rlprof.read(run).is_running for run in find_runs(folder)), "a run")


def commands(block):
    """Take a console block apart: each command with the output shown below it."""
    found = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert found[0] == "", f"a console block begins with a command: {block}"
    for part in found[1:]:
        command, _, output = part.partition("\n")
        yield re.sub(r"\s+#.*", "", command), output


def shape(text):
    """Return the lines of *text* without numbers, sizes, times, ids, folders and column widths."""
    lines = []
    for line in text.splitlines():
        plain = re.sub(r"(?<![\w.])(/[\w.+-]+){2,}", "PATH", _RUN_ID.sub("RUN", line))
        plain = re.sub(r"[\d.,]+( k?B| MB| ms| s| x)?\b", "#", plain)
        plain = re.sub(r"\bon [\w.-]+(?=[,;)]|$)", "on HOST", plain)
        if plain.split() and "waits for exports" not in plain:  # logged on slow machines only
            lines.append(" ".join(plain.split()))
    return lines


def agree(shown, printed):
    """Whether *printed* has the shape of *shown*, where `...` stands for any number of lines."""
    rest = shape(printed)
    pieces = [shape(piece) for piece in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
    if rest[: len(pieces[0])] != pieces[0]:
        return False
    if len(pieces) == 1:
        return rest == pieces[0]
    rest = rest[len(pieces[0]) :]
    for piece in pieces[1:-1]:
        places = [n for n in range(len(rest)) if rest[n : n + len(piece)] == piece]
        if not places:
            return False
        rest = rest[places[0] + len(piece) :]
    return not pieces[-1] or rest[-len(pieces[-1]) :] == pieces[-1]


def write(home, name, text):
    Path(home, name).parent.mkdir(parents=True, exist_ok=True)
    Path(home, name).write_text(text)
