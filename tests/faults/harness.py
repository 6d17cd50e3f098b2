"""Run a script twice, without rlprof and with it, and compare the states of its model."""

import json
from pathlib import Path

from tests.faults import processes
from tests.faults.told import Ended, Told
from tests.waiting import BOUND_S

TRAIN = """
with open_session() as prof:
    train(prof)
"""
SETTLED = """
with open_session() as prof:
    train(prof, between=lambda step: step == 1 and settle(prof, {captures}))
"""
RECORDED = {"tool": "faulty", "steps": [1, 2, 3], "roles": {"actor": {"phases": ["update"]}}}
LIMITS = {"start_timeout_s": 5, "stop_timeout_s": 20, "export_timeout_s": 60}


class Lab:
    def __init__(self, home: Path, launcher: processes.Launcher) -> None:
        self.home = home
        self.runs = home / "runs"
        self.scratch = home / "scratch"
        self.keeps_scratch = True
        """False if the fault of the test is that raw data are removed."""
        self._launcher = launcher
        self._started = 0

    def start(self, script, *, model="torch", bare=False, env=None, limits=None, **changes):
        """Start *script*, with *changes* to a config that records steps 1 to 3 with `faulty`."""
        config = {"run_dir": str(self.runs), "scratch_dir": str(self.scratch), **RECORDED}
        config["limits"] = LIMITS | (limits or {})
        self._started += 1
        stem = self.home / f"process_{self._started}"
        file, settings = stem.with_suffix(".py"), stem.with_suffix(".yaml")
        file.write_text(
            "from training import *\nimport os, signal, sys, threading, time\n" + script
        )
        settings.write_text(json.dumps(config | changes))
        told = {"FAULTS_BARE": "1"} if bare else {"RLPROF_CONFIG": str(settings)}
        told |= {"FAULTS_HOME": str(self.home), "FAULTS_MODEL": model, **(env or {})}
        return self._launcher.start(file, told, warm=model == "torch", bare=bare)

    def bare(self, script, *, model="torch", env=None, act=None):
        return self.finish(self.start(script, model=model, env=env, bare=True), act)

    def finish(self, child, act=None):
        """Call *act* with the child, wait for its end, and return its exit code and output."""
        if act is not None:
            act(child)
        code = child.wait(BOUND_S)
        return Ended(code, child.out.read_text(), child.err.read_text())

    def both(self, script, *, model="torch", env=None, act=None, cut=None, **config):
        """Run *script* with rlprof, and once for all tests without; check that training agrees.

        With *cut*, the fault ends the child with rlprof after *cut* steps, and only it gets *act*.
        """
        untouched = None if cut is not None else act
        key = None if untouched else (script, model, *sorted((env or {}).items()))
        ended = self._launcher.ended.get(key)
        bare = self.start(script, model=model, env=env, bare=True) if ended is None else None
        real = self.start(script, model=model, env=env, **config)
        if bare is not None:
            ended = self.finish(bare, untouched)
            if key is not None:
                self._launcher.ended[key] = ended
        told = Told(self, ended, self.finish(real, act), real.pid)
        told.assert_harmless(cut)
        return told

    def reached(self):
        return (self.home / "reached").exists()

    def rlprof(self, *argv):
        script = f"from rlprof_cli import main\nsys.exit(main({list(map(str, argv))!r}))\n"
        return self.finish(self.start(script, model="floats"))
