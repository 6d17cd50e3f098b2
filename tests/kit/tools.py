"""A tool and an exporter that keep every law, and others that each break one."""

import gzip
import json
import random
import threading
import time
from pathlib import Path

import attrs

from rlprof import Artifact, CaptureError, hookimpl


def _level(value):
    if value not in ("low", "high"):
        raise ValueError(f"expected low or high, got {value!r}")
    return value


@attrs.frozen
class Options:
    level: str = attrs.field(default="low", metadata={"parse": _level})
    count: int = 3


def header(capture, began):
    """Return the header of a trace."""
    said = {"run": capture.run_id, "tool": capture.tool, "epoch_ns": began, "error_ns": None}
    return said | {name: attrs.asdict(getattr(capture, name)) for name in ("target", "window")}


class Heard:
    """The recording that `start` returns."""

    def __init__(self):
        self.applied = {"level": "low"}
        self.unsupported = {"low": "there is no lower one", "count: half": "it counts whole ones"}
        self.names = []

    def push(self, name, payload):
        self.names.append(name)

    def pop(self):
        pass


class Good:
    """Keep every law."""

    Options = Options
    runs_on = "process"
    heard = folder = None
    options = Options()

    @hookimpl
    def configure(self, place, options):
        if place == "process":
            self.options = options

    @hookimpl
    def start(self, folder):
        if self.heard is not None:
            raise CaptureError("a window is open already")
        (folder / "began").write_text(str(time.time_ns()))
        self.heard, self.folder = Heard(), folder
        return self.heard

    @hookimpl
    def stop(self):
        heard, self.heard = self.heard, None
        if heard is not None:
            names = [name.encode("utf-8", "replace").decode() for name in heard.names]
            (self.folder / "names.json").write_text(json.dumps(names))

    @hookimpl
    def export(self, capture, folder, out):
        try:
            names = json.loads((folder / "names.json").read_bytes())
            began = int((folder / "began").read_text())
        except (OSError, ValueError) as exc:
            raise CaptureError(f"the window was not closed: {exc}") from exc
        return self.written(capture, out, names, began)

    def written(self, capture, out, names, began):
        events = [
            {"ph": "i", "name": name, "ts": 0, "pid": 1, "tid": 1} for name in ["begin", *names]
        ]
        name = f"{capture.stem}.trace.json.gz"
        with gzip.open(out / name, "wt", encoding="utf-8") as file:
            json.dump({"rlprof": header(capture, began), "traceEvents": events}, file)
        return [Artifact(name, kind="trace", format="chrome-trace", note="so")]


class WritesAtLaunch(Good):
    """Write a file in configure."""

    @hookimpl
    def configure(self, place, options):
        if place == "launch":
            Path("left-behind").touch()


class StopsOnlyAfterStart(Good):
    """Raise in a stop without a start."""

    was_started = False

    @hookimpl
    def start(self, folder):
        self.was_started = True
        return Good.start(self, folder)

    @hookimpl
    def stop(self):
        if not self.was_started:
            raise RuntimeError("nothing was started")
        Good.stop(self)


class StopsOnlyOnce(Good):
    """Raise in a second stop."""

    @hookimpl
    def stop(self):
        if self.folder is not None and self.heard is None:
            raise RuntimeError("stopped already")
        Good.stop(self)


class StaysHalfOpen(Good):
    """Leave a failed start half open, so that stop fails."""

    @hookimpl
    def start(self, folder):
        if self.heard is not None:
            raise CaptureError("a window is open already")
        self.heard, self.folder = Heard(), folder
        (folder / "began").write_text(str(time.time_ns()))
        return self.heard


class StealsTheWindow(Good):
    """Start a second window over the first."""

    @hookimpl
    def start(self, folder):
        self.heard = None
        return Good.start(self, folder)


class RecordsOnce(Good):
    """Record the first window of an instance only."""

    @hookimpl
    def start(self, folder):
        was_used = self.folder is not None
        heard = Good.start(self, folder)
        if was_used:
            self.heard = None
        return heard


class ChokesOnNames(Good):
    """Write names without escaping them."""

    @hookimpl
    def stop(self):
        heard, self.heard = self.heard, None
        if heard is not None:
            names = ", ".join(f'"{name}"' for name in heard.names)
            text = f"[{names}]".encode("utf-8", "replace")
            (self.folder / "names.json").write_bytes(text)


class RemembersInTheProcess(Good):
    """Export only in the process in which `configure` was called."""

    remembered = threading.Event()

    @hookimpl
    def configure(self, place, options):
        if place == "process":
            self.remembered.set()

    @hookimpl
    def export(self, capture, folder, out):
        if not self.remembered.is_set():
            raise CaptureError("was not configured")
        return Good.export(self, capture, folder, out)


class CallsAllWhole(Good):
    """Report cut data as whole."""

    @hookimpl
    def export(self, capture, folder, out):
        return self.written(capture, out, [], time.time_ns())


class WantsToBeAlone(Good):
    """Fail next to another instance, without a claim."""

    busy = threading.Lock()

    @hookimpl
    def start(self, folder):
        heard = Good.start(self, folder)
        if not self.busy.acquire(blocking=False):
            self.heard = None
            raise CaptureError("another one is active")
        return heard

    @hookimpl
    def stop(self):
        if self.heard is not None:
            self.busy.release()
        Good.stop(self)


class ChangesTheWork(Good):
    """Change the random numbers of the work while it records."""

    @hookimpl
    def start(self, folder):
        heard = Good.start(self, folder)
        random.Random.random = lambda self: 0.5
        return heard

    @hookimpl
    def stop(self):
        random.Random.__dict__.get("random") and delattr(random.Random, "random")
        Good.stop(self)


class TakesAnUnknownArgument(Good):
    """Take an argument that the hook does not get."""

    @hookimpl
    def start(self, foldr):
        return None


def table(run):
    return "\n".join(f"{one.window.id}\t{one.state}".encode("utf-8", "replace").decode()
                     for one in run.captures) + "\n"  # fmt: skip


class GoodExporter:
    """List the captures."""

    @hookimpl
    def render(self, run, out):
        (out / "captures.txt").write_text(table(run))
        return [out / "captures.txt"]


class WritesIntoTheRun:
    """Write into the run folder."""

    @hookimpl
    def render(self, run, out):
        (run.path / "captures.txt").write_text(table(run))
        return GoodExporter().render(run, out)


class TrustsTheTraces:
    """Read every trace without checking that it is whole."""

    @hookimpl
    def render(self, run, out):
        for capture in run.captures:
            for artifact in capture.artifacts:
                with gzip.open(run.path / artifact.path) as file:
                    json.load(file)
        return GoodExporter().render(run, out)


class RemembersTheLastRun:
    """Also write the ids of earlier runs."""

    def __init__(self):
        self.seen = []

    @hookimpl
    def render(self, run, out):
        self.seen.append(run.run_id)
        (out / "runs.txt").write_text("\n".join(self.seen))
        return [out / "runs.txt"]


class ReadsFiles(GoodExporter):
    """Read files of other profilers, too."""

    @hookimpl
    def render_files(self, files, out, options):
        (out / "files.txt").write_text("\n".join(f"{file} {options['align']}" for file in files))
        return [out / "files.txt"]


class TrustsFiles(GoodExporter):
    """Read every file as JSON."""

    @hookimpl
    def render_files(self, files):
        for file in files:
            json.loads(file.read_bytes())
