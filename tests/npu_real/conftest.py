"""Programs on the real torch_npu, each in a process of its own; what reached the stand-ins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

import rlprof
from tests.npu_real.stand_ins.build import build_msprof

ROOT = Path(__file__).parent.parent.parent
BOUND_S = 120


def pytest_configure():
    """Fail with a hint if the libraries that stand in for CANN are missing."""
    places = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if not any((Path(one) / "libascendcl.so").exists() for one in places):
        message = "the libraries that stand in for CANN are not in LD_LIBRARY_PATH; make test-npu"
        raise pytest.UsageError(message)


@attrs.frozen
class Driven:
    """The results of a program."""

    home: Path
    output: str
    returncode: int
    reached: list[str]
    """What reached CANN's libraries, or what stands in for them."""

    @property
    def run(self):
        """The run it has made."""
        (path,) = (self.home / "runs").iterdir()
        return rlprof.read(path)

    def calls(self, name):
        """Return what *name* was called with, each as a dict of words."""
        lines = [line.split(" ") for line in self.reached if line.split(" ")[0] == name]
        return [dict(word.split("=", 1) for word in words) for _, *words in lines]


@pytest.fixture(scope="session", name="msprof")
def _msprof(tmp_path_factory):
    """Return the folder of the program that stands in for msprof."""
    return build_msprof(tmp_path_factory.mktemp("cann"))


@pytest.fixture(scope="session", name="drive")
def _drive(tmp_path_factory, msprof):
    """Return a function that runs a program: `program(config)` in tests/npu_real/programs.py."""

    def drive(program, options, *, env, home=None, **more):
        home = home or tmp_path_factory.mktemp(program)
        config = {
            "run_dir": str(home / "runs"), "scratch_dir": str(home / "scratch"),
            "tool": "npu", "steps": [2], "roles": {"actor": {"ranks": "all"}},
            "tools": {"npu": options}, **more,
        }  # fmt: skip
        log = home / f"reached-{env.get('RANK', 0)}"
        own = {"STAND_IN_LOG": str(log), "PATH": f"{msprof}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            [sys.executable, "-m", "tests.npu_real.programs", program, json.dumps(config)],
            cwd=ROOT, env=os.environ | own | env, text=True, timeout=BOUND_S,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        reached = log.read_text().splitlines() if log.exists() else []
        return Driven(home, done.stdout, done.returncode, reached)

    return drive
