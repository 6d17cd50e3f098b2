"""A program under plain `nsys launch`, training as a config says, and their results."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import uuid
from contextlib import closing, contextmanager
from pathlib import Path

import attrs

import rlprof
from tests.waiting import processes

TRAINING = str(Path(__file__).parent / "training.py")


@attrs.define(eq=False)
class Launched:
    """A program under `nsys launch`: it reads a line for each thing to do and answers with one."""

    nsys: str
    session: str
    child: subprocess.Popen
    env: dict[str, str]

    def record(self, folder, line):
        """Record the work that the program does for *line*."""
        quiet = "--sample=none", "--cpuctxsw=none", "--force-overwrite=true"
        self._call("start", *quiet, "-o", str(folder / "report"))
        time.sleep(0.1)  # `nsys start` returns up to a few ms before ranges are seen
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()
        self.child.stdout.readline()
        self._call("stop")

    def _call(self, verb, *argv):
        argv = [self.nsys, verb, f"--session={self.session}", *argv]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=self.env)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def launched(nsys, script, folder, trace):
    """Run the program *script* under *nsys*; it says `ready` first, and ends at end of file."""
    env = {**os.environ, "TMPDIR": str(folder)}
    session = f"t{uuid.uuid4().hex[:12]}"
    argv = [nsys, "launch", f"--session-new={session}", f"--trace={trace}", sys.executable, script]
    pipe = subprocess.PIPE
    child = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, text=True)
    try:
        assert child.stdout.readline().strip() == "ready"
        yield Launched(nsys, session, child, env)
    finally:
        try:
            child.communicate(timeout=60)
        finally:
            child.kill()


def parted(nsys, home):
    """Lay the program out below *home* as Debian does, without its importer."""
    there = home / "usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64"
    there.mkdir(parents=True)
    for file in Path(nsys).resolve().parent.iterdir():
        if file.name == "nsys":  # it looks for its importer next to its real path
            shutil.copy(file, there)
        else:
            (there / file.name).symlink_to(file)
    return str(there / "nsys")


def train(nsys, home, *, wrapped=True, cwd=None, options=None, **asked):
    """Train below *home*, under *nsys* as the config's launch says."""
    home.mkdir()
    options = {"nsys": nsys, "trace": ["nvtx"], "start_s": 30, **(options or {})}
    limits = {"start_timeout_s": 60}  # a busy host may take longer than the default
    config = {
        "tool": "nsys", "steps": [1], "roles": {"actor": {}}, "tools": {"nsys": options},
        "limits": limits,
    }  # fmt: skip
    prefix = rlprof.launch(config, role="actor", rank=0).argv_prefix if wrapped else ()
    asked = json.dumps({**asked, "options": options, "limits": limits})
    temp = home / "tmp"
    temp.mkdir()
    with (home / "said").open("w") as said:
        return subprocess.run(
            [*prefix, sys.executable, TRAINING, str(home), asked], stdout=said, stderr=said,
            cwd=cwd, env={**os.environ, "TMPDIR": str(temp)}, timeout=300,
        )  # fmt: skip


def result(home):
    """Return the result that training wrote at its end."""
    file = home / "result.json"
    assert file.exists(), (home / "said").read_text()[-4000:]
    return json.loads(file.read_text())


def captures(home):
    (run,) = (home / "runs").iterdir()
    return rlprof.read(run).captures


def states(home):
    return [capture.state for capture in captures(home)]


def reports(home):
    """Return the reports, in the order of their windows."""
    return sorted((home / "runs").rglob("*.nsys-rep"), key=str)


def tables_of(nsys, report):
    """Return the SQLite of *report*."""
    tables = report.with_suffix(".test.sqlite")
    subprocess.run(
        [nsys, "export", "-q", "true", "-f", "true", "-t", "sqlite", "-o", str(tables), report],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return tables


def ranges(nsys, report):
    """Return text and payload of the ranges of *report*, without those of a window."""
    with closing(sqlite3.connect(tables_of(nsys, report))) as found:
        return found.execute(
            "SELECT coalesce(e.text, s.value), e.int64Value FROM NVTX_EVENTS e "
            "LEFT JOIN StringIds s ON s.id = e.textId WHERE e.eventType = 59 ORDER BY e.start"
        ).fetchall()


def is_clean(home, *, folders=True):
    """Whether no process and no folder of nsys remain soon after the end."""
    end, temp = time.monotonic() + 60, home / "tmp"
    while (left := processes(env=f"TMPDIR={temp}")) and time.monotonic() < end:
        time.sleep(0.1)
    return not left and not (folders and list(temp.glob("rlprof-nsys*")))
