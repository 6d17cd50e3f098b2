"""Tools whose authors have misread the contract; each is wrong in one way."""

import os

from rlprof import Artifact, Ready, hookimpl
from tests.fakes.tools import Fake


def _returning(name, found):
    """Make a tool, to be imported as *name*, whose export returns what *found* does."""

    class Odd(Fake):
        @hookimpl
        def export(self, capture, folder, out):
            (out / "there.txt").write_text("x")
            return found()

    Odd.__name__ = Odd.__qualname__ = name
    return Odd


def _artifact(path="there.txt", **changes):
    return Artifact(path, **({"kind": "files", "format": "text"} | changes))


Names = _returning("Names", lambda: ["there.txt"])
Alone = _returning("Alone", _artifact)
Unwritten = _returning("Unwritten", lambda: [_artifact("nope.txt")])
Outside = _returning("Outside", lambda: [_artifact("../there.txt")])
Kind = _returning("Kind", lambda: [_artifact(kind="tracee")])
Signs = _returning("Signs", lambda: [_artifact(note=str(os.getpid()))])
"""Names the process that exports in its note."""
NamesCommand = _returning("NamesCommand", lambda: [_artifact(command="look {run}/step")])
"""Names the command that shows its file."""


class Copies(Fake):
    """Export a text file and the raw file `trace`, and report both as whole."""

    @hookimpl
    def export(self, folder, out):
        (out / "there.txt").write_text("x")
        (out / "trace.json.gz").write_bytes((folder / "trace").read_bytes())
        return [_artifact(), _artifact("trace.json.gz", kind="trace", format="chrome-trace")]


class StartsFive(Fake):
    """Return a number from start."""

    @hookimpl
    def start(self, window, folder):
        Fake.start(self, window, folder)
        return 5


class RunsAnywhereLater(Fake):
    """Return an invalid place from configure, in the process only."""

    @hookimpl
    def configure(self, place):
        return Ready("anywhere") if place == "process" else None
