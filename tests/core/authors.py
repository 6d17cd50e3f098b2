"""Tools of authors who have misread the contract; each is wrong in one way."""

import os

from rlprof import Artifact, Ready, hookimpl
from tests.fakes.tools import Fake


def _returning(found):
    """Make a tool whose export returns what *found* makes of its folder."""

    class Odd(Fake):
        @hookimpl
        def export(self, capture, folder, out):
            (out / "there.txt").write_text("x")
            return found

    return Odd


def _artifact(path="there.txt", **changes):
    return Artifact(path, **({"kind": "files", "format": "text"} | changes))


Names = _returning(["there.txt"])
Alone = _returning(_artifact())
Unwritten = _returning([_artifact("nope.txt")])
Outside = _returning([_artifact("../there.txt")])
Kind = _returning([_artifact(kind="tracee")])


class Copies(Fake):
    """Call whole whatever lies in the raw folder: a text, and a trace."""

    @hookimpl
    def export(self, folder, out):
        (out / "there.txt").write_text("x")
        (out / "trace.json.gz").write_bytes((folder / "trace").read_bytes())
        return [_artifact(), _artifact("trace.json.gz", kind="trace", format="chrome-trace")]


class Signs(Fake):
    """Say which process exports."""

    @hookimpl
    def export(self, out):
        (out / "there.txt").write_text("x")
        return [_artifact(note=str(os.getpid()))]


class NamesCommand(Fake):
    """Say what looks at its file."""

    @hookimpl
    def export(self, out):
        (out / "there.txt").write_text("x")
        return [_artifact(command="look {run}/step")]


class StartsFive(Fake):
    """Return a number from start."""

    @hookimpl
    def start(self, window, folder):
        Fake.start(self, window, folder)
        return 5


class RunsAnywhereLater(Fake):
    """Say so once it is configured."""

    @hookimpl
    def configure(self, place):
        return Ready("anywhere") if place == "process" else None
