"""The terms of rlprof as frozen values, shared by all its parts."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Literal, Protocol

import attrs

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

Place = Literal["launch", "process"]
"""Where `configure` is called: before the process exists, or inside it."""

RunsOn = Literal["thread", "process", "node"]
"""Where a tool must be started and stopped: on the thread it records, anywhere in the
process, or from outside."""

DRIVER = "driver"
"""The role of a fleet's driver; a config need not name it."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LOOKS_CHANGED = re.compile(r"-[0-9a-f]{8}\Z")
_OURS = re.compile(r"step|.*\.[0-9]+", re.DOTALL)
"""The names of windows without a phase, and of windows that recur."""


def safe_name(name: str) -> str:
    """Turn any text into one path component that cannot lead elsewhere.

    Two names never get the same component: a changed name carries a checksum of the original, and
    so does a name that only looks changed.
    """
    if name and name == _cleaned(name) and not _LOOKS_CHANGED.search(name):
        return name
    return _with_checksum(name)


def _cleaned(name: str) -> str:
    return _UNSAFE.sub("-", name).strip(".-")[:80]


def _with_checksum(name: str) -> str:
    import zlib

    return f"{_cleaned(name) or 'x'}-{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"


@attrs.frozen
class Target:
    """One thing that can be recorded.

    A process (role and rank), an engine (role and replica), or a worker of an engine.
    """

    role: str
    rank: int = 0
    world_size: int = 1
    replica: int | None = None
    coordinates: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    """Where the rank stands in the parallel layout, as far as known: `{"tp": 0, "pp": 1}`."""
    worker: int | None = None
    """The number of the process in the replica, if that process records itself."""

    def __str__(self) -> str:
        if self.replica is not None:
            worker = "" if self.worker is None else f" worker {self.worker}"
            return f"{self.role} replica {self.replica}{worker}"
        return f"{self.role} {self.rank}/{self.world_size}"

    @property
    def folder(self) -> str:
        """The target's folder below a window's."""
        if self.replica is not None:
            return f"{safe_name(self.role)}_replica_{self.replica}"
        return f"{safe_name(self.role)}_{self.rank}_of_{self.world_size}"


@attrs.frozen
class Window:
    """A stretch that is recorded at once: a half-open range of steps, or a phase of it."""

    start_step: int
    end_step: int
    """The first step *after* the window."""
    phase: str | None = None
    """None: whole steps (continuous mode)."""
    occurrence: int = 0
    """Its number among the windows with the same steps and phase: 0, 1, …"""

    @property
    def steps(self) -> str:
        """Its steps in words: `7`, `7-9`, and `7-` if it has no end yet."""
        last = self.end_step - 1
        if last == self.start_step:
            return str(self.start_step)
        return f"{self.start_step}-{last}" if self.end_step < sys.maxsize else f"{self.start_step}-"

    @property
    def id(self) -> str:
        """The window's name in tables and on the command line: `7/update_actor`, `7-9`."""
        name = self.steps if self.phase is None else f"{self.steps}/{self.phase}"
        return f"{name}.{self.occurrence}" if self.occurrence else name

    @property
    def part(self) -> str:
        """The part of file and folder names that differs between windows of the same steps."""
        name = "step"
        if self.phase is not None:
            is_ours = _OURS.fullmatch(self.phase)
            name = _with_checksum(self.phase) if is_ours else safe_name(self.phase)
        return f"{name}.{self.occurrence}" if self.occurrence else name

    @property
    def folder(self) -> str:
        """The window's folder below the run's."""
        return f"step_{self.start_step:06d}/{self.part}"


@attrs.frozen
class Clock:
    """The wall clock and the monotonic clock of a process, read at one instant."""

    realtime_ns: int
    monotonic_ns: int
    bound_ns: int
    """The two readings lie at most this far apart."""


@attrs.frozen
class Launch:
    """The needs of a process at its start; Launches of several plugins are merged into one."""

    env: Mapping[str, str] = attrs.field(factory=dict)
    argv_prefix: tuple[str, ...] = ()
    engine_args: Mapping[str, Any] = attrs.field(factory=dict)
    runtime_env: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class Capture:
    """One tool recording one window of one target: all that `export` gets.

    Core writes it as `capture.json` into the window's folder before `start` is called.
    """

    run_id: str
    target: Target
    window: Window
    tool: str
    host: str
    pid: int
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """The tool's options as asked, as plain data."""
    plugin: str = ""
    """`module:class` of the tool, so that another process can export."""
    kind: Literal["tool", "engine"] = "tool"

    @property
    def header(self) -> dict[str, Any]:
        """The first key of a trace without its clock: its run, target, window and tool."""
        data = attrs.asdict(self)
        keys = ("target", "window", "tool", "host", "pid")
        return {"run": self.run_id} | {key: data[key] for key in keys}

    @property
    def stem(self) -> str:
        """The name of every file of this capture, without its suffix."""
        target = self.target
        rank = f"rank{target.rank}-of-{target.world_size}"
        if target.replica is not None:
            rank = f"replica{target.replica}"
        if target.worker is not None:
            rank += f"_rank{target.rank}-of-{target.world_size}"
        coordinates = [f"{safe_name(key)}{value}" for key, value in target.coordinates.items()]
        steps = f"step{self.window.steps}"
        parts = [safe_name(target.role), rank, *coordinates, steps, self.window.part]
        return "_".join([*parts, f"pid{self.pid}"])


@attrs.frozen
class Artifact:
    """A file that a tool made of a window."""

    path: str
    """Relative to the folder `export` was given; in the manifest, to the run folder."""
    kind: Literal["trace", "files"]
    """`trace`: a chrome-trace that carries the `rlprof` object; `files`: anything else."""
    format: str
    """`chrome-trace`, `pickle`, …"""
    status: Literal["whole", "partial"] = "whole"
    note: str = ""
    """Why it is partial, or another note for its reader."""
    events: int | None = None
    """The number of entries in `traceEvents`, with metadata (`M`); None: not counted."""
    text_size: int | None = None
    """The unpacked size, if the file is a single gzip member; None: not counted."""
    part: str = ""
    """The part of the recording it shows, if there are others: `worker 0 prefill`."""
    command: str = ""
    """The command that opens it and its siblings; `{run}` stands for the run folder."""
    size: int = 0
    sha256: str = ""


@attrs.frozen
class Led:
    """Makes `rlprof.open` open a session without steps: another process opens its windows."""

    run: str | os.PathLike[str]
    """The run folder to join."""
    any_thread: bool = False
    """Windows open on another thread than the work: tools that record a thread are refused."""
    replica: int | None = None
    """The rollout replica that the process holds, or is a worker of."""
    worker: int | None = None
    """Its number in the replica. Such a session may share a process with another."""


@attrs.frozen(eq=False)
class Workers:
    """The processes of an engine, for its plugin: the tools that record them, and orders.

    Orders are text that the plugin carries there; `rlprof.Order` reads them. Both need
    rlprof-remote. Before the engine exists, only `tools` is set.
    """

    tools: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """The tools that record them, with the options asked."""
    ranks: tuple[int, ...] = ()
    """The global ranks the engine holds, in the order of its workers; empty: unknown."""
    chosen: tuple[int, ...] = ()
    """Those of them that the config chooses."""
    given: Mapping[str, Any] = attrs.field(factory=dict)
    """The data that every order carries."""
    request: str = ""
    """The request on demand that asked for the window; empty: the schedule did."""
    loop: Any = None
    """The event loop given to `attach`, else the loop that ran at that call: an engine belongs to
    the first loop that calls it. None: there is no loop."""
    closing: list[Callable[[Any], object]] = attrs.field(factory=list)
    """Functions that the session calls, with itself, after its last write: to await processes."""

    def prepare(self) -> str:
        """Write the order to open their sessions and let the tools warm up."""
        return self._order("prepare")

    def begin(self, window: Window) -> str:
        """Write the order to open *window*."""
        return self._order("begin", window=attrs.asdict(window))

    def end(self, window: Window, reason: str = "end") -> str:
        """Write the order to close it."""
        return self._order("end", window=attrs.asdict(window), reason=reason)

    def _order(self, verb: str, **fields: Any) -> str:
        from rlprof.distributions import load

        return str(load("rlprof_remote", asked="Workers").write(self, verb, **fields))


class Recording(Protocol):
    """A value that `start` may return; core calls its methods while the window is open.

    Every member is optional; write a class with only the members you need. Core calls `push` and
    `pop` on the thread of the phase, nested per thread. When a window is closed early, ranges may
    still be open at `stop`.
    """

    applied: Mapping[str, Any]
    """The options that took effect."""
    unsupported: Mapping[str, str]
    """Requested options that are unsupported here: option → reason."""

    def push(self, name: str, payload: Mapping[str, Any]) -> None:
        """Open a range: the phase *name* begins; *payload* is `{"step": 7, "occurrence": 0}`."""

    def pop(self) -> None:
        """Close the range opened last."""

    def minibatch(self) -> None:
        """Hear that the working code begins its next mini-batch."""
