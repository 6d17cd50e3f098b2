"""An exporter that keeps every law, and exporters that each break one."""

from __future__ import annotations

import gzip
import json

from rlprof import hookimpl


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
    """Write beside the traces."""

    @hookimpl
    def render(self, run, out):
        (run.path / "captures.txt").write_text(table(run))
        return GoodExporter().render(run, out)


class TrustsTheTraces:
    """Read every trace as if it were whole."""

    @hookimpl
    def render(self, run, out):
        for capture in run.captures:
            for artifact in capture.artifacts:
                with gzip.open(run.path / artifact.path) as file:
                    json.load(file)
        return GoodExporter().render(run, out)


class RemembersTheLastRun:
    """Write what it saw of the run before, too."""

    def __init__(self):
        self.seen = []

    @hookimpl
    def render(self, run, out):
        self.seen.append(run.run_id)
        (out / "runs.txt").write_text("\n".join(self.seen))
        return [out / "runs.txt"]


class TakesArguments:
    """Declare what it takes, and read what others have left."""

    @staticmethod
    def arguments(group):
        group.add_argument("--depth", type=int, default=3)

    @hookimpl
    def render(self, run, out, options):
        (out / "captures.txt").write_text(f"{options['depth']}\n{table(run)}")
        return [out / "captures.txt"]

    @hookimpl
    def render_files(self, files, out, options):
        (out / "files.txt").write_text("\n".join(file.name for file in files[: options["depth"]]))
        return [out / "files.txt"]


class TrustsFiles(GoodExporter):
    """Read whatever it is given as JSON."""

    @hookimpl
    def render_files(self, files):
        for file in files:
            json.loads(file.read_bytes())
