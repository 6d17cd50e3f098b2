"""The results of a script without and with rlprof, in words that tests can compare."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from gzip import GzipFile
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

import rlprof
from rlprof_run import find_runs
from tests.faults import processes

if TYPE_CHECKING:
    from tests.faults.harness import Lab


NOTHING = {"notes": [], "problems": [], "log": []}


@attrs.frozen
class Ended:
    code: int
    out: str
    err: str

    @property
    def states(self) -> list[str]:
        return sorted(line for line in self.out.splitlines() if line.startswith("state "))


@attrs.define(slots=False)
class Told:
    """The results of both runs of a script."""

    lab: Lab
    bare: Ended
    real: Ended
    pid: int

    def assert_harmless(self, cut: int | None = None) -> None:
        """Check that training is unchanged, files are whole and no process is left."""
        assert self.bare.states[:cut] == self.real.states
        assert cut is not None or self.bare.code == self.real.code
        assert processes.left_behind(self.lab.home, [self.pid]) == []
        for run in self.runs:
            assert_exported(run)
            if self.lab.keeps_scratch:
                assert_raw_data_kept(run)

    def assert_tells(self, captures, *processes: str, **said) -> None:
        """Compare captures, processes (by default an ended actor), notes, problems and log."""
        expected = {"captures": captures, "processes": [*processes] or ["actor 0/1 ended"], **said}
        found = {name: getattr(self, name) for name in expected}
        assert found == expected, f"{found} is not {expected}"

    def assert_all_whole(self, tool: str) -> None:
        self.assert_tells(rows([tool], tool, ["whole"] * 3), **NOTHING)

    @property
    def runs(self):
        return [rlprof.read(path) for path in find_runs(self.lab.runs)]

    @cached_property
    def run(self):
        (run,) = self.runs
        return run

    @property
    def captures(self) -> list[str]:
        return captures(self.run)

    @property
    def notes(self) -> list[str]:
        """Every note once, like `3/update torch: start: RuntimeError: …`."""
        said = [
            f"{capture.window.id} {capture.tool}: {note}"
            for capture in self.run.captures
            for note in capture.notes
        ]
        return [self.plain(text) for text in dict.fromkeys(said)]

    @property
    def processes(self) -> list[str]:
        return [f"{process.target} {process.state}" for process in self.run.processes]

    @property
    def problems(self) -> list[str]:
        """The problems, skipped steps and missing targets of the run."""
        skipped = [f"step {s.step} was skipped: {s.reason}" for s in self.run.skipped]
        missing = [f"{target} is missing" for target in self.run.missing]
        return [self.plain(problem) for problem in [*self.run.problems, *skipped, *missing]]

    @property
    def log(self) -> list[str]:
        """The messages of rlprof, except those about slow folders and waiting exports."""
        lines = [line for line in self.said if not line.endswith(" is slower than 1 s")]
        return [line for line in lines if not line.startswith("waits for exports: ")]

    @property
    def said(self) -> list[str]:
        """All messages of rlprof without their target and `training goes on`."""
        own = [line for line in self.real.err.splitlines() if line.startswith("rlprof: ")]
        lines = [line.removeprefix("rlprof: ").partition(": ") for line in own]
        return [
            self.plain(text.removesuffix("; training goes on"))
            for who, _, text in lines
            if who.count("/") == 1 and who.split()[0] in ("actor", "critic", "rollout")
        ]

    def plain(self, text: str) -> str:
        """Return *text* with RUN, SCRATCH and HOME for folders that differ from run to run."""
        for run in self.runs:
            for capture in run.captures:
                text = text.replace(capture.scratch, "SCRATCH")
            text = text.replace(str(run.path), "RUN")
        return text.replace(str(self.lab.home), "HOME")


def captures(run) -> list[str]:
    return [f"{c.window.id} {c.tool} {c.state}" for c in run.captures]


def rows(tools, broken, states):
    """Return the expected `Told.captures`, in which the other tools are whole."""
    return [
        f"{step}/update {tool} {state if tool == broken else 'whole'}"
        for step, state in enumerate(states, 1)
        for tool in tools
    ]


def assert_raw_data_kept(run) -> None:
    """Check that raw data without artifacts are kept; torch writes them at its stop."""
    for capture in run.captures:
        if capture.start_s is None or capture.artifacts or capture.state == "empty":
            continue
        if capture.closed_ns is not None or capture.tool != "torch":
            raw = [path for path in Path(capture.scratch).rglob("*") if path.is_file()]
            assert {path.name for path in raw} - {"capture.json", "export.log"}


def assert_exported(run) -> None:
    """Check that every artifact of the manifest exists, has its checksum and can be read."""
    for capture in run.captures:
        for artifact in capture.artifacts:
            data = (run.path / artifact.path).read_bytes()
            assert (artifact.size, artifact.sha256) == (len(data), hashlib.sha256(data).hexdigest())
            if artifact.format == "chrome-trace":
                data = GzipFile(run.path / artifact.path).read()
                assert json.loads(data)["rlprof"]["run"] == run.run_id
            else:
                assert isinstance(json.loads(data), list)
