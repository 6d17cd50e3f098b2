"""Drivers in processes of their own, on the test's Ray or on one of their own."""

import json
import os
import sys
import uuid
from types import SimpleNamespace

from tests.ray_fleet.conftest import ROOT
from tests.waiting import python


def environment():
    """Return the environment with which a process can import what this process can."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))}


def said_by(spec):
    """Run a driver to its end; return the finished process and the lines that it printed."""
    done = python("-m", "tests.ray_fleet.driver", json.dumps(spec), env=environment())
    said = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("OUT ")]
    assert said, done.stderr[-3000:]
    return done, said


def drive(config, *, address, end="", where="", closes=True, detached=False, find=()):
    """Run a driver to its end, on actors of its own or on another driver's, named in *find*."""
    names = list(find) or [f"actor-{uuid.uuid4().hex}" for _ in range(2)]
    spec = {
        "config": config, "address": address, "end": end, "where": where, "with": closes,
        "detached": detached, "names": names, "find": bool(find),
    }  # fmt: skip
    done, said = said_by(spec)
    totals = [one.pop("total") for one in said if "total" in one]
    last = {key: value for one in said for key, value in one.items()}  # run, closed_s
    told = {"closed_s": -1.0, "totals": totals, "names": names, "stderr": done.stderr} | last
    return SimpleNamespace(code=done.returncode, **told)
