"""Tools that fail in the hook, step and way that their options name."""

import ctypes
import json
import os
import time
from pathlib import Path

import attrs

from rlprof import Artifact, hookimpl


@attrs.frozen
class FaultyOptions:
    hook: str = ""
    """The hook that fails; none if empty."""
    how: str = "raise"
    at: int = 2
    """The step in whose window it fails; configure has no step and always fails."""


class Faulty:
    """Record each call in a file, and fail on the thread of the phase."""

    Options = FaultyOptions
    runs_on = "thread"
    options = FaultyOptions()
    folder = None

    @hookimpl
    def configure(self, place, options):
        self.options = options
        if place == "process":
            go_wrong(options, "configure", options.at)

    @hookimpl
    def start(self, window, folder):
        self.folder, self.step = folder, window.start_step
        self.hears("start")
        return self

    @hookimpl
    def stop(self, window):
        if self.folder is not None:
            self.hears("stop")

    @hookimpl
    def export(self, capture, folder, out):
        options = FaultyOptions(**capture.options)
        (out / "exporting").write_text("")
        go_wrong(options, "export", capture.window.start_step)
        (out / "exporting").unlink()
        said = (folder / "said").read_text().split()
        (out / f"{capture.stem}.json").write_text(json.dumps(said))
        return [Artifact(f"{capture.stem}.json", kind="files", format="json", events=len(said))]

    def push(self, name, payload):
        self.hears("push")

    def pop(self):
        self.hears("pop")

    def minibatch(self):
        self.hears("minibatch")

    def hears(self, word):
        with (Path(self.folder) / "said").open("a") as file:
            file.write(f"{word}\n")
        go_wrong(self.options, word, self.step)


class FaultyAnywhere(Faulty):
    """The same tool, which may start on any thread."""

    runs_on = "process"


def go_wrong(options, hook, step):
    if (hook, step) != (options.hook, options.at):
        return
    Path(os.environ["FAULTS_HOME"], "reached").write_text(hook)
    if options.how == "raise":
        raise RuntimeError(f"{hook} went wrong")
    if options.how == "crash":
        ctypes.string_at(0)
    if options.how == "hold":  # a PyDLL keeps the GIL during a call
        libc = ctypes.PyDLL(None)
        while True:
            libc.sleep(3600)
    if options.how == "wait":
        while not Path(os.environ["FAULTS_HOME"], "go on").exists():
            time.sleep(0.02)
        return
    while options.how == "sleep":
        time.sleep(3600)
