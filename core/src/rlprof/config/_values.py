"""The configuration as frozen values, with their defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003 -- read when a config is structured
from typing import Any, ClassVar

import attrs
from attrs.validators import optional

from rlprof.errors import shown
from rlprof.schedule import Mode, Schedule, Steps, parse_steps

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]*)")
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_size(value: Any) -> int:
    """Read a number of bytes: `4000000000`, `4GB`, `512 MiB`."""
    if type(value) is int and 0 < value < 2**63:
        return value
    found = _SIZE.fullmatch(value) if type(value) is str else None
    size = float(found[1]) * _UNITS.get(found[2].upper(), 0) if found else 0
    if not 1 <= size < 2**63:
        raise ValueError(f"expected a size like 4GB, 512MiB or 1000000, got {shown(value)}")
    return int(size)


def parse_ranks(value: Any) -> tuple[int, ...] | None:
    """Read `ranks`: `all` (None), a rank, or a list of them."""
    items = value if isinstance(value, (list, tuple)) else [value]
    if [*map(type, items)] == [str] and items[0] == "all":
        return None
    for item in items:
        if type(item) is not int or not 0 <= item < 2**31:
            raise ValueError(f"expected 'all' or a list of ranks like [0, 7], got {shown(item)}")
    if not items:
        raise ValueError("names no rank; write 'all', name some, or leave the role out")
    return tuple(sorted(set(items)))


_NOTHING = ("", "none", "null")
"""Words that name nothing where they cannot stand for null."""


def parse_names(value: Any) -> tuple[str, ...]:
    """Read one name or a list of them."""
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if type(item) is not str or item.lower() in _NOTHING:
            raise ValueError(f"expected a name or a list of names, got {shown(item)}")
    if not items:
        raise ValueError("names nothing; name some, or leave it out for all")
    twice = [item for index, item in enumerate(items) if item in items[:index]]
    if twice:
        raise ValueError(f"names {shown(twice[0])} twice; leave one out")
    return tuple(items)


def _parse_tools(value: Any) -> tuple[str, ...]:
    """Read `tool`: `none`, a name, or a list of names."""
    return () if value in ("none", [], ()) else parse_names(value)


def _above(least: float, most: float) -> Any:
    def validate(_: Any, __: Any, value: float) -> None:
        if not least < value <= most:
            raise ValueError(
                f"expected more than {least:g} and at most {most:g}, got {shown(value)}"
            )

    return validate


_seconds = _above(0, 1e9)  # 31 years; what can be waited for ends at 292


@attrs.frozen
class Limits:
    """The limits of the cost of profiling."""

    bytes: int = attrs.field(default=4 * 10**9, metadata={"parse": parse_size})
    """Artifacts of the run; each recorded rank may write an equal share."""
    window_s: float = attrs.field(default=300.0, validator=_seconds)
    """The longest time a window stays open; then it is closed early."""
    configure_timeout_s: float = attrs.field(default=60.0, validator=_seconds)
    """How long opening the session waits for the run folder, and for a tool to warm up."""
    start_timeout_s: float = attrs.field(default=5.0, validator=_seconds)
    """How long a step waits for a tool to start."""
    stop_timeout_s: float = attrs.field(default=120.0, validator=_seconds)
    """How long a step waits for a tool to stop; one that took longer is not used again."""
    export_timeout_s: float = attrs.field(default=600.0, validator=_seconds)
    """How long the helper process may take for one window."""


@attrs.frozen
class Counters:
    """How often memory, devices and engines are read."""

    every_s: float = attrs.field(default=1.0, validator=_seconds)
    """Seconds between two readings while no window is open."""
    in_window_s: float = attrs.field(default=0.1, validator=_seconds)
    """Seconds between two readings while a window is open."""
    bytes: int = attrs.field(default=100 * 10**6, metadata={"parse": parse_size})
    """Beyond this size a process writes no more counters."""


@attrs.frozen
class Spans:
    """How many bytes of spans a process may write."""

    bytes: int = attrs.field(default=10**9, metadata={"parse": parse_size})
    """Beyond this size a process writes only steps, phases and a summary of each step."""


@attrs.frozen
class SlowStep:
    """When a step is slow enough for the next one to be recorded."""

    times: float = attrs.field(default=2.0, validator=_above(1, 1e6))
    """It took longer than this many times the median of the steps before it."""
    most: int = attrs.field(default=3, validator=_above(0, 1000))
    """The most slow steps per run that cause a recording."""


def _folder(_: Any, __: Any, value: str) -> None:
    if value.strip().lower() in _NOTHING:
        got = shown(value) if value.strip() else "an empty name"
        raise ValueError(f"expected a folder, got {got}; leave it out for the default")
    if value.startswith("~") or "$" in value:
        raise ValueError(f"'~' and '$' are not expanded, got {shown(value)}; write the full path")


def _local_folder(_: Any, __: Any, value: str) -> None:
    _folder(_, __, value)
    if not value.startswith("/"):
        raise ValueError(
            f"expected an absolute path, got {shown(value)}; the working directory of an actor "
            "is not the driver's"
        )


@attrs.frozen
class Fleet:
    """The files of the members of a fleet; a single process ignores this."""

    node_dir: str | None = attrs.field(default=None, validator=optional(_local_folder))
    """A folder on the local disk of each node; None: they write to the path of the run folder."""
    collect: bool = True
    """False: closing the fleet lists files on other nodes, but does not collect them."""


_ELSEWHERE = {
    "save_path": "run_dir: FOLDER, for the whole run",
    "discrete": "mode: discrete, or mode: continuous, for the whole run",
    "profile_continuous_steps": "mode: continuous with join_steps: true, for the whole run",
    "all_ranks": "roles.<role>.ranks: all",
    "ranks": "roles.<role>.ranks",
    "contents": "tools.<tool>.contents, or options.<tool>.contents in a role",
    "tool_config": "tools, or options in a role",
    "global_tool_config": "tools",
    "enable": "enabled: true for the whole run; a role left out is not recorded",
    "relocate_results": "nothing; files always land in the run folder",
    "engine": "roles: {rollout: {engine: NAME}}",
}
"""Keys of verl's profiler, and a key of roles, with their counterparts here."""


@attrs.frozen
class Role:
    """The recording of one role."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = _ELSEWHERE

    ranks: tuple[int, ...] | None = attrs.field(default=(0,), metadata={"parse": parse_ranks})
    """Global ranks, or `all`."""
    phases: tuple[str, ...] | None = attrs.field(default=None, metadata={"parse": parse_names})
    """Discrete mode: the phases to record; None: all of them."""
    tool: tuple[str, ...] | None = attrs.field(default=None, metadata={"parse": _parse_tools})
    """Tools of this role; None: those of the run; `none`: it writes spans and counters only."""
    engine: str | None = None
    """The rollout engine this role is."""
    options: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """Options of tools and engines for this role, over those of `tools` and `engines`."""

    def includes(self, rank: int) -> bool:
        """Whether *rank* is chosen."""
        return self.ranks is None or rank in self.ranks


@attrs.frozen
class Config:
    """The whole configuration."""

    ELSEWHERE: ClassVar[Mapping[str, str]] = _ELSEWHERE

    run_dir: str = attrs.field(default="outputs/profile", validator=_folder)
    """The parent of run folders, which all hosts of a run should see; or a URL: `s3://bucket/runs`."""
    scratch_dir: str | None = attrs.field(default=None, validator=optional(_folder))
    """Local disk for raw data; None: the system's folder for temporary files."""
    enabled: bool = True
    """False: as if there were no config."""
    tool: tuple[str, ...] = attrs.field(default=(), metadata={"parse": _parse_tools})
    """The tools of roles that name none: a name, a list of names, or `none`."""
    steps: Steps = attrs.field(default=Steps(), metadata={"parse": parse_steps})
    """`[2, 5]`, `"2-4"`, `{every: 100, first: 2, last: 1000}` or `none`."""
    mode: Mode = "discrete"
    """`discrete`: a window per outermost phase; `continuous`: a window per step."""
    join_steps: bool = False
    """Continuous mode: one window for a stretch of consecutive steps."""
    roles: Mapping[str, Role] = attrs.field(factory=dict)
    """The recording of each role; a role left out is not recorded."""
    tools: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """Options by tool."""
    engines: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """Options by engine."""
    limits: Limits = Limits()
    """What profiling may cost."""
    spans: Spans = Spans()
    """The spans that each process always writes."""
    counters: Counters | None = Counters()
    """Memory, devices and engines over time; None: no counters."""
    slow_step: SlowStep | None = None
    """Record the step after a slow one; None: record only `steps`, and requests."""
    listeners: tuple[str, ...] | None = attrs.field(default=None, metadata={"parse": _parse_tools})
    """The listeners, or `none`; None: `live`, if it is installed."""
    fleet: Fleet = Fleet()
    """How a driver of many actors handles the files on their nodes."""
    quiet: bool = False
    """True: print nothing; False: the leading process prints two lines on stderr."""
    strict: bool = False
    """True: errors of rlprof and its plugins stop training instead of being recorded."""

    @property
    def is_remote(self) -> bool:
        """Whether `run_dir` is a URL."""
        return "://" in self.run_dir

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data, written as a user would."""
        data = attrs.asdict(self)
        data["steps"] = self.steps.as_data()
        for name, role in self.roles.items():
            data["roles"][name]["ranks"] = "all" if role.ranks is None else list(role.ranks)
        return data

    def expected(self) -> dict[str, Any]:
        """Return the ranks to record, by role, without engines of other processes."""
        return {
            name: "all" if role.ranks is None else list(role.ranks)
            for name, role in self.roles.items()
            if role.engine is None and self.records(name) and self.steps
        }

    def schedule(self, role: str) -> Schedule:
        """Return when *role* is recorded; never, if it is left out or has spans only."""
        if role not in self.roles or not self.records(role):
            return Schedule()
        return Schedule(self.steps, self.mode, self.roles[role].phases, self.join_steps)

    def records(self, role: str) -> bool:
        """Whether anything records *role*; without, it has its spans only."""
        return bool(self.tools_of(role)) or self.roles[role].engine is not None

    def tools_of(self, role: str) -> tuple[str, ...]:
        """Name the tools that record *role*."""
        own = self.roles[role]
        if own.tool is None:  # those of the run are for training, not for servers
            return () if own.engine is not None else self.tool
        return own.tool

    def tools_inside(self, role: str) -> tuple[str, ...]:
        """Name the tools that record the processes of *role*'s engine, if its plugin drives any."""
        own = self.roles[role]
        return self.tool if own.tool is None else own.tool

    def share(self, world_size: int) -> int:
        """Return the bytes of artifacts one rank may write: an equal part of `limits.bytes`.

        `ranks: all` counts as *world_size* ranks.
        """
        recorded = (role for name, role in self.roles.items() if self.records(name))
        ranks = (world_size if one.ranks is None else len(one.ranks) for one in recorded)
        return max(1, self.limits.bytes // max(1, sum(ranks)))
