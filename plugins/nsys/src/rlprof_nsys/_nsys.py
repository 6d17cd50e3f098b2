"""The tool `nsys`: one Nsight Systems report for each window, while the program runs on."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, Any

import attrs

from rlprof import CaptureError, Launch, hookimpl
from rlprof_nsys._arguments import Mark, launch_of, read_mark
from rlprof_nsys._options import NsysOptions, advise
from rlprof_nsys._processes import is_forked, leave_children_alone, watch_agent
from rlprof_nsys._program import ConversionError, Program, find_nsys, options_in, too_old
from rlprof_nsys._ranges import Edge, Ranges, edge_of, load_nvtx
from rlprof_nsys._report import NOTES, write_notes
from rlprof_nsys._session import Session
from rlprof_nsys._shared import Word

if TYPE_CHECKING:
    from pathlib import Path

    from rlprof import Artifact, Capture, Target, Window
    from rlprof.types import Place

_FIXED = "is fixed when the program starts, and had another value then"
_NOT_CLOSED = "the process ended inside the window"


@attrs.define
class _Open:
    """The window that is open."""

    folder: Path
    ranges: Ranges
    edge: Edge | None
    notes: dict[str, Any]


@attrs.define(eq=False)  # identity: pluggy compares plugins
class Nsys:
    """Record windows with Nsight Systems: NVTX, CUDA and the OS, with a report for each window."""

    Options = NsysOptions
    runs_on = "node"
    # Not per node: each process has a separate session. nsys traces CUDA with CUPTI.
    claims = {"nsys": "process", "cupti": "process"}  # noqa: RUF012 -- read, never written

    advise = staticmethod(hookimpl(advise))
    leave_alone = staticmethod(leave_children_alone)

    options: NsysOptions = attrs.field(factory=NsysOptions)
    _session: Session | None = None
    _version: str = ""
    _collecting: tuple[str, ...] = ()
    _nvtx: Any = None
    _self_test: str | None = None
    _unsupported: dict[str, str] = attrs.field(factory=dict)
    _mark: Mark = attrs.field(factory=Mark)
    _open: _Open | None = None

    @hookimpl
    def configure(self, place: Place, target: Target, options: NsysOptions) -> Launch | None:
        """At launch, put the launcher before the command; in the process, check the session."""
        if place == "launch":
            return launch_of(target, options)
        self.options = options
        self._session = self._join()
        watch_agent()
        self._look_at_options(self._session.program)
        if "nvtx" in options.trace:
            self._nvtx, why = load_nvtx()
            if not why and options.self_test and "nvtx" not in self._unsupported:
                why = self._try_a_range(self._session)
            if why:
                self._unsupported.setdefault("nvtx", why)
        return None

    @hookimpl
    def start(self, window: Window, target: Target, folder: Path) -> Ranges:
        """Have nsys collect, or join the window that another process of the session opened."""
        session = self._session
        if session is None:
            raise CaptureError("nsys was not configured in this process")
        if self._open is not None:
            raise CaptureError("a window is open already: an nsys session has one at a time")
        if not folder.is_dir():
            raise CaptureError(f"{folder} is not a folder; nsys would write elsewhere")
        folder = folder.absolute()  # nsys runs in another folder
        edge = edge_of(self.options, self._nvtx)
        notes = self._notes(session)
        write_notes(folder / NOTES, notes)
        more = () if edge is None else edge.options
        word = Word(str(folder), window.folder, os.getpid(), str(target))
        asked = [*self._collecting, *more]
        other = session.start(folder, asked, word, within_s=self.options.start_s)
        if other is not None:
            notes["joined"] = {"who": other.who, "pid": other.pid, "folder": other.folder}
            write_notes(folder / NOTES, notes)
        elif edge is not None:
            try:
                edge.begin()
            except Exception as exc:  # else the window waits for its range
                session.stop(folder, within_s=10)
                raise CaptureError(f"cannot start the range of the window: {exc}") from exc
        applied = {
            "mode": self.options.mode,
            "session": session.name,
            "version": self._version,
            "trace": self._mark.trace,
            "collecting": " ".join(self._collecting),
        }
        if other is not None:
            applied["report"] = f"one with {other.who}"
        ranges = Ranges(self._nvtx, applied, dict(self._unsupported))
        self._open = _Open(folder, ranges, edge, notes)
        return ranges

    @hookimpl
    def stop(self) -> None:
        """Stop nsys, and wait until its report is whole."""
        opened, self._open = self._open, None
        session = self._session
        if opened is None or session is None:
            return
        notes = opened.notes
        notes["wall"].append(time.time_ns())
        notes["spans"] = opened.ranges.count
        if "joined" in notes:
            write_notes(opened.folder / NOTES, notes | {"why": ""})
            return
        if opened.edge is None:
            found = session.stop(opened.folder, within_s=self.options.stop_s)
        else:
            opened.edge.end()
            found = session.await_range(opened.folder, within_s=self.options.stop_s)
        file = opened.folder / found.file if found.file else None
        notes.update(
            whole=bool(file) and not found.why,
            why=found.why,
            bytes=file.stat().st_size if file else 0,
        )
        write_notes(opened.folder / NOTES, notes)
        if found.why:
            raise CaptureError(found.why)

    @hookimpl
    def export(self, capture: Capture, folder: Path, out: Path) -> list[Artifact]:
        """Export the report as artifacts."""
        from rlprof_nsys._export import exported

        return list(exported(capture, folder, out))

    def _join(self) -> Session:
        """Find the session that this process started in; raise CaptureError if there is none."""
        mark = read_mark(os.environ)
        own = os.environ.get("NSYS_PROFILING_SESSION_ID", "")
        if self.options.mode == "attached":
            if not own:
                raise CaptureError(
                    "mode attached: this process is not in an nsys session; start it with "
                    "`nsys launch`, or leave mode out"
                )
            return Session(Program(find_nsys(self.options.nsys) or self.options.nsys), own)
        if mark is None:
            raise CaptureError(
                "this process was not started under nsys; put rlprof.launch(...).argv_prefix "
                "before its command, or give an actor its runtime_env"
            )
        if mark.why:
            raise CaptureError(f"the program runs unprofiled: {mark.why}")
        if not own:
            raise CaptureError(
                f"nsys is not in this process (session {mark.session}): its environment was "
                "changed after the launcher; start it with the variables of its parent"
            )
        if is_forked():
            raise CaptureError(
                "this process was forked and never called exec, so nsys does not see it; spawn "
                "it instead (vLLM: VLLM_WORKER_MULTIPROC_METHOD=spawn)"
            )
        self._mark = mark
        for name in ("trace", "env"):
            then, now = mark.asked.get(name, ()), getattr(self.options, name)
            if mark.asked and now != (None if then is None else tuple(then)):
                self._unsupported[name] = _FIXED
        return Session(Program(mark.nsys, mark.folder), mark.session)

    def _look_at_options(self, program: Program) -> None:
        """Choose the options for `nsys start`; note those that this nsys does not have."""
        self._version = program.version()
        why = too_old(program.path, self._version)
        if why:
            raise CaptureError(why)
        known = options_in(program.help("start"))
        if "output" not in known:
            raise CaptureError(
                f"{program.path} start --help does not answer; check the installation"
            )
        at_launch = options_in(program.help("launch"))
        chosen = []
        for name, value in self.options.collecting.items():
            if name in known:
                chosen.append(f"--{name}={value}")
            elif name in self.options.options and name not in at_launch:
                self._unsupported[name] = f"nsys {self._version} has no option --{name}"
            elif self._mark.asked and value != self._mark.asked["options"].get(name):
                self._unsupported[name] = _FIXED
            elif name in self.options.options and self.options.mode == "attached":
                self._unsupported[name] = "belongs to `nsys launch`; give it there"
        self._collecting = tuple(chosen)

    def _try_a_range(self, session: Session) -> str:
        from rlprof_nsys._self_test import tested

        try:
            self._self_test = tested(
                session, self._nvtx, list(self._collecting), start_s=self.options.start_s
            )
        except (CaptureError, ConversionError, OSError, sqlite3.Error) as exc:
            return f"unknown whether nsys sees ranges of phases: {exc}"
        return self._self_test

    def _notes(self, session: Session) -> dict[str, Any]:
        return {
            "nsys": session.program.path,
            "version": self._version,
            "env": self._mark.asked.get("env", self.options.env),
            "whole": False,
            "why": _NOT_CLOSED,
            "wall": [time.time_ns()],
            "self_test": self._self_test,
        }
