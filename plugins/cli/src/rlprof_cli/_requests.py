"""The requests of `rlprof capture`: one for each role, and the targets that answer it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rlprof.config import parse_ranks
from rlprof.errors import ConfigError, RunError, closest, shown
from rlprof.schedule import LAST_STEP
from rlprof.types import DRIVER, Target
from rlprof_cli._set import misfits, read_set
from rlprof_cli.offers import drives
from rlprof_live import control
from rlprof_run import read

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from rlprof.config import Config
    from rlprof_run import Process, Run

_COMMAND = "capture"
_TICK_S = 0.2


def requests(args: argparse.Namespace, recorded: Run, config: Config) -> list[control.Request]:
    """Make the requests; raise ConfigError with all faults of the arguments."""
    roles = _unique(args.role or _live_roles(recorded, config))
    faults: list[str] = []
    ranks = _ranks(args.rank, faults)
    for name, value, least in (("--next", args.next, 1), ("--at", args.at, 0)):
        if not least <= value <= LAST_STEP:
            bound = f"at least {least}" if value < least else f"at most {LAST_STEP}"
            faults.append(f"{name}: expected {bound}, got {shown(value)}")
    inside = {role: _inside(config, role) for role in roles}
    if args.tool:
        faults += [_beside(role, config) for role in roles if inside[role] is not None]
    names = {role: _names(role, config, args.tool) for role in roles}
    within = {role: () if args.tool else inside[role] or () for role in roles}
    options = read_set(args.set, _all(names.values()), _all(within.values()), faults)
    if faults:
        raise ConfigError(faults, _COMMAND)
    found, first = [], control.new_id()
    for number, role in enumerate(roles, start=1):
        own = config.roles.get(role)
        used = {*names[role], *within[role]}
        found.append(control.Request(
            id=first if number == 1 else f"{first}-{number}",
            role=role,
            next=args.next,
            at=args.at,
            ranks=((0,) if own is None else own.ranks) if args.rank is None else ranks,
            phases=None if args.phase is None else tuple(args.phase),
            mode=args.mode,
            tool=None if args.tool is None else tuple(args.tool),
            options={tool: given for tool, given in options.items() if tool in used},
            by=control.asker(),
        ))  # fmt: skip
    for request in found:
        control.check(request, config)
    faults = _unique(fault for one in found for fault in misfits(options, one, config))
    if faults:
        raise ConfigError(faults, _COMMAND)
    return found


def _ranks(typed: str | None, faults: list[str]) -> tuple[int, ...] | None:
    """Read `--rank`; None: all of them."""
    words = [] if typed is None else typed.split(",")
    numbers: Any = [int(word) if word.strip().isdecimal() else word for word in words]
    try:
        return parse_ranks("all" if typed == "all" else numbers) if words else None
    except ValueError as exc:
        faults.append(f"--rank: {exc}")
    return None


def _names(role: str, config: Config, tools: Sequence[str] | None) -> list[str]:
    """Name the tools that would record *role*, and its engine."""
    own = config.roles.get(role)
    used = tools or (config.tool if own is None else config.tools_of(role))
    return [*used, *([own.engine] if own is not None and own.engine else [])]


def _live(recorded: Run) -> tuple[list[Process], list[Any]]:
    """Return the running processes, and the engines attached to these."""
    processes = [one for one in recorded.processes if one.state == "running"]
    names = {one.name for one in processes}
    return processes, [one for one in recorded.attached if one.process in names]


def _live_roles(recorded: Run, config: Config) -> list[str]:
    """Return the roles to record: the live roles of the config, or all live roles."""
    processes, attached = _live(recorded)
    found = {one.target.role for one in processes} | {one.role for one in attached}
    named = found & config.roles.keys()
    recorded_by = {role for role in named if config.records(role)}
    found = recorded_by or named or (found - {DRIVER}) or found  # drivers serve other roles
    if not found:
        raise RunError(f"{recorded.path}: no role is live yet; name one: --role ROLE")
    return sorted(found)


def _inside(config: Config, role: str) -> tuple[str, ...] | None:
    """Name the tools that record inside the engine of *role*; None: its plugin drives none."""
    own = config.roles.get(role)
    if own is None or own.engine is None or not drives(own.engine):
        return None
    return config.tools_inside(role)


def _beside(role: str, config: Config) -> str:
    """Report that an engine keeps the tools it was launched with."""
    there = ", ".join(config.tools_inside(role)) or "none"
    return (
        f"--tool: {role} is recorded by its engine, {config.roles[role].engine}, and by the tools "
        f"it was launched with ({there}); drop --tool, change options by --set TOOL.KEY=VALUE"
    )


def meant(recorded: Run, request: control.Request, config: Config) -> set[Who]:
    """Return the processes and attached engines that *request* addresses.

    Raise RunError if there are none.
    """
    processes, attached = _live(recorded)
    found = [
        one
        for one in attached
        if one.role == request.role and any(map(request.includes, one.ranks))
    ]
    own = config.roles.get(request.role)
    has_tools = own is None or bool(request.tool or config.tools_of(request.role))
    held_by = {one.process for one in found} if not has_tools else set()
    targets = {_who(one.target) for one in found} | {
        _who(one.target)
        for one in processes
        if one.name not in held_by  # their engines answer for them
        and one.target.role == request.role
        and request.includes(one.target.rank)
    }
    if not targets:
        raise RunError(f"{recorded.path}: {_nobody(recorded, request, config)}")
    return targets


def joined(
    recorded: Run, asked: Sequence[control.Request], within_s: float
) -> tuple[Run, list[str]]:
    """Wait until all ranks that are *asked* have opened the run; name those that have not."""
    until = time.monotonic() + within_s
    while True:
        late = [one for request in asked for one in _absent(recorded, request)]
        if not late or not recorded.is_running or time.monotonic() >= until:
            return recorded, late
        time.sleep(_TICK_S)
        recorded = read(recorded.path)


def _absent(recorded: Run, request: control.Request) -> list[str]:
    """Name the ranks in the world of *request*'s role that wrote nothing yet."""
    if any(one.role == request.role for one in recorded.attached):  # the driver knows all of them
        return []
    own = [one.target for one in recorded.processes if one.target.role == request.role]
    own = [target for target in own if target.replica is None]
    size, there = max((one.world_size for one in own), default=0), {one.rank for one in own}
    ranks = [rank for rank in range(size) if request.includes(rank) and rank not in there]
    return [str(Target(request.role, rank, size)) for rank in ranks]


Who = tuple[str, int, int | None]
"""A target, by the fields that its driver and its own process agree on."""


def _who(target: Target) -> Who:
    return target.role, target.rank, target.replica


def _nobody(recorded: Run, request: control.Request, config: Config) -> str:
    processes, attached = _live(recorded)
    targets = [*(one.target for one in processes), *(one.target for one in attached)]
    live, roles = sorted({str(one) for one in targets}), {one.role for one in targets}
    shown = ", ".join(live[:8]) + (f" and {len(live) - 8} more" if len(live) > 8 else "")
    ranks = "all ranks" if request.ranks is None else f"rank {', '.join(map(str, request.ranks))}"
    who = request.role if request.role not in roles else f"{request.role}, {ranks}"
    hint = "" if request.role in config.roles else closest(request.role, roles)
    fault = f"no live process of {who} (live: {shown or 'none'}){hint}"
    if request.role in config.roles and request.role not in roles:
        fault += "; it may not have started or been attached yet"
    return fault


def _all(found: Iterable[Iterable[str]]) -> list[str]:
    return _unique(name for names in found for name in names)


def _unique(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
