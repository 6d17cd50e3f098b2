"""Drivers as processes of their own, beside the test's Ray or with one of their own."""

import json
import os
import sys
import uuid
from types import SimpleNamespace

from tests.ray_fleet.conftest import ROOT
from tests.waiting import python


def environment():
    """Return the variables with which a process imports what this one can."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(ROOT)]))}


def said_by(spec):
    """Run a driver to its end; return how it ended, and all that it has said."""
    done = python("-m", "tests.ray_fleet.driver", json.dumps(spec), env=environment())
    said = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("OUT ")]
    assert said, done.stderr[-3000:]
    return done, said


def drive(config, *, address, end="", where="", closes=True, detached=False, find=()):
    """Run a driver to its end; its actors are detached, or another's, whose names are *find*."""
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
